// Decoded configuration, shared by all Envoys of a world. Each distinct resource is parsed and compiled once, each
// distinct set of resources is kept once: ten thousand proxies with one view hold one copy of it, and a proxy costs a
// few pointers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/status/status.h"
#include "core/base/bytes.h"
#include "fakes/envoy/config/cluster_config.h"
#include "fakes/envoy/config/discovered_filter.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/lb/endpoint_table.h"
#include "fakes/envoy/match/hash128.h"

namespace wavetank::envoysim {

inline const std::string& NameOf(const ClusterConfig& c) { return c.name; }
inline const std::string& NameOf(const EndpointTable& e) { return e.cluster_name; }
inline const std::string& NameOf(const ListenerConfig& l) { return l.name; }
inline const std::string& NameOf(const RouteTable& r) { return r.name; }

// Code of a status that refuses a whole response, not only the resource in question.
inline constexpr absl::StatusCode kUndecodable = absl::StatusCode::kOutOfRange;

// What became of one resource. `name` is known even if it could not be compiled, as long as it could be parsed.
template <typename T>
struct Decoded {
  std::string name;
  std::shared_ptr<const T> value;  // nullptr: see status
  absl::Status status;
};

// An immutable set of resources, sorted by name.
template <typename T>
class NamedSet {
 public:
  using Item = std::shared_ptr<const T>;
  NamedSet(std::vector<Item> items, const Hash128& hash) : items_(std::move(items)), hash_(hash) {}

  const std::vector<Item>& items() const { return items_; }
  // Sum of the items' hashes: of a set that differs by few items it follows from them.
  const Hash128& hash() const { return hash_; }
  // O(log n); nullopt and nullptr if absent.
  std::optional<uint32_t> PlaceOf(std::string_view name) const {
    size_t low = 0, high = items_.size();
    while (low < high) {
      const size_t mid = (low + high) / 2;
      const int order = std::string_view(NameOf(*items_[mid])).compare(name);
      if (order == 0) return static_cast<uint32_t>(mid);
      (order < 0 ? low : high) = order < 0 ? mid + 1 : mid;
    }
    return std::nullopt;
  }
  const Item* Find(std::string_view name) const {
    const std::optional<uint32_t> place = PlaceOf(name);
    return place ? &items_[*place] : nullptr;
  }

  // What follows from the set alone, worked out once for all that share it: of clusters the names to ask EDS for, of
  // listeners those to ask RDS for; sorted.
  mutable std::shared_ptr<const std::vector<std::string>> wanted;
  mutable bool service_names_differ = false;  // with `wanted`: some cluster's assignment has another name than it

  // What the set was read from last, in the order of a response that held all of it; empty if there was none. A server
  // sends most resources again and again as the same object, which is then known without a look inside.
  struct Source {
    BytesRef bytes;
    uint32_t item = 0;  // its place among items()
  };
  mutable std::vector<Source> sources;

 private:
  std::vector<Item> items_;
  Hash128 hash_;
};

// A cluster in use: its configuration and, for EDS, the endpoints it was given (nullptr: never any).
struct ActiveCluster {
  std::shared_ptr<const ClusterConfig> config;
  std::shared_ptr<const EndpointTable> endpoints;
};
inline const std::string& NameOf(const ActiveCluster& c) { return c.config->name; }

class ConfigStore {
 public:
  explicit ConfigStore(const Extensions& extensions) : extensions_(extensions) {}
  // This one, or that of Envoys of another release beside it: what they accept differs.
  ConfigStore& Of(EnvoyRelease release);
  ConfigStore(const ConfigStore&) = delete;
  ConfigStore& operator=(const ConfigStore&) = delete;

  // `resource` is encoded, without its Any. The references stay valid until the next call.
  const Decoded<ClusterConfig>& Cluster(std::string_view resource);
  const Decoded<EndpointTable>& Endpoints(std::string_view resource);
  const Decoded<ListenerConfig>& Listener(std::string_view resource);
  const Decoded<RouteTable>& Routes(std::string_view resource);
  // As that place has it.
  const Decoded<ExtensionFilter>& Extension(std::string_view resource, const DiscoveredFilter& place);

  // One shared set per content. `items` must be sorted by name, without duplicates.
  template <typename T>
  std::shared_ptr<const NamedSet<T>> Intern(std::vector<std::shared_ptr<const T>> items);
  // `from` with other items of the same names in their places. Costs as much as there are changes if the set is known.
  template <typename T>
  using Replacements = std::vector<std::pair<uint32_t, std::shared_ptr<const T>>>;  // by place among the items
  template <typename T>
  std::shared_ptr<const NamedSet<T>> Replace(const NamedSet<T>& from, const Replacements<T>& replacements);
  // Sets that whole responses were last read into, by what was asked for (`wanted`): an Envoy that has nothing yet is
  // most likely to get one of them, or nearly. Clusters and endpoints only.
  template <typename T>
  void KeepRecent(std::shared_ptr<const NamedSet<T>> set, std::shared_ptr<const std::vector<std::string>> wanted);
  // The one of which these resources repeat most, each in its place; nullptr if they repeat less than half of any.
  template <typename T>
  std::shared_ptr<const NamedSet<T>> NearestRecent(const std::vector<BytesRef>& resources,
                                                   const std::shared_ptr<const std::vector<std::string>>& wanted);
  // One shared pair per content.
  std::shared_ptr<const ActiveCluster> Pair(std::shared_ptr<const ClusterConfig> config,
                                            std::shared_ptr<const EndpointTable> endpoints);
  // The EDS clusters of `clusters`, each with what `endpoints` has for it; one shared set. Only of clusters that are
  // named as their assignments. Costs little where it was nearly the same for another Envoy just before.
  std::shared_ptr<const NamedSet<ActiveCluster>> Paired(const NamedSet<ClusterConfig>& clusters,
                                                        const NamedSet<EndpointTable>& endpoints);
  using ListenerIndex = absl::flat_hash_map<SocketAddress, std::shared_ptr<const ListenerConfig>>;
  // The listeners of a set by the addresses they listen on, shared.
  std::shared_ptr<const ListenerIndex> ByAddress(const std::shared_ptr<const NamedSet<ListenerConfig>>& set);
  // Sorted names, shared.
  std::shared_ptr<const std::vector<std::string>> InternNames(std::vector<std::string> names);

  // Whether what a response means may be taken from the response before, or from another Envoy in the same state. On
  // unless a test says otherwise; nothing but the time it takes depends on it.
  bool reuses_work() const { return reuses_work_; }
  void set_reuses_work(bool on) { reuses_work_ = on; }

  // A string that lives as long as the store.
  std::string_view Keep(std::string_view text);

  size_t resources() const;  // distinct ones held
  size_t sets() const;

 private:
  template <typename T>
  struct Cache {
    absl::flat_hash_map<Hash128, std::unique_ptr<Decoded<T>>> map;
    size_t sweep_at = 1024;
  };
  template <typename T>
  using Sets = absl::flat_hash_map<Hash128, std::weak_ptr<const NamedSet<T>>>;

  template <typename T>
  struct Recent {
    std::shared_ptr<const NamedSet<T>> set;
    std::shared_ptr<const std::vector<std::string>> wanted;
  };
  static constexpr size_t kMostRecent = 4;
  template <typename T>
  std::vector<Recent<T>>& RecentOf();

  template <typename T, typename Decode>
  const Decoded<T>& Get(Cache<T>* cache, std::string_view resource, Decode decode);
  template <typename T>
  Sets<T>& SetsOf();
  template <typename T, typename MakeItems>
  std::shared_ptr<const NamedSet<T>> Intern(const Hash128& hash, MakeItems make_items);

  const Extensions extensions_;
  std::map<uint32_t, std::unique_ptr<ConfigStore>> others_;  // by minor release
  Cache<ClusterConfig> clusters_;
  Cache<EndpointTable> endpoints_;
  Cache<ListenerConfig> listeners_;
  Cache<RouteTable> routes_;
  Cache<ExtensionFilter> filters_;
  Sets<ClusterConfig> cluster_sets_;
  Sets<EndpointTable> endpoint_sets_;
  Sets<ListenerConfig> listener_sets_;
  Sets<RouteTable> route_sets_;
  Sets<ActiveCluster> active_sets_;
  std::vector<Recent<ClusterConfig>> recent_clusters_;
  std::vector<Recent<EndpointTable>> recent_endpoints_;
  absl::flat_hash_map<std::pair<const void*, const void*>, std::weak_ptr<const ActiveCluster>> pairs_;
  std::vector<std::shared_ptr<const NamedSet<ActiveCluster>>> last_paired_;  // the latest first
  absl::flat_hash_map<Hash128, std::weak_ptr<const std::vector<std::string>>> names_;
  absl::flat_hash_map<Hash128, std::weak_ptr<const ListenerIndex>> listener_indexes_;
  absl::node_hash_set<std::string> kept_;
  size_t sweep_sets_at_ = 1024;
  bool reuses_work_ = true;
};

}  // namespace wavetank::envoysim
