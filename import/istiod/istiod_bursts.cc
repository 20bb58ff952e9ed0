// A burst of events that the debouncer merged, and which inputs it must have been: pilot/pkg/xds/discovery.go
// (debounce, configsUpdated, reasonsUpdated), eds.go, pilot/pkg/model/push_context.go (PushRequest.Merge),
// pilot/pkg/serviceregistry/kube/controller/controller.go and network.go.
#include <algorithm>
#include <set>
#include <utility>

#include "import/istiod/istiod_log.h"

namespace wavetank::importing {
namespace {

constexpr WallNs kMilli = 1'000'000;
constexpr WallNs kEarly = 20 * kMilli, kLate = 2 * kMilli;
// istiod: pilot/pkg/features/pilot.go, PILOT_REMOTE_CLUSTER_TIMEOUT
constexpr WallNs kSyncsWithin = 30'000 * kMilli;
// Two writes to an API server lie further apart than this, as does what follows from them.
constexpr WallNs kByOneCause = kMilli / 5;
// The debouncer's default (pilot/pkg/features/tuning.go, PILOT_DEBOUNCE_AFTER).
constexpr WallNs kQuiet = 100 * kMilli;
// All of a cluster's slices, in memory.
constexpr WallNs kReadsSlices = 5 * kMilli;

bool Near(WallNs a, WallNs b) { return std::abs(a - b) <= 2 * kMilli; }

// "a", "a and b", "a and 3 more THINGS": the first, the second if it is named, how many more.
struct List {
  std::string_view first, second;
  int64_t more = 0;
};
List ReadList(std::string_view text, std::string_view things) {
  List list;
  const size_t conjunction = text.find(" and ");
  list.first = text.substr(0, conjunction);
  if (conjunction == text.npos) return list;
  const std::string_view rest = text.substr(conjunction + 5);
  const size_t more = rest.find(things);
  if (more == rest.npos || !ReadInteger(rest.substr(0, more), list.more)) {
    list.second = rest;
    list.more = 1;
  }
  return list;
}

// "networks:2": a reason, and how many events had it.
void TakeCount(std::string& reason) {
  const size_t colon = reason.rfind(':');
  int64_t count = 0;
  if (colon != reason.npos && ReadInteger(std::string_view(reason).substr(colon + 1), count)) reason.resize(colon);
}

}  // namespace

// In the order of the events until 1.19: "a", "a and b", "a and 3 more reasons". Since 1.20 each once with its events,
// in the order of a Go map: "a:1", "a:1 and b:2", "a:1 and 2(5) more reasons" (reasonsUpdated).
void IstiodLog::ReadReasons(std::string_view text, Burst& burst) {
  const List list = ReadList(text, " more reasons");
  burst.reason = list.first;
  burst.second_reason = list.second.ends_with(" more reasons") ? std::string_view() : list.second;
  TakeCount(burst.reason);
  TakeCount(burst.second_reason);
  if (burst.second_reason == "networks") std::swap(burst.reason, burst.second_reason);
}

void IstiodLog::Debounced(WallNs at, std::string_view rest, const Place& place) {
  // N] EVENTS for reason|config LIST: D since last change, D since last push, full=BOOL
  const auto bad = [&] { evidence_.refusals.Add("line of the debouncer in another form", place, rest); };
  const size_t change = rest.rfind(" since last change, "), push = rest.rfind(" since last push, full=");
  const size_t bracket = rest.find("] ");
  if (change == rest.npos || push == rest.npos || bracket == rest.npos || push < change || change < bracket)
    return bad();
  Burst burst;
  burst.place = place;
  burst.line_at = at;
  std::string_view head = rest.substr(bracket + 2, change - bracket - 2);
  const size_t colon = head.rfind(": ");
  const size_t what = head.find(" for ");
  // Until 1.9 without what it is for (pilot/pkg/xds/discovery.go).
  const bool unnamed = colon != head.npos && what == head.npos;
  if (colon == head.npos || (!unnamed && colon < what + 12)) return bad();
  const int64_t quiet = ParseGoDuration(head.substr(colon + 2));
  const int64_t delay = ParseGoDuration(rest.substr(change + 20, push - change - 20));
  if (quiet < 0 || delay < 0 || !ReadInteger(head.substr(0, unnamed ? colon : what), burst.events)) {
    return bad();
  }
  burst.start = at - delay;
  burst.end = at - quiet;
  burst.full = rest.substr(push + 23) == "true";
  head = unnamed ? std::string_view() : head.substr(what + 5, colon - what - 5);
  if (unnamed) {
    burst.more = burst.events;
  } else if (head.starts_with("config ")) {
    const List list = ReadList(head.substr(7), " more configs");
    burst.more = list.more;
    const size_t first = list.first.find('/');
    const size_t second = first == list.first.npos ? first : list.first.find('/', first + 1);
    if (second == list.first.npos) return bad();
    burst.kind = list.first.substr(0, first);
    burst.ns = list.first.substr(first + 1, second - first - 1);
    burst.name = list.first.substr(second + 1);
    if (burst.kind == "ServiceEntry") namespaces_[burst.name] = burst.ns;
  } else if (head.starts_with("reason ")) {
    ReadReasons(head.substr(7), burst);
  } else {
    return bad();
  }
  FlushSent();
  burst.initial = !ready_ || (ready_at_ != kNoTime && burst.start < ready_at_);
  Claim& claim = Say(ClaimKind::kPush, at, place);
  claim.initial = burst.initial;
  claim.first_event = burst.start;
  claim.last_event = burst.end;
  claim.events = burst.events;
  claim.more = burst.more;
  claim.full = burst.full;
  if (!burst.kind.empty()) claim.config = burst.kind + "/" + burst.ns + "/" + burst.name;
  claim.reason = burst.second_reason.empty() ? burst.reason : burst.reason + " and " + burst.second_reason;
  push_ = evidence_.claims.size() - 1;
  burst.facts = TakeFacts(burst.end + kLate);
  Explain(burst);
}

std::vector<IstiodLog::Fact> IstiodLog::TakeFacts(WallNs until) {
  const auto split = std::find_if(facts_.begin(), facts_.end(), [&](const Fact& fact) { return fact.at > until; });
  std::vector<Fact> taken(std::make_move_iterator(facts_.begin()), std::make_move_iterator(split));
  facts_.erase(facts_.begin(), split);
  return taken;
}

void IstiodLog::Explain(Burst& burst) {
  services_of_burst_.clear();
  empty_of_burst_.clear();
  firsts_of_burst_.clear();
  full_by_first_ = twice_ = false;
  // 1.30 names a headless Service's endpoints by a key of their own, beside the Service's (endpointslice.go).
  if (burst.kind == "DNSName" && IsKubernetesHost(burst.name)) {
    burst.kind = "ServiceEntry";
    headless_.insert(burst.name);
    dns_names_ = true;
  }
  if (burst.kind == "ServiceEntry" && dns_names_ && burst.more > 0 && headless_.contains(burst.name)) --burst.more;
  // A cluster that was synced long before has told all of what it had; so has one of which no line says whether it was,
  // when the time is over after which istiod would have complained.
  for (auto it = syncing_.begin(); it != syncing_.end();) {
    const WallNs synced = it->second.synced;
    const bool over = synced != kNoTime ? synced + 200 * kMilli < burst.start
                                        : !it->second.late && it->second.since + kSyncsWithin < burst.start;
    it = over ? syncing_.erase(it) : std::next(it);
  }
  // Facts of before: those who told them caused no push.
  const auto syncing = [&](const std::string& cluster) {
    const auto it = syncing_.find(cluster);
    return it != syncing_.end() && it->second.since <= burst.end + kLate;
  };
  bool any_syncing = false;
  for (const auto& [cluster, state] : syncing_) any_syncing = any_syncing || state.since <= burst.end + kLate;
  bool networks = false;
  for (const Fact& fact : burst.facts) {
    networks = networks || fact.kind == MessageKind::kMeshNetworks;
    burst.reload = burst.reload || fact.kind == MessageKind::kGatewaysReload;
  }
  burst.resync = networks || any_syncing;
  const WallNs relabelled = burst.resync ? kNoTime : Relabelled(burst);
  if (relabelled != kNoTime) burst.reload = false;
  if (burst.initial) {
    // What is there from the start.
    for (const Fact& fact : burst.facts) {
      if (fact.host.empty()) continue;
      EmitFact(fact);
      evidence_.inputs.back().initial = true;
    }
  }
  if (!burst.initial) {
    if (burst.reload && !burst.resync) ExplainGateways(burst);
    const bool label = relabelled == kNoTime && LooksLikeNetworkLabel(burst);
    if (relabelled != kNoTime) Emit(InputKind::kNetwork, relabelled, burst.place).object_kind = "Namespace";
    int64_t told = 0;
    for (const Fact& fact : burst.facts) {
      const bool eds = fact.kind == MessageKind::kNoEndpoints || fact.kind == MessageKind::kNewService ||
                       fact.kind == MessageKind::kNewAccounts;
      if (!eds || label || networks) continue;
      if (relabelled != kNoTime && fact.at <= relabelled && fact.at + kReadsSlices > relabelled) continue;
      // Which cluster's endpoints are a service's first ones, the line does not say.
      if (fact.cluster.empty() ? any_syncing : syncing(fact.cluster)) continue;
      EmitFact(fact);
      if (burst.full && fact.kind == MessageKind::kNewService) firsts_of_burst_.push_back(evidence_.inputs.size() - 1);
      ++told;
      if (fact.kind == MessageKind::kNoEndpoints) empty_of_burst_.push_back(evidence_.inputs.size() - 1);
    }
    if (!burst.full || burst.resync) empty_of_burst_.clear();
    untold_of_burst_ = burst.events - told;
    ServicesOfUnknownHosts(burst);
    if (burst.kind == "ServiceEntry") {
      if (label && !burst.resync) {
        Emit(InputKind::kNetwork, burst.start, burst.place).object_kind = "Namespace";
      } else if (!burst.resync && relabelled == kNoTime && !IsGateway(burst)) {
        ExplainService(burst);
      }
    } else if (!burst.kind.empty()) {
      ExplainConfig(burst);
    }
  }
  for (const Fact& fact : burst.facts) {
    if (!fact.host.empty()) known_hosts_.insert(fact.host);
  }
  if (burst.kind == "ServiceEntry") known_hosts_.insert(burst.name);
  std::erase_if(syncing_, [&](const auto& entry) {
    return entry.second.synced != kNoTime && entry.second.synced <= burst.end + kLate;
  });
}

// A system namespace's label moves all of its cluster's endpoints to another network, at once and in memory: istiod's
// onNetworkChange goes through them in a loop, once for each service. That is full only if a line says why.
bool IstiodLog::LooksLikeNetworkLabel(const Burst& burst) const {
  const bool says_why = std::any_of(burst.facts.begin(), burst.facts.end(), [](const Fact& fact) {
    return fact.kind == MessageKind::kNewAccounts || fact.kind == MessageKind::kNewService;
  });
  return burst.kind == "ServiceEntry" && !burst.reload && burst.events >= 3 && burst.more >= 2 &&
         (burst.full ? says_why : burst.events == burst.more + 1) &&
         burst.end - burst.start <= kByOneCause * (burst.events - 1);
}

// When a network's label changed, or no time: 1.30 reads all slices again and then looks at gateways
// (kube/controller/network.go, onNetworkChange). Where a push of networks names configuration, too (since 1.20:
// PushRequest.Merge), a Service that is a gateway is one event of its own and two of networks; less than that is none.
WallNs IstiodLog::Relabelled(const Burst& burst) {
  if (burst.kind.empty()) return kNoTime;
  WallNs at = kNoTime;
  bool changed = false;
  for (const Fact& fact : burst.facts) {
    if (fact.kind == MessageKind::kGatewaysReload) at = fact.at;
    changed = changed || fact.kind == MessageKind::kGatewaysChanged;
  }
  const auto empty = std::count_if(burst.facts.begin(), burst.facts.end(), [&](const Fact& fact) {
    return fact.kind == MessageKind::kNoEndpoints && fact.at <= at && fact.at + kReadsSlices > at;
  });
  return changed && empty < 2 && burst.events != burst.more + 2 ? kNoTime : at;
}

// Since 1.20 a push that networks ask for, too, names configuration (PushRequest.Merge): that of the Service which is a
// gateway, once for itself and twice for networks.
bool IstiodLog::IsGateway(const Burst& burst) {
  if (!burst.reload || burst.kind != "ServiceEntry") return false;
  if (burst.more == 0 && burst.events == 3) gateway_hosts_.insert(burst.name);
  return gateway_hosts_.contains(burst.name);
}

void IstiodLog::ExplainGateways(const Burst& burst) {
  for (const Fact& fact : burst.facts) {
    if (fact.kind != MessageKind::kGatewaysReload) continue;
    if (burst.reason == "networks" && burst.second_reason == "service" && burst.events == 2) {
      // The address of a node: endpoints' gateways change, and with them the Service.
      Emit(InputKind::kNode, fact.at, fact.place).object_kind = "Node";
    } else if (burst.reason == "networks" && burst.events == 1) {
      Emit(InputKind::kGatewayDns, fact.at, fact.place);
    } else {
      // Networks twice, by the manager and by the registry, and the Service itself.
      Emit(InputKind::kGateway, fact.at, fact.place).object_kind = "Service";
    }
  }
}

void IstiodLog::EmitFact(const Fact& fact) {
  if (fact.kind == MessageKind::kGatewaysReload) {
    Emit(InputKind::kGateway, fact.at, fact.place).object_kind = "Service";
    return;
  }
  if (fact.host.empty()) return;
  InferredInput& input = Emit(InputKind::kEndpoints, fact.at, fact.place);
  input.object_kind = ObjectKindOf(InputKind::kEndpoints, fact.host);
  input.host = fact.host;
  input.ns = fact.ns;
  input.cluster = fact.cluster;
  input.change = fact.kind == MessageKind::kNoEndpoints  ? "toZero"
                 : fact.kind == MessageKind::kNewService ? "first"
                                                         : "serviceAccounts";
}

void IstiodLog::EmitHost(InputKind kind, const Burst& burst, WallNs at) {
  InferredInput& input = Emit(kind, at, burst.place);
  input.object_kind = ObjectKindOf(kind, burst.name);
  input.ns = burst.ns;
  input.host = burst.name;
  if (burst.events > 2 || burst.more > 0) {
    input.earliest = burst.start;
    input.latest = burst.end;
  }
  if (kind == InputKind::kService) services_of_burst_.push_back(evidence_.inputs.size() - 1);
}

void IstiodLog::ExplainService(const Burst& burst) {
  int64_t told = 0;
  WallNs last = burst.start;
  bool first = false, accounts = false, start_taken = false, end_taken = false;
  for (const Fact& fact : burst.facts) {
    if (fact.host.empty()) continue;
    start_taken = start_taken || Near(fact.at, burst.start);
    end_taken = end_taken || Near(fact.at, burst.end);
    if (fact.host != burst.name) continue;
    last = std::max(last, fact.at);
    // With a ServiceEntry comes what it names, as no event of its own (serviceentry/controller.go, EDSCacheUpdate).
    const bool of_entry = burst.full && fact.kind == MessageKind::kNoEndpoints && !IsKubernetesHost(fact.host);
    told += of_entry ? 0 : 1;
    first = first || fact.kind == MessageKind::kNewService;
    accounts = accounts || fact.kind == MessageKind::kNewAccounts;
  }
  // A ServiceEntry is a service and its endpoints at once, by several events since istiod keeps them in collections
  // (1.30: serviceentry/controller.go).
  if (first && burst.more == 0 && burst.events > 1 && !IsKubernetesHost(burst.name) &&
      burst.end - burst.start <= kEarly) {
    InferredInput& entry = *std::find_if(evidence_.inputs.rbegin(), evidence_.inputs.rend(), [&](const auto& input) {
      return input.kind == InputKind::kEndpoints && input.host == burst.name;
    });
    entry.kind = InputKind::kService;
    entry.change = "added";
    entry.object_kind = ObjectKindOf(InputKind::kService, entry.host);
    firsts_of_burst_.clear();
    return;
  }
  if (burst.more > 0) {
    if (told > 0) return;
    // One object can stand behind several services: a WorkloadEntry, a pod. A line has told of it already.
    if ((start_taken || end_taken) && burst.end - burst.start <= kByOneCause * (burst.events - 1)) return;
    // Which of the events it was is not told: an end of the burst that no other line has.
    const WallNs at = start_taken && !end_taken ? burst.end : burst.start;
    const bool unknown = burst.full && began_ && IsKubernetesHost(burst.name) && !known_hosts_.contains(burst.name);
    const bool service = unknown || (burst.full && burst.events == 2 && !start_taken && !end_taken);
    return EmitHost(service ? InputKind::kService : InputKind::kEndpoints, burst, at);
  }
  // Every event of the burst is of this one service. A headless one's endpoints are two events, of which one is full
  // (endpointcontroller.go, HeadlessEndpointUpdate); other endpoints alone are never full, unless a line has said why.
  const bool kubernetes = burst.full && IsKubernetesHost(burst.name);
  if (kubernetes && burst.events == 3 && told == 1 && !start_taken && last + kMilli >= burst.end) {
    headless_.insert(burst.name);
  }
  const bool headless = kubernetes && headless_.contains(burst.name);
  twice_ = kubernetes && told == 1 && burst.events == 2 && burst.end - burst.start <= kMilli;
  bool service_due = burst.full && (first || !accounts);
  int64_t events = burst.events;
  if (headless) {
    service_due = events % 2 == 1;
    events = std::max(told, events / 2) + (service_due ? 1 : 0);
  }
  full_by_first_ = first;
  // The first endpoints of all have a line of their own (eds.go, edsCacheUpdate): until then it is the Service, of
  // several clusters maybe.
  const bool none_yet = burst.full && began_ && IsKubernetesHost(burst.name) && !had_endpoints_.contains(burst.name);
  if (burst.full && burst.events == told) service_due = false;
  // Nobody waits longer than the debouncer does, so what no line dates lies between its ends: the best guess is evenly.
  const int64_t untold = events - told;
  const WallNs span = burst.end - burst.start;
  const int64_t service_at = span > kQuiet && untold > 2 ? untold / 2 : 0;
  for (int64_t i = 0; i < untold; ++i) {
    const int64_t of = start_taken ? untold : std::max<int64_t>(untold - 1, 1), nth = start_taken ? i + 1 : i;
    const bool service = none_yet || (service_due && i == service_at);
    EmitHost(service ? InputKind::kService : InputKind::kEndpoints, burst, burst.start + span / of * nth);
  }
}

// Its slice follows it, or goes with it.
void IstiodLog::EmitServiceOf(size_t slice_of, WallNs from, std::string_view change) {
  InferredInput service = evidence_.inputs[slice_of];  // a copy: it is added to those
  service.kind = InputKind::kService;
  service.change = change;
  service.object_kind = ObjectKindOf(InputKind::kService, service.host);
  service.earliest = from;
  service.latest = service.at;
  service.at = std::max(from, service.at - kMilli);
  evidence_.inputs.push_back(std::move(service));
  services_of_burst_.push_back(evidence_.inputs.size() - 1);
}

// A Service's first slice has no addresses, and a line tells of every one that has none. Where a log began with its
// istiod, it has told of all hosts that were there, so that one that no line has named is a new Service's.
void IstiodLog::ServicesOfUnknownHosts(const Burst& burst) {
  if (!began_ || burst.more == 0) return;
  std::set<std::string> done;
  auto untold = burst.events - static_cast<int64_t>(empty_of_burst_.size());
  for (const size_t at : empty_of_burst_) {
    const std::string host = evidence_.inputs[at].host;
    if (!IsKubernetesHost(host) || known_hosts_.contains(host) || !done.insert(host).second || untold-- <= 0) continue;
    EmitServiceOf(at, burst.start, "added");
  }
}

// istiod tells of a service's first endpoints also where they came with the service itself (EDSCacheUpdate), as the one
// event that they are then; else it came before them.
void IstiodLog::ServicesOfFirstEndpoints(const Claim& push) {
  if (firsts_of_burst_.empty() || !services_of_burst_.empty() || services_ < 0) return;
  const int64_t more = push.services - services_;
  const auto count = static_cast<int64_t>(firsts_of_burst_.size());
  if (more < 1 || (count > 1 && more != count)) return;
  for (const size_t at : firsts_of_burst_) {
    if (untold_of_burst_ > 0 && IsKubernetesHost(evidence_.inputs[at].host)) {
      EmitServiceOf(at, push.first_event, "added");
      continue;
    }
    InferredInput& service = evidence_.inputs[at];
    service.kind = InputKind::kService;
    service.change = "added";
    service.object_kind = ObjectKindOf(InputKind::kService, service.host);
  }
}

// Two full events of one service at once, and as many services as before: one change of a headless one's endpoints.
void IstiodLog::EndpointsOfHeadless(const Claim& push) {
  if (!twice_ || services_of_burst_.size() != 1 || services_ < 0 || push.services != services_) return;
  const size_t at = services_of_burst_.front();
  headless_.insert(evidence_.inputs[at].host);
  evidence_.inputs.erase(evidence_.inputs.begin() + static_cast<std::ptrdiff_t>(at));
  if (secret_ && *secret_ > at) --*secret_;
}

// Endpoints that are none never make a push full (eds.go, EDSCacheUpdate). Where a full push names no more services
// than lines told to have none, and istiod knows as many services more or fewer than before, they came or went with
// them; as many fewer tells that of whatever push.
void IstiodLog::ServicesOfEmptyEndpoints(const Claim& push) {
  if (empty_of_burst_.empty() || services_ < 0 || push.services < 0) return;
  std::set<std::string> hosts, fresh;
  for (const size_t at : empty_of_burst_) hosts.insert(evidence_.inputs[at].host);
  for (const size_t at : services_of_burst_) {
    if (evidence_.inputs[at].change == "added") fresh.insert(evidence_.inputs[at].host);
  }
  const bool named = push.more + 1 == static_cast<int64_t>(hosts.size()) &&
                     hosts.contains(push.config.substr(push.config.rfind('/') + 1));
  std::erase_if(hosts, [&](const std::string& host) { return fresh.contains(host); });
  const auto count = static_cast<int64_t>(hosts.size()), before = services_ + static_cast<int64_t>(fresh.size());
  const bool added = named && push.services == before + count, removed = push.services == before - count;
  const auto told = static_cast<int64_t>(empty_of_burst_.size() + fresh.size());
  if (count == 0 || (!added && !removed) || push.events < told + count) return;
  std::set<std::pair<std::string, std::string>> done;  // host, cluster
  for (const size_t at : empty_of_burst_) {
    const InferredInput slice = evidence_.inputs[at];  // a copy: others are added
    if (!hosts.contains(slice.host) || !done.emplace(slice.host, slice.cluster).second) continue;
    // An event of the burst that no line tells is that Service already.
    const auto known = std::find_if(services_of_burst_.begin(), services_of_burst_.end(), [&](size_t i) {
      const InferredInput& one = evidence_.inputs[i];
      return one.host == slice.host && (one.cluster.empty() || one.cluster == slice.cluster);
    });
    if (known != services_of_burst_.end()) {
      evidence_.inputs[*known].cluster = slice.cluster;
      evidence_.inputs[*known].change = added ? "added" : "removed";
      continue;
    }
    EmitServiceOf(at, push.first_event, added ? "added" : "removed");
  }
}

void IstiodLog::ExplainConfig(const Burst& burst) {
  // Keys of istiod's own making (pkg/config/schema/kind): no object has them.
  if (burst.kind == "Address" || burst.kind == "DNSName") return;
  const bool secret = burst.kind == "Secret";
  if (secret) {
    const auto it = remote_secrets_.find(burst.ns + "/" + burst.name);
    const auto inside = [&](WallNs at) { return at >= burst.start - kEarly && at <= burst.end + kEarly; };
    if (it != remote_secrets_.end() && std::any_of(it->second.begin(), it->second.end(), inside)) return;
  }
  InferredInput& input = Emit(secret ? InputKind::kSecret : InputKind::kConfig, burst.start, burst.place);
  input.object_kind = burst.kind;
  input.ns = burst.ns;
  input.name = burst.name;
  if (burst.events > 1) input.latest = burst.end;
}

}  // namespace wavetank::importing
