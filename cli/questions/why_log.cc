#include "cli/questions/why_log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <utility>

#include "check/cause/chain.h"
#include "check/cause/failures.h"
#include "check/cause/instant.h"
#include "check/cause/trials.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {
namespace {

using Json = nlohmann::ordered_json;

// What is left of many worlds, by how long those took that were made. Who waits longer than a moment is told beforehand
// how many there are, and what makes them fewer, also where nobody looks at a terminal.
class WorldsProgress {
 public:
  WorldsProgress(std::string log, size_t tries) : log_(std::move(log)), tries_(tries) {}

  void Say(const check::FailureWorlds& far) {
    const int64_t now = RealMillis();
    if (far.made == 1) {
      first_done_ = now;
      // The first is made alone, the others as many at a time as there are processors.
      const int64_t all = (now - begun_) * static_cast<int64_t>(far.of - 1) / check::Processors();
      if (all < kMomentMs) return;
      std::fprintf(
          stderr, "%s\n",
          fmt::format("{}: at most {} worlds are made, about {}: each of at most {} inputs is left out once, and "
                      "3 times more if a failure is missing then (--tries: of how many)",
                      log_, far.of, InSeconds(all), tries_)
              .c_str());
      return;
    }
    const int64_t left =
        (now - first_done_) * static_cast<int64_t>(far.of - far.made) / static_cast<int64_t>(far.made - 1);
    line_.Say(fmt::format("why: world {} of {}{}, {}{} left", far.made, far.at_most ? "at most " : "", far.of,
                          far.at_most ? "at most about " : "about ", InSeconds(left)));
  }

 private:
  static constexpr int64_t kMomentMs = 10'000;
  static std::string InSeconds(int64_t ms) { return FormatDuration(std::chrono::seconds((ms + 999) / 1000)); }

  const std::string log_;
  const size_t tries_;
  int64_t begun_ = RealMillis(), first_done_ = 0;
  Progress line_;
};

absl::StatusOr<std::vector<check::Chain>> Chains(const LogQuestion& q, const check::Story& story) {
  if (q.push) return check::ChainsOfPush(story, *q.push);
  absl::StatusOr<check::Chain> one = absl::UnknownError("");
  if (q.nack) {
    one = check::ChainOfNack(story, *q.nack);
  } else {
    const absl::StatusOr<Time> at =
        q.at.empty() ? absl::StatusOr<Time>(story.end) : check::FindInstant("--at", q.at, story);
    if (!at.ok()) return at.status();
    one = check::ChainOfEndpoint(story, q.endpoint, q.proxy, *at);
  }
  if (!one.ok()) return one.status();
  return std::vector<check::Chain>{*std::move(one)};
}

// "input 41, DELETE ..." without the body.
std::string InputWords(const check::Story& story, size_t index) {
  const replay::LogInput& input = story.inputs[index];
  std::string text = replay::Describe(input, story.header.Beginning());
  return text.size() > 200 ? text.substr(0, 200) + "..." : text;
}

Json InputJson(const replay::LogInput& input) {
  return {{"seq", input.seq}, {"kind", input.kind}, {"body", input.body}};
}

using Faults = std::vector<check::KnownFault>;
Json GroupJson(const check::Story& story, const check::FailureGroup& group, const Faults& faults) {
  const Time beginning = story.header.Beginning();
  Json out = {{"flow", group.flow},
              {"requests", group.requests},
              {"how", group.how},
              {"firstNs", (group.first - beginning).count()},
              {"lastNs", (group.last - beginning).count()}};
  if (story.CalendarBegins()) {
    out["first"] = story.Calendar(group.first);
    out["last"] = story.Calendar(group.last);
  }
  for (const auto& [name, input] :
       {std::pair("input", group.input), std::pair("perhaps", group.perhaps), std::pair("until", group.until)}) {
    if (input) out[name] = InputJson(story.inputs[*input]);
  }
  for (const size_t other : group.also) out["also"].push_back(InputJson(story.inputs[other]));
  out["findings"] = FaultsJson(faults);
  return out;
}

}  // namespace

Json FaultsJson(const Faults& faults) {
  Json out = Json::array();
  for (const check::KnownFault& fault : faults) out.push_back(ToJson(fault));
  return out;
}

std::string FaultsText(const Faults& faults, bool anew) {
  constexpr size_t kShown = 3;
  const bool any_new = std::any_of(faults.begin(), faults.end(), [](const auto& fault) { return !fault.before; });
  size_t shown = 0;
  std::string out;
  for (const check::KnownFault& fault : faults) {
    if (anew && any_new && fault.before) continue;
    if (++shown > kShown) continue;
    out += fmt::format("  check finds {} {}{}{}{}{}{}: {}\n  remedy      {}\n", fault.code, fault.name,
                       fault.object.empty() ? "" : ", ", fault.object, fault.cluster.empty() ? "" : " in ",
                       fault.cluster, anew && fault.before ? ", as before" : "", fault.message, fault.remedy);
  }
  if (shown > kShown) out += fmt::format("  and {} more findings (--json)\n", shown - kShown);
  return out;
}

absl::StatusOr<std::vector<Faults>> FaultsOf(const check::Story& story, const std::vector<check::Suspect>& suspects) {
  Progress progress;
  return check::KnownFaults(story, suspects, check::Processors(), [&](std::string_view what) { progress.Say(what); });
}

int AnswerChain(const LogQuestion& q) {
  const absl::StatusOr<check::Story> story = check::LoadStory(q.log);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<std::vector<check::Chain>> chains = Chains(q, *story);
  if (!chains.ok()) return Complain(chains.status());
  const Time beginning = story->header.Beginning();
  std::vector<check::Suspect> suspects;
  for (const check::Chain& chain : *chains) {
    // Of several inputs the last one: it completed what followed.
    const auto hop = std::find_if(chain.hops.rbegin(), chain.hops.rend(), [](const auto& one) { return !!one.input; });
    if (hop != chain.hops.rend()) suspects.push_back({hop->input, hop->at});
  }
  const absl::StatusOr<std::vector<Faults>> faults = FaultsOf(*story, suspects);
  if (!faults.ok()) return Complain(faults.status());
  std::map<size_t, Faults> of_input;  // what it brought
  for (size_t i = 0; i < suspects.size(); ++i) {
    Faults& anew = of_input[*suspects[i].input] = (*faults)[i];
    std::erase_if(anew, [](const check::KnownFault& fault) { return fault.before; });
  }
  Json all = Json::array();
  for (size_t i = 0; i < chains->size(); ++i) {
    if (!q.json && i > 0) std::cout << "\n";
    Json hops = Json::array();
    for (const check::Chain::Hop& hop : (*chains)[i].hops) {
      hops.push_back({{"atNs", (hop.at - beginning).count()}, {"what", hop.what}});
      const auto brought = hop.input ? of_input.find(*hop.input) : of_input.end();
      if (brought != of_input.end()) hops.back()["findings"] = FaultsJson(brought->second);
      if (const std::string calendar = story->Calendar(hop.at); !calendar.empty()) hops.back()["at"] = calendar;
      if (!q.json) {
        const std::string what = hop.what.size() > 220 ? hop.what.substr(0, 220) + "..." : hop.what;
        std::cout << fmt::format("{:>12.6f} s  {}\n", static_cast<double>((hop.at - beginning).count()) / 1e9, what);
        if (brought != of_input.end()) std::cout << FaultsText(brought->second, true);
      }
    }
    all.push_back(std::move(hops));
  }
  if (q.json) std::cout << JsonText(all, 1) << "\n";
  return WithWholeness(kOk, q.log, story->whole);
}

int AnswerFailures(const LogQuestion& q) {
  const absl::StatusOr<check::Story> story = check::LoadStory(q.log);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<check::Failures> failures = [&] {
    WorldsProgress progress(q.log, q.tries);
    return check::ExplainFailures(*story, q.tries, check::Processors(),
                                  [&](const check::FailureWorlds& far) { progress.Say(far); });
  }();
  if (!failures.ok()) return Complain(failures.status());
  std::vector<check::Suspect> suspects;
  for (const check::FailureGroup& group : failures->groups) suspects.push_back({group.input, group.first});
  const absl::StatusOr<std::vector<Faults>> faults = FaultsOf(*story, suspects);
  if (!faults.ok()) return Complain(faults.status());
  const Time beginning = story->header.Beginning();
  if (q.json) {
    Json groups = Json::array();
    for (size_t i = 0; i < failures->groups.size(); ++i)
      groups.push_back(GroupJson(*story, failures->groups[i], (*faults)[i]));
    std::cout << JsonText(Json{{"log", q.log},
                               {"sent", failures->sent},
                               {"failed", failures->failed},
                               {"inputsTried", failures->tried},
                               {"inputs", failures->candidates},
                               {"worlds", failures->worlds},
                               {"groups", std::move(groups)}},
                          1)
              << "\n";
    return WithWholeness(kOk, q.log, story->whole);
  }
  std::cout << fmt::format("{} of {} requests failed\n", failures->failed, failures->sent);
  for (size_t i = 0; i < failures->groups.size(); ++i) {
    const check::FailureGroup& group = failures->groups[i];
    std::cout << fmt::format("\n{} {} of {}, {}, sent {} to {}\n", group.requests,
                             group.requests == 1 ? "request" : "requests", group.flow, group.how,
                             FormatDuration(group.first - beginning), FormatDuration(group.last - beginning));
    if (story->CalendarBegins()) {
      std::cout << fmt::format("  that is     {} to {}\n", story->Calendar(group.first), story->Calendar(group.last));
    }
    std::cout << "  because of  "
              << (group.input     ? InputWords(*story, *group.input)
                  : group.perhaps ? "no input for certain, as chance may spare so few: without the next none fails"
                                  : "no single input: without any one of those that were tried they fail as well")
              << "\n";
    if (group.perhaps) std::cout << "  perhaps     " << InputWords(*story, *group.perhaps) << "\n";
    for (const size_t other : group.also) std::cout << "  and of      " << InputWords(*story, other) << "\n";
    if (group.until) std::cout << "  until       " << InputWords(*story, *group.until) << "\n";
    std::cout << FaultsText((*faults)[i], group.input.has_value());
  }
  if (failures->tried < failures->candidates) {
    std::cout << fmt::format(
        "\n{} of {} inputs were left out, one at a time: those nearest before a failure (--tries tries more)\n",
        failures->tried, failures->candidates);
  }
  return WithWholeness(kOk, q.log, story->whole);
}

}  // namespace wavetank::cli
