// Generated resources by what they depend on (istiod: pilot/pkg/model/xds_cache.go, typed_xds_cache.go).
//
// An entry is good until one of the configurations that it depends on is updated; a full push without keys clears
// everything. Stale writers are impossible here: the core runs on one thread, but a proxy that still holds an old push
// context may generate from it, hence the token rule.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/types/span.h"
#include "core/base/time.h"
#include "core/model/push_request.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class XdsCache {
 public:
  enum class Type : uint8_t { kCds, kEds, kRds, kSds };
  static constexpr int kTypes = 4;

  explicit XdsCache(bool enabled = true) : enabled_(enabled) {}

  // `key` holds everything the resource was made from but the configurations named as dependencies. The pointer is
  // valid until the next change of the cache.
  const Resource* Get(Type type, std::string_view key) const;

  // `start`: of the push request that the resource was generated for; an entry generated for a push that began before
  // the last clearing is dropped (istiod: CacheToken). `dependencies` are ConfigHash()es: as in istiod, two
  // configurations that share one are cleared together, which costs a generation and no truth. `host`: of clusters and
  // endpoints the service's.
  void Add(Type type, std::string key, Time start, const std::vector<uint64_t>& dependencies, Resource resource,
           std::string_view host = {});

  // Whether Add() would take what was generated for a push that began then.
  bool Takes(Type type, Time start) const {
    return enabled_ && start != Time{} && start >= tables_[static_cast<size_t>(type)].token;
  }

  // A PeerAuthentication among the keys clears all of EDS.
  void Clear(const std::set<ConfigKey>& configs, Time now);
  void ClearAll(Time now);

  bool enabled() const { return enabled_; }
  // For generators that remember what they made of clusters or endpoints, service by service. A mark stands for now;
  // the services of which something was added or cleared since (whether it was there or not) are those of which Get()
  // and what is generated from the same push context may be others than then, by host name, perhaps repeated. Nullopt:
  // any may be. The names are valid until the next change of the cache.
  uint64_t Mark(Type type) const {
    const Table& table = tables_[static_cast<size_t>(type)];
    return table.first_change + table.changes.size();
  }
  std::optional<absl::Span<const std::string>> ChangedSince(Type type, uint64_t mark) const;
  size_t size() const;
  // What is in it, by name.
  std::vector<Resource> Snapshot(Type type) const;
  // For callers that remember what Get() answered.
  void CountHits(int64_t n) const { hits_ += static_cast<uint64_t>(n); }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  struct Content;
  using Entries = absl::node_hash_map<std::string, Content>;
  using Entry = std::pair<const std::string, Content>;  // stays where it is
  // One entry's dependency on one configuration, in the list of all that depend on it.
  struct Dependency {
    uint64_t config = 0;
    Entry* entry = nullptr;
    Dependency *before = nullptr, *after = nullptr;
  };
  struct Content {
    Resource resource;
    std::vector<Dependency> dependencies;
  };
  struct Table {
    Entries entries;
    absl::flat_hash_map<uint64_t, Dependency*> by_config;  // the first of each list
    Time token{};
    // Host names, the oldest of them being change number `first_change`.
    std::vector<std::string> changes;
    uint64_t first_change = 0;

    void Note(std::string_view host);
    void NoteAnything();
    // Puts the entry into the lists of these configurations, takes it out of all.
    void Depend(Entry& entry, const std::vector<uint64_t>& configs);
    void Forget(Entry& entry);
  };
  static bool HasNotes(Type type) { return type == Type::kCds || type == Type::kEds; }
  static void Clear(Table& table, const std::set<ConfigKey>& configs, Time now);
  static void ClearAll(Table& table, Time now);

  bool enabled_;
  Table tables_[kTypes];
  mutable uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace wavetank::pilot
