#include "core/gen/rds/route_cache.h"

#include "absl/container/inlined_vector.h"
#include "core/gen/view/cache_dependencies.h"
#include "xxhash.h"

namespace wavetank::pilot {

std::string RouteCacheEntry::Key() const {
  // As istiod, not the names of the configurations but hashes, of which each configuration keeps its own: a mesh has
  // many. The sizes keep the lists apart.
  absl::InlinedVector<uint64_t, 256> of = {services.size(), rules.size(), delegates.size(), envoy_filters.size()};
  for (const Service* service : services) {
    of.push_back(ConfigHash(*service));
    for (const kube::NamespacedName& alias : service->attributes.aliases) {
      of.push_back(ConfigHash(ConfigKind::kServiceEntry, alias.name, alias.ns));
    }
  }
  for (const auto& rule : rules) of.push_back(ConfigHash(ConfigKind::kVirtualService, rule->meta.name, rule->meta.ns));
  for (const ConfigKey* delegate : delegates) of.push_back(ConfigHash(*delegate));
  for (const auto& rule : hash_rules) {
    for (const ConfigKey& from : rule->from) of.push_back(ConfigHash(from));
  }
  for (const ConfigKey& filter : envoy_filters) of.push_back(ConfigHash(filter));
  const XXH128_hash_t hash = XXH3_128bits(of.data(), of.size() * sizeof(uint64_t));
  const uint64_t halves[] = {hash.high64, hash.low64};

  constexpr size_t kFlags = 7;
  std::string key;
  key.reserve(route_name.size() + istio_version.size() + cluster.size() + dns_domain.size() + kFlags + sizeof halves);
  for (const std::string_view part : {route_name, istio_version, cluster, dns_domain}) key.append(part).push_back('~');
  for (const bool flag : {dns_capture, dns_auto_allocate, allow_any}) key.push_back(flag ? '1' : '0');
  key.append(reinterpret_cast<const char*>(halves), sizeof halves);
  return key;
}

std::vector<uint64_t> RouteCacheEntry::Dependencies() const {
  std::vector<uint64_t> out;
  out.reserve(services.size() + rules.size() + delegates.size() + hash_rules.size() + envoy_filters.size());
  for (const Service* service : services) {
    AddDependency(*service, out);
    for (const kube::NamespacedName& alias : service->attributes.aliases) {
      AddDependency({ConfigKind::kServiceEntry, alias.name, alias.ns}, out);
    }
  }
  for (const auto& rule : rules) AddDependency({ConfigKind::kVirtualService, rule->meta.name, rule->meta.ns}, out);
  for (const ConfigKey* delegate : delegates) AddDependency(*delegate, out);
  for (const auto& rule : hash_rules) AddDependency(*rule, out);
  for (const ConfigKey& filter : envoy_filters) AddDependency(filter, out);
  return out;
}

}  // namespace wavetank::pilot
