// What an Envoy does with the resources it is sent: diffing, warming, putting into force.
// Envoy: source/common/upstream/{cluster_manager_impl,cds_api_helper}.cc, listener_manager_impl.cc; the order of things
// as measured in shared/ENVOY.md 3.7.
#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fakes/envoy/envoy_impl.h"
#include "fakes/envoy/tls_config.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

void Envoy::Impl::Trace(TraceKind kind, XdsType type, int64_t a, int64_t b, std::string_view detail) {
  host_.Emit({kind, trace_name_, host_.Intern(XdsTypeName(type)), a, b, detail});
}

void Envoy::Impl::OnConnected() { host_.Emit({TraceKind::kXdsConnected, trace_name_}); }

void Envoy::Impl::OnDisconnected(const absl::Status& status) {
  // What was received but not yet worked off is worked off all the same; only its acknowledgement has nowhere to go.
  host_.Emit({TraceKind::kXdsDisconnected, trace_name_, kNoName, 0, 0,
              std::string_view(status.message().data(), status.message().size())});
}

// --- the main thread

const std::string& Envoy::Impl::Queued::version() const {
  return delta == nullptr ? sotw.version : delta->system_version_info();
}
const std::string& Envoy::Impl::Queued::nonce() const { return delta == nullptr ? sotw.nonce : delta->nonce(); }
size_t Envoy::Impl::Queued::resources() const {
  return delta == nullptr ? sotw.body->resources.size() : static_cast<size_t>(delta->resources_size());
}
std::string_view Envoy::Impl::Queued::resource(size_t i) const {
  return delta == nullptr ? *sotw.body->resources[i] : delta->resources(static_cast<int>(i)).resource().value();
}
std::string_view Envoy::Impl::Queued::type_url(size_t i) const {
  if (delta != nullptr) return delta->resources(static_cast<int>(i)).resource().type_url();
  for (const auto& [at, url] : sotw.body->other_types) {
    if (at == i) return url;
  }
  return sotw.body->type_url;
}
size_t Envoy::Impl::Queued::bytes() const {
  if (delta == nullptr) return sotw.body->bytes;
  size_t sum = 0;
  for (const auto& r : delta->resources()) sum += r.resource().value().size();
  return sum;
}

void Envoy::Impl::OnResponse(XdsType type, SotwResponse response) {
  Trace(TraceKind::kXdsReceived, type, static_cast<int64_t>(response.body->resources.size()));
  Enqueue({type, std::move(response), nullptr, ads_->stream()});
}

void Envoy::Impl::OnDeltaResponse(XdsType type, std::shared_ptr<const DeltaDiscoveryResponse> response) {
  Trace(TraceKind::kXdsReceived, type, response->resources_size());
  Enqueue({type, {}, std::move(response), ads_->stream()});
}

void Envoy::Impl::Enqueue(Queued queued) {
  queue_.push_back(std::move(queued));
  if (!processing_) ProcessNext();
}

void Envoy::Impl::ProcessNext() {
  processing_ = !queue_.empty();
  if (!processing_) {
    queue_.shrink_to_fit();
    return;
  }
  const Queued& next = queue_.front();
  const StageLatencies& l = plane_.options().latencies;
  const LatencyRange* range = nullptr;
  switch (next.type) {
    case XdsType::kCds:
      range = &l.apply_cds;
      break;
    case XdsType::kEds:
      range = &l.apply_eds;
      break;
    case XdsType::kLds:
      range = &l.apply_lds;
      break;
    case XdsType::kRds:
      range = &l.apply_rds;
      break;
    case XdsType::kSds:
      range = &l.apply_sds;
      break;
  }
  const Duration cost = Draw(*range) + l.per_kib * static_cast<int64_t>(next.bytes() / 1024);
  main_thread_timer_ = host_.RunAfter(cost, [this] {
    main_thread_timer_ = kNoTimer;
    const Queued queued = std::move(queue_.front());
    queue_.erase(queue_.begin());
    Process(queued);
    ProcessNext();
  });
}

void Envoy::Impl::Process(const Queued& queued) {
  ads_->Begin(queued.type, queued.nonce(), queued.stream);
  std::string errors;
  switch (queued.type) {
    case XdsType::kCds:
      errors = ApplyClusters(queued);
      break;
    case XdsType::kEds:
      errors = ApplyEndpoints(queued);
      break;
    case XdsType::kLds:
      errors = ApplyListeners(queued);
      break;
    case XdsType::kRds:
      errors = ApplyRoutes(queued);
      break;
    case XdsType::kSds:
      errors = ApplySecrets(queued);
      break;
  }
  // The listeners are asked for while the clusters are being applied; only then is the response acknowledged.
  if (queued.type == XdsType::kCds && warming_clusters_.empty()) AskForListeners();
  Conclude(queued, errors);
  if (queued.type == XdsType::kCds) ClustersMayBeWarm();
  if (queued.type == XdsType::kLds) CheckLive();
}

void Envoy::Impl::Conclude(const Queued& queued, const std::string& errors) {
  const std::string& version = queued.version();
  const std::string& nonce = queued.nonce();
  const auto resources = static_cast<int64_t>(queued.resources());
  if (!errors.empty()) {
    Trace(TraceKind::kXdsNack, queued.type, resources, 0, errors);
    ads_->Reject(queued.type, nonce, errors);
    context_.OnRejected(queued.type, version, errors);
    return;
  }
  ads_->Accept(queued.type, version, nonce);
  if (queued.type == XdsType::kCds && !warming_clusters_.empty()) {
    pending_cds_ = {true, resources, version, nonce};
  } else if (queued.type == XdsType::kLds && !warming_listeners_.empty()) {
    pending_lds_ = {true, resources, version, nonce};
  } else {
    InForce(queued.type, resources, version, nonce);
  }
}

void Envoy::Impl::InForce(XdsType type, int64_t resources, std::string_view version, std::string_view nonce) {
  Trace(TraceKind::kXdsApplied, type, resources);
  context_.OnApplied(type, version, nonce);
}

// --- diffing

struct Envoy::Impl::Meaning final : ResponseBody::Meaning {
  struct Step {
    std::shared_ptr<const void> from, changes;  // NamedSet<T>, Changes<T> of the type that the response is of
    ResourceNames wanted;
  };
  // Envoys of one kind of proxy are in a few states at a time.
  static constexpr size_t kMaxSteps = 8, kMaxActivations = 1024;
  std::vector<Step> steps;
  // By the set they begin with, and what the step was. Both are held by the entry, so that no other gets their place.
  absl::flat_hash_map<std::pair<const void*, const void*>, Activation> activations;

  static Meaning& Of(const ResponseBody& body) {
    if (body.meaning == nullptr) body.meaning = std::make_unique<Meaning>();
    return static_cast<Meaning&>(*body.meaning);
  }
};

template <typename T, typename DecodeFn>
std::shared_ptr<const Envoy::Impl::Changes<T>> Envoy::Impl::Diff(const Queued& queued,
                                                                 const std::shared_ptr<const NamedSet<T>>& current,
                                                                 bool whole, const ResourceNames& wanted,
                                                                 DecodeFn decode) {
  bool same_for_all = queued.delta == nullptr;
  if (!same_for_all || !plane_.configs().reuses_work()) {
    return std::make_shared<const Changes<T>>(WorkOut(queued, current, whole, wanted, decode, &same_for_all));
  }
  Meaning& meaning = Meaning::Of(*queued.sotw.body);
  for (const typename Meaning::Step& step : meaning.steps) {
    if (step.from == current && step.wanted == wanted) return std::static_pointer_cast<const Changes<T>>(step.changes);
  }
  std::shared_ptr<const Changes<T>> changes = Update(*queued.sotw.body, current, whole, wanted, decode);
  if (changes == nullptr) {
    changes = std::make_shared<const Changes<T>>(WorkOut(queued, current, whole, wanted, decode, &same_for_all));
  }
  if (same_for_all) {
    if (meaning.steps.size() == Meaning::kMaxSteps) meaning.steps.erase(meaning.steps.begin());
    meaning.steps.push_back({current, changes, wanted});
  }
  return changes;
}

// Clusters and endpoints are many and mostly the same as the last time. Listeners and routes are few and their bytes
// large, so that it pays neither to compare nor to keep them.
template <typename T>
constexpr bool kComesAgain = std::is_same_v<T, ClusterConfig> || std::is_same_v<T, EndpointTable>;

template <typename T, typename DecodeFn>
std::shared_ptr<const Envoy::Impl::Changes<T>> Envoy::Impl::Update(const ResponseBody& body,
                                                                   const std::shared_ptr<const NamedSet<T>>& current,
                                                                   bool whole, const ResourceNames& wanted,
                                                                   DecodeFn decode) {
  const auto& resources = body.resources;
  auto& sources = current->sources;
  const bool all = resources.size() == sources.size();
  if (sources.empty() || (!all && whole)) return nullptr;
  std::vector<size_t> source_of;  // by place among the items, where the order of the response does not say it
  if (!all) {
    source_of.resize(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) source_of[sources[i].item] = i;
  }
  auto out = std::make_shared<Changes<T>>();
  out->all = all;
  typename ConfigStore::Replacements<T> replaced;
  std::vector<std::pair<size_t, const BytesRef*>> reread;  // of sources
  for (size_t i = 0; i < resources.size(); ++i) {
    if (all && sources[i].bytes == resources[i]) continue;
    const Decoded<T>& decoded = decode(*resources[i]);
    // What may be refused is looked at in the order of the response.
    if (decoded.value == nullptr || MayObject(*decoded.value)) return nullptr;
    if (wanted != nullptr && !std::binary_search(wanted->begin(), wanted->end(), decoded.name)) return nullptr;
    const auto place = all ? std::optional<uint32_t>(sources[i].item) : current->PlaceOf(decoded.name);
    if (!place || NameOf(*current->items()[*place]) != decoded.name) return nullptr;
    reread.emplace_back(all ? i : source_of[*place], &resources[i]);
    if (!all) out->some.push_back(decoded.value);
    if (current->items()[*place]->hash != decoded.value->hash) replaced.emplace_back(*place, decoded.value);
  }
  const auto by_name = [](const auto& a, const auto& b) { return NameOf(*a) < NameOf(*b); };
  std::sort(out->some.begin(), out->some.end(), by_name);
  for (size_t i = 1; i < out->some.size(); ++i) {
    if (!by_name(out->some[i - 1], out->some[i])) return nullptr;  // one name twice
  }
  std::sort(replaced.begin(), replaced.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, value] : replaced) out->upserts.push_back(value);
  out->next = replaced.empty() ? current : plane_.configs().Replace(*current, replaced);
  if (out->next != current) out->next->sources = sources;
  for (const auto& [at, bytes] : reread) out->next->sources[at].bytes = *bytes;
  return out;
}

template <typename T, typename DecodeFn>
Envoy::Impl::Changes<T> Envoy::Impl::WorkOut(const Queued& queued, const std::shared_ptr<const NamedSet<T>>& current,
                                             bool whole, const ResourceNames& wanted, DecodeFn decode,
                                             bool* same_for_all) {
  Changes<T> out;
  const bool sotw = queued.delta == nullptr;
  const size_t n = queued.resources();
  struct Given {
    std::string_view name;
    std::shared_ptr<const T> value;  // nullptr: keep what is there
    size_t at = 0;                   // in the response
  };
  std::vector<Given> given;
  std::vector<std::string> failed_names;  // backs the views of refused resources
  failed_names.reserve(n);
  given.reserve(n);
  const auto complain = [&](std::string_view name, std::string_view why) {
    *same_for_all = false;
    if (out.first_error.empty()) out.first_error = std::string(why);
    if (!out.errors.empty()) out.errors += "\n";
    out.errors += fmt::format("{}: {}", name, why);
  };
  for (size_t i = 0; i < n; ++i) {
    const Decoded<T>& decoded = decode(queued.resource(i));
    if (wanted != nullptr && !std::binary_search(wanted->begin(), wanted->end(), decoded.name)) continue;
    std::string objection;
    if (decoded.value == nullptr) {
      objection = std::string(decoded.status.message());
      if (decoded.status.code() == kUndecodable) {
        *same_for_all = false;
        out.undecodable = true;
        out.errors = out.first_error = objection;
        out.next = current;
        return out;
      }
    } else {
      *same_for_all &= !MayObject(*decoded.value);
      objection = Objection(*decoded.value);
    }
    if (!objection.empty()) {
      complain(decoded.name, objection);
      failed_names.push_back(decoded.name);
      given.push_back({failed_names.back(), nullptr, i});
      // Envoy hands endpoints to one cluster after the other, and the first that refuses ends it. Its order is that of
      // a hash map (measured: it varies from run to run); here it is that of the response.
      if (queued.type == XdsType::kEds) break;
      continue;
    }
    given.push_back({NameOf(*decoded.value), decoded.value, i});
  }
  std::stable_sort(given.begin(), given.end(), [](const Given& a, const Given& b) { return a.name < b.name; });
  for (size_t i = 1; i < given.size(); ++i) {
    if (given[i].name == given[i - 1].name) complain(given[i].name, "duplicate resource name");
  }
  const auto removed = [&](std::string_view name) {
    if (sotw) return whole;
    const auto& list = queued.delta->removed_resources();
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (!sotw && ads_ != nullptr) {
    StringMap<std::string>& versions = ads_->resource_versions(queued.type);
    for (const auto& r : queued.delta->resources()) {
      // A refused resource keeps the version that is in force.
      const bool refused = std::find(failed_names.begin(), failed_names.end(), r.name()) != failed_names.end();
      if (!refused) versions[r.name()] = r.version();
    }
    for (const std::string& name : queued.delta->removed_resources()) versions.erase(name);
  }
  out.some.reserve(given.size());
  for (const Given& one : given) {
    if (one.value != nullptr) out.some.push_back(one.value);
  }
  std::vector<std::shared_ptr<const T>> next;
  next.reserve(current->items().size() + given.size());
  size_t g = 0;
  const auto take_given = [&](const std::shared_ptr<const T>* old) {
    // The last copy of a name counts.
    while (g + 1 < given.size() && given[g + 1].name == given[g].name) ++g;
    const std::shared_ptr<const T>& value = given[g++].value;
    if (value == nullptr) {
      if (old != nullptr) next.push_back(*old);
      return;
    }
    if (old == nullptr || (*old)->hash != value->hash) {
      out.upserts.push_back(value);
      next.push_back(value);
    } else {
      next.push_back(*old);
    }
  };
  for (const std::shared_ptr<const T>& old : current->items()) {
    const std::string_view name = NameOf(*old);
    while (g < given.size() && given[g].name < name) take_given(nullptr);
    if (g < given.size() && given[g].name == name) {
      take_given(&old);
    } else if (removed(name)) {
      out.removals.emplace_back(name);
    } else {
      next.push_back(old);
    }
  }
  while (g < given.size()) take_given(nullptr);
  out.next = out.upserts.empty() && out.removals.empty() ? current : plane_.configs().Intern<T>(std::move(next));
  if (kComesAgain<T> && sotw && *same_for_all && given.size() == n && n == out.next->items().size()) {
    // The response holds just this set: the n-th by name is its n-th item.
    out.next->sources.resize(n);
    for (size_t i = 0; i < n; ++i) {
      out.next->sources[given[i].at] = {queued.sotw.body->resources[given[i].at], static_cast<uint32_t>(i)};
    }
  }
  return out;
}

// --- clusters

std::string Envoy::Impl::ApplyClusters(const Queued& queued) {
  ConfigStore& store = plane_.configs();
  const std::shared_ptr<const Changes<ClusterConfig>> found = Diff<ClusterConfig>(
      queued, clusters_, /*whole=*/true, nullptr,
      [&](std::string_view bytes) -> const Decoded<ClusterConfig>& { return store.Cluster(bytes); });
  const Changes<ClusterConfig>& changes = *found;
  host_.Cancel(init_timer_);
  init_timer_ = kNoTimer;
  cds_received_ = true;
  if (changes.next != clusters_) {
    clusters_ = changes.next;
    ActiveChanges gone;
    for (const std::string& name : changes.removals) {
      const auto w = FindWarming(name);
      if (w != warming_clusters_.end() && w->config->name == name) warming_clusters_.erase(w);
      gone.emplace_back(name, nullptr);
    }
    bool eds_again = false;
    applying_clusters_ = true;
    for (const auto& config : changes.upserts) {
      eds_again |= config->type == DiscoveryType::kEds;
      WarmCluster(config);
    }
    applying_clusters_ = false;
    if (!gone.empty()) SetActive(std::move(gone));
    PromoteClusters();
    AwaitEndpoints();
    const ResourceNames names = EdsNames();
    // Endpoints of clusters that are gone are forgotten.
    std::vector<std::shared_ptr<const EndpointTable>> kept;
    for (const auto& e : endpoints_->items()) {
      if (std::binary_search(names->begin(), names->end(), e->cluster_name)) kept.push_back(e);
    }
    if (kept.size() != endpoints_->items().size()) endpoints_ = store.Intern<EndpointTable>(std::move(kept));
    // Envoy: cluster_manager_impl.cc, updateClusterCounts. The first clusters hold nothing back.
    if (!warming_clusters_.empty() && lds_subscribed_) ads_->Hold(XdsType::kCds);
    // At the start, EDS clusters are the second phase; the others, names to be resolved with them, are the first.
    // Envoy: cluster_manager_impl.cc, ClusterManagerInitHelper.
    eds_waits_ = !lds_subscribed_ && FirstPhaseWarms();
    if (!eds_waits_) ads_->Subscribe(XdsType::kEds, names, eds_again);
  }
  if (changes.errors.empty() || changes.undecodable) return changes.errors;
  std::string message = "Error adding/updating cluster(s) ";
  for (char c : changes.errors) c == '\n' ? message += ", " : message += c;
  return message;
}

std::vector<Envoy::Impl::WarmingCluster>::iterator Envoy::Impl::FindWarming(std::string_view name) {
  return std::lower_bound(warming_clusters_.begin(), warming_clusters_.end(), name,
                          [](const WarmingCluster& w, std::string_view n) { return w.config->name < n; });
}

void Envoy::Impl::WarmCluster(const std::shared_ptr<const ClusterConfig>& config) {
  NeedSecrets(config->secrets);
  WarmingCluster warming{config};
  if (config->type == DiscoveryType::kEds) {
    warming.needs_endpoints = true;
    if (config->initial_fetch_timeout > Duration::zero()) {
      warming.gives_up_at = host_.Now() + config->initial_fetch_timeout;
    }
  } else if (config->type == DiscoveryType::kStrictDns || config->type == DiscoveryType::kLogicalDns) {
    ResolveDns(config);
  }
  const auto at = FindWarming(config->name);
  if (at != warming_clusters_.end() && at->config->name == config->name) {
    *at = std::move(warming);
  } else {
    warming_clusters_.insert(at, std::move(warming));
  }
}

void Envoy::Impl::AwaitEndpoints() {
  host_.Cancel(warming_timer_);
  warming_timer_ = kNoTimer;
  Time first = Time::max();
  for (const WarmingCluster& w : warming_clusters_) {
    if (w.needs_endpoints) first = std::min(first, w.gives_up_at);
  }
  if (first == Time::max()) return;
  warming_timer_ = host_.RunAfter(first - host_.Now(), [this] {
    warming_timer_ = kNoTimer;
    GiveUpOnEndpoints();
  });
}

// The initial fetch timeout: clusters go on with the endpoints known before, or none.
void Envoy::Impl::GiveUpOnEndpoints() {
  for (WarmingCluster& w : warming_clusters_) {
    if (w.gives_up_at <= host_.Now()) w.needs_endpoints = false;
  }
  PromoteClusters();
  ClustersMayBeWarm();
  AwaitEndpoints();
}

bool Envoy::Impl::ClusterReady(const WarmingCluster& warming) const {
  if (warming.needs_endpoints || !SecretsReady(warming.config->secrets)) return false;
  const DnsState* dns = FindDns(warming.config->name);
  return dns == nullptr || dns->answered;
}

bool Envoy::Impl::FirstPhaseWarms() const {
  return std::any_of(warming_clusters_.begin(), warming_clusters_.end(),
                     [](const WarmingCluster& w) { return w.config->type != DiscoveryType::kEds; });
}

std::shared_ptr<const ActiveCluster> Envoy::Impl::Activate(const std::shared_ptr<const ClusterConfig>& config) {
  std::shared_ptr<const EndpointTable> endpoints = config->load_assignment;
  if (config->type == DiscoveryType::kEds) {
    const auto* found = endpoints_->Find(config->service_name);
    endpoints = found == nullptr ? nullptr : *found;
  } else if (const DnsState* dns = FindDns(config->name)) {
    endpoints = DnsTable(*dns);
  }
  return plane_.configs().Pair(config, std::move(endpoints));
}

void Envoy::Impl::PromoteClusters() {
  ActiveChanges ready;
  const auto still = std::remove_if(warming_clusters_.begin(), warming_clusters_.end(), [&](const WarmingCluster& w) {
    if (!ClusterReady(w)) return false;
    ready.emplace_back(w.config->name, Activate(w.config));
    return true;
  });
  warming_clusters_.erase(still, warming_clusters_.end());
  if (warming_clusters_.empty()) {
    warming_clusters_.shrink_to_fit();
    AwaitEndpoints();
  }
  if (!ready.empty()) SetActive(std::move(ready));
}

void Envoy::Impl::SetActive(ActiveChanges changes) {
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // A cluster that changes its type leaves one set and joins the other.
  ActiveChanges eds, others;
  for (const auto& [name, active] : changes) {
    const bool is_eds = active != nullptr && active->config->type == DiscoveryType::kEds;
    eds.emplace_back(name, is_eds ? active : nullptr);
    others.emplace_back(name, is_eds ? nullptr : active);
  }
  auto next_eds = NextActive(*active_.eds, eds);
  auto next_others = NextActive(*active_.others, others);
  if (next_eds == nullptr && next_others == nullptr) return;
  Adopt({next_eds == nullptr ? active_.eds : std::move(next_eds),
         next_others == nullptr ? active_.others : std::move(next_others)},
        changes);
}

std::vector<std::shared_ptr<const ActiveCluster>> Envoy::Impl::ActiveSets::All() const {
  std::vector<std::shared_ptr<const ActiveCluster>> out;
  if (eds == nullptr) return out;
  out.reserve(eds->items().size() + others->items().size());
  std::merge(eds->items().begin(), eds->items().end(), others->items().begin(), others->items().end(),
             std::back_inserter(out), [](const auto& a, const auto& b) { return NameOf(*a) < NameOf(*b); });
  return out;
}

std::shared_ptr<const NamedSet<ActiveCluster>> Envoy::Impl::NextActive(const NamedSet<ActiveCluster>& from,
                                                                       const ActiveChanges& changes) {
  std::vector<std::shared_ptr<const ActiveCluster>> next;
  next.reserve(from.items().size() + changes.size());
  size_t c = 0;
  bool changed = false;
  const auto take = [&] {  // what `from` has not
    if (changes[c].second != nullptr) {
      changed = true;
      next.push_back(changes[c].second);
    }
    ++c;
  };
  for (const auto& old : from.items()) {
    while (c < changes.size() && changes[c].first < old->config->name) take();
    if (c < changes.size() && changes[c].first == old->config->name) {
      changed |= changes[c].second != old;
      if (changes[c].second != nullptr) next.push_back(changes[c].second);
      ++c;
    } else {
      next.push_back(old);
    }
  }
  while (c < changes.size()) take();
  return changed ? plane_.configs().Intern<ActiveCluster>(std::move(next)) : nullptr;
}

void Envoy::Impl::Adopt(ActiveSets next, const ActiveChanges& changes) {
  active_ = std::move(next);
  ++epoch_;
  if (runtimes_.empty() && retired_.empty()) return;
  for (const auto& [name, active] : changes) {
    const auto it = runtimes_.find(name);
    if (it == runtimes_.end()) continue;
    if (active != nullptr && active->config->hash == it->second->config().hash) {
      it->second->Update(active);
    } else {
      RetireRuntime(name);
    }
  }
  retired_.erase(std::remove_if(retired_.begin(), retired_.end(), [](const auto& r) { return r->idle(); }),
                 retired_.end());
}

// A removed or changed cluster: what runs on it runs out; a successor starts from nothing, its counters excepted.
void Envoy::Impl::RetireRuntime(const std::string& name) {
  const auto it = runtimes_.find(name);
  std::unique_ptr<ClusterRuntime> runtime = std::move(it->second);
  runtimes_.erase(it);
  for (size_t i = 0; i < static_cast<size_t>(ClusterStat::kCount); ++i) {
    const auto stat = static_cast<ClusterStat>(i);
    if (stat == ClusterStat::kEjectionsActive || runtime->stats()[i] == 0) continue;
    Counter(fmt::format("cluster.{}.{}", name, ClusterStatName(stat))) += runtime->stats()[i];
  }
  runtime->Retire();
  retired_.push_back(std::move(runtime));
  for (size_t i = 0; i < dns_.size(); ++i) {
    if (dns_[i]->config->name == name && active_.Find(name) == nullptr) {
      host_.Cancel(dns_[i]->timer);
      dns_.erase(dns_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
}

namespace {

void SortUnique(std::vector<std::string>* names) {
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
}

}  // namespace

const ResourceNames& Envoy::Impl::EdsNames() const {
  if (clusters_->wanted == nullptr) {
    std::vector<std::string> names;
    for (const auto& c : clusters_->items()) {
      if (c->type == DiscoveryType::kEds) names.push_back(c->service_name);
      clusters_->service_names_differ |= c->service_name != c->name;
    }
    SortUnique(&names);
    clusters_->wanted = plane_.configs().InternNames(std::move(names));
  }
  return clusters_->wanted;
}

// While any cluster warms, CDS is paused and its acknowledgement waits (but for the first clusters'); the listeners
// come after the clusters.
void Envoy::Impl::ClustersMayBeWarm() {
  if (!running_ || ads_ == nullptr || applying_clusters_) return;
  if (eds_waits_ && !FirstPhaseWarms()) {
    eds_waits_ = false;
    ads_->Subscribe(XdsType::kEds, EdsNames());
  }
  if (!warming_clusters_.empty()) return;
  ads_->Release(XdsType::kCds);
  if (pending_cds_.set) {
    const Pending done = std::exchange(pending_cds_, Pending{});
    InForce(XdsType::kCds, done.resources, done.version, done.nonce);
  }
  AskForListeners();
}

void Envoy::Impl::AskForListeners() {
  if (lds_subscribed_ || !cds_received_) return;
  lds_subscribed_ = true;
  ads_->Subscribe(XdsType::kLds, nullptr);
  if (options_.initial_fetch_timeout > Duration::zero()) {
    init_timer_ = host_.RunAfter(options_.initial_fetch_timeout, [this] {
      init_timer_ = kNoTimer;
      lds_received_ = true;
      CheckLive();
    });
  }
}

std::string Envoy::Impl::ApplyEndpoints(const Queued& queued) {
  ConfigStore& store = plane_.configs();
  const ResourceNames wanted = EdsNames();
  // Endpoints outlive their absence from a response and even their removal: only an empty table empties a cluster.
  Queued without_removals = queued;
  if (queued.delta != nullptr && !queued.delta->removed_resources().empty()) {
    auto copy = std::make_shared<DeltaDiscoveryResponse>(*queued.delta);
    copy->clear_removed_resources();
    without_removals.delta = std::move(copy);
  }
  const std::shared_ptr<const Changes<EndpointTable>> found = Diff<EndpointTable>(
      without_removals, endpoints_, /*whole=*/false, wanted,
      [&](std::string_view bytes) -> const Decoded<EndpointTable>& { return store.Endpoints(bytes); });
  const Changes<EndpointTable>& changes = *found;
  endpoints_ = changes.next;
  const auto& given = changes.given();
  for (WarmingCluster& w : warming_clusters_) {
    // A table may equal the one that is known and still be what a changed cluster waits for.
    if (!w.needs_endpoints) continue;
    const auto at = std::lower_bound(given.begin(), given.end(), w.config->service_name,
                                     [](const auto& table, const std::string& n) { return table->cluster_name < n; });
    w.needs_endpoints = at == given.end() || (*at)->cluster_name != w.config->service_name;
  }
  if (!changes.upserts.empty()) {
    if (queued.delta != nullptr || clusters_->service_names_differ || !plane_.configs().reuses_work()) {
      SetActive(WorkOutActivation(changes).changes);
    } else {
      auto& known = Meaning::Of(*queued.sotw.body).activations;
      if (known.size() == Meaning::kMaxActivations) known.clear();
      Activation& activation = known[{active_.eds.get(), found.get()}];
      if (activation.from == nullptr) {
        activation = WorkOutActivation(changes);
        activation.endpoints = found;
        activation.to = NextActive(*active_.eds, activation.changes);
      }
      if (activation.to != nullptr) Adopt({activation.to, active_.others}, activation.changes);
    }
  }
  PromoteClusters();
  ClustersMayBeWarm();
  return changes.first_error;
}

Envoy::Impl::Activation Envoy::Impl::WorkOutActivation(const Changes<EndpointTable>& endpoints) {
  Activation out;
  out.from = active_.eds;
  for (const auto& table : endpoints.upserts) {
    const auto update = [&](const std::shared_ptr<const ActiveCluster>& active) {
      if (active->config->service_name != table->cluster_name) return;
      out.changes.emplace_back(active->config->name, plane_.configs().Pair(active->config, table));
    };
    if (clusters_->service_names_differ) {
      for (const auto& active : active_.eds->items()) update(active);
    } else if (const auto* active = active_.eds->Find(table->cluster_name)) {
      update(*active);
    }
  }
  std::sort(out.changes.begin(), out.changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

// --- DNS

Envoy::Impl::DnsState* Envoy::Impl::FindDns(std::string_view cluster) const {
  for (const auto& d : dns_) {
    if (d->config->name == cluster) return d.get();
  }
  return nullptr;
}

void Envoy::Impl::ResolveDns(const std::shared_ptr<const ClusterConfig>& config) {
  DnsState* state = FindDns(config->name);
  if (state == nullptr) state = dns_.emplace_back(std::make_unique<DnsState>()).get();
  host_.Cancel(state->timer);
  state->timer = kNoTimer;
  state->config = config;
  state->answered = false;
  const std::vector<LbEndpoint>& endpoints = config->load_assignment->endpoints;
  state->answers.assign(endpoints.size(), {});
  state->outstanding = static_cast<uint32_t>(endpoints.size()) + 1;
  state->ttl = config->dns_refresh_rate;
  const std::string name = config->name;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    if (!endpoints[i].address.ip.empty()) {
      DnsAnswered(name, i, DnsAnswer{{endpoints[i].address.ip}, config->dns_refresh_rate});
      continue;
    }
    const std::weak_ptr<Life> life = life_;
    context_.dns().Resolve(endpoints[i].hostname,
                           [life, name, i, hash = config->hash](absl::StatusOr<DnsAnswer> answer) {
                             const std::shared_ptr<Life> alive = life.lock();
                             if (alive == nullptr) return;
                             const DnsState* asked = alive->envoy->FindDns(name);
                             if (asked != nullptr && asked->config->hash == hash)
                               alive->envoy->DnsAnswered(name, i, answer);
                           });
  }
  DnsAnswered(name, endpoints.size(), DnsAnswer{});  // the one for having asked them all
}

void Envoy::Impl::DnsAnswered(const std::string& cluster, size_t endpoint, const absl::StatusOr<DnsAnswer>& answer) {
  DnsState* state = FindDns(cluster);
  if (state == nullptr || state->outstanding == 0) return;
  if (endpoint < state->answers.size() && answer.ok()) {
    state->answers[endpoint] = answer->addresses;
    if (state->config->respect_dns_ttl && answer->ttl > Duration::zero()) state->ttl = answer->ttl;
  }
  if (--state->outstanding > 0) return;
  state->answered = true;
  state->resolved = host_.Now();
  if (const auto* active = active_.Find(cluster)) {
    if ((*active)->config->hash == state->config->hash) SetActive({{cluster, Activate(state->config)}});
  }
  PromoteClusters();
  ClustersMayBeWarm();
  // Only clusters with traffic ask again by themselves; the others do when traffic comes.
  if (runtimes_.contains(cluster)) RefreshDns(FindDns(cluster));
}

void Envoy::Impl::RefreshDns(DnsState* state) {
  if (state == nullptr || state->timer != kNoTimer || !state->answered) return;
  const Duration due = std::max<Duration>(state->resolved + state->ttl - host_.Now(), Duration::zero());
  state->timer = host_.RunAfter(due, [this, name = state->config->name] {
    DnsState* due_state = FindDns(name);
    if (due_state == nullptr) return;
    due_state->timer = kNoTimer;
    // Old addresses stay until new ones are known.
    const std::vector<std::vector<IpAddress>> before = due_state->answers;
    ResolveDns(due_state->config);
    if (DnsState* now = FindDns(name)) {
      for (size_t i = 0; i < before.size() && i < now->answers.size(); ++i) {
        if (now->answers[i].empty()) now->answers[i] = before[i];
      }
    }
  });
}

std::shared_ptr<const EndpointTable> Envoy::Impl::DnsTable(const DnsState& state) {
  const EndpointTable& names = *state.config->load_assignment;
  auto table = std::make_shared<EndpointTable>(names);
  table->endpoints.clear();
  std::string content;
  for (size_t i = 0; i < names.endpoints.size(); ++i) {
    for (const IpAddress& ip : state.answers[i]) {
      LbEndpoint e = names.endpoints[i];
      e.address.ip = ip;
      if (e.hostname.empty()) e.hostname = ip.ToString();
      content += fmt::format("{}/{} ", i, ip.ToString());
      const bool known = std::any_of(table->endpoints.begin(), table->endpoints.end(),
                                     [&](const LbEndpoint& other) { return other.address == e.address; });
      if (!known) table->endpoints.push_back(std::move(e));
      // One logical host, whatever the number of addresses.
      if (state.config->type == DiscoveryType::kLogicalDns) break;
    }
  }
  table->hash = HashBytes(content, state.config->hash.low);
  return table;
}

// --- listeners

std::string Envoy::Impl::ApplyListeners(const Queued& queued) {
  ConfigStore& store = plane_.configs();
  Changes<ListenerConfig> changes = *Diff<ListenerConfig>(
      queued, listeners_, /*whole=*/true, nullptr,
      [&](std::string_view bytes) -> const Decoded<ListenerConfig>& { return store.Listener(bytes); });
  RefuseTakenAddresses(&changes);
  host_.Cancel(init_timer_);
  init_timer_ = kNoTimer;
  lds_received_ = true;
  if (changes.next != listeners_) {
    listeners_ = changes.next;
    if (!changes.removals.empty()) {
      std::vector<std::shared_ptr<const ListenerConfig>> next;
      for (const auto& l : listening_->items()) {
        if (std::find(changes.removals.begin(), changes.removals.end(), l->name) == changes.removals.end()) {
          next.push_back(l);
        } else {
          DrainListener(l);
        }
      }
      listening_ = store.Intern<ListenerConfig>(std::move(next));
      by_address_ = store.ByAddress(listening_);
      ++epoch_;
      for (size_t i = 0; i < warming_listeners_.size();) {
        WarmingListener& w = warming_listeners_[i];
        if (std::find(changes.removals.begin(), changes.removals.end(), w.config->name) == changes.removals.end()) {
          ++i;
          continue;
        }
        host_.Cancel(w.timeout);
        w = std::move(warming_listeners_.back());
        warming_listeners_.pop_back();
      }
    }
    for (const auto& config : changes.upserts) WarmListener(config);
    PromoteListeners();
    WantRoutes();
    DrainStale();
  }
  if (changes.errors.empty() || changes.undecodable) return changes.errors;
  return fmt::format("Error adding/updating listener(s) {}\n", changes.errors);
}

void Envoy::Impl::WarmListener(const std::shared_ptr<const ListenerConfig>& config) {
  for (size_t i = 0; i < warming_listeners_.size(); ++i) {
    if (warming_listeners_[i].config->name != config->name) continue;
    host_.Cancel(warming_listeners_[i].timeout);
    warming_listeners_[i] = std::move(warming_listeners_.back());
    warming_listeners_.pop_back();
    break;
  }
  NeedSecrets(config->secrets);
  WarmingListener warming{config};
  const bool has_routes = std::all_of(config->route_names.begin(), config->route_names.end(),
                                      [&](const std::string& n) { return routes_->Find(n) != nullptr; });
  if (!has_routes && config->rds_initial_fetch_timeout > Duration::zero()) {
    warming.timeout = host_.RunAfter(config->rds_initial_fetch_timeout, [this, name = config->name] {
      for (WarmingListener& w : warming_listeners_) {
        if (w.config->name == name) w.rds_given_up = true, w.timeout = kNoTimer;
      }
      PromoteListeners();
      CheckLive();
    });
  }
  warming_listeners_.push_back(std::move(warming));
}

bool Envoy::Impl::ListenerReady(const WarmingListener& warming) const {
  if (!SecretsReady(warming.config->secrets)) return false;
  return warming.rds_given_up || std::all_of(warming.config->route_names.begin(), warming.config->route_names.end(),
                                             [&](const std::string& n) { return routes_->Find(n) != nullptr; });
}

void Envoy::Impl::PromoteListeners() {
  std::vector<std::shared_ptr<const ListenerConfig>> ready;
  for (size_t i = 0; i < warming_listeners_.size();) {
    WarmingListener& w = warming_listeners_[i];
    if (!ListenerReady(w)) {
      ++i;
      continue;
    }
    host_.Cancel(w.timeout);
    ready.push_back(std::move(w.config));
    w = std::move(warming_listeners_.back());
    warming_listeners_.pop_back();
  }
  if (warming_listeners_.empty()) warming_listeners_.shrink_to_fit();
  if (ready.empty()) return;
  std::sort(ready.begin(), ready.end(), [](const auto& a, const auto& b) { return a->name < b->name; });
  std::vector<std::shared_ptr<const ListenerConfig>> next;
  size_t r = 0;
  for (const auto& old : listening_->items()) {
    while (r < ready.size() && ready[r]->name < old->name) next.push_back(ready[r++]);
    if (r < ready.size() && ready[r]->name == old->name) {
      DrainListener(old);
      next.push_back(ready[r++]);
    } else {
      next.push_back(old);
    }
  }
  while (r < ready.size()) next.push_back(ready[r++]);
  listening_ = plane_.configs().Intern<ListenerConfig>(std::move(next));
  by_address_ = plane_.configs().ByAddress(listening_);
  ++epoch_;
  DrainStale();
  if (warming_listeners_.empty() && pending_lds_.set) {
    const Pending done = std::exchange(pending_lds_, Pending{});
    InForce(XdsType::kLds, done.resources, done.version, done.nonce);
  }
}

// Connections of listeners that are gone, or whose filter chain changed, drain; an equal chain of the new version
// keeps its own. Envoy: source/common/listener_manager/listener_impl.h, in-place filter chain update
void Envoy::Impl::DrainStale() {
  for (DownstreamConnection* c = connections_; c != nullptr; c = c->next) {
    const auto* now = listening_->Find(c->listener().name);
    if (now != nullptr && (c->uses(*now) || c->chain() == nullptr)) continue;
    const bool kept = now != nullptr && std::any_of((*now)->chains.begin(), (*now)->chains.end(),
                                                    [&](const FilterChain& f) { return f.hash == c->chain()->hash; });
    if (!kept) c->BeginDrain();
  }
}

ResourceNames Envoy::Impl::RdsNames() const {
  const auto of = [&](const NamedSet<ListenerConfig>& set) -> const ResourceNames& {
    if (set.wanted == nullptr) {
      std::vector<std::string> names;
      for (const auto& l : set.items()) names.insert(names.end(), l->route_names.begin(), l->route_names.end());
      SortUnique(&names);
      set.wanted = plane_.configs().InternNames(std::move(names));
    }
    return set.wanted;
  };
  // What listens, warms or drains: the set that is wanted, the one in force, and what is on its way out.
  const ResourceNames& next = of(*listeners_);
  const ResourceNames& now = of(*listening_);
  if ((next == now || now->empty()) && draining_listeners_.empty()) return next;
  std::vector<std::string> names = *next;
  names.insert(names.end(), now->begin(), now->end());
  for (const DrainingListener& d : draining_listeners_) {
    names.insert(names.end(), d.config->route_names.begin(), d.config->route_names.end());
  }
  SortUnique(&names);
  return plane_.configs().InternNames(std::move(names));
}

// Subscribes to the routes that are needed now and forgets the others.
void Envoy::Impl::WantRoutes() {
  const ResourceNames names = RdsNames();
  std::vector<std::shared_ptr<const RouteTable>> kept;
  for (const auto& r : routes_->items()) {
    if (std::binary_search(names->begin(), names->end(), r->name)) kept.push_back(r);
  }
  if (kept.size() != routes_->items().size()) routes_ = plane_.configs().Intern<RouteTable>(std::move(kept));
  ads_->Subscribe(XdsType::kRds, names);
}

void Envoy::Impl::DrainListener(const std::shared_ptr<const ListenerConfig>& listener) {
  if (listener->route_names.empty()) return;
  DrainingListener& d = draining_listeners_.emplace_back();
  d.config = listener;
  d.timer = host_.RunAfter(options_.drain_time, [this, config = listener.get()] {
    const auto at = std::find_if(draining_listeners_.begin(), draining_listeners_.end(),
                                 [&](const DrainingListener& one) { return one.config.get() == config; });
    draining_listeners_.erase(at);
    if (ads_ != nullptr) WantRoutes();
  });
}

std::string Envoy::Impl::UnknownCluster(const std::vector<ClusterUse>& uses) const {
  for (const ClusterUse& use : uses) {
    const bool warming = std::any_of(warming_clusters_.begin(), warming_clusters_.end(),
                                     [&](const WarmingCluster& w) { return w.config->name == use.cluster; });
    if (!warming && active_.Find(use.cluster) == nullptr) return use.complaint;
  }
  return {};
}

// Two listeners cannot have one address; the one that was there first, else the first by name, keeps it.
void Envoy::Impl::RefuseTakenAddresses(Changes<ListenerConfig>* changes) {
  if (changes->upserts.empty() || changes->undecodable) return;
  absl::flat_hash_map<SocketAddress, const ListenerConfig*> taken;
  absl::flat_hash_set<const ListenerConfig*> fresh;
  for (const auto& u : changes->upserts) fresh.insert(u.get());
  for (const auto& l : changes->next->items()) {
    if (!fresh.contains(l.get())) taken.emplace(l->address, l.get());
  }
  std::vector<const ListenerConfig*> refused;
  for (const auto& u : changes->upserts) {
    if (!taken.emplace(u->address, u.get()).second) refused.push_back(u.get());
  }
  if (refused.empty()) return;
  std::vector<std::shared_ptr<const ListenerConfig>> next;
  for (const auto& l : changes->next->items()) {
    if (std::find(refused.begin(), refused.end(), l.get()) == refused.end()) {
      next.push_back(l);
    } else if (const auto* old = listeners_->Find(l->name)) {
      next.push_back(*old);
    }
  }
  for (const ListenerConfig* l : refused) {
    if (!changes->errors.empty()) changes->errors += "\n";
    changes->errors += fmt::format(
        "{0}: error adding listener: '{0}' has duplicate address '{1}' as existing listener, to check if the listener "
        "has duplicated addresses with other listeners or 'enable_reuse_port' is set to 'false' for the listener",
        l->name, l->address.ToString());
    std::erase_if(changes->upserts, [&](const auto& u) { return u.get() == l; });
  }
  changes->next = plane_.configs().Intern<ListenerConfig>(std::move(next));
}

std::string Envoy::Impl::ApplyRoutes(const Queued& queued) {
  ConfigStore& store = plane_.configs();
  const ResourceNames wanted = RdsNames();
  const std::shared_ptr<const Changes<RouteTable>> found =
      Diff<RouteTable>(queued, routes_, /*whole=*/false, wanted,
                       [&](std::string_view bytes) -> const Decoded<RouteTable>& { return store.Routes(bytes); });
  const Changes<RouteTable>& changes = *found;
  if (changes.next != routes_) {
    routes_ = changes.next;
    ++epoch_;
    PromoteListeners();
    CheckLive();
  }
  return changes.first_error;
}

// The workers start, and with them the listeners accept, when everything of the first LDS is warm.
void Envoy::Impl::CheckLive() {
  if (live_ || !running_ || !lds_received_ || !warming_listeners_.empty()) return;
  if (!options_.has_ads && !warming_clusters_.empty()) return;
  live_ = true;
  context_.OnLive();
}

// --- secrets

const Envoy::Impl::SecretState* Envoy::Impl::FindSecret(std::string_view name) const {
  if (name.empty()) return nullptr;
  for (const SecretState& s : secrets_) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

namespace {

// Istio's names of Secrets in Kubernetes; all others are the agent's.
bool OverAds(std::string_view secret) {
  return secret.starts_with("kubernetes://") || secret.starts_with("kubernetes-gateway://");
}

}  // namespace

std::string Envoy::Impl::ApplySecrets(const Queued& queued) {
  std::string errors;
  for (size_t i = 0; i < queued.resources(); ++i) {
    absl::StatusOr<NamedSecret> read = ReadSecret(queued.type_url(i), queued.resource(i));
    if (!read.ok()) {
      errors += (errors.empty() ? "" : "\n") + std::string(read.status().message());
      continue;
    }
    OnSecret(read->name, std::move(read->secret));
  }
  return errors;
}

void Envoy::Impl::NeedSecrets(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (FindSecret(name) != nullptr) continue;
    secrets_.push_back({name, {}, false});
    if (ads_ != nullptr && OverAds(name)) {
      auto wanted = std::make_shared<std::vector<std::string>>();
      for (const SecretState& s : secrets_) {
        if (OverAds(s.name)) wanted->push_back(s.name);
      }
      std::sort(wanted->begin(), wanted->end());
      ads_->Subscribe(XdsType::kSds, std::move(wanted));
      continue;
    }
    const std::weak_ptr<Life> life = life_;
    context_.secrets().Subscribe(name, [life, name](absl::StatusOr<Secret> secret) {
      const std::shared_ptr<Life> alive = life.lock();
      if (alive == nullptr || !secret.ok()) return;  // the last good one stays
      Impl* self = alive->envoy;
      self->host_.RunAfter(self->Draw(self->plane_.options().latencies.apply_sds),
                           [life, name, value = *std::move(secret)]() mutable {
                             const std::shared_ptr<Life> still = life.lock();
                             if (still != nullptr) still->envoy->OnSecret(name, std::move(value));
                           });
    });
  }
}

bool Envoy::Impl::SecretsReady(const std::vector<std::string>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const std::string& n) {
    const SecretState* s = FindSecret(n);
    return s != nullptr && s->ready;
  });
}

void Envoy::Impl::OnSecret(const std::string& name, absl::StatusOr<Secret> secret) {
  for (SecretState& s : secrets_) {
    if (s.name != name) continue;
    s.secret = *std::move(secret);
    s.ready = true;
  }
  ++secrets_epoch_;
  Trace(TraceKind::kXdsApplied, XdsType::kSds, 1);
  PromoteClusters();
  ClustersMayBeWarm();
  PromoteListeners();
  CheckLive();
}

}  // namespace wavetank::envoysim
