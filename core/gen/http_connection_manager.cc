#include "core/gen/http_connection_manager.h"

#include "absl/strings/str_cat.h"
#include "core/gen/access_log.h"
#include "core/gen/any.h"
#include "core/gen/authz_filters.h"
#include "core/gen/duration.h"
#include "core/gen/listener_filters.h"
#include "core/gen/proxy_view.h"
#include "core/gen/wire.h"
#include "core/model/push_context.h"
#include "core/profile/profile.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/request_id/uuid/v3/uuid.pb.h"

namespace wavetank::pilot {
namespace {

namespace hcm = ::envoy::extensions::filters::network::http_connection_manager::v3;
using HcmPb = hcm::HttpConnectionManager;
using Normalization = config::MeshConfig::PathNormalization;

constexpr size_t kUsualBytes = 2560;  // of what all of one kind share

constexpr char kFilterName[] = "envoy.filters.network.http_connection_manager";
constexpr char kTypeUrl[] =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

void SetPathNormalization(Normalization normalization, HcmPb& out) {
  out.mutable_normalize_path()->set_value(normalization != Normalization::kNone);
  out.set_path_with_escaped_slashes_action(HcmPb::KEEP_UNCHANGED);
  if (normalization == Normalization::kMergeSlashes || normalization == Normalization::kDecodeAndMergeSlashes) {
    out.set_merge_slashes(true);
  }
  if (normalization == Normalization::kDecodeAndMergeSlashes) {
    out.set_path_with_escaped_slashes_action(HcmPb::UNESCAPE_AND_FORWARD);
  }
}

void AddDryRunTag(const char* name, const char* key, HcmPb::Tracing& out) {
  auto* tag = out.add_custom_tags();
  tag->set_tag(absl::StrCat("istio.authorization.dry_run.", name));
  auto* metadata = tag->mutable_metadata();
  metadata->mutable_kind()->mutable_request();
  metadata->mutable_metadata_key()->set_key("envoy.filters.http.rbac");
  metadata->mutable_metadata_key()->add_path()->set_key(key);
}

void AddLiteralTag(std::string_view name, std::string_view value, std::string_view fallback, wire::Writer& w) {
  using TagPb = envoy::type::tracing::v3::CustomTag;
  w.Message(HcmPb::Tracing::kCustomTagsFieldNumber, [&] {
    w.Joined(TagPb::kTagFieldNumber, {"istio.", name});
    w.Message(TagPb::kLiteralFieldNumber,
              [&] { w.NonEmpty(TagPb::Literal::kValueFieldNumber, value.empty() ? fallback : value); });
  });
}

std::string_view LabelOf(const Proxy& proxy, std::string_view key) {
  const auto it = proxy.labels.find(key);
  return it == proxy.labels.end() ? std::string_view() : std::string_view(it->second);
}

// Per cent of requests that start a trace. istiod: PILOT_TRACE_SAMPLING is 1.
double Sampling(const Proxy& proxy, const config::MeshConfig& mesh) {
  double sampling = mesh.tracing_sampling.value_or(0.0);
  if (proxy.metadata.raw.is_object() && proxy.metadata.raw.contains("PROXY_CONFIG")) {
    const nlohmann::json* own = ProxyConfigOf(proxy, mesh);
    sampling = 0.0;
    if (own->contains("tracing") && (*own)["tracing"].is_object() && (*own)["tracing"].contains("sampling") &&
        (*own)["tracing"]["sampling"].is_number()) {
      sampling = (*own)["tracing"]["sampling"].get<double>();
    }
  }
  return sampling == 0.0 || sampling > 100.0 ? 1.0 : sampling;
}

// What is the same for every proxy.
const std::string& CommonTracing() {
  static const auto& bytes = *[] {
    HcmPb::Tracing out;
    out.mutable_client_sampling()->set_value(100);
    out.mutable_overall_sampling()->set_value(100);
    // By name, with those of the proxy after them.
    AddDryRunTag("allow_policy.name", "istio_dry_run_allow_shadow_effective_policy_id", out);
    AddDryRunTag("allow_policy.result", "istio_dry_run_allow_shadow_engine_result", out);
    AddDryRunTag("deny_policy.name", "istio_dry_run_deny_shadow_effective_policy_id", out);
    AddDryRunTag("deny_policy.result", "istio_dry_run_deny_shadow_engine_result", out);
    return new std::string(Serialize(out));
  }();
  return bytes;
}

void WriteTracing(const Proxy& proxy, const config::MeshConfig& mesh, wire::Writer& w) {
  w.Message(HcmPb::kTracingFieldNumber, [&] {
    w.Message(HcmPb::Tracing::kRandomSamplingFieldNumber, [&] { w.Double(1, Sampling(proxy, mesh)); });
    w.Append(CommonTracing());  // ends with tags: protobuf's JSON takes a list that is not in one piece for two
    AddLiteralTag("canonical_revision", LabelOf(proxy, "service.istio.io/canonical-revision"), "latest", w);
    AddLiteralTag("canonical_service", LabelOf(proxy, "service.istio.io/canonical-name"), "unknown", w);
    AddLiteralTag("mesh_id", proxy.metadata.mesh_id, "unknown", w);
    AddLiteralTag("namespace", proxy.metadata.ns, "default", w);
  });
}

// istiod: gateway.go, buildGatewayConnectionManager.
void SetGatewayTopology(const Proxy& proxy, const config::MeshConfig& mesh, HcmPb& out) {
  out.set_forward_client_cert_details(HcmPb::SANITIZE_SET);
  const nlohmann::json* config = ProxyConfigOf(proxy, mesh);
  if (config == nullptr || !config->contains("gatewayTopology") || !(*config)["gatewayTopology"].is_object()) return;
  const nlohmann::json& topology = (*config)["gatewayTopology"];
  if (topology.contains("numTrustedProxies") && topology["numTrustedProxies"].is_number_unsigned()) {
    out.set_xff_num_trusted_hops(topology["numTrustedProxies"].get<uint32_t>());
  }
  if (!topology.contains("forwardClientCertDetails") || !topology["forwardClientCertDetails"].is_string()) return;
  HcmPb::ForwardClientCertDetails details;
  if (HcmPb::ForwardClientCertDetails_Parse(topology["forwardClientCertDetails"].get<std::string>(), &details)) {
    out.set_forward_client_cert_details(details);
  }
}

void SetClientCertDetails(bool whole_certificate, HcmPb& out) {
  auto* details = out.mutable_set_current_client_cert_details();
  details->mutable_subject()->set_value(true);
  details->set_cert(whole_certificate);
  details->set_uri(true);
  details->set_dns(true);
}

void SetDownstream(const Proxy& proxy, const config::MeshConfig& mesh, ListenerClass listener_class, bool http2,
                   HcmPb& out) {
  switch (listener_class) {
    case ListenerClass::kSidecarOutbound:
      break;
    case ListenerClass::kSidecarInbound:
      out.set_forward_client_cert_details(HcmPb::APPEND_FORWARD);
      SetClientCertDetails(false, out);
      out.set_server_name(std::string(kEnvoyServerName));
      if (http2) out.mutable_http2_protocol_options();
      break;
    case ListenerClass::kGateway:
      SetGatewayTopology(proxy, mesh, out);
      SetClientCertDetails(true, out);
      out.set_server_name(std::string(kEnvoyServerName));
      out.mutable_http_protocol_options();
      break;
  }
  if (AcceptsHttp10(proxy)) out.mutable_http_protocol_options()->set_accept_http_10(true);
  out.mutable_use_remote_address()->set_value(listener_class == ListenerClass::kGateway);
}

const std::string& FromAds() {
  static const auto& source = *[] {
    envoy::config::core::v3::ConfigSource ads;
    ads.mutable_ads();
    ads.mutable_initial_fetch_timeout();
    ads.set_resource_api_version(envoy::config::core::v3::ApiVersion::V3);
    return new std::string(Serialize(ads));
  }();
  return source;
}

const std::string& RequestIdExtension() {
  static const auto& bytes = *[] {
    envoy::extensions::request_id::uuid::v3::UuidRequestIdConfig config;
    config.mutable_use_request_id_for_trace_sampling()->set_value(true);
    hcm::RequestIDExtension extension;
    *extension.mutable_typed_config() = PackAny(config);
    return new std::string(Serialize(extension));
  }();
  return bytes;
}

}  // namespace

void HttpConnectionManagers::WriteHttpFilters(const Kind& kind, wire::Writer& w) {
  const auto& [listener_class, grpc_web, http2, absolute_urls] = kind;
  const bool istio = !push_.profile().upstream_envoy;
  const auto add = [&](const std::string& filter) { w.Bytes(HcmPb::kHttpFiltersFieldNumber, filter); };
  // Before anything that may reject a request, so that rejections are attributed too.
  if (istio) add(HttpMetadataExchange());
  if (listener_class != ListenerClass::kSidecarOutbound) {
    w.Append(authz_.CustomHttp());
    w.Append(authz_.Http());
  }
  if (grpc_web) add(HttpGrpcWeb());
  add(HttpGrpcStats());
  if (istio && listener_class != ListenerClass::kSidecarInbound) add(HttpAlpn());
  add(HttpFault());
  add(HttpCors());
  add(HttpRouter());
}

std::string HttpConnectionManagers::Common(const Kind& kind) {
  const auto& [listener_class, grpc_web, http2, absolute_urls] = kind;
  const config::MeshConfig& mesh = push_.mesh();
  HcmPb out;
  SetPathNormalization(mesh.path_normalization, out);
  out.add_upgrade_configs()->set_upgrade_type("websocket");
  if (const std::optional<Duration> idle = IdleTimeout(proxy_)) {
    SetDuration(*idle, out.mutable_common_http_protocol_options()->mutable_idle_timeout());
  }
  out.mutable_stream_idle_timeout();
  SetDownstream(proxy_, mesh, listener_class, http2, out);
  if (absolute_urls) out.mutable_http_protocol_options()->mutable_allow_absolute_url()->set_value(true);
  std::string bytes;
  bytes.reserve(kUsualBytes);
  out.AppendToString(&bytes);  // no maps in there
  wire::Writer w(&bytes);
  if (mesh.enable_tracing) WriteTracing(proxy_, mesh, w);
  w.NonEmpty(HcmPb::kAccessLogFieldNumber, FileAccessLog(mesh));
  WriteHttpFilters(kind, w);
  w.Bytes(HcmPb::kRequestIdExtensionFieldNumber, RequestIdExtension());
  return bytes;
}

std::string HttpConnectionManagers::Filter(const HttpOptions& options, std::string_view default_stat_prefix) {
  const Kind kind{options.listener_class, options.protocol == Protocol::kGrpcWeb,
                  options.listener_class == ListenerClass::kSidecarInbound && IsHttp2(options.protocol),
                  options.absolute_urls};
  std::string& common = common_[kind];
  if (common.empty()) common = Common(kind);
  std::string config;
  config.reserve(common.size() + options.route_config.size() + 160);
  wire::Writer w(&config);
  w.Append(common);
  w.NonEmpty(HcmPb::kStatPrefixFieldNumber,
             options.stat_prefix.empty() ? default_stat_prefix : std::string_view(options.stat_prefix));
  if (options.rds.empty()) {
    w.Bytes(HcmPb::kRouteConfigFieldNumber, options.route_config);
  } else {
    w.Message(HcmPb::kRdsFieldNumber, [&] {
      w.Bytes(hcm::Rds::kConfigSourceFieldNumber, FromAds());
      w.Bytes(hcm::Rds::kRouteConfigNameFieldNumber, options.rds);
    });
  }
  return NetworkFilter(kFilterName, kTypeUrl, config);
}

}  // namespace wavetank::pilot
