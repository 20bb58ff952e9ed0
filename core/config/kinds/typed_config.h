// One Istio custom resource, parsed: its metadata and its spec. Immutable and shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/kube/object.h"

namespace wavetank::config {

using kube::Labels;

enum class Kind : uint8_t {
  kDestinationRule,
  kGateway,
  kPeerAuthentication,
  kServiceEntry,
  kSidecar,
  kVirtualService,
  kWorkloadEntry,
  kAuthorizationPolicy,
  kEnvoyFilter,
  kTelemetry,
  kRequestAuthentication,
  kWasmPlugin,
};
inline constexpr int kKinds = 12;
std::string_view KindName(Kind kind);  // "DestinationRule"
const kube::ResourceKind& ResourceKindOf(Kind kind);

struct ConfigMeta {
  Kind kind = Kind::kDestinationRule;
  std::string name, ns;
  Labels labels, annotations;
  bool has_labels = false;  // there, though maybe empty
  int64_t creation_unix_seconds = 0;
  int64_t generation = 0;
  int64_t resource_version = 0;
  std::string uid;
};

template <typename Spec>
struct TypedConfig {
  ConfigMeta meta;
  Spec spec;
};
template <typename Spec>
using TypedConfigRef = std::shared_ptr<const TypedConfig<Spec>>;

// Types that several kinds share.

// istio.io/api StringMatch. An empty match in a map of headers means presence.
struct StringMatch {
  enum class Kind : uint8_t { kNone, kExact, kPrefix, kRegex };
  Kind kind = Kind::kNone;
  std::string value;
  friend bool operator==(const StringMatch&, const StringMatch&) = default;
};

// istio.io/api Destination. Port 0: not given.
struct Destination {
  std::string host, subset;
  uint32_t port = 0;
  friend bool operator==(const Destination&, const Destination&) = default;
};

// networking.Port of Gateways and SidecarPort of Sidecars.
struct PortSpec {
  uint32_t number = 0;
  std::string protocol, name;
  uint32_t target_port = 0;
  friend bool operator==(const PortSpec&, const PortSpec&) = default;
};

// networking.ServerTLSSettings; enum values are those of the API.
struct ServerTlsSettings {
  enum class Mode : uint8_t { kPassthrough, kSimple, kMutual, kAutoPassthrough, kIstioMutual, kOptionalMutual };
  enum class Version : uint8_t { kAuto, kTls10, kTls11, kTls12, kTls13 };
  bool https_redirect = false;
  Mode mode = Mode::kPassthrough;
  std::string server_certificate, private_key, ca_certificates, credential_name, ca_cert_credential_name, ca_crl;
  struct Certificate {
    std::string server_certificate, private_key;
    friend bool operator==(const Certificate&, const Certificate&) = default;
  };
  std::vector<std::string> credential_names;  // instead of `credential_name`
  std::vector<Certificate> tls_certificates;  // instead of `server_certificate` and `private_key`
  std::vector<std::string> subject_alt_names, verify_certificate_spki, verify_certificate_hash, cipher_suites;
  Version min_protocol_version = Version::kAuto, max_protocol_version = Version::kAuto;
  friend bool operator==(const ServerTlsSettings&, const ServerTlsSettings&) = default;
};

}  // namespace wavetank::config
