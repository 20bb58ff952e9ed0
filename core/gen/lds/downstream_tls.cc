#include "core/gen/lds/downstream_tls.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "core/base/containers/memo.h"
#include "core/config/schema/cipher_suites.h"
#include "core/envoyapi/any.h"
#include "core/gen/view/common_tls.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "google/protobuf/arena.h"

namespace wavetank::pilot {
namespace {

using ServerSettings = config::ServerTlsSettings;
using MeshTls = config::MeshConfig::TlsSettings;
using DownstreamPb = envoy_tls::DownstreamTlsContext;

// istiod: authn_utils.SupportedCiphers.
constexpr std::array kMeshCiphers = {
    "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",   "AES256-GCM-SHA384",           "AES128-GCM-SHA256",
};

std::vector<std::string> KnownCiphers(const std::vector<std::string>& ciphers) {
  std::vector<std::string> out;
  for (const std::string& cipher : ciphers) {
    if (config::IsKnownCipherSuite(cipher) && std::find(out.begin(), out.end(), cipher) == out.end())
      out.push_back(cipher);
  }
  return out;
}

envoy_tls::TlsParameters::TlsProtocol ToProtocol(ServerSettings::Version version) {
  return static_cast<envoy_tls::TlsParameters::TlsProtocol>(version);
}
// istiod: authn_utils.GetMinTLSVersion.
envoy_tls::TlsParameters::TlsProtocol MinimumOf(MeshTls::Version version) {
  return version == MeshTls::Version::kTls13 ? envoy_tls::TlsParameters::TLSv1_3 : envoy_tls::TlsParameters::TLSv1_2;
}
// The mesh's enum has no TLS 1.0 and 1.1, yet istiod until 1.29 reads its numbers as Envoy's: TLSV1_2 allows TLS 1.0,
// TLSV1_3 TLS 1.1. istiod: pilot/pkg/networking/core/v1alpha3/listener.go, applyDownstreamTLSDefaults.
envoy_tls::TlsParameters::TlsProtocol ToProtocol(MeshTls::Version version, const Profile& profile) {
  if (profile.Has(Change::kMinimumTlsAsSaid)) return MinimumOf(version);
  return static_cast<envoy_tls::TlsParameters::TlsProtocol>(version);
}

CertificateFiles FilesOf(const NodeMetadata& metadata) {
  return {metadata.tls_server_cert_chain, metadata.tls_server_key, metadata.tls_server_root_cert};
}

std::vector<std::string> TrustDomains(const config::MeshConfig& mesh) {
  std::vector<std::string> out{mesh.trust_domain};
  for (const std::string& alias : mesh.trust_domain_aliases) {
    if (std::find(out.begin(), out.end(), alias) == out.end()) out.push_back(alias);
  }
  return out;
}

std::string EncodeSocket(const DownstreamPb& context) {
  using SocketPb = envoy::config::core::v3::TransportSocket;
  static const auto& type = *new std::string(TypeUrlOf(context));
  std::string out;
  const size_t size = context.ByteSizeLong();
  out.reserve(size + type.size() + 64);
  wire::Writer w(&out);
  w.Bytes(SocketPb::kNameFieldNumber, kTlsTransportSocket);
  w.Any(SocketPb::kTypedConfigFieldNumber, type, Serialize(context));
  return out;
}

// A context and all that is in it go at once.
struct Draft {
  google::protobuf::Arena arena;
  DownstreamPb& context = *google::protobuf::Arena::CreateMessage<DownstreamPb>(&arena);
};

// Of a client that shows a certificate, be it that it need not.
bool ChecksClients(const ServerSettings& settings) {
  return settings.mode == ServerSettings::Mode::kMutual || settings.mode == ServerSettings::Mode::kOptionalMutual;
}

// A certificate of the router's operator, fetched from istiod. istiod: ApplyCredentialSDSToServerCommonTLSContext.
void ApplyCredential(const ServerSettings& settings, const Profile& profile, bool socket,
                     envoy_tls::CommonTlsContext& out) {
  std::vector<std::string> names;
  if (profile.Has(Change::kSeveralCertificates)) names = settings.credential_names;
  if (names.empty()) names.push_back(settings.credential_name);
  for (const std::string& name : names)
    SetCredentialSecret(name, socket, *out.add_tls_certificate_sds_secret_configs());
  if (ChecksClients(settings)) {
    auto* combined = out.mutable_combined_validation_context();
    auto* validation = combined->mutable_default_validation_context();
    AddExactMatchers(settings.subject_alt_names, SubjectAltNameMatchers(*validation));
    for (const std::string& spki : settings.verify_certificate_spki) validation->add_verify_certificate_spki(spki);
    for (const std::string& hash : settings.verify_certificate_hash) validation->add_verify_certificate_hash(hash);
    const bool own_ca = profile.Has(Change::kCaByItsOwnName) && !settings.ca_cert_credential_name.empty();
    SetCredentialSecret(
        own_ca ? settings.ca_cert_credential_name : absl::StrCat(names.front(), std::string(kSdsCaSuffix)), socket,
        *combined->mutable_validation_context_sds_secret_config());
  } else if (!settings.subject_alt_names.empty()) {
    AddExactMatchers(settings.subject_alt_names, SubjectAltNameMatchers(*out.mutable_validation_context()));
  }
}

void ApplyParameters(const ServerSettings& settings, const MeshTls& defaults, const Profile& profile,
                     envoy_tls::CommonTlsContext& out) {
  for (const std::string& curve : defaults.ecdh_curves) out.mutable_tls_params()->add_ecdh_curves(curve);
  if (defaults.min_protocol_version != MeshTls::Version::kAuto) {
    out.mutable_tls_params()->set_tls_minimum_protocol_version(ToProtocol(defaults.min_protocol_version, profile));
  }
  if (settings.min_protocol_version != ServerSettings::Version::kAuto) {
    out.mutable_tls_params()->set_tls_minimum_protocol_version(ToProtocol(settings.min_protocol_version));
  }
  const std::vector<std::string> own = KnownCiphers(settings.cipher_suites);
  const bool defaults_count = own.empty() && profile.Has(Change::kTlsDefaultCiphers);
  for (const std::string& cipher : defaults_count ? defaults.cipher_suites : own) {
    out.mutable_tls_params()->add_cipher_suites(cipher);
  }
  if (settings.max_protocol_version != ServerSettings::Version::kAuto) {
    out.mutable_tls_params()->set_tls_maximum_protocol_version(ToProtocol(settings.max_protocol_version));
  }
}

}  // namespace

std::string InboundMutualTlsSocket(const Proxy& proxy, const config::MeshConfig& mesh, const Profile& profile,
                                   bool validates, bool http) {
  const CertificateFiles files = FilesOf(proxy.metadata);
  const std::vector<std::string> trust_domains = validates ? TrustDomains(mesh) : std::vector<std::string>();
  const MeshTls::Version version = mesh.mesh_mtls.min_protocol_version;
  // Nearly all proxies of a mesh get the same: the last ones are kept, by all that they are made from.
  thread_local Memo<std::string> sockets(16);
  std::string asked = absl::StrCat(http ? "http " : "tcp ", static_cast<int>(version));
  const auto ask = [&](std::string_view part) {
    absl::StrAppend(&asked, " ", part.size(), ":");
    asked.append(part);
  };
  for (const std::string_view file : {files.certificate, files.key, files.root}) ask(file);
  for (const std::string& domain : trust_domains) ask(domain);
  static const std::vector<std::string> kMeshDefault(kMeshCiphers.begin(), kMeshCiphers.end());
  const bool own_ciphers = profile.Has(Change::kTlsDefaultCiphers) && !mesh.mesh_mtls.cipher_suites.empty();
  const std::vector<std::string>& ciphers = own_ciphers ? mesh.mesh_mtls.cipher_suites : kMeshDefault;
  absl::StrAppend(&asked, own_ciphers ? " own" : "");
  for (const std::string& cipher : ciphers) ask(cipher);
  if (const std::string* socket = sockets.Find(asked); socket != nullptr) return *socket;
  Draft draft;
  DownstreamPb& context = draft.context;
  context.mutable_require_client_certificate()->set_value(true);
  envoy_tls::CommonTlsContext& common = *context.mutable_common_tls_context();
  if (http) {
    SetAlpn(common, kAlpnHttp);
  } else {
    SetAlpn(common, kAlpnDownstreamWithMxc);
  }
  auto* parameters = common.mutable_tls_params();
  for (const std::string& cipher : ciphers) parameters->add_cipher_suites(cipher);
  parameters->set_tls_minimum_protocol_version(MinimumOf(version));
  parameters->set_tls_maximum_protocol_version(envoy_tls::TlsParameters::TLSv1_3);
  ApplyWorkloadCertificate(common, files, {}, trust_domains, true);
  std::string socket = EncodeSocket(context);
  sockets.Keep(std::move(asked), socket);
  return socket;
}

std::string ServerTlsSocket(const ServerSettings& settings, const Proxy& proxy, const config::MeshConfig& mesh,
                            const Profile& profile, bool tcp) {
  const bool istio_mutual = settings.mode == ServerSettings::Mode::kIstioMutual;
  const bool validate = istio_mutual || ChecksClients(settings);
  const bool required = istio_mutual || settings.mode == ServerSettings::Mode::kMutual;
  Draft draft;
  DownstreamPb& context = draft.context;
  context.mutable_require_client_certificate()->set_value(required);
  envoy_tls::CommonTlsContext& common = *context.mutable_common_tls_context();
  if (istio_mutual && tcp) {
    SetAlpn(common, kAlpnDownstreamWithMxc);
  } else {
    SetAlpn(common, kAlpnHttp);
  }
  const bool several = profile.Has(Change::kSeveralCertificates);
  const bool credential =
      !istio_mutual && (!settings.credential_name.empty() || (several && !settings.credential_names.empty()));
  if (istio_mutual) {
    ApplyWorkloadCertificate(common, FilesOf(proxy.metadata), settings.subject_alt_names, {}, validate);
  } else if (credential) {
    ApplyCredential(settings, profile, HasCredentialSocket(proxy), common);
  } else {
    const CertificateFiles files{settings.server_certificate, settings.private_key, settings.ca_certificates};
    ApplyWorkloadCertificate(common, files, settings.subject_alt_names, {}, validate);
    if (several && !settings.tls_certificates.empty()) {
      common.clear_tls_certificate_sds_secret_configs();
      for (const ServerSettings::Certificate& each : settings.tls_certificates) {
        const CertificateFiles own{each.server_certificate, each.private_key, {}};
        ApplyWorkloadCertificate(common, own, {}, {}, false);
      }
    }
  }
  if (validate && !credential && !settings.ca_crl.empty() && profile.Has(Change::kRevocationFiles)) {
    auto* validation = common.mutable_combined_validation_context()->mutable_default_validation_context();
    validation->mutable_crl()->set_filename(settings.ca_crl);
  }
  if (settings.mode == ServerSettings::Mode::kSimple || ChecksClients(settings)) {
    ApplyParameters(settings, mesh.tls_defaults, profile, common);
  }
  return EncodeSocket(context);
}

}  // namespace wavetank::pilot
