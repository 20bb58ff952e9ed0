#include "core/gen/route_cache.h"

#include "core/gen/cache_dependencies.h"

namespace wavetank::pilot {

std::string RouteCacheEntry::Key() const {
  const auto for_each = [&](auto visit) {
    for (const Service* service : services) visit(service->hostname, service->attributes.ns);
    visit("", "");  // keeps lists apart
    for (const auto& rule : rules) visit(rule->meta.name, rule->meta.ns);
    visit("", "");
    for (const ConfigKey* delegate : delegates) visit(delegate->name, delegate->ns);
    visit("", "");
    for (const auto& rule : hash_rules) {
      for (const ConfigKey& from : rule->from) visit(from.name, from.ns);
    }
    if (envoy_filters.empty()) return;
    visit("", "");
    for (const ConfigKey& filter : envoy_filters) visit(filter.name, filter.ns);
  };
  // The size first: a mesh has many services.
  constexpr size_t kSeparators = 2, kFlags = 7;
  size_t size = route_name.size() + istio_version.size() + cluster.size() + dns_domain.size() + kFlags;
  for_each([&](std::string_view name, std::string_view ns) { size += name.size() + ns.size() + kSeparators; });
  std::string key;
  key.reserve(size);
  for (const std::string_view part : {route_name, istio_version, cluster, dns_domain}) key.append(part).push_back('~');
  for (const bool flag : {dns_capture, dns_auto_allocate, allow_any}) key.push_back(flag ? '1' : '0');
  for_each([&](std::string_view name, std::string_view ns) {
    key.append(name).push_back('/');
    key.append(ns).push_back('~');
  });
  return key;
}

std::vector<uint64_t> RouteCacheEntry::Dependencies() const {
  std::vector<uint64_t> out;
  out.reserve(services.size() + rules.size() + delegates.size() + hash_rules.size() + envoy_filters.size());
  for (const Service* service : services) AddDependency(*service, out);
  for (const auto& rule : rules) AddDependency({ConfigKind::kVirtualService, rule->meta.name, rule->meta.ns}, out);
  for (const ConfigKey* delegate : delegates) AddDependency(*delegate, out);
  for (const auto& rule : hash_rules) AddDependency(*rule, out);
  for (const ConfigKey& filter : envoy_filters) AddDependency(filter, out);
  return out;
}

}  // namespace wavetank::pilot
