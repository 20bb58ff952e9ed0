#include "fakes/envoy/config/config_store.h"

#include <algorithm>
#include <type_traits>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "fakes/envoy/match/durations.h"
#include "google/protobuf/arena.h"

namespace wavetank::envoysim {
namespace {

Hash128 HashOf(const ActiveCluster& c) {
  const uint64_t words[4] = {c.config->hash.high, c.config->hash.low,
                             c.endpoints == nullptr ? 0 : c.endpoints->hash.high,
                             c.endpoints == nullptr ? 0 : c.endpoints->hash.low};
  return HashBytes(std::string_view(reinterpret_cast<const char*>(words), sizeof(words)));
}
template <typename T>
Hash128 HashOf(const T& item) {
  return item.hash;
}

// Of sets: lane by lane, without carry between the two.
Hash128 Sum(const Hash128& a, const Hash128& b) { return {a.high + b.high, a.low + b.low}; }
Hash128 Difference(const Hash128& a, const Hash128& b) { return {a.high - b.high, a.low - b.low}; }

// Drops what nobody uses any more. Only weak references are examined, so that no result depends on when it happens.
template <typename Map>
void SweepExpired(Map* map) {
  for (auto it = map->begin(); it != map->end();) {
    auto here = it++;
    if (here->second.expired()) map->erase(here);
  }
}

}  // namespace

template <typename T, typename Decode>
const Decoded<T>& ConfigStore::Get(Cache<T>* cache, std::string_view resource, Decode decode) {
  const Hash128 hash = HashBytes(resource);
  auto it = cache->map.find(hash);
  if (it != cache->map.end()) return *it->second;
  if (cache->map.size() >= cache->sweep_at) {
    for (auto i = cache->map.begin(); i != cache->map.end();) {
      auto here = i++;
      if (here->second->value == nullptr || here->second->value.use_count() == 1) cache->map.erase(here);
    }
    cache->sweep_at = std::max<size_t>(1024, 2 * cache->map.size());
  }
  auto decoded = std::make_unique<Decoded<T>>();
  decode(hash, decoded.get());
  return *cache->map.emplace(hash, std::move(decoded)).first->second;
}

namespace {

// Parses the Any as `Proto` and compiles it.
template <typename Proto, typename T, typename Name, typename Compile>
void DecodeAs(std::string_view resource, Decoded<T>* out, Name name, Compile compile) {
  google::protobuf::Arena arena;  // such a message has many small parts, which go all at once
  Proto& proto = *google::protobuf::Arena::CreateMessage<Proto>(&arena);
  if (!proto.ParseFromArray(resource.data(), static_cast<int>(resource.size()))) {
    out->status = absl::InvalidArgumentError("Unable to unpack resource");
    return;
  }
  out->name = name(proto);
  // Of an assignment nothing that lasts is read.
  if constexpr (!std::is_same_v<Proto, envoy::config::endpoint::v3::ClusterLoadAssignment>) {
    if (absl::Status s = CheckDurations(proto); !s.ok()) {
      out->status = absl::Status(kUndecodable, s.message());
      return;
    }
  }
  absl::StatusOr<std::shared_ptr<const T>> value = compile(proto);
  if (value.ok()) {
    out->value = *std::move(value);
  } else {
    out->status = value.status();
  }
}

// A resource that breaks a constraint of its own message takes the whole response with it: Envoy validates while it
// decodes, before it looks at any of them.
template <typename T>
void MarkUndecodable(Decoded<T>* out) {
  const std::string_view why(out->status.message().data(), out->status.message().size());
  if (!absl::IsInvalidArgument(out->status)) return;  // of an extension, which is looked at later
  if (why.starts_with("Proto constraint validation failed")) {
    out->status = absl::Status(kUndecodable, out->status.message());
  }
}

}  // namespace

ConfigStore& ConfigStore::Of(EnvoyRelease release) {
  if (release.minor == extensions_.release().minor) return *this;
  std::unique_ptr<ConfigStore>& other = others_[release.minor];
  if (other == nullptr) {
    other = std::make_unique<ConfigStore>(Extensions(extensions_.set(), release, extensions_.filters()));
    other->set_reuses_work(reuses_work_);
  }
  return *other;
}

const Decoded<ClusterConfig>& ConfigStore::Cluster(std::string_view resource) {
  using Proto = envoy::config::cluster::v3::Cluster;
  return Get(&clusters_, resource, [&](const Hash128& hash, Decoded<ClusterConfig>* out) {
    DecodeAs<Proto>(
        resource, out, [](const Proto& p) { return p.name(); },
        [&](const Proto& p) { return CompileCluster(p, hash, extensions_); });
    MarkUndecodable(out);
  });
}

const Decoded<EndpointTable>& ConfigStore::Endpoints(std::string_view resource) {
  using Proto = envoy::config::endpoint::v3::ClusterLoadAssignment;
  return Get(&endpoints_, resource, [&](const Hash128& hash, Decoded<EndpointTable>* out) {
    DecodeAs<Proto>(
        resource, out, [](const Proto& p) { return p.cluster_name(); },
        [&](const Proto& p) { return CompileEndpoints(p, hash, AddressKind::kEds); });
    MarkUndecodable(out);
  });
}

const Decoded<ListenerConfig>& ConfigStore::Listener(std::string_view resource) {
  using Proto = envoy::config::listener::v3::Listener;
  return Get(&listeners_, resource, [&](const Hash128& hash, Decoded<ListenerConfig>* out) {
    DecodeAs<Proto>(
        resource, out, [](const Proto& p) { return p.name(); },
        [&](const Proto& p) { return CompileListener(p, hash, extensions_); });
  });
}

const Decoded<RouteTable>& ConfigStore::Routes(std::string_view resource) {
  using Proto = envoy::config::route::v3::RouteConfiguration;
  return Get(&routes_, resource, [&](const Hash128& hash, Decoded<RouteTable>* out) {
    DecodeAs<Proto>(
        resource, out, [](const Proto& p) { return p.name(); },
        [&](const Proto& p) { return CompileRoutes(p, hash, extensions_, /*validate=*/false); });
    MarkUndecodable(out);
  });
}

const Decoded<ExtensionFilter>& ConfigStore::Extension(std::string_view resource, const DiscoveredFilter& place) {
  using Proto = envoy::config::core::v3::TypedExtensionConfig;
  const std::string key = std::to_string(place.id) + ":" + std::string(resource);
  return Get(&filters_, key, [&](const Hash128&, Decoded<ExtensionFilter>* out) {
    DecodeAs<Proto>(
        resource, out, [](const Proto& p) { return p.name(); },
        [&](const Proto& p) { return CompileExtension(p, place.stat_prefix, extensions_); });
  });
}

template <>
ConfigStore::Sets<ClusterConfig>& ConfigStore::SetsOf() {
  return cluster_sets_;
}
template <>
ConfigStore::Sets<EndpointTable>& ConfigStore::SetsOf() {
  return endpoint_sets_;
}
template <>
ConfigStore::Sets<ListenerConfig>& ConfigStore::SetsOf() {
  return listener_sets_;
}
template <>
ConfigStore::Sets<RouteTable>& ConfigStore::SetsOf() {
  return route_sets_;
}
template <>
ConfigStore::Sets<ActiveCluster>& ConfigStore::SetsOf() {
  return active_sets_;
}

template <typename T, typename MakeItems>
std::shared_ptr<const NamedSet<T>> ConfigStore::Intern(const Hash128& hash, MakeItems make_items) {
  Sets<T>& sets = SetsOf<T>();
  std::weak_ptr<const NamedSet<T>>& slot = sets[hash];
  if (std::shared_ptr<const NamedSet<T>> known = slot.lock()) return known;
  auto made = std::make_shared<const NamedSet<T>>(make_items(), hash);
  slot = made;
  if (sets.size() >= sweep_sets_at_) {
    SweepExpired(&sets);
    sweep_sets_at_ = std::max<size_t>(1024, 2 * sets.size());
  }
  return made;
}

template <typename T>
std::shared_ptr<const NamedSet<T>> ConfigStore::Intern(std::vector<std::shared_ptr<const T>> items) {
  Hash128 hash;
  for (const auto& item : items) hash = Sum(hash, HashOf(*item));
  return Intern<T>(hash, [&] { return std::move(items); });
}

template <typename T>
std::shared_ptr<const NamedSet<T>> ConfigStore::Replace(const NamedSet<T>& from, const Replacements<T>& replacements) {
  Hash128 hash = from.hash();
  for (const auto& [at, item] : replacements) {
    hash = Sum(Difference(hash, HashOf(*from.items()[at])), HashOf(*item));
  }
  return Intern<T>(hash, [&] {
    std::vector<std::shared_ptr<const T>> items = from.items();
    for (const auto& [at, item] : replacements) items[at] = item;
    return items;
  });
}

template std::shared_ptr<const NamedSet<ClusterConfig>> ConfigStore::Replace(const NamedSet<ClusterConfig>&,
                                                                             const Replacements<ClusterConfig>&);
template std::shared_ptr<const NamedSet<EndpointTable>> ConfigStore::Replace(const NamedSet<EndpointTable>&,
                                                                             const Replacements<EndpointTable>&);
template std::shared_ptr<const NamedSet<ListenerConfig>> ConfigStore::Replace(const NamedSet<ListenerConfig>&,
                                                                              const Replacements<ListenerConfig>&);
template std::shared_ptr<const NamedSet<RouteTable>> ConfigStore::Replace(const NamedSet<RouteTable>&,
                                                                          const Replacements<RouteTable>&);
template std::shared_ptr<const NamedSet<ClusterConfig>> ConfigStore::Intern(
    std::vector<std::shared_ptr<const ClusterConfig>>);
template std::shared_ptr<const NamedSet<EndpointTable>> ConfigStore::Intern(
    std::vector<std::shared_ptr<const EndpointTable>>);
template std::shared_ptr<const NamedSet<ListenerConfig>> ConfigStore::Intern(
    std::vector<std::shared_ptr<const ListenerConfig>>);
template std::shared_ptr<const NamedSet<RouteTable>> ConfigStore::Intern(
    std::vector<std::shared_ptr<const RouteTable>>);
template std::shared_ptr<const NamedSet<ActiveCluster>> ConfigStore::Intern(
    std::vector<std::shared_ptr<const ActiveCluster>>);

template <>
std::vector<ConfigStore::Recent<ClusterConfig>>& ConfigStore::RecentOf() {
  return recent_clusters_;
}
template <>
std::vector<ConfigStore::Recent<EndpointTable>>& ConfigStore::RecentOf() {
  return recent_endpoints_;
}

template <typename T>
void ConfigStore::KeepRecent(std::shared_ptr<const NamedSet<T>> set,
                             std::shared_ptr<const std::vector<std::string>> wanted) {
  std::vector<Recent<T>>& recent = RecentOf<T>();
  const auto known = std::find_if(recent.begin(), recent.end(), [&](const Recent<T>& r) { return r.set == set; });
  if (known != recent.end()) {
    recent.erase(known);
  } else if (recent.size() == kMostRecent) {
    recent.erase(recent.begin());
  }
  recent.push_back({std::move(set), std::move(wanted)});
}

template <typename T>
std::shared_ptr<const NamedSet<T>> ConfigStore::NearestRecent(
    const std::vector<BytesRef>& resources, const std::shared_ptr<const std::vector<std::string>>& wanted) {
  std::shared_ptr<const NamedSet<T>> nearest;
  size_t most = resources.size() / 2;
  for (const Recent<T>& recent : RecentOf<T>()) {
    const auto& sources = recent.set->sources;
    if (recent.wanted != wanted || sources.size() != resources.size()) continue;
    size_t same = 0;
    for (size_t i = 0; i < sources.size(); ++i) same += sources[i].bytes == resources[i] ? 1 : 0;
    if (same <= most) continue;
    most = same;
    nearest = recent.set;
  }
  return nearest;
}

template void ConfigStore::KeepRecent(std::shared_ptr<const NamedSet<ClusterConfig>>,
                                      std::shared_ptr<const std::vector<std::string>>);
template void ConfigStore::KeepRecent(std::shared_ptr<const NamedSet<EndpointTable>>,
                                      std::shared_ptr<const std::vector<std::string>>);
template std::shared_ptr<const NamedSet<ClusterConfig>> ConfigStore::NearestRecent(
    const std::vector<BytesRef>&, const std::shared_ptr<const std::vector<std::string>>&);
template std::shared_ptr<const NamedSet<EndpointTable>> ConfigStore::NearestRecent(
    const std::vector<BytesRef>&, const std::shared_ptr<const std::vector<std::string>>&);

std::shared_ptr<const ActiveCluster> ConfigStore::Pair(std::shared_ptr<const ClusterConfig> config,
                                                       std::shared_ptr<const EndpointTable> endpoints) {
  if (pairs_.size() >= 4096 && pairs_.size() % 4096 == 0) SweepExpired(&pairs_);
  std::weak_ptr<const ActiveCluster>& slot = pairs_[{config.get(), endpoints.get()}];
  // Pointers identify content here, as both come out of this store; an expired slot may be of others at the same place.
  if (std::shared_ptr<const ActiveCluster> known = slot.lock()) return known;
  auto made = std::make_shared<const ActiveCluster>(ActiveCluster{std::move(config), std::move(endpoints)});
  slot = made;
  return made;
}

std::shared_ptr<const NamedSet<ActiveCluster>> ConfigStore::Paired(const NamedSet<ClusterConfig>& clusters,
                                                                   const NamedSet<EndpointTable>& endpoints) {
  std::vector<std::shared_ptr<const ActiveCluster>> active;
  active.reserve(clusters.items().size());
  const auto& tables = endpoints.items();
  auto table = tables.begin();
  for (const auto& config : clusters.items()) {
    if (config->type != DiscoveryType::kEds) continue;
    while (table != tables.end() && (*table)->cluster_name < config->name) ++table;
    const bool has = table != tables.end() && (*table)->cluster_name == config->name;
    const std::shared_ptr<const EndpointTable> its = has ? *table : nullptr;
    const size_t i = active.size();
    const auto known = std::find_if(last_paired_.begin(), last_paired_.end(), [&](const auto& last) {
      return i < last->items().size() && last->items()[i]->config == config && last->items()[i]->endpoints == its;
    });
    active.push_back(known != last_paired_.end() ? (*known)->items()[i] : Pair(config, its));
  }
  auto made = Intern<ActiveCluster>(std::move(active));
  if (std::find(last_paired_.begin(), last_paired_.end(), made) == last_paired_.end()) {
    if (last_paired_.size() == kMostRecent) last_paired_.pop_back();
    last_paired_.insert(last_paired_.begin(), made);
  }
  return made;
}

std::shared_ptr<const ConfigStore::ListenerIndex> ConfigStore::ByAddress(
    const std::shared_ptr<const NamedSet<ListenerConfig>>& set) {
  std::vector<Hash128> hashes;
  for (const auto& item : set->items()) hashes.push_back(item->hash);
  if (listener_indexes_.size() >= 1024 && listener_indexes_.size() % 1024 == 0) SweepExpired(&listener_indexes_);
  std::weak_ptr<const ListenerIndex>& slot = listener_indexes_[HashBytes(
      std::string_view(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(Hash128)))];
  if (std::shared_ptr<const ListenerIndex> known = slot.lock()) return known;
  auto made = std::make_shared<ListenerIndex>();
  for (const auto& item : set->items()) {
    made->emplace(item->address, item);
    for (const SocketAddress& a : item->additional) made->emplace(a, item);
  }
  slot = made;
  return made;
}

std::shared_ptr<const std::vector<std::string>> ConfigStore::InternNames(std::vector<std::string> names) {
  std::string all;
  for (const std::string& n : names) all.append(n).push_back('\0');
  if (names_.size() >= 4096 && names_.size() % 4096 == 0) SweepExpired(&names_);
  std::weak_ptr<const std::vector<std::string>>& slot = names_[HashBytes(all)];
  if (std::shared_ptr<const std::vector<std::string>> known = slot.lock()) return known;
  auto made = std::make_shared<const std::vector<std::string>>(std::move(names));
  slot = made;
  return made;
}

std::string_view ConfigStore::Keep(std::string_view text) { return *kept_.emplace(text).first; }

size_t ConfigStore::resources() const {
  return clusters_.map.size() + endpoints_.map.size() + listeners_.map.size() + routes_.map.size();
}

size_t ConfigStore::sets() const {
  return cluster_sets_.size() + endpoint_sets_.size() + listener_sets_.size() + route_sets_.size() +
         active_sets_.size();
}

}  // namespace wavetank::envoysim
