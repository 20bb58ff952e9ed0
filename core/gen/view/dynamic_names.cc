#include "core/gen/view/dynamic_names.h"

#include "absl/strings/str_cat.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/wire/wire.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"

namespace wavetank::pilot {

bool IsDynamic(const Service& service) {
  return service.resolution == Resolution::kDynamicDns && service.hostname.starts_with('*');
}

std::string DnsCacheName(std::string_view hostname) { return absl::StrCat(std::string(hostname), "_dfp_dns_cache"); }

std::string DnsCacheConfig(std::string_view cache) {
  constexpr int kName = 1, kLookupFamily = 2, kV4Only = 1;
  return wire::Encode([&](wire::Writer& out) {
    out.Bytes(kName, cache);
    out.Varint(kLookupFamily, kV4Only);
  });
}

std::string HttpDynamicForward(std::string_view cache) {
  using FilterPb = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter;
  constexpr int kDnsCacheConfig = 1;
  return wire::Encode([&](wire::Writer& out) {
    out.Bytes(FilterPb::kNameFieldNumber, "envoy.filters.http.dynamic_forward_proxy");
    out.Any(FilterPb::kTypedConfigFieldNumber,
            "type.googleapis.com/envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig",
            wire::Encode([&](wire::Writer& config) { config.Bytes(kDnsCacheConfig, DnsCacheConfig(cache)); }));
  });
}

std::string SniDynamicForward(std::string_view cache, int port) {
  constexpr int kDnsCacheConfig = 1, kPort = 2;
  return NetworkFilter("envoy.extensions.filters.network.sni_dynamic_forward_proxy",
                       "type.googleapis.com/envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig",
                       wire::Encode([&](wire::Writer& config) {
                         config.Bytes(kDnsCacheConfig, DnsCacheConfig(cache));
                         config.Varint(kPort, static_cast<uint64_t>(port));
                       }));
}

}  // namespace wavetank::pilot
