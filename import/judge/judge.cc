#include "import/judge/judge.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/trace.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "import/envoy/held_names.h"
#include "import/judge/metric_judge.h"
#include "import/judge/shares.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using wavetank::Text;  // of JSON; a Place has one of its own

// Both meshes' debouncers wait 100 ms; what comes before that in a cluster takes less than as much again, twice.
constexpr Duration kAboutThen = 500ms;
constexpr Duration kSyncsWithin = 30s;

// How far from its window's edge a request may be sent, as inputs spread them evenly.
constexpr Duration kEdge = 50ms;

// "UF,URX", whatever order a version of Envoy writes them in.
std::string InOrder(const std::string& flags) {
  if (flags.find(',') == flags.npos) return flags;
  std::vector<std::string> words = absl::StrSplit(flags, ',');
  std::sort(words.begin(), words.end());
  return fmt::format("{}", fmt::join(words, ","));
}

std::string Reach(bool full) { return full ? "full" : "incremental"; }

}  // namespace

std::string_view NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAgrees:
      return "agrees";
    case Verdict::kDisagrees:
      return "disagrees";
    case Verdict::kCannotBeJudged:
      return "cannotBeJudged";
  }
  return "?";
}

double Judgement::Reproduced() const {
  const uint64_t judged = agree + disagree;
  return judged == 0 ? -1 : static_cast<double>(agree) / static_cast<double>(judged);
}

const JudgedClaim* Judgement::FirstDisagreement() const {
  for (const JudgedClaim& claim : claims) {
    if (claim.verdict == Verdict::kDisagrees) return &claim;
  }
  return nullptr;
}

Judge::Judge() : metrics_(std::make_unique<MetricJudge>()) {}
Judge::~Judge() = default;

void Judge::AskMetrics(MetricInWorld metric) { metrics_->AskWorld(std::move(metric)); }

void Judge::OnInput(const replay::LogInput& input) {
  if (input.kind == "claim") {
    claims_.push_back(input);
    const json& claim = At(input.body, "claim");
    if (const std::string kind = Text(claim, "kind"); kind == "held" || kind == "proxyConnected") {
      judged_[input.seq] = JudgeHeld(input);
    }
    if (Text(claim, "kind") == "metric") {
      if (std::optional<JudgedClaim> judged = metrics_->OnMetric(input)) {
        judged_[input.seq] = *std::move(judged);
      } else {
        claims_.pop_back();
      }
    }
    if (Text(claim, "kind") == "requests") metrics_->OnRequestsClaim(input);
    if (Text(claim, "kind") == "traffic") {
      Window& window = requests_[AskedBy(claim)].emplace_back();
      window.from = input.at;
      window.until = input.at + Duration(Number(claim, "spanNs"));
    }
    return;
  }
  std::string words = input.kind;
  const json& object = At(input.body, "object");
  for (const std::string& part :
       {Text(object, "kind"), Text(At(object, "metadata"), "namespace"), Text(At(object, "metadata"), "name"),
        Text(input.body, "kind"), Text(input.body, "namespace"), Text(input.body, "name")}) {
    if (!part.empty()) words += " " + part;
  }
  if (const std::string cluster = Text(input.body, "cluster"); !cluster.empty()) words += " in " + cluster;
  inputs_[input.seq] = std::move(words);
  // Until then the mesh comes up, and no evidence is of that time (import/skeleton/skeleton.h).
  if (!changed_ && input.at > Time{} + 59s) {
    changed_ = true;
    first_change_ = input.at;
  }
}

std::string Judge::InputInWords(uint64_t seq) const {
  const auto it = inputs_.find(seq);
  return it == inputs_.end() ? std::string() : it->second;
}

void Judge::OnEvent(const replay::LoggedEvent& event) {
  switch (event.kind) {
    case TraceKind::kConfigUpdate: {
      Push& push = open_[event.subject];
      if (event.object.empty()) {
        push.everything = true;
      } else {
        push.keys.insert(event.object);
      }
      push.inputs.insert(event.inputs.begin(), event.inputs.end());
      return;
    }
    case TraceKind::kDebounced: {
      Push push = std::move(open_[event.subject]);
      open_.erase(event.subject);
      push.at = event.time;
      push.istiod = event.subject;
      push.events = event.a;
      push.full = event.b != 0;
      push.inputs.insert(event.inputs.begin(), event.inputs.end());
      pushes_.push_back(std::move(push));
      return;
    }
    case TraceKind::kClusterAdded:
    case TraceKind::kClusterRemoved: {
      auto& clusters = clusters_[event.subject];
      const int64_t now = clusters.empty() ? 0 : clusters.back().second;
      const int64_t by = event.kind == TraceKind::kClusterRemoved ? -1 : event.a == 0 ? 1 : 0;
      clusters.emplace_back(event.time, now + by);
      return;
    }
    case TraceKind::kClusterSynced:
      synced_.emplace_back(event.time, event.subject);
      return;
    case TraceKind::kObjectApplied:
    case TraceKind::kObjectDeleted: {
      if (!event.object.starts_with("Pod/")) return;
      PodLife& life = pods_[{event.subject, event.object.substr(4)}];
      if (event.kind == TraceKind::kObjectDeleted) life.deleted = event.time;
      if (event.kind == TraceKind::kObjectApplied && !life.written) life.written = event.time;
      return;
    }
    case TraceKind::kGatewaysChanged:
      gateways_.push_back(event.time);
      return;
    case TraceKind::kRequest:
      metrics_->OnRequest(event);
      return OnRequest(event);
    case TraceKind::kXdsNack:
      nacks_.emplace_back(event.time, event.subject, event.detail);
      return;
    default:
      return;
  }
}

// An istiod is called by its pod and its cluster. A claim whose istiod nobody knows may be of any.
bool Judge::IsOf(const std::string& istiod, const Push& push) const {
  return istiod.empty() || push.istiod.ends_with("." + istiod);
}

Judge::Push* Judge::Find(const replay::LogInput& input) {
  const Time at = input.at;
  const json& claim = At(input.body, "claim");
  const std::string istiod = Text(claim, "istiod"), replica = Text(claim, "replica");
  const bool full = Text(claim, "trigger") == "full";
  const std::string config = Text(claim, "config");
  Push* best = nullptr;
  for (Push& push : pushes_) {
    if (push.full != full || push.used_by.contains(replica) || !IsOf(istiod, push)) continue;
    const Duration apart = push.at > at ? push.at - at : at - push.at;
    if (apart > kAboutThen) continue;
    if (config.empty() ? !push.everything : push.everything || !push.keys.contains(config)) continue;
    const Duration best_apart = best == nullptr ? Duration::max() : best->at > at ? best->at - at : at - best->at;
    if (apart < best_apart) best = &push;
  }
  return best;
}

JudgedClaim Judge::JudgePush(const replay::LogInput& input) {
  const json& claim = At(input.body, "claim");
  JudgedClaim out;
  out.at = input.at;
  out.claim = claim;
  const std::string istiod = Text(claim, "istiod");
  if (Push* const push = Find(input); push != nullptr) {
    push->used_by.insert(Text(claim, "replica"));
    out.verdict = Verdict::kAgrees;
    out.simulated_at = push->at;
    out.simulated = fmt::format("{} push of {} events", Reach(push->full), push->events);
    out.inputs.assign(push->inputs.begin(), push->inputs.end());
    return out;
  }
  if (Number(claim, "moreConfigs") > 0) {
    out.why = "it merges changes that no line names";
    return out;
  }
  out.verdict = Verdict::kDisagrees;
  // The nearest, for a person who wants to know what there was instead.
  const Push* near = nullptr;
  for (const Push& push : pushes_) {
    const Duration apart = push.at > input.at ? push.at - input.at : input.at - push.at;
    if (apart <= kAboutThen && push.used_by.empty() && IsOf(istiod, push)) near = &push;
  }
  if (near == nullptr) {
    out.why = "the simulated mesh did not push at that time";
    return out;
  }
  out.simulated_at = near->at;
  out.simulated = fmt::format("{} push of {} events for {}", Reach(near->full), near->events,
                              near->everything ? "everything" : fmt::format("{}", fmt::join(near->keys, ", ")));
  out.why = "the simulated mesh pushed something else";
  out.inputs.assign(near->inputs.begin(), near->inputs.end());
  return out;
}

JudgedClaim Judge::JudgeClusters(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  int64_t now = 0;
  const std::string istiod = Text(out.claim, "istiod");
  // An istiod may call its cluster by another name than the world does.
  const auto named = clusters_.find(istiod);
  const auto of = named == clusters_.end() && clusters_.size() == 1 ? clusters_.begin() : named;
  const std::vector<std::pair<Time, int64_t>> none;
  const auto& clusters = of == clusters_.end() ? none : of->second;
  for (const auto& [at, count] : clusters) {
    if (at <= input.at + kAboutThen) now = count;
  }
  const int64_t claimed = Number(out.claim, "count");
  out.verdict = now == claimed ? Verdict::kAgrees : Verdict::kDisagrees;
  // Several changes within the blink of an eye: any of the counts on the way will do.
  for (const auto& [at, count] : clusters) {
    const Duration apart = at > input.at ? at - input.at : input.at - at;
    if (apart <= kAboutThen && count == claimed) out.verdict = Verdict::kAgrees;
  }
  out.simulated = fmt::format("{} remote clusters", now);
  if (out.verdict == Verdict::kDisagrees) out.why = "the simulated istiod knows another number of them";
  return out;
}

JudgedClaim Judge::JudgeSync(const replay::LogInput& input) {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  const std::string name = Text(out.claim, "name");
  for (auto it = synced_.begin(); it != synced_.end(); ++it) {
    const Duration apart = it->first > input.at ? it->first - input.at : input.at - it->first;
    if (apart > kSyncsWithin || (it->second != name && !it->second.ends_with("/" + name))) continue;
    out.verdict = Verdict::kAgrees;
    out.simulated_at = it->first;
    synced_.erase(it);
    return out;
  }
  out.verdict = Verdict::kDisagrees;
  out.why = "the simulated istiod did not sync that cluster then";
  return out;
}

JudgedClaim Judge::JudgeReload(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  for (const Time at : gateways_) {
    if ((at > input.at ? at - input.at : input.at - at) > kAboutThen) continue;
    out.verdict = Verdict::kAgrees;
    out.simulated = "the gateways changed";
    return out;
  }
  out.why = "gateways that are read anew and are the same leave no trace";
  return out;
}

// Of pods: that they came (Scheduled) and went (Killing). kubernetes: pkg/scheduler/schedule_one.go,
// pkg/kubelet/events/event.go
JudgedClaim Judge::JudgeEvent(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  const std::string reason = Text(out.claim, "reason"), name = Text(out.claim, "name");
  const bool comes = reason == "Scheduled", goes = reason == "Killing";
  if (!name.starts_with("Pod/") || (!comes && !goes)) {
    out.why = "no rule for events of this reason";
    return out;
  }
  const auto it = pods_.find({Text(out.claim, "type"), name.substr(4)});
  if (it == pods_.end()) {
    out.why = "the simulated cluster never had that pod: no dump or history tells of it in full";
    return out;
  }
  const std::optional<Time>& when = comes ? it->second.written : it->second.deleted;
  if (comes && when && *when < Time{} + 1s) {
    out.why = "the pod was there from the beginning";
    return out;
  }
  // A pod that is killed goes when its grace is over, 30 s by default.
  const Duration apart = when ? (*when > input.at ? *when - input.at : input.at - *when) : Duration::max();
  out.verdict = apart <= kSyncsWithin + 5s ? Verdict::kAgrees : Verdict::kDisagrees;
  if (when) out.simulated_at = *when;
  out.simulated = when ? (comes ? "created" : "deleted") : std::string(comes ? "never created" : "still there");
  if (out.verdict == Verdict::kDisagrees) out.why = when ? "at another time" : "and it should have been";
  return out;
}

JudgedClaim Judge::JudgeNack(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  const std::string name = Text(out.claim, "name");
  for (const auto& [at, subject, detail] : nacks_) {
    const Duration apart = at > input.at ? at - input.at : input.at - at;
    if (apart > kSyncsWithin || subject.find(name) == subject.npos) continue;
    out.verdict = Verdict::kAgrees;
    out.simulated = detail;
    return out;
  }
  out.why = "what a proxy refuses depends on configuration that logs do not hold";
  return out;
}

JudgedClaim Judge::JudgeHeld(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  if (!held_by_) {
    out.why = "nothing was asked of the world";
    return out;
  }
  const std::optional<HeldEndpoints> held = held_by_(Text(out.claim, "name"), Text(out.claim, "type"));
  out.simulated_at = input.at;
  if (!held) {
    out.verdict = Verdict::kDisagrees;
    out.why = "no such proxy runs in the simulated mesh";
    return out;
  }
  out.verdict = Verdict::kAgrees;
  if (Text(out.claim, "kind") == "proxyConnected") return out;
  size_t upstreams = 0, differ = 0;
  std::string first;
  HeldEndpoints real;
  for (const auto& [upstream, endpoints] : At(out.claim, "endpoints").items()) {
    for (const json& endpoint : Items(endpoints)) real[upstream].insert(TextOf(endpoint));
  }
  std::set<std::string> all;
  for (const HeldEndpoints* side : std::initializer_list<const HeldEndpoints*>{&real, &*held}) {
    for (const auto& [upstream, endpoints] : *side) {
      if (upstream.starts_with("outbound")) all.insert(upstream);
    }
  }
  const bool endpoints_told = out.claim.contains("endpoints");
  if (!endpoints_told) all.clear();
  const auto of = [](const HeldEndpoints& side, const std::string& upstream) {
    const auto it = side.find(upstream);
    return it == side.end() ? std::set<std::string>() : it->second;
  };
  for (const std::string& upstream : all) {
    const std::set<std::string> a = of(real, upstream), b = of(*held, upstream);
    ++upstreams;
    if (a == b) continue;
    constexpr size_t kShown = 3;
    if (++differ <= kShown) {
      first += fmt::format("{}{}: real {}, here {}", first.empty() ? "" : "; ", upstream,
                           a.empty() ? "none" : fmt::format("{}", fmt::join(a, " ")),
                           b.empty() ? "none" : fmt::format("{}", fmt::join(b, " ")));
    }
  }
  if (endpoints_told)
    out.simulated = fmt::format("{} of {} upstreams hold the same endpoints", upstreams - differ, upstreams);
  for (const char* kind : kNameKinds) {
    if (!out.claim.contains(kind)) continue;
    std::set<std::string> a;
    for (const json& name : Items(At(out.claim, kind))) a.insert(TextOf(name));
    const std::set<std::string> b = of(*held, kind);
    std::vector<std::string> only_real, only_here;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_real));
    std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_here));
    out.simulated += fmt::format("{}{} of {} {} are there", out.simulated.empty() ? "" : ", ",
                                 a.size() - only_real.size(), a.size(), kind);
    constexpr size_t kNamed = 3;
    for (auto* const only : {&only_real, &only_here}) {
      if (only->empty()) continue;
      ++differ;
      const size_t more = only->size() > kNamed ? only->size() - kNamed : 0;
      only->resize(only->size() - more);
      first += fmt::format("{}{} {}: {}{}", first.empty() ? "" : "; ", kind,
                           only == &only_real ? "in truth alone" : "here alone", fmt::join(*only, " "),
                           more == 0 ? "" : fmt::format(" and {} more", more));
    }
  }
  if (differ > 0) {
    out.verdict = Verdict::kDisagrees;
    out.why = first;
  }
  return out;
}

// A client without its cluster, which few logs tell, and the authority of its requests.
Judge::Asked Judge::AskedBy(const json& claim) {
  const int64_t port = Number(claim, "port", 80);
  const std::string host = Text(claim, "host");
  return {Text(claim, "name"), port == 80 ? host : fmt::format("{}:{}", host, port)};
}

void Judge::OnRequest(const replay::LoggedEvent& event) {
  const std::string client = event.subject.substr(0, event.subject.find('@'));
  auto it = requests_.find(Asked(client, event.object));
  if (it == requests_.end()) it = requests_.find(Asked(client.substr(0, client.rfind('.')), event.object));
  if (it == requests_.end()) return;
  const Time sent = event.time - Duration(event.b);
  // The last window that had begun; requests are spread evenly, so that the edges are not sharp.
  Window* found = nullptr;
  for (auto window = it->second.rbegin(); window != it->second.rend() && found == nullptr; ++window) {
    if (window->from <= sent + kEdge) found = &*window;
  }
  if (found == nullptr || sent > found->until + kEdge) return;
  ++found->requests;
  ++found->codes[fmt::format("{}", event.a)];
  const std::vector<std::string> parts = absl::StrSplit(event.detail, '|');
  ++found->flags[InOrder(parts[0])];
  if (parts.size() > 2 && !parts[2].empty()) ++found->upstreams[parts[2]];
  found->durations.Add(event.b / 1'000'000);
}

JudgedClaim Judge::JudgeTraffic(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  if (At(out.claim, "tcp") == true) {
    out.why = "a connection leaves no record of what it asked for";
    return out;
  }
  const auto it = requests_.find(AskedBy(out.claim));
  const Window* window = nullptr;
  if (it != requests_.end()) {
    for (const Window& one : it->second) {
      if (one.from == input.at) window = &one;
    }
  }
  if (window == nullptr || window->requests == 0) {
    out.why = "the simulated mesh has no such client, or nobody to ask";
    return out;
  }
  out.simulated_at = window->from;
  out.simulated = fmt::format("{} requests: {}", window->requests, SharesInWords(window->codes, window->requests));
  if (!window->flags.contains("-") || window->flags.size() > 1) {
    out.simulated += "; flags " + SharesInWords(window->flags, window->requests);
  }
  out.simulated +=
      fmt::format("; p50 {} ms, p99 {} ms", window->durations.Quantile(0.5), window->durations.Quantile(0.99));
  const auto total = static_cast<uint64_t>(std::max<int64_t>(Number(out.claim, "requests", 1), 1));
  const auto differs = [&](const char* field, const std::map<std::string, uint64_t>& simulated) {
    std::map<std::string, uint64_t> real;
    for (const auto& [what, count] : At(out.claim, field).items()) {
      real[InOrder(what)] += static_cast<uint64_t>(NumberOf(count));
    }
    const std::string which = FirstDifference(real, total, simulated, window->requests);
    if (!which.empty()) out.why += fmt::format("{}{} {}", out.why.empty() ? "" : "; ", field, which);
  };
  differs("codes", window->codes);
  differs("flags", window->flags);
  if (!At(out.claim, "upstreams").is_null()) differs("upstreams", window->upstreams);
  out.verdict = out.why.empty() ? Verdict::kAgrees : Verdict::kDisagrees;
  return out;
}

Judgement Judge::Finish() {
  Judgement out;
  for (const replay::LogInput& input : claims_) {
    const std::string kind = Text(At(input.body, "claim"), "kind");
    JudgedClaim judged;
    if (const auto at_once = judged_.find(input.seq); at_once != judged_.end()) {
      judged = std::move(at_once->second);
    } else if (kind == "push") {
      judged = JudgePush(input);
    } else if (kind == "clusters") {
      judged = JudgeClusters(input);
    } else if (kind == "clusterSynced") {
      judged = JudgeSync(input);
    } else if (kind == "gatewayReload") {
      judged = JudgeReload(input);
    } else if (kind == "nack") {
      judged = JudgeNack(input);
    } else if (kind == "traffic") {
      judged = JudgeTraffic(input);
    } else if (kind == "event") {
      judged = JudgeEvent(input);
    } else if (kind == "requests") {
      judged = metrics_->JudgeRequests(input);
    } else {
      judged.at = input.at;
      judged.claim = At(input.body, "claim");
      judged.why = "no rule for claims of this kind";
    }
    out.claims.push_back(std::move(judged));
  }
  std::set<std::string> logged;  // clusters whose istiod's log is among the sources
  for (const replay::LogInput& input : claims_) {
    const json& claim = At(input.body, "claim");
    if (Text(claim, "kind") == "push") logged.insert(Text(claim, "istiod"));
  }
  const auto untold = [&](const Push& push) {
    return std::any_of(logged.begin(), logged.end(), [&](const std::string& istiod) { return IsOf(istiod, push); });
  };
  for (const Push& push : pushes_) {
    if (!push.used_by.empty() || !changed_ || push.at < first_change_) continue;
    if (!logged.empty() && !untold(push)) continue;
    JudgedClaim extra;
    extra.at = extra.simulated_at = push.at;
    extra.verdict = Verdict::kDisagrees;
    extra.simulated = fmt::format("{} push of {} events for {}", Reach(push.full), push.events,
                                  push.everything ? "everything" : fmt::format("{}", fmt::join(push.keys, ", ")));
    extra.why = "no line tells of this push";
    extra.inputs.assign(push.inputs.begin(), push.inputs.end());
    out.claims.push_back(std::move(extra));
  }
  std::stable_sort(out.claims.begin(), out.claims.end(),
                   [](const JudgedClaim& a, const JudgedClaim& b) { return a.at < b.at; });
  for (const JudgedClaim& claim : out.claims) {
    ++(claim.verdict == Verdict::kAgrees      ? out.agree
       : claim.verdict == Verdict::kDisagrees ? out.disagree
                                              : out.cannot);
  }
  return out;
}

absl::Status JudgedTarget::Start(const replay::LogHeader& header, Sink sink) {
  absl::Status status = under_.Start(header, [this, sink = std::move(sink)](const replay::LoggedEvent& event) {
    judge_.OnEvent(event);
    sink(event);
  });
  if (status.ok() && started) started();
  return status;
}

absl::Status JudgedTarget::Do(const replay::LogInput& input) {
  judge_.OnInput(input);
  return under_.Do(input);
}

}  // namespace wavetank::importing
