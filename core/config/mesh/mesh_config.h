// The mesh-wide configuration: key `mesh` of ConfigMap istio-system/istio over istiod's defaults
// (istio.io/api mesh/v1alpha1 MeshConfig; istiod: pkg/config/mesh/mesh.go).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/sidecar.h"
#include "core/config/kinds/telemetry.h"
#include "core/config/kinds/virtual_service.h"
#include "core/config/mesh/extension_provider.h"

namespace wavetank::config {

struct MeshConfig {
  enum class PathNormalization : uint8_t { kDefault, kNone, kBase, kMergeSlashes, kDecodeAndMergeSlashes };
  struct TlsSettings {
    enum class Version : uint8_t { kAuto, kTls12, kTls13 };
    Version min_protocol_version = Version::kAuto;
    std::vector<std::string> cipher_suites, ecdh_curves;
    friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
  };
  struct ServiceSettings {
    bool cluster_local = false;
    std::vector<std::string> hosts;
    friend bool operator==(const ServiceSettings&, const ServiceSettings&) = default;
  };

  // Names of extension providers that hold where no Telemetry names any.
  struct DefaultProviders {
    std::vector<std::string> tracing, metrics, access_logging;
    friend bool operator==(const DefaultProviders&, const DefaultProviders&) = default;
  };

  int32_t proxy_listen_port = 15001;
  int32_t proxy_inbound_listen_port = 15006;
  int32_t proxy_http_port = 0;
  std::optional<Duration> connect_timeout = Duration(10'000'000'000);
  std::optional<Duration> protocol_detection_timeout = Duration(0);
  std::optional<TcpKeepalive> tcp_keepalive;
  std::optional<Duration> dns_refresh_rate = Duration(60'000'000'000);
  std::string root_namespace = "istio-system";
  std::string trust_domain = "cluster.local";
  std::vector<std::string> trust_domain_aliases;  // sorted, unique
  // caCertificates, those written as PEM. SPIFFE endpoints are not fetched: no network here leads to one.
  std::vector<std::string> ca_certificates;
  bool enable_tracing = true;
  bool enable_auto_mtls = true;
  bool enable_prometheus_merge = true;
  bool verify_certificate_at_client = false;
  bool enable_envoy_access_log_service = false;
  bool disable_envoy_listener_log = false;
  std::string access_log_file, access_log_format;
  bool access_log_encoding_json = false;
  OutboundTrafficPolicy::Mode outbound_traffic_policy = OutboundTrafficPolicy::Mode::kAllowAny;
  bool inbound_to_localhost = false;                     // inboundTrafficPolicy
  std::optional<LocalityLbSetting> locality_lb_setting;  // default: enabled
  ConnectionPoolSettings::Http::H2UpgradePolicy h2_upgrade_policy =
      ConnectionPoolSettings::Http::H2UpgradePolicy::kDefault;  // the mesh's own enum has no kDefault on the wire
  std::vector<std::string> default_service_export_to = {"*"};
  std::vector<std::string> default_virtual_service_export_to = {"*"};
  std::vector<std::string> default_destination_rule_export_to = {"*"};
  std::vector<ServiceSettings> service_settings;
  std::vector<ExtensionProvider> extension_providers = DefaultExtensionProviders();
  DefaultProviders default_providers;
  nlohmann::json discovery_selectors;  // Kubernetes' LabelSelectors as written; null: all namespaces are read
  std::string inbound_cluster_stat_name, outbound_cluster_stat_name;
  PathNormalization path_normalization = PathNormalization::kDefault;
  std::optional<HttpRetry> default_http_retry_policy;
  TlsSettings mesh_mtls, tls_defaults;
  std::string ingress_service = "istio-ingressgateway", ingress_class = "istio", ingress_selector;

  // Of defaultConfig (ProxyConfig), what istiod itself reads.
  std::string discovery_address = "istiod.istio-system.svc:15012";
  std::string tracing_zipkin_address = "zipkin.istio-system:9411";
  std::optional<double> tracing_sampling;
  std::optional<bool> tracing_istio_tags;
  std::map<std::string, Telemetry::CustomTag> tracing_custom_tags;
  uint32_t tracing_max_path_tag_length = 0;
  int32_t proxy_stat_name_length = 189;

  // The whole ConfigMap key as JSON with nothing applied: two mesh configs differ if any field of it does, also one
  // that nothing here reads.
  nlohmann::json raw;

  friend bool operator==(const MeshConfig&, const MeshConfig&) = default;
};
using MeshConfigRef = std::shared_ptr<const MeshConfig>;

MeshConfigRef DefaultMeshConfig();

// ProxyConfig.tracing. istio.io/api mesh/v1alpha1 Tracing, as far as istiod reads it.
struct ProxyTracing {
  std::string zipkin_address;
  std::optional<double> sampling;
  std::optional<bool> enable_istio_tags;
  std::map<std::string, Telemetry::CustomTag> custom_tags;
  uint32_t max_path_tag_length = 0;
};
// Of a ProxyConfig as JSON; what cannot be read counts as absent.
ProxyTracing ReadProxyTracing(const nlohmann::json& proxy_config);

// YAML over the defaults: every field overrides, defaultConfig merges. An invalid document or field value is
// InvalidArgument, and istiod then keeps what it has. istiod: mesh.ApplyMeshConfigDefaults.
absl::StatusOr<MeshConfigRef> ApplyMeshConfigDefaults(std::string_view yaml);

}  // namespace wavetank::config
