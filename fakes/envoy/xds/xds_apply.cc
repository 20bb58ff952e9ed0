// What an Envoy does with the resources it is sent: diffing, warming, putting into force.
// Envoy: source/common/upstream/{cluster_manager_impl,cds_api_helper}.cc, listener_manager_impl.cc; the order of things
// as measured in docs/real-envoy.md 7.
#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fakes/envoy/tls/tls_config.h"
#include "fakes/envoy/xds/xds_state.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::envoysim {

void XdsState::Trace(TraceKind kind, XdsType type, int64_t a, int64_t b, std::string_view detail) {
  host_.Emit({kind, process_.trace_name(), host_.Intern(XdsTypeName(type)), a, b, detail});
}

void XdsState::OnConnected() { host_.Emit({TraceKind::kXdsConnected, process_.trace_name()}); }

void XdsState::OnDisconnected(const absl::Status& status) {
  // What was received but not yet worked off is worked off all the same; only its acknowledgement has nowhere to go.
  host_.Emit({TraceKind::kXdsDisconnected, process_.trace_name(), kNoName, 0, 0,
              std::string_view(status.message().data(), status.message().size())});
}

// --- the main thread

const std::string& XdsState::Queued::version() const {
  return delta == nullptr ? sotw.version : delta->system_version_info();
}
const std::string& XdsState::Queued::nonce() const { return delta == nullptr ? sotw.nonce : delta->nonce(); }
size_t XdsState::Queued::resources() const {
  return delta == nullptr ? sotw.body->resources.size() : static_cast<size_t>(delta->resources_size());
}
std::string_view XdsState::Queued::resource(size_t i) const {
  return delta == nullptr ? *sotw.body->resources[i] : delta->resources(static_cast<int>(i)).resource().value();
}
std::string_view XdsState::Queued::type_url(size_t i) const {
  if (delta != nullptr) return delta->resources(static_cast<int>(i)).resource().type_url();
  for (const auto& [at, url] : sotw.body->other_types) {
    if (at == i) return url;
  }
  return sotw.body->type_url;
}
size_t XdsState::Queued::bytes() const {
  if (delta == nullptr) return sotw.body->bytes;
  size_t sum = 0;
  for (const auto& r : delta->resources()) sum += r.resource().value().size();
  return sum;
}

void XdsState::OnResponse(XdsType type, SotwResponse response) {
  Trace(TraceKind::kXdsReceived, type, static_cast<int64_t>(response.body->resources.size()));
  Enqueue({type, std::move(response), nullptr, ads_->stream()});
}

void XdsState::OnDeltaResponse(XdsType type, std::shared_ptr<const DeltaDiscoveryResponse> response) {
  Trace(TraceKind::kXdsReceived, type, response->resources_size());
  Enqueue({type, {}, std::move(response), ads_->stream()});
}

void XdsState::Enqueue(Queued queued) {
  queue_.push_back(std::move(queued));
  if (!processing_) ProcessNext();
}

void XdsState::ProcessNext() {
  processing_ = !queue_.empty();
  if (!processing_) {
    queue_.shrink_to_fit();
    return;
  }
  const Queued& next = queue_.front();
  const StageLatencies& l = process_.latencies();
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
    case XdsType::kEcds:  // as small
      range = &l.apply_sds;
      break;
  }
  const Duration cost = process_.Draw(*range) + l.per_kib * static_cast<int64_t>(next.bytes() / 1024) +
                        BuggifyDelay(BuggifyPoint::kApplyLate);
  WAVETANK_ASSERT(cost >= Duration::zero(), cost, next.type);
  WAVETANK_ASSERT(main_thread_timer_ == kNoTimer, next.type);  // there is one main thread
  main_thread_timer_ = host_.RunAfter(cost, [this] {
    main_thread_timer_ = kNoTimer;
    WAVETANK_ASSERT(processing_);
    WAVETANK_ASSERT(!queue_.empty());  // only the end of the process empties it, and that cancels this
    const Queued queued = std::move(queue_.front());
    queue_.erase(queue_.begin());
    Apply(queued);
    ProcessNext();
  });
}

void XdsState::Apply(const Queued& queued) {
  WAVETANK_ASSERT(!applying_clusters_, queued.type);  // one response is applied as a whole before the next
  WAVETANK_ASSERT(ads_ != nullptr, queued.type);
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
    case XdsType::kEcds:
      errors = ApplyExtensions(queued);
      break;
  }
  // The listeners are asked for while the clusters are being applied; only then is the response acknowledged.
  if (queued.type == XdsType::kCds && warming_clusters_.empty()) AskForListeners();
  Conclude(queued, errors);
  if (queued.type == XdsType::kCds) ClustersMayBeWarm();
  if (queued.type == XdsType::kLds) CheckLive();
}

void XdsState::Conclude(const Queued& queued, const std::string& errors) {
  const std::string& version = queued.version();
  const std::string& nonce = queued.nonce();
  const auto resources = static_cast<int64_t>(queued.resources());
  if (!errors.empty()) {
    Trace(TraceKind::kXdsNack, queued.type, resources, 0, errors);
    ads_->Reject(queued.type, nonce, errors);
    view_.plane().NoteNack(host_.Now(), process_.options().name, XdsTypeName(queued.type), errors);
    process_.context().OnRejected(queued.type, version, errors);
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

void XdsState::InForce(XdsType type, int64_t resources, std::string_view version, std::string_view nonce) {
  Trace(TraceKind::kXdsApplied, type, resources);
  process_.context().OnApplied(type, version, nonce);
}

// --- diffing

struct XdsState::Meaning final : ResponseBody::Meaning {
  struct Step {
    std::shared_ptr<const void> from, changes;  // NamedSet<T>, Changes<T> of the type that the response is of
    ResourceNames wanted;
  };
  // Envoys of one kind of proxy are in a few states at a time.
  static constexpr size_t kMaxSteps = 64, kMaxActivations = 1024;
  std::vector<Step> steps;
  // By the set they begin with, and what the step was. Both are held by the entry, so that no other gets their place.
  absl::flat_hash_map<std::pair<const void*, const void*>, Activation> activations;

  static Meaning& Of(const ResponseBody& body) {
    if (body.meaning == nullptr) body.meaning = std::make_unique<Meaning>();
    return static_cast<Meaning&>(*body.meaning);
  }
};

// Clusters and endpoints are many and mostly the same as the last time. Listeners and routes are few and their bytes
// large, so that it pays neither to compare nor to keep them.
template <typename T>
constexpr bool kComesAgain = std::is_same_v<T, ClusterConfig> || std::is_same_v<T, EndpointTable>;

// Whether names are among sorted ones: asked in their order, as a response mostly does, each costs one comparison.
class AmongNames {
 public:
  explicit AmongNames(const ResourceNames& names) : names_(names.get()) {}  // null: all are
  bool Has(std::string_view name) {
    if (names_ == nullptr) return true;
    if (next_ < names_->size() && (*names_)[next_] == name) {
      ++next_;
      return true;
    }
    const auto at = std::lower_bound(names_->begin(), names_->end(), name);
    if (at == names_->end() || *at != name) return false;
    next_ = static_cast<size_t>(at - names_->begin()) + 1;
    return true;
  }

 private:
  const std::vector<std::string>* names_;
  size_t next_ = 0;
};

template <typename T, typename DecodeFn>
std::shared_ptr<const XdsState::Changes<T>> XdsState::Diff(const Queued& queued,
                                                           const std::shared_ptr<const NamedSet<T>>& current,
                                                           bool whole, const ResourceNames& wanted, DecodeFn decode) {
  bool same_for_all = queued.delta == nullptr;
  if (!same_for_all || !configs_.reuses_work()) {
    return std::make_shared<const Changes<T>>(WorkOut(queued, current, whole, wanted, decode, &same_for_all));
  }
  Meaning& meaning = Meaning::Of(*queued.sotw.body);
  for (const typename Meaning::Step& step : meaning.steps) {
    if (step.from == current && step.wanted == wanted) return std::static_pointer_cast<const Changes<T>>(step.changes);
  }
  std::shared_ptr<const Changes<T>> changes;
  if constexpr (kComesAgain<T>) {
    const auto& resources = queued.sotw.body->resources;
    if (!current->items().empty()) {
      changes = Update(*queued.sotw.body, current, whole, wanted, decode);
    } else if (const auto near = configs_.NearestRecent<T>(resources, wanted); near != nullptr) {
      if (const auto step = Update(*queued.sotw.body, near, whole, wanted, decode); step != nullptr) {
        // All of it is new to this one.
        auto first = std::make_shared<Changes<T>>(*step);
        first->upserts = first->next->items();
        changes = std::move(first);
      }
    }
  }
  if (changes == nullptr) {
    changes = std::make_shared<const Changes<T>>(WorkOut(queued, current, whole, wanted, decode, &same_for_all));
  }
  if (same_for_all) {
    if (meaning.steps.size() == Meaning::kMaxSteps) meaning.steps.erase(meaning.steps.begin());
    meaning.steps.push_back({current, changes, wanted});
    if constexpr (kComesAgain<T>) {
      if (current->items().empty() && !changes->next->sources.empty()) {
        configs_.KeepRecent<T>(changes->next, wanted);
      }
    }
  }
  return changes;
}

template <typename T, typename DecodeFn>
std::shared_ptr<const XdsState::Changes<T>> XdsState::Update(const ResponseBody& body,
                                                             const std::shared_ptr<const NamedSet<T>>& current,
                                                             bool whole, const ResourceNames& wanted, DecodeFn decode) {
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
  AmongNames among(wanted);
  for (size_t i = 0; i < resources.size(); ++i) {
    if (all && sources[i].bytes == resources[i]) continue;
    const Decoded<T>& decoded = decode(*resources[i]);
    // What may be refused is looked at in the order of the response.
    if (decoded.value == nullptr || MayObject(*decoded.value)) return nullptr;
    if (!among.Has(decoded.name)) return nullptr;
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
  out->next = replaced.empty() ? current : configs_.Replace(*current, replaced);
  // A set that is known knows its own; at worst they are older, of the same content.
  if (out->next->sources.size() != sources.size()) out->next->sources = sources;
  for (const auto& [at, bytes] : reread) out->next->sources[at].bytes = *bytes;
  return out;
}

template <typename T, typename DecodeFn>
XdsState::Changes<T> XdsState::WorkOut(const Queued& queued, const std::shared_ptr<const NamedSet<T>>& current,
                                       bool whole, const ResourceNames& wanted, DecodeFn decode, bool* same_for_all) {
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
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  if constexpr (std::is_same_v<T, RouteTable>) {
    bool all_good = true, readable = true;
    std::vector<std::string> names;
    for (size_t i = 0; i < n; ++i) {
      const Decoded<T>& decoded = decode(queued.resource(i));
      names.push_back(decoded.name);
      all_good &= decoded.value != nullptr && Objection(*decoded.value).empty();
      readable &= decoded.value != nullptr || decoded.status.code() != kUndecodable;
    }
    if (!all_good && readable) order = OrderOfRoutes(queued, names);
  }
  AmongNames among(wanted);
  for (const size_t i : order) {
    const Decoded<T>& decoded = decode(queued.resource(i));
    if (!among.Has(decoded.name)) continue;
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
      // Routes, too, are handed to one subscription after the other; see OrderOfRoutes().
      if (queued.type == XdsType::kEds || queued.type == XdsType::kRds) break;
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
  out.next = out.upserts.empty() && out.removals.empty() ? current : configs_.Intern<T>(std::move(next));
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

std::string XdsState::ApplyClusters(const Queued& queued) {
  ConfigStore& store = configs_;
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
      view_.plane().NoteWithoutEffect(process_.options().name, config->without_effect);
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
    AskForSecrets();
  }
  if (changes.errors.empty() || changes.undecodable) return changes.errors;
  std::string message = "Error adding/updating cluster(s) ";
  for (char c : changes.errors) c == '\n' ? message += ", " : message += c;
  return message;
}

XdsState::Queued XdsState::WithoutRemovals(const Queued& queued) {
  Queued out = queued;
  if (queued.delta == nullptr || queued.delta->removed_resources().empty()) return out;
  auto copy = std::make_shared<DeltaDiscoveryResponse>(*queued.delta);
  copy->clear_removed_resources();
  out.delta = std::move(copy);
  return out;
}

// A refused response is told to all that wait for endpoints, whichever they are: they go on without any, those that
// were known before, too. Envoy: clusters/eds/eds.cc, onConfigUpdateFailed
void XdsState::GoOnWithoutEndpoints() {
  std::vector<std::shared_ptr<const EndpointTable>> kept = endpoints_->items();
  for (WarmingCluster& w : warming_clusters_) {
    if (!w.needs_endpoints) continue;
    w.needs_endpoints = false;
    std::erase_if(kept, [&](const auto& table) { return table->cluster_name == w.config->service_name; });
  }
  if (kept.size() != endpoints_->items().size()) endpoints_ = configs_.Intern<EndpointTable>(std::move(kept));
}

std::string XdsState::ApplyEndpoints(const Queued& queued) {
  ConfigStore& store = configs_;
  const ResourceNames wanted = EdsNames();
  // Endpoints outlive their absence from a response and even their removal: only an empty table empties a cluster.
  const std::shared_ptr<const Changes<EndpointTable>> found = Diff<EndpointTable>(
      WithoutRemovals(queued), endpoints_, /*whole=*/false, wanted,
      [&](std::string_view bytes) -> const Decoded<EndpointTable>& { return store.Endpoints(bytes); });
  const Changes<EndpointTable>& changes = *found;
  endpoints_ = changes.next;
  const auto& given = changes.given();
  size_t next = 0;  // both are sorted, so that mostly it is the next one
  for (WarmingCluster& w : warming_clusters_) {
    // A table may equal the one that is known and still be what a changed cluster waits for.
    if (!w.needs_endpoints) continue;
    if (next < given.size() && given[next]->cluster_name == w.config->service_name) {
      w.needs_endpoints = false;
      ++next;
      continue;
    }
    const auto at = std::lower_bound(given.begin(), given.end(), w.config->service_name,
                                     [](const auto& table, const std::string& n) { return table->cluster_name < n; });
    w.needs_endpoints = at == given.end() || (*at)->cluster_name != w.config->service_name;
    if (!w.needs_endpoints) next = static_cast<size_t>(at - given.begin()) + 1;
  }
  if (!changes.first_error.empty()) GoOnWithoutEndpoints();
  if (!changes.upserts.empty()) {
    if (queued.delta != nullptr || clusters_->service_names_differ || !configs_.reuses_work()) {
      SetActive(WorkOutActivation(changes).changes);
    } else {
      auto& known = Meaning::Of(*queued.sotw.body).activations;
      if (known.size() == Meaning::kMaxActivations) known.clear();
      Activation& activation = known[{view_.active().eds.get(), found.get()}];
      if (activation.from == nullptr) {
        activation = WorkOutActivation(changes);
        activation.endpoints = found;
        activation.to =
            view_.NextActive(*view_.active().eds, activation.changes, [](const ActiveCluster&) { return true; });
      }
      if (activation.to != nullptr) Adopt({activation.to, view_.active().others}, activation.changes);
    }
  }
  PromoteClusters(/*endpoints_came=*/true);
  ClustersMayBeWarm();
  return changes.first_error;
}

// --- listeners

std::string XdsState::ApplyListeners(const Queued& queued) {
  ConfigStore& store = configs_;
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
      for (const auto& l : view_.listening()->items()) {
        if (std::find(changes.removals.begin(), changes.removals.end(), l->name) == changes.removals.end()) {
          next.push_back(l);
        } else {
          DrainListener(l);
        }
      }
      view_.SetListening(store.Intern<ListenerConfig>(std::move(next)));
      for (size_t i = 0; i < warming_listeners_.size();) {
        WarmingListener& w = warming_listeners_[i];
        if (std::find(changes.removals.begin(), changes.removals.end(), w.config->name) == changes.removals.end()) {
          ++i;
          continue;
        }
        Forget(w);
        w = std::move(warming_listeners_.back());
        warming_listeners_.pop_back();
      }
    }
    for (const auto& config : changes.upserts) {
      view_.plane().NoteWithoutEffect(process_.options().name, config->without_effect);
      WarmListener(config);
    }
    // Envoy: lds_api.cc, onConfigUpdate: in the order of the response
    for (size_t i = 0; i < queued.resources(); ++i) {
      const Decoded<ListenerConfig>& decoded = store.Listener(queued.resource(i));
      if (decoded.value != nullptr && listeners_->Find(decoded.name) != nullptr) NoteRoutesOf(*decoded.value);
    }
    PromoteListeners();
    WantExtensions();  // not held back while listeners are taken in, as the others are (Envoy: lds_api.cc)
    WantRoutes();
    AskForSecrets();
    view_.DrainStale();
  }
  if (changes.errors.empty() || changes.undecodable) return changes.errors;
  return fmt::format("Error adding/updating listener(s) {}\n", changes.errors);
}

// SotW: the newest subscription first. Envoy: xds/grpc/grpc_mux_impl.h, GrpcMuxWatchImpl. Delta: as a hash map of
// subscriptions has them, by chance. Envoy: config_subscription/grpc/watch_map.cc, onConfigUpdate
std::vector<size_t> XdsState::OrderOfRoutes(const Queued& queued, const std::vector<std::string>& names) {
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (queued.delta != nullptr) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[process_.random().Below(i)]);
    return order;
  }
  const auto age = [&](size_t i) {
    const auto at = route_subscriptions_.find(names[i]);
    return at == route_subscriptions_.end() ? 0 : at->second + 1;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return age(a) > age(b); });
  return order;
}

// A refused response is told to all that wait for routes, whichever they are, and none of them waits on: their
// listeners answer 404. Envoy: rds_route_config_subscription.cc, onConfigUpdateFailed
void XdsState::GiveUpOnRoutes() {
  for (WarmingListener& w : warming_listeners_) w.rds_given_up = true;
  PromoteListeners();
  CheckLive();
}

std::string XdsState::ApplyRoutes(const Queued& queued) {
  ConfigStore& store = configs_;
  const ResourceNames wanted = RdsNames();
  // Routes outlive their removal while a listener names them. Envoy: rds_route_config_subscription.cc
  const std::shared_ptr<const Changes<RouteTable>> found =
      Diff<RouteTable>(WithoutRemovals(queued), view_.routes(), /*whole=*/false, wanted,
                       [&](std::string_view bytes) -> const Decoded<RouteTable>& { return store.Routes(bytes); });
  const Changes<RouteTable>& changes = *found;
  if (changes.next != view_.routes()) {
    view_.SetRoutes(changes.next);
    PromoteListeners();
    CheckLive();
  }
  if (!changes.first_error.empty()) GiveUpOnRoutes();
  return changes.first_error;
}

// --- secrets

std::string XdsState::ApplySecrets(const Queued& queued) {
  std::string errors;
  for (size_t i = 0; i < queued.resources(); ++i) {
    absl::StatusOr<NamedSecret> read = ReadSecret(queued.type_url(i), queued.resource(i));
    if (!read.ok()) {
      errors += (errors.empty() ? "" : "\n") + std::string(read.status().message());
      continue;
    }
    secrets_.Take(read->name, std::move(read->secret));
  }
  return errors;
}

// --- extensions
// Envoy: source/common/filter/config_discovery_impl.cc. What was given once stays until something else is.

std::vector<std::string> XdsState::ExtensionNames() const {
  std::vector<std::string> names;
  const auto add = [&](const ListenerConfig& listener) {
    for (const DiscoveredFilter& each : listener.extensions) {
      if (std::find(names.begin(), names.end(), each.name) == names.end()) names.push_back(each.name);
    }
  };
  for (const auto& listener : listeners_->items()) add(*listener);
  for (const auto& listener : view_.listening()->items()) add(*listener);
  for (const DrainingListener& draining : draining_listeners_) add(*draining.config);
  return names;
}

void XdsState::CountExtension(std::string_view name, std::string_view what) {
  ++view_.Counter(fmt::format("extension_config_discovery.http_filter.{}.{}", name, what));
}

// Each filter asks for itself.
void XdsState::WantExtensions() {
  const std::vector<std::string> names = ExtensionNames();
  const auto unwanted = [&](const std::string& e) { return std::find(names.begin(), names.end(), e) == names.end(); };
  std::erase_if(extensions_, unwanted);
  std::erase_if(latest_extensions_, [&](const auto& e) { return unwanted(e.first); });
  std::vector<std::string> gone;
  for (const auto& [name, filter] : view_.extensions()) {
    if (unwanted(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) view_.SetExtension(name, nullptr);
  const auto ask = [&] {
    std::vector<std::string> sorted = asked_extensions_;
    SortUnique(&sorted);
    ads_->Subscribe(XdsType::kEcds, configs_.InternNames(std::move(sorted)));
  };
  const size_t before = asked_extensions_.size();
  std::erase_if(asked_extensions_, unwanted);
  if (asked_extensions_.size() != before) ask();
  for (const std::string& name : names) {
    if (std::find(asked_extensions_.begin(), asked_extensions_.end(), name) != asked_extensions_.end()) continue;
    asked_extensions_.push_back(name);
    ask();
  }
}

// InvalidArgument: in Envoy's words.
absl::Status XdsState::TakeExtension(std::string_view resource) {
  envoy::config::core::v3::TypedExtensionConfig config;
  if (!config.ParseFromArray(resource.data(), static_cast<int>(resource.size()))) {
    return absl::InvalidArgumentError("Unable to unpack as envoy.config.core.v3.TypedExtensionConfig");
  }
  std::vector<const DiscoveredFilter*> places;
  const auto look = [&](const NamedSet<ListenerConfig>& set) {
    for (const auto& listener : set.items()) {
      for (const DiscoveredFilter& each : listener->extensions) {
        if (each.name == config.name()) places.push_back(&each);
      }
    }
  };
  look(*listeners_);
  look(*view_.listening());
  if (places.empty()) return absl::OkStatus();
  const google::protobuf::Any& typed = config.typed_config();
  const Hash128 hash = HashBytes(typed.type_url() + typed.value());
  const auto latest = latest_extensions_.find(config.name());
  if (latest != latest_extensions_.end() && latest->second == hash) return absl::OkStatus();
  const Decoded<ExtensionFilter>& decoded = configs_.Extension(resource, *places.front());
  for (const DiscoveredFilter* const place : places) {
    const absl::Status fits =
        decoded.value == nullptr ? place->TakesType(ConfigType(typed)) : place->Takes(*decoded.value);
    if (!fits.ok()) return fits;
  }
  if (decoded.value == nullptr) {
    // A message that is right, of which no filter can be made, is the latest all the same: sent again, it is accepted.
    const std::string why(decoded.status.message());
    const bool read =
        !why.starts_with("Proto constraint") && !why.starts_with("Unable to") && !why.starts_with("Didn't find");
    if (read) {
      latest_extensions_[config.name()] = hash;
      CountExtension(config.name(), "config_reload");
    }
    return absl::InvalidArgumentError(why);
  }
  extensions_.insert(config.name());
  latest_extensions_[config.name()] = hash;
  CountExtension(config.name(), "config_reload");
  view_.plane().NoteWithoutEffect(process_.options().name, decoded.value->without_effect);
  view_.SetExtension(config.name(), decoded.value);
  return absl::OkStatus();
}

std::string XdsState::ApplyExtensions(const Queued& queued) {
  // The watcher that asked last is told first, and none after one that refuses. (Of delta's the order is a hash
  // table's; here the same.) Envoy: source/common/config/grpc_mux_impl.cc, watches_
  std::vector<std::pair<int64_t, std::string_view>> order;
  for (size_t i = 0; i < queued.resources(); ++i) {
    envoy::config::core::v3::TypedExtensionConfig config;
    const std::string_view bytes = queued.resource(i);
    int64_t rank = -1;
    if (config.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      rank = std::find(asked_extensions_.begin(), asked_extensions_.end(), config.name()) - asked_extensions_.begin();
    }
    order.emplace_back(rank, bytes);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  absl::Status refused;
  for (const auto& [rank, bytes] : order) {
    if (refused = TakeExtension(bytes); !refused.ok()) break;
  }
  if (queued.delta != nullptr) {
    for (const std::string& name : queued.delta->removed_resources()) {
      latest_extensions_.erase(name);
      view_.SetExtension(name, nullptr);
    }
  }
  if (!refused.ok()) {
    // All are told, whichever it was, and wait no more: they have what they had, the default, or answer 500.
    // onConfigUpdateFailed
    for (const std::string& name : asked_extensions_) {
      extensions_.insert(name);
      CountExtension(name, "config_fail");
    }
  }
  PromoteListeners();
  CheckLive();
  return std::string(refused.message());
}

}  // namespace wavetank::envoysim
