#include "core/model/endpoint_index.h"

#include <algorithm>

#include "core/base/assert.h"

namespace wavetank::pilot {

bool operator<(const ShardKey& a, const ShardKey& b) {
  const std::string_view left = ProviderName(a.provider), right = ProviderName(b.provider);
  return left != right ? left < right : a.cluster < b.cluster;
}

EndpointIndex::PushType EndpointIndex::UpdateServiceEndpoints(const ShardKey& shard, std::string_view hostname,
                                                              std::string_view ns, EndpointList endpoints) {
  if (endpoints.empty()) {
    // The service's entry stays: else a pod that flaps between 0 and 1 endpoints would cause a full push each time.
    DeleteServiceShard(shard, hostname, ns, true);
    return PushType::kIncremental;
  }
  ByNamespace& services = by_host_[absl::string_view(hostname.data(), hostname.size())];
  PushType push = PushType::kIncremental;
  EndpointShards* entry = nullptr;
  if (const auto known = In(services, ns); known != services.end()) {
    entry = known->second.get();
  } else {
    entry = services.emplace_back(ns, std::make_unique<EndpointShards>()).second.get();
    push = PushType::kFull;
  }
  WAVETANK_ASSERT(entry->version <= version_, entry->version, version_, hostname);  // versions only grow
  entry->version = ++version_;
  entry->shards[shard] = std::make_shared<const EndpointList>(std::move(endpoints));
  std::set<std::string, std::less<>> accounts;
  for (const auto& [key, list] : entry->shards) {
    const std::string* last = nullptr;
    for (const IstioEndpoint& endpoint : *list) {
      const std::string& account = endpoint.p().service_account;
      if (account.empty() || (last != nullptr && *last == account)) continue;
      last = &account;
      accounts.insert(account);
    }
  }
  const EndpointListRef& stored = entry->shards[shard];
  WAVETANK_ASSERT(stored != nullptr, hostname);
  WAVETANK_ASSERT(!stored->empty(), hostname);  // an empty shard is none
  if (accounts != entry->service_accounts) {
    entry->service_accounts = std::move(accounts);
    push = PushType::kFull;
  }
  return push;
}

EndpointIndex::ByNamespace::const_iterator EndpointIndex::In(const ByNamespace& services, std::string_view ns) {
  return std::find_if(services.begin(), services.end(), [&](const auto& service) { return service.first == ns; });
}

const EndpointShards* EndpointIndex::Find(std::string_view hostname, std::string_view ns) const {
  const auto by_ns = by_host_.find(absl::string_view(hostname.data(), hostname.size()));
  if (by_ns == by_host_.end()) return nullptr;
  const auto it = In(by_ns->second, ns);
  return it == by_ns->second.end() ? nullptr : it->second.get();
}

void EndpointIndex::DeleteServiceShard(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                       bool preserve_keys) {
  const auto by_ns = by_host_.find(absl::string_view(hostname.data(), hostname.size()));
  if (by_ns == by_host_.end()) return;
  const auto it = In(by_ns->second, ns);
  if (it == by_ns->second.end()) return;
  WAVETANK_ASSERT(it->second != nullptr, hostname, ns);
  WAVETANK_ASSERT(it->second->version <= version_, it->second->version, version_, hostname);
  if (it->second->shards.erase(shard) != 0) it->second->version = ++version_;
  if (preserve_keys || !it->second->shards.empty()) return;
  by_ns->second.erase(it);
  if (by_ns->second.empty()) by_host_.erase(by_ns);
}

void EndpointIndex::DeleteShard(const ShardKey& shard) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [host, by_ns] : by_host_) {  // order: sorted below
    for (const auto& [ns, entry] : by_ns) all.emplace_back(host, ns);
  }
  std::sort(all.begin(), all.end());  // versions are given in this order
  for (const auto& [host, ns] : all) DeleteServiceShard(shard, host, ns, false);
}

std::vector<std::pair<std::string, const EndpointShards*>> EndpointIndex::Sorted() const {
  std::vector<std::pair<std::string, const EndpointShards*>> out;
  for (const auto& [host, by_ns] : by_host_) {  // order: sorted below
    for (const auto& [ns, entry] : by_ns) out.emplace_back(ns + "/" + host, entry.get());
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

size_t EndpointIndex::EndpointCount() const {
  size_t count = 0;
  for (const auto& [host, by_ns] : by_host_) {  // order: a sum
    for (const auto& [ns, entry] : by_ns) {
      for (const auto& [shard, list] : entry->shards) count += list->size();
    }
  }
  return count;
}

}  // namespace wavetank::pilot
