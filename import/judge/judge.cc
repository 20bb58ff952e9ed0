#include "import/judge/judge.h"

#include <algorithm>
#include <tuple>

#include "core/base/json_access.h"
#include "core/base/trace.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

// Both meshes' debouncers wait 100 ms; what comes before that in a cluster takes less than as much again, twice.
constexpr Duration kAboutThen = 500ms;
constexpr Duration kSyncsWithin = 30s;

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

void Judge::OnInput(const replay::LogInput& input) {
  if (input.kind == "claim") {
    claims_.push_back(input);
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
  if (!changed_ && input.at > Time{} + 1s) {
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
      const int64_t now = clusters_.empty() ? 0 : clusters_.back().second;
      const int64_t by = event.kind == TraceKind::kClusterRemoved ? -1 : event.a == 0 ? 1 : 0;
      clusters_.emplace_back(event.time, now + by);
      return;
    }
    case TraceKind::kClusterSynced:
      synced_.emplace_back(event.time, event.subject);
      return;
    case TraceKind::kGatewaysChanged:
      gateways_.push_back(event.time);
      return;
    case TraceKind::kXdsNack:
      nacks_.emplace_back(event.time, event.subject, event.detail);
      return;
    default:
      return;
  }
}

Judge::Push* Judge::Find(Time at, const json& claim) {
  const bool full = Text(claim, "trigger") == "full";
  const std::string config = Text(claim, "config");
  Push* best = nullptr;
  for (Push& push : pushes_) {
    if (push.used || push.full != full) continue;
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
  if (Push* const push = Find(input.at, claim); push != nullptr) {
    push->used = true;
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
    if (apart <= kAboutThen && !push.used) near = &push;
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
  for (const auto& [at, count] : clusters_) {
    if (at <= input.at + kAboutThen) now = count;
  }
  const int64_t claimed = Number(out.claim, "count");
  out.verdict = now == claimed ? Verdict::kAgrees : Verdict::kDisagrees;
  // Several changes within the blink of an eye: any of the counts on the way will do.
  for (const auto& [at, count] : clusters_) {
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

Judgement Judge::Finish() {
  Judgement out;
  for (const replay::LogInput& input : claims_) {
    const std::string kind = Text(At(input.body, "claim"), "kind");
    JudgedClaim judged;
    if (kind == "push") {
      judged = JudgePush(input);
    } else if (kind == "clusters") {
      judged = JudgeClusters(input);
    } else if (kind == "clusterSynced") {
      judged = JudgeSync(input);
    } else if (kind == "gatewayReload") {
      judged = JudgeReload(input);
    } else if (kind == "nack") {
      judged = JudgeNack(input);
    } else {
      judged.at = input.at;
      judged.claim = At(input.body, "claim");
      judged.why = "no rule for claims of this kind";
    }
    out.claims.push_back(std::move(judged));
  }
  for (const Push& push : pushes_) {
    if (push.used || !changed_ || push.at < first_change_) continue;
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
  return under_.Start(header, [this, sink = std::move(sink)](const replay::LoggedEvent& event) {
    judge_.OnEvent(event);
    sink(event);
  });
}

absl::Status JudgedTarget::Do(const replay::LogInput& input) {
  judge_.OnInput(input);
  return under_.Do(input);
}

}  // namespace wavetank::importing
