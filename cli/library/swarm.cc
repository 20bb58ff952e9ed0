#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "capacity/fleet/fleet.h"
#include "capacity/fleet/manifests.h"
#include "check/cause/export.h"
#include "check/cause/story.h"
#include "cli/verb.h"
#include "core/base/buggify/buggify.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/temporary_folder.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "library/session/truth.h"
#include "library/swarm/sometimes.h"
#include "library/swarm/swarm.h"
#include "nlohmann/json.hpp"
#include "sim/invariants/catalogue.h"

namespace wavetank::cli {
namespace {

using nlohmann::ordered_json;

struct SwarmArguments {
  std::string seeds = "1-100", time, invariants, buggify = "none", mesh, like;
  swarm::SwarmOptions options;
  bool coverage = false, json = false, list = false;
};

// A mesh of something else as a scenario, in a folder that goes with this. Errors are those of what it is made of, or
// of the system's folder for temporary files.
class MadeMesh {
 public:
  MadeMesh() = default;
  MadeMesh(const MadeMesh&) = delete;
  MadeMesh& operator=(const MadeMesh&) = delete;
  ~MadeMesh() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  // The scenario's folder.
  absl::StatusOr<std::string> OfLog(const std::string& log) {
    const absl::StatusOr<check::Story> story = check::LoadStory(log);
    if (!story.ok()) return story.status();
    if (absl::Status made = MakeFolder(); !made.ok()) return made;
    const absl::StatusOr<check::Exported> exported = check::ExportStory(*story, folder_ + "/mesh");
    if (!exported.ok()) return exported.status();
    return folder_ + "/mesh";
  }
  absl::StatusOr<std::string> OfFleet(const std::string& page) {
    const absl::StatusOr<capacity::Fleet> fleet = capacity::LoadFleet(page);
    if (!fleet.ok()) return fleet.status();
    if (absl::Status made = MakeFolder(); !made.ok()) return made;
    if (absl::Status status = capacity::WriteScenario(*fleet, folder_ + "/mesh"); !status.ok()) return status;
    return folder_ + "/mesh";
  }

 private:
  absl::Status MakeFolder() {
    absl::StatusOr<std::string> made = MakeTemporaryFolder("mesh");
    if (!made.ok()) return made.status();
    folder_ = *std::move(made);
    return absl::OkStatus();
  }

  std::string folder_;
};

// A page of `plan` and `synth`: it says how many proxies there are, which no scenario does.
bool IsFleet(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const absl::StatusOr<nlohmann::json> page = kube::ParseYaml(text.str(), path);
  return page.ok() && At(*page, "proxies").is_object();
}

// "412" or "1-5000".
absl::Status ParseSeeds(const std::string& text, swarm::SwarmOptions* out) {
  const size_t dash = text.find('-');
  const std::string first = text.substr(0, dash), last = dash == std::string::npos ? first : text.substr(dash + 1);
  if (!absl::SimpleAtoi(first, &out->first) || !absl::SimpleAtoi(last, &out->last) || out->first > out->last)
    return absl::InvalidArgumentError(fmt::format("--seeds '{}': write 412 or 1-5000", text));
  return absl::OkStatus();
}

// "seed" (each chooses its own), "all", "none", or names between commas.
absl::Status ParseBuggify(const std::string& text, swarm::SwarmOptions* out) {
  if (text == "seed") return absl::OkStatus();
  std::vector<std::string> points;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (text == "none") break;
    if (text != "all" && !FindBuggifyPoint(name))
      return absl::InvalidArgumentError(
          fmt::format("--buggify: no point is called '{}'; `wavetank swarm --invariants` lists them", name));
    if (text != "all") points.push_back(name);
  }
  for (const BuggifyRow& row : BuggifyRows())
    if (text == "all") points.emplace_back(row.name);
  out->buggify = std::move(points);
  return absl::OkStatus();
}

// The flag that has seeds fire the same points again.
std::string BuggifyFlag(const swarm::SwarmOptions& options) {
  if (!options.buggify) return " --buggify seed";
  const size_t count = options.buggify->size();
  if (count == 0) return {};
  return " --buggify " + (count == kBuggifyPoints ? "all" : fmt::format("{}", fmt::join(*options.buggify, ",")));
}

// "watch-broken 2, message-late 14".
std::string Fired(const swarm::Verdict& verdict) {
  std::string out;
  for (const auto& [point, times] : verdict.fired) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", point, times);
  return out;
}

std::string MeshFlag(const SwarmArguments& a) {
  if (!a.like.empty()) return " --like " + a.like;
  return a.mesh.empty() ? "" : " --mesh " + a.mesh;
}

// Of sizes that are not the usual ones, as a seed makes another mesh of each.
std::string SizeFlags(const Sizes& sizes) {
  const Sizes usual;
  std::string out;
  if (sizes.clusters != usual.clusters) out += fmt::format(" --clusters {}", sizes.clusters);
  if (sizes.events != usual.events) out += fmt::format(" --events {}", sizes.events);
  return out;
}

std::string Again(const SwarmArguments& a, uint64_t seed) {
  const swarm::SwarmOptions& options = a.options;
  return fmt::format(
      "wavetank swarm --seeds {}{}{}{}{}{}{}", seed, MeshFlag(a), SizeFlags(options.sizes),
      options.profile.empty() ? "" : " --profile " + options.profile, options.sizes.faults ? "" : " --no-faults",
      BuggifyFlag(options),
      options.invariants.empty() ? "" : fmt::format(" --invariants {}", fmt::join(options.invariants, ",")));
}

void PrintFailure(const swarm::SwarmFailure& failure, const SwarmArguments& a) {
  const swarm::Verdict& v = failure.first;
  std::cout << fmt::format("FAIL seed {} at {:.3f}s {}: {}\n", failure.seeds.front(),
                           ToMillis(v.at.time_since_epoch()) / 1e3, v.invariant, v.what)
            << "  again: " << Again(a, failure.seeds.front()) << "\n";
  if (!v.fired.empty()) std::cout << "  buggify: " << Fired(v) << "\n";
  if (!failure.log.empty()) std::cout << "  log: wavetank replay " << failure.log << "\n";
  if (failure.seeds.size() > 1) {
    const size_t shown = std::min<size_t>(failure.seeds.size(), 8);
    std::cout << fmt::format(
        "  {} seeds failed like this: {}{}\n", failure.seeds.size(),
        fmt::join(failure.seeds.begin(), failure.seeds.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < failure.seeds.size() ? ", ..." : "");
  }
  std::cout << "  shrunk: " << failure.shrunk.mesh.Describe() << "\n";
  for (const Event& event : failure.shrunk.history)
    std::cout << fmt::format("    {}, then {} ms\n", event.action.Print(), event.then_ms);
  for (const swarm::WorstMoment& moment : failure.shrunk.moments) std::cout << "    " << moment.Print() << "\n";
  for (const std::string& point : failure.shrunk.buggify) std::cout << "    buggify " << point << "\n";
}

void PrintMoments() {
  Rows rows = {{"MOMENT", "SAYS"}};
  for (const swarm::MomentRow& row : swarm::MomentRows())
    rows.push_back({std::string(row.name), std::string(row.says)});
  PrintTable(rows);
}

void PrintPoints() {
  Rows rows = {{"BUGGIFY", "SAYS"}};
  for (const BuggifyRow& row : BuggifyRows()) rows.push_back({std::string(row.name), std::string(row.says)});
  PrintTable(rows);
}

void PrintFired(const swarm::SwarmResult& result) {
  Rows rows = {{"BUGGIFY", "SEEDS", "TIMES", ""}};
  for (const BuggifyRow& row : BuggifyRows()) {
    const auto it = result.fired.find(std::string(row.name));
    const bool never = it == result.fired.end();
    rows.push_back({std::string(row.name), never ? "never" : std::to_string(it->second.first),
                    never ? "" : std::to_string(it->second.second), std::string(row.says)});
  }
  PrintTable(rows);
}

void PrintCoverage(const swarm::SwarmResult& result) {
  Rows rows = {{"SOMETIMES", "SEEDS", ""}};
  for (const swarm::SometimesRow& row : swarm::SometimesRows()) {
    const auto it = result.reached.find(std::string(row.name));
    rows.push_back({std::string(row.name), it == result.reached.end() ? "never" : std::to_string(it->second),
                    std::string(row.says)});
  }
  PrintTable(rows);
}

ordered_json ResultJson(const swarm::SwarmResult& result, const SwarmArguments& a) {
  ordered_json out = {{"seeds", result.seeds},
                      {"held", result.held},
                      {"runTwice", result.run_twice},
                      {"virtualSeconds", ToMillis(result.lived) / 1e3},
                      {"failures", ordered_json::array()},
                      {"sometimes", ordered_json::object()}};
  for (const swarm::SwarmFailure& f : result.failures) {
    ordered_json history = ordered_json::array(), moments = ordered_json::array();
    for (const swarm::WorstMoment& moment : f.shrunk.moments) {
      moments.push_back({{"action", moment.action.Print()}, {"moment", moment.moment}, {"nth", moment.nth}});
    }
    for (const Event& event : f.shrunk.history)
      history.push_back({{"action", event.action.Print()}, {"thenMs", event.then_ms}});
    out["failures"].push_back({{"signature", f.signature},
                               {"seeds", f.seeds},
                               {"invariant", f.first.invariant},
                               {"what", f.first.what},
                               {"atMs", ToMillis(f.first.at.time_since_epoch())},
                               {"again", Again(a, f.seeds.front())},
                               {"log", f.log},
                               {"mesh", f.shrunk.mesh.Describe()},
                               {"history", history},
                               {"moments", moments},
                               {"fired", f.first.fired},
                               {"buggify", f.shrunk.buggify}});
  }
  out["expected"] = result.known;
  for (const swarm::SometimesRow& row : swarm::SometimesRows()) {
    const auto it = result.reached.find(std::string(row.name));
    out["sometimes"][std::string(row.name)] = it == result.reached.end() ? 0 : it->second;
  }
  out["buggify"] = ordered_json::object();
  for (const BuggifyRow& row : BuggifyRows()) {
    const auto it = result.fired.find(std::string(row.name));
    out["buggify"][std::string(row.name)] = it == result.fired.end() ? 0 : it->second.second;
  }
  return out;
}

int RunSwarm(SwarmArguments& a) {
  if (a.list) {
    Rows rows = {{"INVARIANT", "SAYS"}};
    for (const session::Invariant& each : session::Invariants())
      rows.push_back({std::string(each.name), std::string(each.says)});
    PrintTable(rows);
    std::cout << "\n";
    PrintMoments();
    std::cout << "\n";
    PrintPoints();
    return kOk;
  }
  if (absl::Status status = ParseSeeds(a.seeds, &a.options); !status.ok()) return Complain(status);
  if (absl::Status status = ParseBuggify(a.buggify, &a.options); !status.ok()) return Complain(status);
  if (!a.invariants.empty()) {
    absl::StatusOr<std::vector<std::string>> names = sim::ParseInvariants(a.invariants);
    if (!names.ok()) return Complain(names.status());
    a.options.invariants = *std::move(names);
  }
  MadeMesh made;
  a.options.scenario = a.mesh;
  if (!a.like.empty() || IsFleet(a.mesh)) {
    absl::StatusOr<std::string> mesh = a.like.empty() ? made.OfFleet(a.mesh) : made.OfLog(a.like);
    if (!mesh.ok()) return Complain(mesh.status());
    a.options.scenario = *std::move(mesh);
  }
  const int64_t start = RealMillis();
  if (!a.time.empty()) {
    const std::optional<Duration> limit = ParseDuration(a.time);
    if (!limit) return Complain(absl::InvalidArgumentError("--time '" + a.time + "' is no duration; write 10m"));
    a.options.go_on = [start, limit] { return (RealMillis() - start) * 1ms < *limit; };
  }
  if (!a.options.logs.empty()) {
    std::error_code error;
    std::filesystem::create_directories(a.options.logs, error);
    if (error) return Complain(absl::InvalidArgumentError(fmt::format("{}: {}", a.options.logs, error.message())));
  }
  Progress progress;
  a.options.progress = [&](std::string_view what) { progress.Say(what); };
  const absl::StatusOr<swarm::SwarmResult> result = swarm::RunSwarm(a.options);
  if (!result.ok()) return Complain(result.status());
  if (a.json) {
    std::cout << JsonText(ResultJson(*result, a), 1) << "\n";
    return result->failures.empty() ? kOk : kNo;
  }
  for (const swarm::SwarmFailure& failure : result->failures) PrintFailure(failure, a);
  if (a.coverage) {
    PrintCoverage(*result);
    std::cout << "\n";
    PrintFired(*result);
  }
  for (const auto& [bug, seeds] : result->known) {
    const sim::KnownBug* const known = sim::FindKnownBug(bug);
    std::cout << fmt::format("expected: {} in {} seed{}{}\n", bug, seeds, seeds == 1 ? "" : "s",
                             known == nullptr ? "" : fmt::format(" ({})", known->what));
  }
  std::cout << fmt::format(
      "{} seeds, {} held, {} failed with {} signature{}; {:.1f} virtual hours; {} run twice, same digests\n",
      result->seeds, result->held, result->seeds - result->held, result->failures.size(),
      result->failures.size() == 1 ? "" : "s", ToMillis(result->lived) / 3.6e6, result->run_twice);
  return result->failures.empty() ? kOk : kNo;
}

}  // namespace

void AddSwarm(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("swarm", "Random meshes, histories and faults, and what must be true of them");
  auto a = std::make_shared<SwarmArguments>();
  verb->add_option("--seeds", a->seeds, "Which: 412, or 1-5000");
  CLI::Option* const mesh = verb->add_option(
      "--mesh", a->mesh, "The mesh of this scenario, with its flows, or of this fleet, instead of arbitrary ones");
  verb->add_option("--like", a->like, "The mesh of this event log, with its flows")->excludes(mesh);
  verb->add_option("--profile", a->options.profile, "Behaviour profile");
  verb->add_option("--jobs", a->options.jobs, "Processes at once; as many as there are processors if left out")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--time", a->time, "No further seeds after so long: 10m");
  verb->add_option("--events", a->options.sizes.events, "Events of a history, at most")->check(CLI::Range(0, 1000));
  verb->add_option("--clusters", a->options.sizes.clusters, "Clusters of a mesh, at most")->check(CLI::Range(1, 20));
  verb->add_flag_callback(
      "--no-faults", [a] { a->options.sizes.faults = false; }, "Waves alone");
  verb->add_option("--twice", a->options.twice, "One seed in so many runs twice, with the same digest; 0: none");
  verb->add_option("-o,--logs", a->options.logs, "Folder for event logs of failures");
  verb->add_flag("--coverage", a->coverage, "Which rare states were reached and which points fired, by how many seeds");
  verb->add_option("--buggify", a->buggify,
                   "Points of our own code that fire now and again while faults act: none (the default), seed (half of "
                   "the seeds have some, by their number), all, or names between commas")
      ->type_name("NAMES");
  CLI::Option* const invariants =
      verb->add_option("--invariants", a->invariants,
                       "Watch these too: all, or names and IDs of `wavetank invariants` between commas. Without any: "
                       "prints what must be true always, and runs nothing")
          ->type_name("NAMES")
          ->expected(0, 1);
  verb->add_flag("--json", a->json, "As JSON");
  NotWith(verb, {"--clusters"}, "--mesh");
  NotWith(verb, {"--clusters"}, "--like");
  verb->footer("Exit code 0: everything held; 1: something did not; 2: the call is wrong.");
  verb->callback([a, invariants, &outcome] {
    a->list = invariants->count() > 0 && a->invariants.empty();
    outcome.code = RunSwarm(*a);
  });
}

}  // namespace wavetank::cli
