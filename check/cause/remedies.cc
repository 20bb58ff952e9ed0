#include "check/cause/remedies.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>

#include "check/game_day/fork_pool.h"
#include "check/lint/output.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// What an application meets; the causes are other rules' findings.
bool IsSymptom(std::string_view code) { return code == "WT801"; }

struct Found {
  KnownFault fault;
  bool error = false;
};
using Which = std::tuple<std::string, std::string, std::string>;  // code, cluster, object
Which WhichOf(const KnownFault& fault) { return {fault.code, fault.cluster, fault.object}; }

std::string FindingsAt(const Story& story, Duration until) {
  MeshSource source;
  source.log = story.path;
  source.log_until = until;
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  if (!settled.ok()) return "{}";
  const Mesh mesh(*std::move(settled));
  LintOptions options;
  // Certificates of files are judged by today's date, as in `check`.
  options.unix_now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const absl::StatusOr<LintResult> result = Lint(mesh, options);
  return result.ok() ? JsonText(FindingsJson(*result)) : "{}";
}

std::vector<Found> Read(const std::string& answer) {
  std::vector<Found> out;
  const json all = ParseJson(answer);
  for (const json& each : Items(At(all, "findings"))) {
    if (Text(each, "level") == "info" || IsSymptom(Text(each, "code"))) continue;
    Found& found = out.emplace_back();
    found.fault = {Text(each, "code"),
                   Text(each, "name"),
                   Text(each, "cluster"),
                   Text(each, "object"),
                   Text(each, "message"),
                   Text(each, "remedy"),
                   false};
    found.error = Text(each, "level") == "error";
  }
  return out;
}

// "Kind namespace/name", as findings name the object that an input is about.
std::string ObjectOf(const replay::LogInput& input) {
  const json& applied = At(input.body, "object");
  const json& named = applied.is_object() ? At(applied, "metadata") : input.body;
  const std::string kind = Text(applied.is_object() ? applied : input.body, "kind"), ns = Text(named, "namespace");
  return fmt::format("{} {}{}{}", kind.substr(0, kind.find('.')), ns, ns.empty() ? "" : "/", Text(named, "name"));
}

}  // namespace

nlohmann::ordered_json ToJson(const KnownFault& fault) {
  return {{"code", fault.code},       {"name", fault.name},     {"cluster", fault.cluster}, {"object", fault.object},
          {"message", fault.message}, {"remedy", fault.remedy}, {"before", fault.before}};
}

absl::StatusOr<std::vector<std::vector<KnownFault>>> KnownFaults(
    const Story& story, const std::vector<Suspect>& suspects, int at_a_time,
    const std::function<void(std::string_view)>& progress) {
  const Time beginning = story.header.Beginning();
  std::vector<Duration> instants;
  const auto instant_of = [&](Time at) {
    const Duration until = std::max(Duration::zero(), at - beginning);
    const auto known = std::find(instants.begin(), instants.end(), until);
    if (known != instants.end()) return static_cast<size_t>(known - instants.begin());
    instants.push_back(until);
    return instants.size() - 1;
  };
  std::vector<std::pair<std::optional<size_t>, size_t>> looks;  // before and after, of `instants`
  for (const Suspect& suspect : suspects) {
    if (!suspect.input) {
      looks.emplace_back(std::nullopt, instant_of(suspect.at));
      continue;
    }
    const Time at = story.inputs[*suspect.input].at;
    const size_t before = instant_of(at - 1ns);
    looks.emplace_back(before, instant_of(at));
  }
  size_t done = 0;
  const absl::StatusOr<std::vector<std::string>> answers = InForks(
      instants.size(), at_a_time, [&](size_t i) { return FindingsAt(story, instants[i]); },
      [&](size_t) {
        if (progress) progress(fmt::format("what check finds: {} of {} meshes", ++done, instants.size()));
      });
  if (!answers.ok()) return answers.status();
  std::vector<std::vector<Found>> found;
  found.reserve(answers->size());
  for (const std::string& answer : *answers) found.push_back(Read(answer));
  std::vector<std::vector<KnownFault>> out;
  for (size_t i = 0; i < suspects.size(); ++i) {
    const auto& [before, after] = looks[i];
    std::set<Which> known;
    if (before) {
      for (const Found& one : found[*before]) known.insert(WhichOf(one.fault));
    }
    const std::string object = suspects[i].input ? ObjectOf(story.inputs[*suspects[i].input]) : std::string();
    std::vector<std::pair<int, KnownFault>> ranked;
    for (const Found& one : found[after]) {
      KnownFault fault = one.fault;
      fault.before = !before || known.contains(WhichOf(fault));
      if (fault.before && !one.error) continue;
      const int rank = (fault.before ? 4 : 0) + (fault.object == object ? 0 : 2) + (one.error ? 0 : 1);
      ranked.emplace_back(rank, std::move(fault));
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<KnownFault>& list = out.emplace_back();
    for (auto& [rank, fault] : ranked) list.push_back(std::move(fault));
  }
  return out;
}

}  // namespace wavetank::check
