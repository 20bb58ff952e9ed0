// Under which key a sidecar's route configuration is cached, and which configurations it depends on
// (istiod: pilot/pkg/networking/core/v1alpha3/route/route_cache.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "core/model/push_request.h"
#include "core/model/service.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

// Points to what the configuration is made from.
struct RouteCacheEntry {
  std::string_view route_name, istio_version, cluster, dns_domain;
  bool dns_capture = false, dns_auto_allocate = false;
  bool allow_any = false;                // unknown hosts are let through
  std::vector<const Service*> services;  // by host
  absl::Span<const config::VirtualServiceRef> rules;
  std::vector<const ConfigKey*> delegates;  // of the rules
  absl::Span<const ConsolidatedDestRuleRef> hash_rules;
  absl::Span<const ConfigKey> envoy_filters;  // that patch routes

  std::string Key() const;
  std::vector<uint64_t> Dependencies() const;
};

}  // namespace wavetank::pilot
