#include "fakes/envoy/filters/heads/dynamic_forward.h"

#include <memory>
#include <string>
#include <utility>

#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/extensions/dns_cache_config.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

struct HostOfRoute final : RouteFilterConfig {
  std::string host, header;  // the host, or the header that has it
};

class DynamicForward final : public HttpFilter {
 public:
  explicit DynamicForward(DnsCacheConfig cache) : cache_(std::move(cache)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const std::optional<uint16_t> port = stream.PortOfNames();
    if (!port.has_value()) return FilterStatus::kContinue;
    Rewrite(stream);
    const std::string& host = stream.request().authority;
    if (host.empty()) {
      stream.Answer({400, kNoFlags, "empty_host_header", "Empty host header"}, lead);
      return FilterStatus::kStop;
    }
    using Status = HttpStream::HostLookup::Status;
    const HttpStream::HostLookup found = stream.LookUp(cache_, host, *port, [this, port](HttpStream& later) {
      const HttpStream::HostLookup known = later.LookUp(cache_, later.request().authority, *port, {});
      known.status == Status::kKnown ? later.Continue(Duration::zero()) : Fail(later, known, Duration::zero());
    });
    if (found.status == Status::kKnown) return FilterStatus::kContinue;
    if (found.status != Status::kAsking) Fail(stream, found, lead);
    return FilterStatus::kStop;
  }

 private:
  static void Rewrite(HttpStream& stream) {
    const auto* route = static_cast<const HostOfRoute*>(stream.RouteConfig());
    if (route == nullptr) return;
    std::string host = route->host;
    if (!route->header.empty()) host = FindHeader(stream.request(), route->header).value_or(host);
    if (host.empty()) return;
    RequestEdit edit(stream.request());
    edit.Set(":authority", host);
    stream.Replace(edit.Take());
  }

  static void Fail(HttpStream& stream, const HttpStream::HostLookup& found, Duration lead) {
    using Status = HttpStream::HostLookup::Status;
    if (found.status == Status::kFull)
      return stream.Answer({503, kNoFlags, "dns_cache_overflow", "DNS cache overflow"}, lead);
    if (found.status == Status::kBusy) {
      return stream.Answer({503, kNoFlags, "dynamic_forward_proxy_pending_request_overflow",
                            "Dynamic forward proxy pending request overflow"},
                           lead);
    }
    stream.Answer({503, kDnsResolutionFailed, stream.Keep(fmt::format("dns_resolution_failure{{{}}}", found.details)),
                   "DNS resolution failure"},
                  lead);
  }

  const DnsCacheConfig cache_;
};

}  // namespace

HttpFilterType DynamicForwardFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig";
  type.name = "envoy.filters.http.dynamic_forward_proxy";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    const absl::StatusOr<nlohmann::json> message = ConfigJson(config);
    if (!message.ok()) return message.status();
    if (!JsonAt(*message, "sub_cluster_config").is_null()) {
      context.extensions.NoteWithoutEffect("HTTP filter", "sub_cluster_config of dynamic_forward_proxy");
      return nullptr;
    }
    absl::StatusOr<DnsCacheConfig> cache = CompileDnsCache(JsonAt(*message, "dns_cache_config"));
    if (!cache.ok()) return cache.status();
    return std::make_shared<DynamicForward>(*std::move(cache));
  };
  type.route_message = "envoy.extensions.filters.http.dynamic_forward_proxy.v3.PerRouteConfig";
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    const absl::StatusOr<nlohmann::json> message = ConfigJson(config);
    if (!message.ok()) return message.status();
    auto out = std::make_shared<HostOfRoute>();
    out->host = TextAt(*message, "host_rewrite_literal");
    out->header = TextAt(*message, "host_rewrite_header");
    return out;
  };
  return type;
}

NetworkFilterType SniDynamicForwardType() {
  return {"envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig",
          "envoy.filters.network.sni_dynamic_forward_proxy",
          /*terminal=*/false,
          [](const google::protobuf::Any& config, const FilterContext&, FilterChain* chain) -> absl::Status {
            const absl::StatusOr<nlohmann::json> message = ConfigJson(config);
            if (!message.ok()) return message.status();
            absl::StatusOr<DnsCacheConfig> cache = CompileDnsCache(JsonAt(*message, "dns_cache_config"));
            if (!cache.ok()) return cache.status();
            chain->sni_lookup = SniLookup{*std::move(cache), static_cast<uint16_t>(NumberAt(*message, "port_value"))};
            return absl::OkStatus();
          }};
}

}  // namespace wavetank::envoysim
