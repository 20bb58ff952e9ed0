#include "library/swarm/swarm.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <thread>

#include "check/game_day/fork_pool.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::swarm {
namespace {

using nlohmann::json;

std::string Print(const Verdict& v, bool twice) {
  return JsonText(json{{"held", v.held},
                       {"invariant", v.invariant},
                       {"what", v.what},
                       {"at", v.at.time_since_epoch().count()},
                       {"lived", v.lived.count()},
                       {"digest", v.digest},
                       {"reached", v.reached},
                       {"fired", v.fired},
                       {"known", v.known},
                       {"error", v.error},
                       {"twice", twice}});
}

Verdict Read(const json& in) {
  Verdict out;
  out.held = At(in, "held") == true;
  out.invariant = wavetank::Text(in, "invariant");
  out.what = wavetank::Text(in, "what");
  out.at = Time(Duration(Number(in, "at")));
  out.lived = Duration(Number(in, "lived"));
  out.digest = wavetank::Text(in, "digest");
  for (const json& row : Items(At(in, "reached"))) out.reached.insert(TextOf(row));
  for (const json& bug : Items(At(in, "known"))) out.known.insert(TextOf(bug));
  for (const auto& [point, times] : At(in, "fired").items()) out.fired[point] = NumberOf(times);
  out.error = wavetank::Text(in, "error");
  return out;
}

std::string LogOf(const SwarmOptions& options, uint64_t seed) {
  return options.logs.empty() ? "" : fmt::format("{}/seed-{}.wtlog", options.logs, seed);
}

Trial TrialOf(const SwarmOptions& options, uint64_t seed) {
  Trial out = MakeTrial(seed, options.scenario, options.profile, options.sizes);
  out.invariants = options.invariants;
  if (options.buggify) out.buggify = *options.buggify;
  return out;
}

// In a process of its own.
std::string RunSeed(const SwarmOptions& options, uint64_t seed) {
  const Trial trial = TrialOf(options, seed);
  Verdict verdict = Try(trial, "");
  const bool twice = verdict.error.empty() && options.twice > 0 && seed % options.twice == 0;
  if (twice) {
    const Verdict again = Try(trial, "");
    if (verdict.held && again.digest != verdict.digest) {
      verdict.held = false;
      verdict.invariant = "same-seed-same-digest";
      verdict.what = fmt::format("{} and then {}", verdict.digest, again.digest);
    }
  }
  return Print(verdict, twice);
}

// A batch of seeds; one whose process dies has failed.
absl::StatusOr<std::vector<std::string>> RunBatch(const SwarmOptions& options, uint64_t first, size_t count, int jobs) {
  absl::StatusOr<std::vector<std::string>> answers = check::InForks(
      count, jobs, [&](size_t i) { return RunSeed(options, first + i); }, nullptr);
  if (answers.ok() || answers.status().code() != absl::StatusCode::kInternal) return answers;
  if (count == 1) {
    Verdict died;
    died.held = false;
    died.invariant = "nothing-dies";
    died.what = "the seed's process died; what it said last is on standard error";
    return std::vector<std::string>{Print(died, false)};
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<std::vector<std::string>> one = RunBatch(options, first + i, 1, 1);
    if (!one.ok()) return one.status();
    out.push_back(std::move(one->front()));
  }
  return out;
}

// Which of `whole` are left in `part`, which has them in the same order: their indexes.
template <class T>
json Left(const std::vector<T>& whole, const std::vector<T>& part) {
  json out = json::array();
  size_t at = 0;
  for (const T& each : part) {
    while (at < whole.size() && !(whole[at] == each)) ++at;
    out.push_back(at++);
  }
  return out;
}

template <class T>
void Keep(const json& indexes, std::vector<T>* of) {
  std::vector<T> kept;
  for (const json& index : Items(indexes)) kept.push_back((*of)[static_cast<size_t>(NumberOf(index))]);
  *of = std::move(kept);
}

// The first of each signature once more, with its log, and with fewer events.
absl::Status LookCloser(const SwarmOptions& options, int jobs, std::vector<SwarmFailure>* failures) {
  const absl::StatusOr<std::vector<std::string>> kept = check::InForks(
      failures->size(), jobs,
      [&](size_t i) {
        const SwarmFailure& failure = (*failures)[i];
        const uint64_t seed = failure.seeds.front();
        Trial trial = TrialOf(options, seed);
        json out = {{"history", json::array()}, {"moments", json::array()}, {"buggify", json::array()}};
        if (failure.first.invariant == "nothing-dies") return JsonText(out);
        if (const std::string log = LogOf(options, seed); !log.empty()) Try(trial, log);
        const Trial shrunk = Shrink(trial, failure.first);
        out["history"] = Left(trial.history, shrunk.history);
        out["moments"] = Left(trial.moments, shrunk.moments);
        out["buggify"] = Left(trial.buggify, shrunk.buggify);
        return JsonText(out);
      },
      nullptr);
  if (!kept.ok() && kept.status().code() != absl::StatusCode::kInternal) return kept.status();
  for (size_t i = 0; i < failures->size(); ++i) {
    SwarmFailure& failure = (*failures)[i];
    failure.shrunk = TrialOf(options, failure.seeds.front());
    const std::string log = LogOf(options, failure.seeds.front());
    // Of one that dies, as far as it came.
    if (!log.empty() && failure.first.invariant == "nothing-dies") {
      check::InForks(
          1, 1, [&](size_t) { return Try(failure.shrunk, log).what; }, nullptr)
          .IgnoreError();
    }
    if (std::error_code error; std::filesystem::exists(log, error)) failure.log = log;
    if (!kept.ok() || failure.first.invariant == "nothing-dies") continue;
    const json left = ParseJson((*kept)[i]);
    Keep(At(left, "history"), &failure.shrunk.history);
    Keep(At(left, "moments"), &failure.shrunk.moments);
    Keep(At(left, "buggify"), &failure.shrunk.buggify);
  }
  return absl::OkStatus();
}

}  // namespace

std::string Signature(const Verdict& verdict) {
  std::string out = verdict.invariant + ":";
  std::string word;
  const auto add = [&] {
    // Words with digits are names and numbers.
    const bool name = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!word.empty()) out += name ? " #" : " " + word;
    word.clear();
  };
  for (const char c : verdict.what) {
    if (c == ' ') {
      add();
    } else {
      word += c;
    }
  }
  add();
  // One name or several: the same.
  for (size_t at; (at = out.find(" # #")) != std::string::npos;) out.erase(at, 2);
  return out;
}

absl::StatusOr<SwarmResult> RunSwarm(const SwarmOptions& options) {
  SwarmResult out;
  std::map<std::string, SwarmFailure> failures;
  const int jobs = options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto batch = static_cast<uint64_t>(jobs) * 8;
  for (uint64_t seed = options.first; seed <= options.last && (!options.go_on || options.go_on());) {
    const auto count = static_cast<size_t>(std::min(batch, options.last - seed + 1));
    const absl::StatusOr<std::vector<std::string>> answers = RunBatch(options, seed, count, jobs);
    if (!answers.ok()) return answers.status();
    for (const std::string& answer : *answers) {
      const json read = ParseJson(answer);
      const Verdict verdict = Read(read);
      if (!verdict.error.empty()) return absl::InvalidArgumentError(fmt::format("seed {}: {}", seed, verdict.error));
      ++out.seeds;
      out.held += verdict.held;
      out.run_twice += At(read, "twice") == true;
      out.lived += verdict.lived;
      for (const std::string& row : verdict.reached) ++out.reached[row];
      for (const std::string& bug : verdict.known) ++out.known[bug];
      for (const auto& [point, times] : verdict.fired) {
        ++out.fired[point].first;
        out.fired[point].second += times;
      }
      if (!verdict.held) {
        SwarmFailure& failure = failures[Signature(verdict)];
        if (failure.seeds.empty()) failure.first = verdict;
        failure.seeds.push_back(seed);
      }
      ++seed;
    }
    if (options.progress)
      options.progress(
          fmt::format("{} seeds, {} held, {} signatures of failures", out.seeds, out.held, failures.size()));
  }
  for (auto& [signature, failure] : failures) {
    failure.signature = signature;
    out.failures.push_back(std::move(failure));
  }
  std::stable_sort(out.failures.begin(), out.failures.end(),
                   [](const SwarmFailure& a, const SwarmFailure& b) { return a.seeds.size() > b.seeds.size(); });
  if (absl::Status status = LookCloser(options, jobs, &out.failures); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::swarm
