// What a cached answer depends on, as XdsCache::Add() takes it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/push_request.h"
#include "core/model/service.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

inline void AddDependency(const ConfigKey& config, std::vector<uint64_t>& out) { out.push_back(ConfigHash(config)); }
inline void AddDependency(const Service& service, std::vector<uint64_t>& out) { out.push_back(ConfigHash(service)); }
inline void AddDependency(const ConsolidatedDestRule& rule, std::vector<uint64_t>& out) {
  for (const ConfigKey& from : rule.from) AddDependency(from, out);
}

// Of a service's clusters or endpoints; `rule` may be null.
inline std::vector<uint64_t> DependenciesOf(const Service& service, const ConsolidatedDestRule* rule) {
  std::vector<uint64_t> out;
  out.reserve(1 + (rule == nullptr ? 0 : rule->from.size()));
  if (rule != nullptr) AddDependency(*rule, out);
  AddDependency(service, out);
  return out;
}

}  // namespace wavetank::pilot
