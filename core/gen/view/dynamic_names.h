// ServiceEntries of resolution DYNAMIC_DNS at proxies: what a proxy resolves the names of requests with. Encoded by
// hand: nothing else here knows these messages (Envoy: extensions/common/dynamic_forward_proxy/v3/dns_cache.proto;
// extensions/filters/{http/dynamic_forward_proxy,network/sni_dynamic_forward_proxy}/v3).
#pragma once

#include <string>
#include <string_view>

#include "core/model/service.h"

namespace wavetank::pilot {

// A wildcard; of other hosts the resolution means nothing (istiod: buildOutboundClusters).
bool IsDynamic(const Service& service);

// The cache that cluster and filters share (istiod: BuildDNSCacheName).
std::string DnsCacheName(std::string_view hostname);
// A DnsCacheConfig.
std::string DnsCacheConfig(std::string_view cache);

// An encoded HttpFilter, and an encoded FilterChain.filters field: resolve the host, or the SNI at `port`.
std::string HttpDynamicForward(std::string_view cache);
std::string SniDynamicForward(std::string_view cache, int port);

}  // namespace wavetank::pilot
