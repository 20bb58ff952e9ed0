#include "check/cause/failures.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/game_day/fork_pool.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fakes/envoy/tcp/response_flags.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "scenarios/answers/failure_words.h"
#include "scenarios/answers/request_story.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// A request by its traffic and the time it was sent at: the same in a world that lacks an input.
using Request = std::pair<std::string, Time>;

struct Met {
  std::string flow, how;
};
struct Run {
  int64_t sent = 0;
  std::map<Request, Met> failed;
  std::map<std::string, std::vector<Time>> answered;  // by flow
};

bool IsTraffic(const replay::LogInput& input) { return input.kind == "traffic" || input.kind == "stopTraffic"; }

absl::StatusOr<Run> RunWithout(const Story& story, std::optional<size_t> without) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  Run out;
  Subscription requests = (*world)->commons().on_request.Add([&](const sim::TrafficRecord& t) {
    ++out.sent;
    const envoysim::RequestRecord& r = t.record;
    if (r.code >= 200 && r.code < 400 && t.server != nullptr) {
      out.answered[t.spec.flow].push_back(t.sent);
      return;
    }
    std::string how = r.code == 0 ? "no answer" : fmt::format("{}", r.code);
    if (const std::string flags = envoysim::ResponseFlagsToString(r.flags); !flags.empty() && flags != "-")
      how += " " + flags;
    how += ": " + scenario::FailureInWords(scenario::FactsOf(r));
    if (const std::string by = scenario::BlamedObject(r); !by.empty()) how += " (" + by + ")";
    out.failed.emplace(Request{t.spec.id, t.sent}, Met{t.spec.flow, std::move(how)});
  });
  for (size_t i = 0; i < story.inputs.size(); ++i) {
    (*world)->RunUntil(story.inputs[i].at);
    if (without == i) continue;
    if (absl::Status status = DoAgain(**world, story.inputs[i]); !status.ok()) return status;
  }
  (*world)->RunUntil(story.end);
  requests.Cancel();
  return out;
}

// The requests that fail without the input, as text for a fork's pipe.
std::string FailedWithout(const Story& story, size_t input) {
  const absl::StatusOr<Run> run = RunWithout(story, input);
  if (!run.ok()) return JsonText(json{{"error", std::string(Message(run.status()))}});
  json failed = json::array();
  for (const auto& [request, met] : run->failed) {
    failed.push_back(request.first);
    failed.push_back(request.second.time_since_epoch().count());
  }
  return JsonText(json{{"failed", std::move(failed)}});
}

// Inputs that may stand behind a failure: not those that made the mesh, nor the traffic itself.
std::vector<size_t> Candidates(const Story& story, const Run& run, size_t limit, size_t* all) {
  size_t first_traffic = 0;
  while (first_traffic < story.inputs.size() && story.inputs[first_traffic].kind != "traffic") ++first_traffic;
  Time last{};
  for (const auto& [request, met] : run.failed) last = std::max(last, request.second);
  std::vector<size_t> out;
  // One that comes after a request was sent may still fail it.
  for (size_t i = first_traffic; i < story.inputs.size() && story.inputs[i].at <= last + 1min; ++i) {
    if (!IsTraffic(story.inputs[i])) out.push_back(i);
  }
  *all = out.size();
  if (out.size() <= limit) return out;
  // Those nearest before a failure.
  std::set<Time> failures;
  for (const auto& [request, met] : run.failed) failures.insert(request.second);
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) {
    const auto distance = [&](size_t i) {
      const auto next = failures.lower_bound(story.inputs[i].at - 1s);
      return next == failures.end() ? Duration::max() : *next - story.inputs[i].at;
    };
    return distance(a) < distance(b);
  });
  out.resize(limit);
  std::sort(out.begin(), out.end());
  return out;
}

void Close(const Story& story, const Run& run, FailureGroup* group) {
  // The first request of the flow that was answered after the last that failed.
  const auto answered = run.answered.find(group->flow);
  if (answered == run.answered.end()) return;
  std::vector<Time> times = answered->second;
  std::sort(times.begin(), times.end());
  const auto next = std::upper_bound(times.begin(), times.end(), group->last);
  if (next == times.end()) return;
  for (size_t i = 0; i < story.inputs.size() && story.inputs[i].at <= *next; ++i) {
    if (!IsTraffic(story.inputs[i]) && story.inputs[i].at >= group->first && (!group->input || i > *group->input))
      group->until = i;
  }
}

}  // namespace

absl::StatusOr<Failures> ExplainFailures(const Story& story, size_t limit, int at_a_time,
                                         const std::function<void(std::string_view)>& progress) {
  const absl::StatusOr<Run> run = RunWithout(story, std::nullopt);
  if (!run.ok()) return run.status();
  Failures out;
  out.sent = run->sent;
  out.failed = static_cast<int64_t>(run->failed.size());
  if (run->failed.empty()) return out;
  const std::vector<size_t> candidates = Candidates(story, *run, limit, &out.candidates);
  const absl::StatusOr<std::vector<std::string>> answers = InForks(
      candidates.size(), at_a_time, [&](size_t i) { return FailedWithout(story, candidates[i]); },
      [&](size_t) {
        if (progress)
          progress(fmt::format("why: world {} of {} without one of the inputs", ++out.tried, candidates.size()));
      });
  if (!answers.ok()) return answers.status();
  out.tried = candidates.size();
  std::vector<std::set<Request>> prevents(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const json in = ParseJson((*answers)[i]);
    // A world that cannot be without it says nothing, nor does one that died.
    if (!in.is_object() || in.contains("error")) continue;
    std::set<Request> still;
    const json& failed = in["failed"];
    for (size_t k = 0; k + 1 < failed.size(); k += 2)
      still.emplace(failed[k].get<std::string>(), Time(Duration(failed[k + 1].get<int64_t>())));
    for (const auto& [request, met] : run->failed) {
      if (!still.contains(request)) prevents[i].insert(request);
    }
  }
  // Without any input balancing turns out otherwise, and some request may be spared by that alone. So what spares most
  // comes first, of equals the latest, and then what spares most of the rest.
  std::map<Request, size_t> because;
  while (true) {
    size_t best = 0, most = 0;
    for (size_t i = 0; i < prevents.size(); ++i) {
      std::erase_if(prevents[i], [&](const Request& request) { return because.contains(request); });
      if (!prevents[i].empty() && prevents[i].size() >= most) {
        best = i;
        most = prevents[i].size();
      }
    }
    if (most == 0) break;
    for (const Request& request : prevents[best]) because[request] = candidates[best];
  }
  std::map<std::pair<std::string, std::optional<size_t>>, FailureGroup> groups;
  std::map<std::pair<std::string, std::optional<size_t>>, std::map<std::string, int64_t>> hows;
  for (const auto& [request, met] : run->failed) {
    const auto input = because.find(request);
    const std::pair key{met.flow, input == because.end() ? std::nullopt : std::optional(input->second)};
    FailureGroup& group = groups[key];
    if (group.requests++ == 0) group.first = group.last = request.second;
    group.flow = met.flow;
    group.input = key.second;
    group.first = std::min(group.first, request.second);
    group.last = std::max(group.last, request.second);
    ++hows[key][met.how];
  }
  for (auto& [key, group] : groups) {
    const auto& how = hows[key];
    group.how = std::max_element(how.begin(), how.end(), [](const auto& a, const auto& b) {
                  return a.second < b.second;
                })->first;
    Close(story, *run, &group);
    out.groups.push_back(std::move(group));
  }
  std::stable_sort(out.groups.begin(), out.groups.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace wavetank::check
