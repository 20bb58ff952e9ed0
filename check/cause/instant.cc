#include "check/cause/instant.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "fmt/format.h"
#include "scenarios/answers/moment.h"
#include "scenarios/language/yaml_reader.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

// "input 41", "input 41+2s"; nothing: it is no such text.
std::optional<std::pair<uint64_t, Duration>> ReadInput(std::string_view text) {
  constexpr std::string_view kWord = "input ";
  if (!text.starts_with(kWord)) return std::nullopt;
  text.remove_prefix(kWord.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return std::pair(number, Duration{});
  if (text.front() != '+') return std::nullopt;
  const std::optional<Duration> offset = ParseDuration(text.substr(1));
  return offset ? std::optional(std::pair(number, *offset)) : std::nullopt;
}

std::string FlowOf(const replay::LogInput& input) { return Text(input.body, "flow"); }

// What proxies are sent on the way to an instant. Nearly all of it is sent again before that, so lists, which proxies
// share, are kept as they came, and put together at the end.
class SentToProxies {
 public:
  void Note(const std::string& proxy, const pilot::DiscoveryResponse& response) {
    Proxy& to = proxies_[proxy];
    Waiting& waiting = to.waiting[static_cast<size_t>(response.type)];
    // Of clusters and listeners a response is all there is.
    const bool all = response.type == pilot::XdsType::kCds || response.type == pilot::XdsType::kLds;
    if (all) waiting.lists.clear();
    waiting.lists.push_back(response.resources);
    waiting.version = response.version_info;
    if (waiting.lists.size() == kMostLists) PutTogether(to);
  }
  void Note(const std::string& proxy, const pilot::DeltaDiscoveryResponse& response) {
    Proxy& to = proxies_[proxy];
    PutTogether(to);
    to.held.Apply(response);
  }

  std::map<std::string, scenario::XdsSnapshot> Take() {
    std::map<std::string, scenario::XdsSnapshot> out;
    for (auto& [name, proxy] : proxies_) {
      PutTogether(proxy);
      out.emplace(name, std::move(proxy.held));
    }
    return out;
  }

 private:
  static constexpr size_t kMostLists = 32;  // of one proxy and type

  struct Waiting {
    std::vector<pilot::ResourceList> lists;
    std::string version;  // of the last
  };
  struct Proxy {
    std::array<Waiting, pilot::kXdsTypes> waiting;  // by type
    scenario::XdsSnapshot held;
  };

  static void PutTogether(Proxy& proxy) {
    for (size_t type = 0; type < proxy.waiting.size(); ++type) {
      Waiting& waiting = proxy.waiting[type];
      for (pilot::ResourceList& list : waiting.lists) {
        pilot::DiscoveryResponse response;
        response.type = static_cast<pilot::XdsType>(type);
        response.version_info = waiting.version;
        response.resources = std::move(list);
        proxy.held.Apply(response);
      }
      waiting.lists.clear();
    }
  }

  absl::flat_hash_map<std::string, Proxy> proxies_;
};

}  // namespace

std::vector<std::pair<std::string, Time>> StepTimes(const Story& story) {
  std::vector<std::pair<std::string, Time>> out;
  absl::StatusOr<std::unique_ptr<scenario::Document>> document =
      scenario::Document::Parse("scenario", story.header.scenario_text);
  if (!document.ok()) return out;
  const std::vector<replay::LogInput>& inputs = story.inputs;
  size_t at = 0;
  const auto is = [&](size_t i, std::string_view kind) { return inputs[i].kind == kind; };
  bool up = false;  // what follows is the steps'
  for (const scenario::Field& traffic : (*document)->root()["throughout"]["traffic"].Items()) {
    const std::string flow = traffic["flow"].Text();
    while (at < inputs.size() && !(is(at, "traffic") && FlowOf(inputs[at]) == flow)) ++at;
    if (at < inputs.size()) ++at;
    up = true;
  }
  for (const scenario::Field& step : (*document)->root()["steps"].Items()) {
    const std::vector<scenario::Field> meanwhile = step["meanwhile"].Items(), then = step["then"].Items();
    const auto begins = [&](const std::vector<scenario::Field>& traffic) {
      const std::string flow = traffic.front()["flow"].Text();
      while (at < inputs.size() && !(is(at, "traffic") && FlowOf(inputs[at]) == flow)) ++at;
      if (at < inputs.size()) out.emplace_back(step["name"].Text(), inputs[at].at);
    };
    if (!meanwhile.empty()) {
      begins(meanwhile);
      for (size_t stopped = 0; at < inputs.size() && stopped < meanwhile.size(); ++at)
        stopped += is(at, "stopTraffic") ? 1 : 0;
    } else if (!step["do"].Items().empty() && (up || !out.empty())) {
      if (at >= inputs.size()) break;
      const Time when = inputs[at].at;
      out.emplace_back(step["name"].Text(), when);
      while (at < inputs.size() && inputs[at].at == when && !is(at, "traffic")) ++at;
    } else if (!then.empty()) {
      begins(then);
    }
    for (size_t started = 0; at < inputs.size() && started < then.size(); ++at) started += is(at, "traffic") ? 1 : 0;
  }
  return out;
}

absl::StatusOr<Time> FindInstant(std::string_view option, std::string_view text, const Story& story) {
  const Time beginning = story.header.Beginning();
  Time at = beginning;
  // Of an imported log: as its sources write times.
  absl::Time calendar;
  std::string error;
  const std::optional<int64_t> begins = story.CalendarBegins();
  if (begins && absl::ParseTime(absl::RFC3339_full, absl::string_view(text.data(), text.size()), &calendar, &error)) {
    at = beginning + Duration(absl::ToUnixNanos(calendar) - *begins);
    if (at < beginning) {
      return absl::OutOfRangeError(fmt::format("{}: {} '{}' is before its beginning, {}; take a later one", story.path,
                                               option, text, story.Calendar(beginning)));
    }
  } else if (const auto input = ReadInput(text)) {
    const auto found = std::find_if(story.inputs.begin(), story.inputs.end(),
                                    [&](const replay::LogInput& each) { return each.seq == input->first; });
    if (found == story.inputs.end()) {
      return absl::OutOfRangeError(fmt::format("{}: {} '{}': it has inputs 0 to {} (`wavetank replay --inputs`)",
                                               story.path, option, text,
                                               story.inputs.empty() ? 0 : story.inputs.back().seq));
    }
    at = found->at + input->second;
  } else {
    const std::vector<std::pair<std::string, Time>> steps = StepTimes(story);
    std::vector<std::string> names;
    for (const auto& [name, time] : steps) names.push_back(name);
    const absl::StatusOr<scenario::Moment> moment = scenario::ParseMoment(option, text, names);
    if (!moment.ok()) return moment.status();
    for (const auto& [name, time] : steps) {
      if (name == moment->step) at = time;
    }
    at += moment->offset;
  }
  if (at <= story.end) return at;
  return absl::OutOfRangeError(
      fmt::format("{}: {} '{}' is {} after its beginning, and it ends at {}; take an earlier one", story.path, option,
                  text, FormatDuration(at - beginning), FormatDuration(story.end - beginning)));
}

absl::StatusOr<std::unique_ptr<Instant>> GoTo(const Story& story, Time at, Look look) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  SentToProxies sent;
  auto out = std::make_unique<Instant>();
  out->world = *std::move(world);
  Subscriptions responses;
  if (look == Look::kProxiesToo) {
    responses = out->world->commons().OnEitherXds(
        [&sent](const std::string& proxy, const auto& response) { sent.Note(proxy, response); });
  }
  sim::Kernel& kernel = out->world->kernel();
  // Most objects are written again and again.
  kernel.AddObserver([&kernel, to = out.get(),
                      seen = absl::flat_hash_set<std::pair<NameId, NameId>>()](const sim::TraceEvent& event) mutable {
    if (event.record.kind != TraceKind::kObjectApplied) return;
    if (!seen.emplace(event.record.subject, event.record.object).second) return;
    const std::string& object = kernel.names().Text(event.record.object);
    to->kinds[kernel.names().Text(event.record.subject)].insert(object.substr(0, object.find('/')));
  });
  for (const replay::LogInput& input : story.inputs) {
    if (input.at > at) break;
    out->world->RunUntil(input.at);
    if (absl::Status status = DoAgain(*out->world, input); !status.ok()) return status;
  }
  out->world->RunUntil(at);
  responses.Clear();
  out->proxies = sent.Take();
  std::set<std::string_view> there;
  for (const sim::PodProcess* pod : out->world->Pods()) there.insert(pod->name());
  std::erase_if(out->proxies, [&](const auto& proxy) { return !there.contains(proxy.first); });
  return out;
}

}  // namespace wavetank::check
