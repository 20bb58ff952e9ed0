#include "core/config/mesh/mesh_config.h"

#include <algorithm>

#include "core/config/kinds/read_message.h"
#include "core/config/mesh/mesh_config_validation.h"
#include "core/kube/yaml.h"

namespace wavetank::config {

void ReadMessage(ProtoJson& in, MeshConfig::TlsSettings& out) {
  using Version = MeshConfig::TlsSettings::Version;
  in.Enum("minProtocolVersion", out.min_protocol_version,
          {{"TLS_AUTO", Version::kAuto}, {"TLSV1_2", Version::kTls12}, {"TLSV1_3", Version::kTls13}});
  in.Field("cipherSuites", out.cipher_suites);
  in.Field("ecdhCurves", out.ecdh_curves);
}

void ReadMessage(ProtoJson& in, MeshConfig::DefaultProviders& out) {
  in.Field("tracing", out.tracing);
  in.Field("metrics", out.metrics);
  in.Field("accessLogging", out.access_logging);
}

namespace {
struct Settings {
  bool cluster_local = false;
};
void ReadMessage(ProtoJson& in, Settings& out) { in.Field("clusterLocal", out.cluster_local); }

struct Normalization {
  MeshConfig::PathNormalization type = MeshConfig::PathNormalization::kDefault;
};
void ReadMessage(ProtoJson& in, Normalization& out) {
  using Type = MeshConfig::PathNormalization;
  in.Enum("normalization", out.type,
          {{"DEFAULT", Type::kDefault},
           {"NONE", Type::kNone},
           {"BASE", Type::kBase},
           {"MERGE_SLASHES", Type::kMergeSlashes},
           {"DECODE_AND_MERGE_SLASHES", Type::kDecodeAndMergeSlashes}});
}

struct Zipkin {
  std::string address;
};
void ReadMessage(ProtoJson& in, Zipkin& out) { in.Field("address", out.address); }
}  // namespace

void ReadMessage(ProtoJson& in, ProxyTracing& out) {
  Zipkin zipkin;
  in.Field("zipkin", zipkin);
  out.zipkin_address = std::move(zipkin.address);
  in.Field("sampling", out.sampling);
  in.Field("customTags", out.custom_tags);
  in.Field("maxPathTagLength", out.max_path_tag_length);
  in.Field("enableIstioTags", out.enable_istio_tags);
}

void ReadMessage(ProtoJson& in, MeshConfig::ServiceSettings& out) {
  Settings settings;
  in.Field("settings", settings);
  out.cluster_local = settings.cluster_local;
  in.Field("hosts", out.hosts);
}

namespace {

// Of ProxyConfig, field by field over what is there: unlike the messages of the mesh config itself it merges.
void ReadProxyConfig(ProtoJson& in, MeshConfig& out) {
  in.Field("discoveryAddress", out.discovery_address);
  in.Field("statNameLength", out.proxy_stat_name_length);
  if (in.Has("tracing")) {
    ProxyTracing tracing;
    in.Field("tracing", tracing);
    out.tracing_zipkin_address = std::move(tracing.zipkin_address);
    out.tracing_sampling = tracing.sampling;
    out.tracing_istio_tags = tracing.enable_istio_tags;
    out.tracing_custom_tags = std::move(tracing.custom_tags);
    out.tracing_max_path_tag_length = tracing.max_path_tag_length;
  }
}

void ReadMeshConfig(ProtoJson& in, MeshConfig& out) {
  using H2 = ConnectionPoolSettings::Http::H2UpgradePolicy;
  in.Field("proxyListenPort", out.proxy_listen_port);
  in.Field("proxyInboundListenPort", out.proxy_inbound_listen_port);
  in.Field("proxyHttpPort", out.proxy_http_port);
  in.Field("connectTimeout", out.connect_timeout);
  in.Field("protocolDetectionTimeout", out.protocol_detection_timeout);
  in.Field("tcpKeepalive", out.tcp_keepalive);
  in.Field("dnsRefreshRate", out.dns_refresh_rate);
  in.Field("rootNamespace", out.root_namespace);
  in.Field("trustDomain", out.trust_domain);
  in.Field("trustDomainAliases", out.trust_domain_aliases);
  std::sort(out.trust_domain_aliases.begin(), out.trust_domain_aliases.end());
  out.trust_domain_aliases.erase(std::unique(out.trust_domain_aliases.begin(), out.trust_domain_aliases.end()),
                                 out.trust_domain_aliases.end());
  if (const nlohmann::json* list = in.Find("caCertificates"); list != nullptr && list->is_array()) {
    for (const nlohmann::json& certificate : *list) {
      if (const auto pem = certificate.find("pem"); pem != certificate.end() && pem->is_string() && !pem->empty()) {
        out.ca_certificates.push_back(pem->get<std::string>());
      }
    }
  }
  in.Field("enableTracing", out.enable_tracing);
  in.Field("enableAutoMtls", out.enable_auto_mtls);
  in.Field("enablePrometheusMerge", out.enable_prometheus_merge);
  in.Field("verifyCertificateAtClient", out.verify_certificate_at_client);
  in.Field("enableEnvoyAccessLogService", out.enable_envoy_access_log_service);
  in.Field("disableEnvoyListenerLog", out.disable_envoy_listener_log);
  in.Field("accessLogFile", out.access_log_file);
  in.Field("accessLogFormat", out.access_log_format);
  uint8_t encoding = 0;
  in.Enum<uint8_t>("accessLogEncoding", encoding, {{"TEXT", 0}, {"JSON", 1}});
  out.access_log_encoding_json = encoding == 1;
  if (in.Has("outboundTrafficPolicy")) {
    OutboundTrafficPolicy policy;
    ProtoJson fields(*in.Find("outboundTrafficPolicy"), in.PathOf("outboundTrafficPolicy"), in.status());
    fields.Enum("mode", policy.mode,
                {{"REGISTRY_ONLY", OutboundTrafficPolicy::Mode::kRegistryOnly},
                 {"ALLOW_ANY", OutboundTrafficPolicy::Mode::kAllowAny}});
    out.outbound_traffic_policy = policy.mode;
  }
  if (in.Has("inboundTrafficPolicy")) {
    uint8_t mode = 0;
    ProtoJson fields(*in.Find("inboundTrafficPolicy"), in.PathOf("inboundTrafficPolicy"), in.status());
    fields.Enum<uint8_t>("mode", mode, {{"PASSTHROUGH", 0}, {"LOCALHOST", 1}});
    out.inbound_to_localhost = mode == 1;
  }
  in.Field("localityLbSetting", out.locality_lb_setting);
  // The mesh's own enum has two values; 0 is "do not".
  uint8_t upgrade = 0;
  in.Enum<uint8_t>("h2UpgradePolicy", upgrade, {{"DO_NOT_UPGRADE", 0}, {"UPGRADE", 1}});
  out.h2_upgrade_policy = upgrade == 1 ? H2::kUpgrade : H2::kDefault;
  in.Field("defaultServiceExportTo", out.default_service_export_to);
  in.Field("defaultVirtualServiceExportTo", out.default_virtual_service_export_to);
  in.Field("defaultDestinationRuleExportTo", out.default_destination_rule_export_to);
  in.Field("serviceSettings", out.service_settings);
  std::vector<ExtensionProvider> providers;
  in.Field("extensionProviders", providers);
  MergeExtensionProviders(std::move(providers), out.extension_providers);
  in.Field("defaultProviders", out.default_providers);
  if (const nlohmann::json* selectors = in.Find("discoverySelectors")) out.discovery_selectors = *selectors;
  in.Field("inboundClusterStatName", out.inbound_cluster_stat_name);
  in.Field("outboundClusterStatName", out.outbound_cluster_stat_name);
  Normalization normalization;
  in.Field("pathNormalization", normalization);
  out.path_normalization = normalization.type;
  in.Field("defaultHttpRetryPolicy", out.default_http_retry_policy);
  in.Field("meshMTLS", out.mesh_mtls);
  in.Field("tlsDefaults", out.tls_defaults);
  in.Field("ingressService", out.ingress_service);
  in.Field("ingressClass", out.ingress_class);
  in.Field("ingressSelector", out.ingress_selector);
  if (const nlohmann::json* proxy = in.Find("defaultConfig")) {
    ProtoJson fields(*proxy, in.PathOf("defaultConfig"), in.status());
    if (in.ok()) ReadProxyConfig(fields, out);
  }
}

}  // namespace

MeshConfigRef DefaultMeshConfig() {
  auto out = std::make_shared<MeshConfig>();
  out->locality_lb_setting = LocalityLbSetting{.enabled = true};
  return out;
}

ProxyTracing ReadProxyTracing(const nlohmann::json& proxy_config) {
  ProxyTracing out;
  absl::Status status;
  ProtoJson fields(proxy_config, "ProxyConfig", status);
  if (status.ok()) fields.Field("tracing", out);
  return status.ok() ? out : ProxyTracing();
}

absl::StatusOr<MeshConfigRef> ApplyMeshConfigDefaults(std::string_view yaml) {
  absl::StatusOr<nlohmann::json> document = kube::ParseYaml(yaml, "mesh");
  if (!document.ok()) return document.status();
  auto out = std::make_shared<MeshConfig>(*DefaultMeshConfig());
  if (!document->is_null()) {
    absl::Status status;
    ProtoJson fields(*document, "mesh", status);
    if (status.ok()) ReadMeshConfig(fields, *out);
    if (!status.ok()) return status;
  }
  out->raw = *std::move(document);
  if (absl::Status status = ValidateMeshConfig(*out); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::config
