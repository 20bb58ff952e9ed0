#include "check/cause/failures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "check/game_day/fork_pool.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/tcp/response_flags.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "scenarios/answers/failure_words.h"
#include "scenarios/answers/request_story.h"
#include "sim/world.h"
#include "sim/world_site.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// A request by its traffic and the time it was sent at: the same in a world that lacks an input.
using Request = std::pair<std::string, Time>;

struct Met {
  std::string flow, kind, how;  // kind: code and flags; how: in words
};
struct Run {
  int64_t sent = 0;
  std::map<Request, Met> failed;
  std::map<std::string, std::vector<Time>> answered;  // by flow
};

// Worlds with other chance, besides the one that was: balancers, jitter and retries draw anew.
constexpr uint64_t kVariations = 3;
// How seldom chance alone may look like a cause.
constexpr double kByChance = 0.02;

bool IsTraffic(const replay::LogInput& input) { return input.kind == "traffic" || input.kind == "stopTraffic"; }

// `variation`: 0 is the chance that was. With another, each proxy draws anew from the first traffic on, and again after
// every input, so that those that come later do, too.
void DrawAnew(const sim::World& world, uint64_t variation, size_t input) {
  if (variation == 0) return;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const auto* const site = world.FindSite(cluster.name);
    if (site == nullptr) continue;
    for (const auto& [name, pod] : site->pods()) {
      if (pod->envoy() != nullptr && pod->envoy()->live()) pod->envoy()->DrawAnew(Mix64(variation ^ Mix64(input)));
    }
  }
}

absl::StatusOr<Run> RunWithout(const Story& story, std::optional<size_t> without, uint64_t variation) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  Run out;
  Subscription requests = (*world)->commons().on_request.Add([&](const sim::TrafficRecord& t) {
    ++out.sent;
    const envoysim::RequestRecord& r = t.record;
    if (sim::Answered(t)) {
      out.answered[t.spec.flow].push_back(t.sent);
      return;
    }
    std::string kind = r.code == 0 ? "no answer" : fmt::format("{}", r.code);
    if (const std::string flags = envoysim::ResponseFlagsToString(r.flags); !flags.empty() && flags != "-")
      kind += " " + flags;
    std::string how = kind + ": " + scenario::FailureInWords(scenario::FactsOf(r));
    if (const std::string by = scenario::BlamedObject(r); !by.empty()) how += " (" + by + ")";
    out.failed.emplace(Request{t.spec.id, t.sent}, Met{t.spec.flow, std::move(kind), std::move(how)});
  });
  bool traffic = false;
  for (size_t i = 0; i < story.inputs.size(); ++i) {
    (*world)->RunUntil(story.inputs[i].at);
    if (without == i) continue;
    if (absl::Status status = DoAgain(**world, story.inputs[i]); !status.ok()) return status;
    traffic = traffic || IsTraffic(story.inputs[i]);
    if (traffic) DrawAnew(**world, variation, i);
  }
  (*world)->RunUntil(story.end);
  requests.Cancel();
  return out;
}

// The requests that fail without the input, as text for a fork's pipe.
std::string FailedWithout(const Story& story, std::optional<size_t> input, uint64_t variation) {
  const absl::StatusOr<Run> run = RunWithout(story, input, variation);
  if (!run.ok()) return JsonText(json{{"error", std::string(Message(run.status()))}});
  json failed = json::array();
  for (const auto& [request, met] : run->failed) {
    failed.push_back(request.first);
    failed.push_back(request.second.time_since_epoch().count());
    failed.push_back(met.flow);
    failed.push_back(met.kind);
  }
  return JsonText(json{{"failed", std::move(failed)}});
}

// What failed in one world.
struct Failed {
  std::map<Request, Met> requests;
  bool ran = false;  // a world that cannot be without an input says nothing, nor does one that died
};
Failed ReadFailed(const std::string& answer) {
  Failed out;
  const json in = ParseJson(answer);
  if (!in.is_object() || in.contains("error")) return out;
  out.ran = true;
  const json& failed = in["failed"];
  for (size_t k = 0; k + 3 < failed.size(); k += 4) {
    out.requests.emplace(Request{failed[k].get<std::string>(), Time(Duration(failed[k + 1].get<int64_t>()))},
                         Met{failed[k + 2].get<std::string>(), failed[k + 3].get<std::string>(), {}});
  }
  return out;
}

// Requests of one flow that failed in one way within a stretch of time.
struct Episode {
  std::string flow, kind;
  Time from{}, until{};  // until: no longer
  std::vector<Request> requests;
};

// One for each stretch between two instants of `bounds`, or, without any, between pauses.
std::vector<Episode> Episodes(const std::map<Request, Met>& failed, const std::vector<Time>& bounds) {
  constexpr Duration kApart = 10s;
  std::map<std::pair<std::string, std::string>, std::vector<Request>> of;
  for (const auto& [request, met] : failed) of[{met.flow, met.kind}].push_back(request);
  std::vector<Episode> out;
  for (auto& [key, requests] : of) {
    std::sort(requests.begin(), requests.end(), [](const Request& a, const Request& b) {
      return std::tie(a.second, a.first) < std::tie(b.second, b.first);
    });
    const size_t first = out.size();
    for (const Request& request : requests) {
      const auto next = std::upper_bound(bounds.begin(), bounds.end(), request.second);
      const Time from = next == bounds.begin() ? request.second : *std::prev(next);
      const bool same = out.size() > first && (bounds.empty() ? request.second <= out.back().until + kApart
                                                              : next == bounds.begin() || out.back().from == from);
      if (!same) out.push_back({key.first, key.second, from, {}, {}});
      out.back().until = bounds.empty() || next == bounds.end() ? request.second + 1ns : *next;
      out.back().requests.push_back(request);
    }
  }
  return out;
}

// How many fail in that world as those of the episode did, or are of it and fail in another way.
int64_t FailIn(const Episode& episode, const Failed& world) {
  int64_t out = 0;
  for (const auto& [request, met] : world.requests) {
    const bool like = met.flow == episode.flow && met.kind == episode.kind && request.second >= episode.from &&
                      request.second < episode.until;
    out += like ? 1 : 0;
  }
  for (const Request& request : episode.requests) {
    const auto it = world.requests.find(request);
    out += it != world.requests.end() && it->second.kind != episode.kind ? 1 : 0;
  }
  return out;
}

// Of `all` failures that fell on two sets of worlds, each as likely with a share of `p` on the second: how likely it is
// that no more than `few` fell there.
double AtMost(int64_t few, int64_t all, double p) {
  double sum = 0;
  for (int64_t k = 0; k <= few; ++k) {
    const double choose = std::lgamma(static_cast<double>(all) + 1) - std::lgamma(static_cast<double>(k) + 1) -
                          std::lgamma(static_cast<double>(all - k) + 1);
    sum += std::exp(choose + static_cast<double>(k) * std::log(p) + static_cast<double>(all - k) * std::log1p(-p));
  }
  return sum;
}

// Whether the episode's failures follow from an input: fewer of them without it, in whatever way chance falls. `with`,
// `without`: worlds that differ in chance alone.
bool Follows(const Episode& episode, const std::vector<Failed>& with, const std::vector<Failed>& without) {
  int64_t b = 0, w = 0, worlds_with = 0, worlds_without = 0;
  bool always = true, never = true;  // each request of it, with the input and without
  for (const Failed& world : with) {
    if (!world.ran) continue;
    ++worlds_with;
    b += FailIn(episode, world);
    for (const Request& request : episode.requests) always = always && world.requests.contains(request);
  }
  for (const Failed& world : without) {
    if (!world.ran) continue;
    ++worlds_without;
    w += FailIn(episode, world);
    for (const Request& request : episode.requests) never = never && !world.requests.contains(request);
  }
  if (worlds_with == 0 || worlds_without == 0) return false;
  // Chance has no part in what always fails with it and never without.
  if (always && never && w == 0) return true;
  const double share = static_cast<double>(worlds_without) / static_cast<double>(worlds_with + worlds_without);
  return AtMost(w, b + w, share) < kByChance;
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

// Of the inputs without which none of `requests` failed, that which came nearest to the first of them. Too few requests
// to tell it from chance, it is yet what to look at first: a connection that a killed pod cut.
std::optional<size_t> Perhaps(const Story& story, const std::vector<size_t>& candidates,
                              const std::vector<std::set<Request>>& prevents, const std::set<Request>& requests,
                              Time first) {
  std::optional<size_t> out;
  const auto distance = [&](size_t input) {
    const Time at = story.inputs[input].at;
    return at < first ? first - at : at - first;
  };
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!std::includes(prevents[i].begin(), prevents[i].end(), requests.begin(), requests.end())) continue;
    if (!out || distance(candidates[i]) <= distance(*out)) out = candidates[i];
  }
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
    const std::optional<size_t> behind = group->input ? group->input : group->perhaps;
    if (!IsTraffic(story.inputs[i]) && story.inputs[i].at >= group->first && (!behind || i > *behind)) group->until = i;
  }
}

}  // namespace

absl::StatusOr<Failures> ExplainFailures(const Story& story, size_t limit, int at_a_time,
                                         const std::function<void(const FailureWorlds&)>& progress) {
  const absl::StatusOr<Run> run = RunWithout(story, std::nullopt, 0);
  if (!run.ok()) return run.status();
  Failures out;
  out.sent = run->sent;
  out.failed = static_cast<int64_t>(run->failed.size());
  if (run->failed.empty()) return out;
  const std::vector<size_t> candidates = Candidates(story, *run, limit, &out.candidates);
  FailureWorlds far;
  far.of = 1 + candidates.size() + kVariations * (1 + candidates.size());
  const auto made = [&] {
    ++far.made;
    if (progress) progress(far);
  };
  made();
  // Worlds of a list of inputs that are left out and variations of chance.
  using Lack = std::pair<std::optional<size_t>, uint64_t>;
  const auto worlds = [&](const std::vector<Lack>& lacks) -> absl::StatusOr<std::vector<Failed>> {
    const absl::StatusOr<std::vector<std::string>> answers = InForks(
        lacks.size(), at_a_time, [&](size_t i) { return FailedWithout(story, lacks[i].first, lacks[i].second); },
        [&](size_t) { made(); });
    if (!answers.ok()) return answers.status();
    std::vector<Failed> read;
    for (const std::string& answer : *answers) read.push_back(ReadFailed(answer));
    return read;
  };
  std::vector<Lack> lacks;
  for (const size_t candidate : candidates) lacks.emplace_back(candidate, 0);
  absl::StatusOr<std::vector<Failed>> first = worlds(lacks);
  if (!first.ok()) return first.status();
  out.tried = candidates.size();
  std::vector<std::set<Request>> prevents(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!(*first)[i].ran) continue;
    for (const auto& [request, met] : run->failed) {
      if (!(*first)[i].requests.contains(request)) prevents[i].insert(request);
    }
  }
  // Without any input balancing turns out otherwise, and some request is spared by that alone. So those that spare any
  // are left out of worlds with other chance, too.
  lacks.clear();
  for (uint64_t v = 1; v <= kVariations; ++v) lacks.emplace_back(std::nullopt, v);
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (uint64_t v = 1; !prevents[i].empty() && v <= kVariations; ++v) lacks.emplace_back(candidates[i], v);
  }
  far.of = far.made + lacks.size();
  far.at_most = false;
  absl::StatusOr<std::vector<Failed>> varied = worlds(lacks);
  if (!varied.ok()) return varied.status();
  out.worlds = far.made;
  std::vector<Failed> with(1);
  with[0].requests = run->failed;
  with[0].ran = true;
  std::vector<std::vector<Failed>> without(candidates.size());
  size_t next = 0;
  for (uint64_t v = 1; v <= kVariations; ++v) with.push_back(std::move((*varied)[next++]));
  for (size_t i = 0; i < candidates.size(); ++i) {
    without[i].push_back(std::move((*first)[i]));
    for (uint64_t v = 1; !prevents[i].empty() && v <= kVariations; ++v)
      without[i].push_back(std::move((*varied)[next++]));
  }
  // What fails between two inputs is judged together, then, of what is left, what fails without a pause.
  std::map<Request, size_t> because;
  std::map<size_t, std::set<size_t>> also;  // by the input that is said to be the cause
  for (const bool between_inputs : {true, false}) {
    std::vector<Time> bounds;
    for (const size_t candidate : candidates) {
      if (between_inputs) bounds.push_back(story.inputs[candidate].at);
    }
    std::map<Request, Met> left;
    for (const auto& [request, met] : run->failed) {
      if (!because.contains(request)) left.emplace(request, met);
    }
    const std::vector<Episode> episodes = Episodes(left, bounds);
    std::vector<std::set<Request>> caused(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (prevents[i].empty()) continue;
      for (const Episode& episode : episodes) {
        const bool any = std::any_of(episode.requests.begin(), episode.requests.end(),
                                     [&](const Request& request) { return prevents[i].contains(request); });
        if (!any || !Follows(episode, with, without[i])) continue;
        for (const Request& request : episode.requests) {
          if (prevents[i].contains(request)) caused[i].insert(request);
        }
      }
    }
    // What spares most comes first, of equals the latest, and then what spares most of the rest.
    while (true) {
      size_t best = 0, most = 0;
      for (size_t i = 0; i < caused.size(); ++i) {
        std::erase_if(caused[i], [&](const Request& request) { return because.contains(request); });
        if (!caused[i].empty() && caused[i].size() >= most) {
          best = i;
          most = caused[i].size();
        }
      }
      if (most == 0) break;
      for (size_t i = 0; i < caused.size(); ++i) {
        const bool all = std::includes(caused[i].begin(), caused[i].end(), caused[best].begin(), caused[best].end());
        if (i != best && all) also[candidates[best]].insert(candidates[i]);
      }
      for (const Request& request : caused[best]) because[request] = candidates[best];
    }
  }
  std::map<std::pair<std::string, std::optional<size_t>>, FailureGroup> groups;
  std::map<std::pair<std::string, std::optional<size_t>>, std::map<std::string, int64_t>> hows;
  std::map<std::string, std::set<Request>> unexplained;  // by flow
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
    if (!key.second) unexplained[met.flow].insert(request);
  }
  for (auto& [key, group] : groups) {
    const auto& how = hows[key];
    group.how = std::max_element(how.begin(), how.end(), [](const auto& a, const auto& b) {
                  return a.second < b.second;
                })->first;
    if (group.input) {
      group.also.assign(also[*group.input].begin(), also[*group.input].end());
    } else {
      group.perhaps = Perhaps(story, candidates, prevents, unexplained[group.flow], group.first);
    }
    Close(story, *run, &group);
    out.groups.push_back(std::move(group));
  }
  std::stable_sort(out.groups.begin(), out.groups.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace wavetank::check
