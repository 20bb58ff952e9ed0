#include "core/gen/lds/http_connection_manager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/ip.h"
#include "core/config/mesh/mesh_networks.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/authz_filters.h"
#include "core/gen/authz/jwt_filters.h"
#include "core/gen/telemetry/proxy_telemetry.h"
#include "core/gen/telemetry/tracing.h"
#include "core/gen/view/dynamic_names.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/metadata_exchange.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/duration.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
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

void SetClientCertDetails(const ProxyHeaders::Details& of, HcmPb& out) {
  auto* details = out.mutable_set_current_client_cert_details();
  details->mutable_subject()->set_value(of.subject);
  details->set_cert(of.cert);
  details->set_chain(of.chain);
  details->set_uri(of.uri);
  details->set_dns(of.dns);
}

void SetServer(const ProxyHeaders& headers, std::string_view usual, HcmPb& out) {
  out.set_server_name(headers.server.value_or(std::string(usual)));
  if (headers.server && headers.server->empty()) out.set_server_header_transformation(HcmPb::PASS_THROUGH);
}

// The ranges of meshNetworks, in order (istiod: util.go, MeshNetworksToEnvoyInternalAddressConfig).
void SetInternalAddresses(const config::MeshNetworks& networks, HcmPb& out) {
  std::vector<std::pair<IpAddress, uint32_t>> ranges;
  for (const auto& [name, network] : networks.networks) {
    for (const config::MeshNetworks::Endpoint& endpoint : network.endpoints) {
      const std::optional<CidrRange> range = ParseCidrRange(endpoint.from_cidr);
      if (!range || !endpoint.from_registry.empty()) continue;
      if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(range->address_prefix); ip.ok())
        ranges.emplace_back(*ip, range->prefix_len);
    }
  }
  std::sort(ranges.begin(), ranges.end());
  for (const auto& [ip, length] : ranges) {
    auto* range = out.mutable_internal_address_config()->add_cidr_ranges();
    range->set_address_prefix(ip.ToString());
    range->mutable_prefix_len()->set_value(length);
  }
}

void SetDownstream(const Proxy& proxy, const PushContext& push, const ProxyHeaders& headers,
                   ListenerClass listener_class, bool http2, HcmPb& out) {
  switch (listener_class) {
    case ListenerClass::kSidecarOutbound:
      SetServer(headers, "", out);
      break;
    case ListenerClass::kSidecarInbound: {
      HcmPb::ForwardClientCertDetails forwarded;
      const bool said = HcmPb::ForwardClientCertDetails_Parse(headers.forwarded_client_cert, &forwarded);
      out.set_forward_client_cert_details(said ? forwarded : HcmPb::APPEND_FORWARD);
      SetClientCertDetails(headers.details, out);
      SetServer(headers, kEnvoyServerName, out);
      if (http2) out.mutable_http2_protocol_options();
      break;
    }
    case ListenerClass::kGateway:
      SetGatewayTopology(proxy, push.mesh(), out);
      if (const auto forwards = out.forward_client_cert_details(); forwards == HcmPb::APPEND_FORWARD ||
                                                                   forwards == HcmPb::SANITIZE_SET ||
                                                                   !push.profile().Has(Change::kCertDetailsIfForwarded))
        SetClientCertDetails({.cert = true}, out);
      SetServer(headers, kEnvoyServerName, out);
      out.mutable_http_protocol_options();
      break;
  }
  if (!headers.request_id) out.mutable_generate_request_id()->set_value(false);
  out.set_append_x_forwarded_port(headers.forwarded_port);
  if (AcceptsHttp10(proxy, push)) out.mutable_http_protocol_options()->set_accept_http_10(true);
  const bool remote = listener_class == ListenerClass::kGateway ||
                      (listener_class == ListenerClass::kSidecarOutbound && push.env().features.sidecar_remote_address);
  out.mutable_use_remote_address()->set_value(remote);
  if (remote && push.env().networks != nullptr && push.profile().Has(Change::kInternalAddressesOfNetworks))
    SetInternalAddresses(*push.env().networks, out);
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

std::string MakeRequestIdExtension(bool for_trace_sampling) {
  envoy::extensions::request_id::uuid::v3::UuidRequestIdConfig config;
  config.mutable_use_request_id_for_trace_sampling()->set_value(for_trace_sampling);
  hcm::RequestIDExtension extension;
  *extension.mutable_typed_config() = PackAny(config);
  return Serialize(extension);
}

const std::string& RequestIdExtension(bool for_trace_sampling) {
  static const auto& with = *new std::string(MakeRequestIdExtension(true));
  static const auto& without = *new std::string(MakeRequestIdExtension(false));
  return for_trace_sampling ? with : without;
}

}  // namespace

void HttpConnectionManagers::WriteHttpFilters(const Kind& kind, const HttpTracing& tracing, wire::Writer& w) {
  using Phase = WasmFilters::Phase;
  const auto& [listener_class, grpc_web, http2, absolute_urls, wasm, dns_cache] = kind;
  const bool inbound_or_gateway = listener_class != ListenerClass::kSidecarOutbound;
  const bool istio = !push_.profile().Has(Change::kUpstreamEnvoy);
  const Features& features = push_.env().features;
  const auto add = [&](const std::string& filter) { w.Bytes(HcmPb::kHttpFiltersFieldNumber, filter); };
  // Before anything that may reject a request, so that rejections are attributed too.
  const ExchangeSide side = listener_class == ListenerClass::kSidecarInbound ? ExchangeSide::kInbound
                            : headers_.exchange_outside || absolute_urls     ? ExchangeSide::kOutbound
                                                                             : ExchangeSide::kOutboundWithin;
  if (istio) add(HttpMetadataExchange(proxy_, push_, side));
  if (inbound_or_gateway) w.Append(authz_.CustomHttp());
  w.Append(wasm_.Of(wasm, Phase::kAuthn));
  if (inbound_or_gateway) {
    if (!jwt_) jwt_ = MakeJwtFilters(proxy_, push_);
    w.Append(*jwt_);
  }
  w.Append(wasm_.Of(wasm, Phase::kAuthz));
  if (inbound_or_gateway) w.Append(authz_.Http());
  w.Append(wasm_.Of(wasm, Phase::kStats));
  w.Append(wasm_.Of(wasm, Phase::kUnspecified));
  if (grpc_web) add(HttpGrpcWeb());
  add(HttpGrpcStats());
  if (istio && features.alpn_filter && listener_class != ListenerClass::kSidecarInbound) add(HttpAlpn());
  add(HttpFault());
  add(HttpCors());
  w.Append(telemetry_.HttpFilters(listener_class));
  if (!dns_cache.empty()) add(HttpDynamicForward(dns_cache));
  add(HttpRouter({.child_spans = tracing.start_child_span, .debug_headers = headers_.debug_headers}));
}

std::string HttpConnectionManagers::Common(const Kind& kind) {
  const auto& [listener_class, grpc_web, http2, absolute_urls, wasm, dns_cache] = kind;
  const config::MeshConfig& mesh = push_.mesh();
  HcmPb out;
  SetPathNormalization(mesh.path_normalization, out);
  out.add_upgrade_configs()->set_upgrade_type("websocket");
  if (const std::optional<Duration> idle = IdleTimeout(proxy_)) {
    SetDuration(*idle, out.mutable_common_http_protocol_options()->mutable_idle_timeout());
  }
  out.mutable_stream_idle_timeout();
  SetDownstream(proxy_, push_, headers_, listener_class, http2, out);
  out.set_proxy_100_continue(push_.profile().Has(Change::kProxies100Continue));
  if (absolute_urls) out.mutable_http_protocol_options()->mutable_allow_absolute_url()->set_value(true);
  std::string bytes;
  bytes.reserve(kUsualBytes);
  out.AppendToString(&bytes);  // no maps in there
  wire::Writer w(&bytes);
  const HttpTracing tracing = MakeHttpTracing(telemetry_.of(), listener_class, proxy_, push_);
  w.NonEmpty(HcmPb::kTracingFieldNumber, tracing.config);
  w.Append(telemetry_.Logs(listener_class).http);
  WriteHttpFilters(kind, tracing, w);
  w.Bytes(HcmPb::kRequestIdExtensionFieldNumber, RequestIdExtension(tracing.use_request_id_for_sampling));
  return bytes;
}

std::string HttpConnectionManagers::Filter(const HttpOptions& options, int port, std::string_view default_stat_prefix) {
  const Kind kind{options.listener_class,
                  options.protocol == Protocol::kGrpcWeb,
                  options.listener_class == ListenerClass::kSidecarInbound && IsHttp2(options.protocol),
                  options.absolute_urls,
                  wasm_.SetFor(options.listener_class, port),
                  options.dns_cache};
  std::string& common = common_[kind];
  if (common.empty()) common = Common(kind);
  std::string config;
  config.reserve(common.size() + options.route_config.size() + 160);
  wire::Writer w(&config);
  w.Append(common);
  // A name that a Gateway gives to its server stays as it is.
  const bool own = options.listener_class == ListenerClass::kGateway && !options.stat_prefix.empty();
  w.Joined(HcmPb::kStatPrefixFieldNumber,
           {options.stat_prefix.empty() ? default_stat_prefix : std::string_view(options.stat_prefix),
            !own && push_.profile().Has(Change::kDelimitedStatNames) ? ";" : ""});
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
