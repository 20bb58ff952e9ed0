// What TLS contexts of clusters and of listeners share: where keys and roots come from (SDS), what peers must prove.
// istiod: pilot/pkg/security/model/authentication.go, pilot/pkg/networking/util/util.go
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/typed_config.h"
#include "core/model/proxy.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"

namespace wavetank::pilot {

// ALPN lists.
inline constexpr std::string_view kAlpnH2Only[] = {"h2"};
inline constexpr std::string_view kAlpnInMesh[] = {"istio"};
inline constexpr std::string_view kAlpnInMeshWithMxc[] = {"istio-peer-exchange", "istio"};
inline constexpr std::string_view kAlpnInMeshH2[] = {"istio", "h2"};
inline constexpr std::string_view kAlpnInMeshH2WithMxc[] = {"istio-peer-exchange", "istio", "h2"};
inline constexpr std::string_view kAlpnHttp[] = {"h2", "http/1.1"};
inline constexpr std::string_view kAlpnDownstreamWithMxc[] = {"istio-peer-exchange", "h2", "http/1.1"};

inline constexpr std::string_view kTlsTransportSocket = "envoy.transport_sockets.tls";
inline constexpr std::string_view kRawBufferTransportSocket = "envoy.transport_sockets.raw_buffer";

inline constexpr std::string_view kSdsDefaultResource = "default";
inline constexpr std::string_view kSdsRootResource = "ROOTCA";
inline constexpr std::string_view kSdsCaSuffix = "-cacert";

// credentialNames that istiod itself writes (istiod: pilot/pkg/model/credentials/resource.go): roots that a ConfigMap
// holds, and a certificate that never comes.
inline constexpr std::string_view kConfigMapCredential = "configmap://";
inline constexpr std::string_view kInvalidCredential = "invalid://";

namespace envoy_tls = ::envoy::extensions::transport_sockets::tls::v3;
namespace envoy_matcher = ::envoy::type::matcher::v3;

void SetAlpn(envoy_tls::CommonTlsContext& context, std::span<const std::string_view> protocols);

// A secret that the agent serves over its socket: the workload's own, or "file-cert:..." (istiod:
// ConstructSdsSecretConfig). Only the two built-in names get an initial fetch timeout of 0.
void SetAgentSecret(std::string_view name, envoy_tls::SdsSecretConfig& out);

// The SDS name of a credentialName: "kubernetes://name" unless it says its own type (istiod:
// credentials.ToResourceName).
std::string CredentialResourceName(std::string_view credential_name);

// A secret named by `credentialName`: from istiod over ADS, from the agent for "builtin://", or with
// `credential_socket` from the external socket for "sds://" (istiod: ConstructSdsSecretConfigForCredential).
void SetCredentialSecret(std::string_view credential_name, bool credential_socket, envoy_tls::SdsSecretConfig& out);

// True when the proxy's metadata says that a socket serves "sds://" credentials.
bool HasCredentialSocket(const Proxy& proxy);

// Paths of certificates mounted into the proxy; all empty: the workload's own certificate.
struct CertificateFiles {
  std::string_view certificate, key, root;
};

// The workload's (or the files') certificate; with `validate_peer` also its root, and that the peer has one of `sans`
// or a SPIFFE identity in one of `trust_domains`. istiod: ApplyToCommonTLSContext.
void ApplyWorkloadCertificate(envoy_tls::CommonTlsContext& context, const CertificateFiles& files,
                              const std::vector<std::string>& sans, const std::vector<std::string>& trust_domains,
                              bool validate_peer);

// match_subject_alt_names: deprecated in Envoy's API, and what istiod 1.18 fills.
google::protobuf::RepeatedPtrField<envoy_matcher::StringMatcher>* SubjectAltNameMatchers(
    envoy_tls::CertificateValidationContext& context);

void AddExactMatchers(const std::vector<std::string>& values,
                      google::protobuf::RepeatedPtrField<envoy_matcher::StringMatcher>* out);
void AddPrefixMatchers(const std::vector<std::string>& values,
                       google::protobuf::RepeatedPtrField<envoy_matcher::StringMatcher>* out);

}  // namespace wavetank::pilot
