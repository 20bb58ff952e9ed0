#include "core/gen/view/listener_filters.h"

#include <array>

#include "core/envoyapi/any.h"
#include "core/gen/wire/wire.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "envoy/extensions/filters/http/cors/v3/cors.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "envoy/extensions/filters/http/grpc_stats/v3/config.pb.h"
#include "envoy/extensions/filters/http/grpc_web/v3/grpc_web.pb.h"
#include "envoy/extensions/filters/http/router/v3/router.pb.h"
#include "envoy/extensions/filters/listener/http_inspector/v3/http_inspector.pb.h"
#include "envoy/extensions/filters/listener/original_dst/v3/original_dst.pb.h"
#include "envoy/extensions/filters/listener/original_src/v3/original_src.pb.h"
#include "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "istio/alpn.pb.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::pilot {
namespace {

namespace ext = ::envoy::extensions;
using ext::filters::network::http_connection_manager::v3::HttpFilter;
using ListenerFilterPb = ::envoy::config::listener::v3::ListenerFilter;
using PredicatePb = ::envoy::config::listener::v3::ListenerFilterChainMatchPredicate;

constexpr char kTlsInspectorName[] = "envoy.filters.listener.tls_inspector";
constexpr char kHttpInspectorName[] = "envoy.filters.listener.http_inspector";

ListenerFilterPb MakeListenerFilter(const char* name, const google::protobuf::Message& config) {
  ListenerFilterPb filter;
  filter.set_name(name);
  *filter.mutable_typed_config() = PackAny(config);
  return filter;
}

ListenerFilterPb MakeInspector(Inspector inspector) {
  if (inspector == Inspector::kHttp) {
    return MakeListenerFilter(kHttpInspectorName, ext::filters::listener::http_inspector::v3::HttpInspector());
  }
  ext::filters::listener::tls_inspector::v3::TlsInspector config;
  constexpr uint32_t kSmall = 512;  // Envoy's own is 64 kB
  if (inspector == Inspector::kTlsSmall) config.mutable_initial_read_buffer_size()->set_value(kSmall);
  return MakeListenerFilter(kTlsInspectorName, config);
}

const std::string* MakeHttpFilter(const char* name, const google::protobuf::Message& config) {
  HttpFilter filter;
  filter.set_name(name);
  *filter.mutable_typed_config() = PackAny(config);
  return new std::string(Serialize(filter));
}

void AddAlpnOverride(istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig& config,
                     istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig::Protocol upstream,
                     std::initializer_list<const char*> protocols) {
  auto* override = config.add_alpn_override();
  override->set_upstream_protocol(upstream);
  for (const char* protocol : protocols) override->add_alpn_override(protocol);
}

void SetPortRange(PredicatePb& predicate, int port) {
  predicate.mutable_destination_port_range()->set_start(port);
  predicate.mutable_destination_port_range()->set_end(port + 1);
}

void SetPorts(PredicatePb& predicate, const std::vector<int>& ports) {
  if (ports.size() == 1) {
    SetPortRange(predicate, ports[0]);
    return;
  }
  for (int port : ports) SetPortRange(*predicate.mutable_or_match()->add_rules(), port);
}

}  // namespace

const std::string& InspectorFilter(Inspector inspector) {
  static const std::string* const kAll[] = {new std::string(Serialize(MakeInspector(Inspector::kTls))),
                                            new std::string(Serialize(MakeInspector(Inspector::kTlsSmall))),
                                            new std::string(Serialize(MakeInspector(Inspector::kHttp)))};
  return *kAll[static_cast<size_t>(inspector)];
}

const std::string& OriginalDestination() {
  static const auto& bytes = *new std::string(Serialize(MakeListenerFilter(
      "envoy.filters.listener.original_dst", ext::filters::listener::original_dst::v3::OriginalDst())));
  return bytes;
}

const std::string& OriginalSource() {
  static const auto& bytes = *new std::string([] {
    ext::filters::listener::original_src::v3::OriginalSrc config;
    config.set_mark(1337);
    return Serialize(MakeListenerFilter("envoy.filters.listener.original_src", config));
  }());
  return bytes;
}

std::string InspectorForPorts(Inspector inspector, const std::vector<int>& ports, bool only) {
  if (ports.empty()) return InspectorFilter(inspector);
  ListenerFilterPb filter = MakeInspector(inspector);
  PredicatePb& disabled = *filter.mutable_filter_disabled();
  SetPorts(only ? *disabled.mutable_not_match() : disabled, ports);
  return Serialize(filter);
}

std::string HttpFilterField(std::string_view name, std::string_view type_url, std::string_view config) {
  namespace hcm = ext::filters::network::http_connection_manager::v3;
  std::string out;
  out.reserve(name.size() + type_url.size() + config.size() + 40);
  wire::Writer w(&out);
  w.Message(hcm::HttpConnectionManager::kHttpFiltersFieldNumber, [&] {
    w.Bytes(hcm::HttpFilter::kNameFieldNumber, name);
    w.Any(hcm::HttpFilter::kTypedConfigFieldNumber, type_url, config);
  });
  return out;
}

std::string NetworkFilter(std::string_view name, std::string_view type_url, std::string_view config) {
  using FilterPb = ::envoy::config::listener::v3::Filter;
  std::string out;
  out.reserve(name.size() + type_url.size() + config.size() + 40);
  wire::Writer w(&out);
  w.Message(::envoy::config::listener::v3::FilterChain::kFiltersFieldNumber, [&] {
    w.Bytes(FilterPb::kNameFieldNumber, name);
    w.Any(FilterPb::kTypedConfigFieldNumber, type_url, config);
  });
  return out;
}

const std::string& SniClusterFilter() {
  static const auto& bytes = *new std::string(wire::Encode([](wire::Writer& w) {
    w.Message(::envoy::config::listener::v3::FilterChain::kFiltersFieldNumber, [&] {
      w.Bytes(::envoy::config::listener::v3::Filter::kNameFieldNumber, "envoy.filters.network.sni_cluster");
    });
  }));
  return bytes;
}

const std::string& IstioAuthnFilter() {
  static const auto& bytes = *new std::string([] {
    udpa::type::v1::TypedStruct config;
    config.set_type_url("type.googleapis.com/io.istio.network.authn.Config");
    return NetworkFilter("istio_authn", TypeUrlOf(config), Serialize(config));
  }());
  return bytes;
}

const std::string& HttpGrpcWeb() {
  static const auto& bytes =
      *MakeHttpFilter("envoy.filters.http.grpc_web", ext::filters::http::grpc_web::v3::GrpcWeb());
  return bytes;
}

const std::string& HttpGrpcStats() {
  static const auto& bytes = *[] {
    ext::filters::http::grpc_stats::v3::FilterConfig config;
    config.set_emit_filter_state(true);
    config.mutable_stats_for_all_methods()->set_value(false);
    return MakeHttpFilter("envoy.filters.http.grpc_stats", config);
  }();
  return bytes;
}

const std::string& HttpAlpn() {
  static const auto& bytes = *[] {
    using istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig;
    FilterConfig config;
    AddAlpnOverride(config, FilterConfig::HTTP10, {"istio-http/1.0", "istio", "http/1.0"});
    AddAlpnOverride(config, FilterConfig::HTTP11, {"istio-http/1.1", "istio", "http/1.1"});
    AddAlpnOverride(config, FilterConfig::HTTP2, {"istio-h2", "istio", "h2"});
    return MakeHttpFilter("istio.alpn", config);
  }();
  return bytes;
}

const std::string& HttpFault() {
  static const auto& bytes = *MakeHttpFilter("envoy.filters.http.fault", ext::filters::http::fault::v3::HTTPFault());
  return bytes;
}

const std::string& HttpCors() {
  static const auto& bytes = *MakeHttpFilter("envoy.filters.http.cors", ext::filters::http::cors::v3::Cors());
  return bytes;
}

// The field is deprecated in today's Envoy API, and has no other name in that of 1.18.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
const std::string& HttpRouter(const RouterOptions& options) {
  static const auto& all = *[] {
    auto* const out = new std::array<const std::string*, 4>();
    for (size_t i = 0; i < out->size(); ++i) {
      ext::filters::http::router::v3::Router router;
      router.set_start_child_span((i & 1) != 0);
      router.set_suppress_envoy_headers((i & 2) != 0);
      (*out)[i] = MakeHttpFilter("envoy.filters.http.router", router);
    }
    return out;
  }();
  return *all[(options.child_spans ? 1 : 0) + (options.debug_headers ? 0 : 2)];
}
#pragma GCC diagnostic pop

}  // namespace wavetank::pilot
