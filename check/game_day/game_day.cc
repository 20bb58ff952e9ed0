#include "check/game_day/game_day.h"

#include <algorithm>
#include <thread>

#include "check/game_day/fork_pool.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/base/trace.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

constexpr int64_t kLeadSeconds = 2, kTailSeconds = 5;
constexpr Duration kPatience = 30s;

// What istiods and proxies did after the failure.
struct Aftermath {
  Time since{};
  Time first_push{}, last_push{};
  int64_t pushes = 0;
};

Effect Judge(const FlowMeter& meter, size_t flow, Time failed_at, int64_t seconds) {
  Effect out;
  const Window before = meter.Between(flow, 0, kLeadSeconds);
  const Window after = meter.Between(flow, kLeadSeconds, INT64_MAX);
  const Window tail = meter.Between(flow, seconds - kTailSeconds, INT64_MAX);
  out.sent = after.sent;
  out.failed = after.failed;
  out.retried = after.retried;
  // Who waits for one answer before asking again may be stuck with it: then nothing fails, and nothing is answered.
  const bool answered_before = before.sent - before.failed > 1;
  const bool silent = answered_before && after.sent == after.failed;
  out.recovered = tail.failed == 0 && !(answered_before && tail.sent == tail.failed);
  out.p99_before = before.Percentile(99);
  out.p99 = after.Percentile(99);
  out.by_cluster = after.by_cluster;
  if (after.failed > 0) out.recovery = std::max(Duration::zero(), meter.LastFailure(flow, failed_at) - failed_at);
  std::vector<std::pair<int64_t, std::string>> reasons;
  int64_t client_gone = 0;
  for (const auto& [reason, count] : after.reasons) {
    reasons.emplace_back(-count, reason.Text());
    if (reason.ClientGone()) client_gone += count;
  }
  std::sort(reasons.begin(), reasons.end());
  for (const auto& [count, text] : reasons) out.reasons.push_back(fmt::format("{} ({})", text, -count));
  const auto share = [](const Window& w, const std::string& cluster) {
    const int64_t answered = w.sent - w.failed;
    const auto it = w.by_cluster.find(cluster);
    return it == w.by_cluster.end() || answered == 0 ? 0 : it->second * 1000 / answered;
  };
  bool moved = false;
  std::set<std::string> clusters;
  for (const auto& [name, count] : before.by_cluster) clusters.insert(name);
  for (const auto& [name, count] : after.by_cluster) clusters.insert(name);
  for (const std::string& name : clusters) moved = moved || std::abs(share(before, name) - share(after, name)) > 100;
  const bool slower = out.p99 > out.p99_before * 3 / 2 && out.p99 - out.p99_before > 1ms;
  out.fate = client_gone > 0 && client_gone == after.failed ? Fate::kClientGone
             : after.failed > 0 || silent                   ? Fate::kLost
             : moved                                        ? Fate::kMoved
             : slower                                       ? Fate::kSlower
                                                            : Fate::kUnharmed;
  return out;
}

json ToJson(const Effect& e) {
  return {{"fate", static_cast<int>(e.fate)},
          {"sent", e.sent},
          {"failed", e.failed},
          {"retried", e.retried},
          {"recovered", e.recovered},
          {"recoveryNs", e.recovery.count()},
          {"p99BeforeNs", e.p99_before.count()},
          {"p99Ns", e.p99.count()},
          {"byCluster", e.by_cluster},
          {"reasons", e.reasons}};
}

Effect EffectOf(const json& in) {
  Effect out;
  out.fate = static_cast<Fate>(in["fate"].get<int>());
  out.sent = in["sent"].get<int64_t>();
  out.failed = in["failed"].get<int64_t>();
  out.retried = in["retried"].get<int64_t>();
  out.recovered = in["recovered"].get<bool>();
  out.recovery = Duration(in["recoveryNs"].get<int64_t>());
  out.p99_before = Duration(in["p99BeforeNs"].get<int64_t>());
  out.p99 = Duration(in["p99Ns"].get<int64_t>());
  out.by_cluster = in["byCluster"].get<std::map<std::string, int64_t>>();
  out.reasons = in["reasons"].get<std::vector<std::string>>();
  return out;
}

// To a thousandth of a second.
std::string Seconds(Duration d) {
  const int64_t ms = d.count() / 1'000'000;
  return fmt::format("{}.{:03} s", ms / 1000, ms % 1000);
}

std::vector<std::string> ChainOf(const std::string& failure, const std::vector<Effect>& effects,
                                 const std::vector<scenario::FlowSpec>& flows, const Aftermath& aftermath) {
  std::vector<std::string> out{failure};
  if (aftermath.pushes == 0) {
    out.emplace_back("no istiod sends anything: the proxies are not told");
  } else {
    out.push_back(fmt::format("istiods send {} responses, the first after {}, the last after {}", aftermath.pushes,
                              Seconds(aftermath.first_push - aftermath.since),
                              Seconds(aftermath.last_push - aftermath.since)));
  }
  for (size_t i = 0; i < effects.size(); ++i) {
    const Effect& e = effects[i];
    if (e.fate == Fate::kClientGone) continue;
    if (e.fate == Fate::kLost && e.failed == 0) {
      out.push_back(
          fmt::format("{}: its clients wait for an answer that does not come, and send no more", flows[i].name));
      continue;
    }
    if (e.failed == 0 && e.retried == 0) continue;
    out.push_back(fmt::format("{}: {} of {} requests fail, {} are tried again{}", flows[i].name, e.failed, e.sent,
                              e.retried,
                              e.failed == 0 ? ""
                              : e.recovered ? ", the last failure after " + Seconds(e.recovery)
                                            : ", and it goes on"));
    for (size_t r = 0; r < std::min<size_t>(e.reasons.size(), 2); ++r) out.push_back("  " + e.reasons[r]);
  }
  return out;
}

std::string NameOf(const std::vector<const Failure*>& failures) {
  std::string out;
  for (const Failure* failure : failures) out += (out.empty() ? "" : " and ") + failure->Text();
  return out;
}

// In a fork: traffic, the failure, and what it did.
std::string Try(const Mesh& mesh, const std::vector<scenario::FlowSpec>& flows,
                const std::vector<const Failure*>& failures, const GameDayOptions& options) {
  sim::World& world = mesh.world();
  const auto refuse = [](const absl::Status& status) {
    return JsonText(json{{"error", std::string(status.message())}});
  };
  absl::StatusOr<std::unique_ptr<FlowMeter>> meter = FlowMeter::Start(world, flows, options.rate);
  if (!meter.ok()) return refuse(meter.status());
  world.RunUntil(world.Now() + Duration(kLeadSeconds * 1'000'000'000));
  Aftermath aftermath;
  aftermath.since = world.Now();
  world.kernel().AddObserver([&aftermath](const sim::TraceEvent& event) {
    if (event.record.kind != TraceKind::kXdsSent) return;
    if (aftermath.pushes++ == 0) aftermath.first_push = event.time;
    aftermath.last_push = event.time;
  });
  for (const Failure* failure : failures) {
    if (absl::Status status = failure->happen(world); !status.ok()) return refuse(status);
  }
  Duration horizon = options.horizon;
  for (const Failure* failure : failures) horizon = std::max(horizon, failure->horizon);
  world.RunUntil(aftermath.since + horizon);
  (*meter)->Finish(kPatience);
  const int64_t seconds = kLeadSeconds + horizon / 1s;
  std::vector<Effect> effects;
  for (size_t i = 0; i < flows.size(); ++i) effects.push_back(Judge(**meter, i, aftermath.since, seconds));
  const std::string name = NameOf(failures);
  json out{{"failure", name}, {"effects", json::array()}, {"chain", ChainOf(name, effects, flows, aftermath)}};
  for (const Effect& effect : effects) out["effects"].push_back(ToJson(effect));
  return JsonText(out);
}

// Pairs in an order that depends on the seed alone, the first `count` of them.
std::vector<std::vector<const Failure*>> Pairs(const std::vector<Failure>& singles, size_t count, uint64_t seed,
                                               size_t* possible) {
  std::vector<std::vector<const Failure*>> out;
  for (size_t i = 0; i < singles.size(); ++i) {
    for (size_t j = i + 1; j < singles.size(); ++j) out.push_back({&singles[i], &singles[j]});
  }
  *possible = out.size();
  RandomStream random(seed, "game-day/pairs");
  for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random.Below(i)]);
  if (out.size() > count) out.resize(count);
  return out;
}

}  // namespace

std::string_view FateName(Fate fate) {
  static constexpr std::string_view kNames[] = {"unharmed", "slower", "moved", "lost", "client gone"};
  return kNames[static_cast<size_t>(fate)];
}

int64_t Trial::Failed() const {
  int64_t out = 0;
  for (const Effect& e : effects) out += e.fate == Fate::kClientGone ? 0 : e.failed;
  return out;
}

bool Trial::Recovered() const {
  return std::all_of(effects.begin(), effects.end(),
                     [](const Effect& e) { return e.recovered || e.fate == Fate::kClientGone; });
}

std::vector<const Trial*> GameDay::Worst(size_t count) const {
  std::vector<const Trial*> out;
  for (const Trial& trial : trials) {
    if (trial.Failed() > 0 || !trial.Recovered()) out.push_back(&trial);
  }
  std::stable_sort(out.begin(), out.end(), [](const Trial* a, const Trial* b) {
    if (a->Recovered() != b->Recovered()) return !a->Recovered();
    return a->Failed() > b->Failed();
  });
  if (out.size() > count) out.resize(count);
  return out;
}

absl::StatusOr<GameDay> RunGameDay(const Mesh& mesh, const GameDayOptions& options) {
  GameDay out;
  const std::vector<scenario::FlowSpec> flows = FlowsOf(mesh, options.flow_limit);
  if (flows.empty())
    return absl::InvalidArgumentError("the mesh has no traffic: no flows, and no client that could reach a Service");
  for (const scenario::FlowSpec& flow : flows) out.flows.push_back(flow.name);
  const std::vector<Failure> singles = SingleFailures(mesh);
  std::vector<std::vector<const Failure*>> trials;
  for (const Failure& failure : singles) trials.push_back({&failure});
  if (options.failures == 2) {
    for (auto& pair : Pairs(singles, options.sample, mesh.world().options().seed, &out.pairs_possible))
      trials.push_back(std::move(pair));
  }
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  size_t done = 0;
  absl::StatusOr<std::vector<std::string>> answers = InForks(
      trials.size(), options.processes > 0 ? options.processes : processors,
      [&](size_t i) { return Try(mesh, flows, trials[i], options); },
      [&](size_t) {
        if (options.progress) options.progress(fmt::format("game day: {} of {} failures", ++done, trials.size()));
      },
      [&](size_t i) { return i < singles.size() || !options.time_left || options.time_left(); },
      [&](size_t i) { return NameOf(trials[i]); });
  if (!answers.ok()) return answers.status();
  for (const std::string& answer : *answers) {
    const json read = ParseJson(answer);
    if (!read.is_object()) return absl::InternalError("a fork's answer cannot be read");
    if (read.contains("error")) return absl::InvalidArgumentError(read["error"].get<std::string>());
    Trial trial;
    trial.failure = read["failure"].get<std::string>();
    for (const json& effect : read["effects"]) trial.effects.push_back(EffectOf(effect));
    trial.chain = read["chain"].get<std::vector<std::string>>();
    out.trials.push_back(std::move(trial));
  }
  out.pairs_tried = out.trials.size() - singles.size();
  out.weak_points = WeakPoints(mesh, flows);
  out.capacities = Capacities(mesh);
  return out;
}

std::vector<std::string> SloBreaches(const GameDay& day, int64_t slo_ppm) {
  std::vector<std::string> out;
  for (const Trial& trial : day.trials) {
    for (size_t i = 0; i < trial.effects.size(); ++i) {
      const Effect& e = trial.effects[i];
      if (e.fate == Fate::kClientGone || (e.sent == 0 && e.fate != Fate::kLost)) continue;
      if (e.sent == 0) {
        out.push_back(fmt::format("{}: {}: nothing is answered any more", trial.failure, day.flows[i]));
        continue;
      }
      const int64_t answered = (e.sent - e.failed) * 1'000'000 / e.sent;
      if (answered >= slo_ppm) continue;
      out.push_back(fmt::format("{}: {}: {}.{:02} % of {} requests answered", trial.failure, day.flows[i],
                                answered / 10'000, answered % 10'000 / 100, e.sent));
    }
  }
  return out;
}

}  // namespace wavetank::check
