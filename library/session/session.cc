#include "library/session/session.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/trace_names.h"
#include "fmt/format.h"
#include "replay/recorder.h"
#include "reports/report.h"
#include "scenarios/answers/pod_names.h"
#include "scenarios/expectations/expectation.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/survey/mesh_survey.h"
#include "wavetank/mesh.h"

namespace wavetank::session {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr Duration kSettleLimit = 10min, kPatience = 30s;
constexpr int64_t kLongest = int64_t{365} * 24 * 3600 * 1'000'000'000;

// 0 to a year; the default where it is not given.
absl::StatusOr<Duration> DurationOf(const json& request, std::string_view key, Duration otherwise) {
  const json& given = At(request, key);
  if (given.is_null()) return otherwise;
  if (!given.is_number_integer() || given.get<int64_t>() < 0 || given.get<int64_t>() > kLongest)
    return absl::InvalidArgumentError(fmt::format("'{}' is no number of nanoseconds, 0 to a year", key));
  return Duration(given.get<int64_t>());
}

// Of a path, a text, or a mesh as a value.
absl::StatusOr<scenario::Scenario> ScenarioOf(const json& request) {
  const std::string name = Text(request, "name", "mesh");
  if (At(request, "text").is_string()) return scenario::ParseScenario(name, Text(request, "text"));
  if (At(request, "mesh").is_null()) return scenario::LoadScenario(Text(request, "scenario"));
  Value value;
  Value::Parse(JsonText(At(request, "mesh")), &value);
  const Result<Mesh> mesh = Mesh::FromValue(value);
  if (!mesh.ok()) return absl::InvalidArgumentError(mesh.error());
  return scenario::ParseScenario(name, mesh->ToScenario());
}

// One step of a run as reports write it (docs/results.md), of a world that begins then.
ordered_json StepJson(scenario::StepResult step, Time beginning) {
  scenario::RunResult run;
  run.steps.push_back(std::move(step));
  return report::ResultsJson(scenario::SinceBeginning(std::move(run), beginning - Time{}))["steps"][0];
}

}  // namespace

Session::Reply Session::Answer(const json& request) {
  const std::string op = Text(request, "op");
  if (op == "open") return Open(request);
  if (op == "outline") return Outline(request);
  if (op == "story") return Story(request);
  if (op == "read") return log_view_.Read(request);
  static const std::vector<std::string_view> kOps = {"check", "config", "digest",   "do",     "endpoints", "finish",
                                                     "fork",  "inputs", "log",      "open",   "outline",   "proxies",
                                                     "read",  "run",    "services", "settle", "start",     "trace"};
  if (std::find(kOps.begin(), kOps.end(), op) == kOps.end())
    return absl::InvalidArgumentError(fmt::format("no request is called '{}'; docs/library.md lists them", op));
  if (live_ == nullptr) return absl::FailedPreconditionError("no world is open; begin with {\"op\": \"open\"}");
  if (op == "do") {
    if (absl::Status status = live_->Do(At(request, "action")); !status.ok()) return status;
    return ordered_json::object();
  }
  if (op == "run") {
    const absl::StatusOr<Duration> time = DurationOf(request, "forNs", 0ns);
    if (!time.ok()) return time.status();
    live_->RunFor(*time);
    return ordered_json::object();
  }
  if (op == "settle") return Settle(request);
  if (op == "start") return Start(request);
  if (op == "finish") return Finish(request);
  if (op == "endpoints") return Endpoints(request);
  if (op == "config") return Config(request);
  if (op == "check") return Check();
  if (op == "trace") return Trace(request);
  if (op == "inputs") return Inputs();
  if (op == "digest") return ordered_json{{"digest", live_->Digest()}};
  if (op == "services") {
    scenario::Survey survey;
    survey.services = scenario::ListServices(live_->world());
    return ordered_json{{"services", scenario::SurveyJson(survey)["services"]}};
  }
  if (op == "proxies") {
    ordered_json names = ordered_json::array();
    for (const sim::PodProcess* pod : live_->world().Pods())
      if (pod->envoy() != nullptr) names.push_back(pod->name());
    return ordered_json{{"proxies", names}};
  }
  if (op == "log") {
    if (absl::Status status = live_->WriteLog(Text(request, "path")); !status.ok()) return status;
    return ordered_json{{"digest", live_->Digest()}};
  }
  return absl::InvalidArgumentError("a fork needs a socket of its own beside the request");
}

int64_t Session::NowNs() const { return live_ == nullptr ? -1 : (live_->world().Now() - Beginning()).count(); }

Time Session::Beginning() const { return live_->world().options().start; }

Session::Reply Session::Open(const json& request) {
  if (live_ != nullptr) return absl::FailedPreconditionError("a world is open already; a session has one");
  absl::StatusOr<scenario::Scenario> scenario = ScenarioOf(request);
  if (!scenario.ok()) return scenario.status();
  const json& seed = At(request, "seed");
  if (!seed.is_null()) {
    if (!seed.is_number_integer() || seed.get<int64_t>() < 0)
      return absl::InvalidArgumentError("'seed' is no whole number, 0 to 9223372036854775807");
    scenario->seed = seed.get<uint64_t>();
  }
  if (const std::string profile = Text(request, "profile"); !profile.empty()) scenario->profile = profile;
  traced_ = At(request, "trace") == true;
  absl::StatusOr<std::unique_ptr<LiveWorld>> live = LiveWorld::Open(*std::move(scenario), [this](sim::World& world) {
    responses_ = world.commons().OnEitherXds(
        [this](const std::string& proxy, const auto& response) { sent_[proxy].Apply(response); });
    watch_ = std::make_unique<Watch>(world);
    if (!traced_) return;
    world.kernel().AddObserver(
        [this, &world](const sim::TraceEvent& event) { trace_.push_back(replay::Logged(world.kernel(), event)); });
  });
  if (!live.ok()) return live.status();
  live_ = *std::move(live);
  return ordered_json{
      {"notes", live_->notes()}, {"settled", live_->world().Settled()}, {"seed", live_->scenario().seed}};
}

Session::Reply Session::Outline(const json& request) {
  const absl::StatusOr<scenario::Scenario> scenario = ScenarioOf(request);
  if (!scenario.ok()) return scenario.status();
  ordered_json rows = ordered_json::array();
  for (const scenario::Step& step : scenario->steps) {
    for (const scenario::Expectation& e : step.expectations)
      rows.push_back({{"step", step.name}, {"text", scenario::Describe(e)}, {"line", e.line}});
  }
  return ordered_json{{"name", scenario->name}, {"expectations", rows}};
}

Session::Reply Session::Story(const json& request) {
  Value mesh, actions;
  Value::Parse(JsonText(At(request, "mesh")), &mesh);
  Value::Parse(JsonText(At(request, "actions")), &actions);
  const Result<Mesh> read = Mesh::FromValue(mesh);
  if (!read.ok()) return absl::InvalidArgumentError(read.error());
  return ordered_json{{"text", read->ToScenario(actions.Items())}};
}

Session::Reply Session::Settle(const json& request) {
  const absl::StatusOr<Duration> limit = DurationOf(request, "limitNs", kSettleLimit);
  if (!limit.ok()) return limit.status();
  const bool settled = At(request, "connected") == true ? live_->Recover(*limit) : live_->Settle(*limit);
  scenario::StepResult step;
  step.convergence = live_->TakeConvergence();
  return ordered_json{{"settled", settled},
                      {"atWork", settled ? std::vector<std::string>() : live_->AtWork()},
                      {"disconnected", live_->Disconnected()},
                      {"complaints", live_->world().Complaints()},
                      {"convergence", StepJson(std::move(step), Beginning())["convergence"]}};
}

Session::Reply Session::Start(const json& request) {
  const int64_t requests = Number(request, "requests");
  if (requests < 0 || requests > 10'000'000)
    return absl::InvalidArgumentError("'requests' is no number, 1 to 10000000; 0 goes on until it is finished");
  const absl::StatusOr<std::string> id = live_->StartTraffic(At(request, "flow"), requests);
  if (!id.ok()) return id.status();
  return ordered_json{{"traffic", *id}};
}

Session::Reply Session::Finish(const json& request) {
  const absl::StatusOr<Duration> patience = DurationOf(request, "patienceNs", kPatience);
  if (!patience.ok()) return patience.status();
  absl::StatusOr<scenario::TrafficResult> result = live_->FinishTraffic(Text(request, "traffic"), *patience);
  if (!result.ok()) return result.status();
  scenario::StepResult step;
  step.traffic.push_back(*std::move(result));
  return ordered_json{{"requests", StepJson(std::move(step), Beginning())["traffic"][0]}};
}

Session::Reply Session::Endpoints(const json& request) const {
  const std::string said = Text(request, "proxy");
  std::string only;
  if (!said.empty()) {
    const absl::StatusOr<std::string> found =
        scenario::FindOnePod("proxy", said, scenario::PodNames(live_->world()), live_->world());
    if (!found.ok()) return found.status();
    only = *found;
  }
  return ordered_json{{"endpoints", scenario::EndpointsJson(scenario::ListEndpoints(live_->world(), only))}};
}

Session::Reply Session::Config(const json& request) const {
  static const std::map<std::string, pilot::XdsType> kTypes = {{"cds", pilot::XdsType::kCds},
                                                               {"eds", pilot::XdsType::kEds},
                                                               {"lds", pilot::XdsType::kLds},
                                                               {"rds", pilot::XdsType::kRds},
                                                               {"ecds", pilot::XdsType::kEcds}};
  const auto type = kTypes.find(Text(request, "type"));
  if (type == kTypes.end())
    return absl::InvalidArgumentError(
        fmt::format("no type is called '{}'; one of cds, eds, lds, rds, ecds", Text(request, "type")));
  std::vector<scenario::PodName> names;
  for (const auto& [name, snapshot] : sent_) names.push_back(scenario::PodNameOf(name));
  const absl::StatusOr<std::string> found =
      scenario::FindOnePod("proxy", Text(request, "proxy"), names, live_->world());
  if (!found.ok()) return found.status();
  const absl::StatusOr<std::string> text = print_(type->second, sent_.at(*found));
  if (!text.ok()) return text.status();
  return ordered_json{{"proxy", *found}, {"config", ParseJson(*text)}};
}

Session::Reply Session::Check() const {
  ordered_json rows = ordered_json::array();
  std::vector<Breach> all = watch_->breaches();
  const std::vector<Breach> now = CheckEndpoints(*live_);
  all.insert(all.end(), now.begin(), now.end());
  for (const Breach& breach : all) rows.push_back({{"invariant", breach.invariant}, {"what", breach.what}});
  return ordered_json{{"breaches", rows}};
}

Session::Reply Session::Trace(const json& request) const {
  if (!traced_) return absl::FailedPreconditionError("the trace is not kept; open the world with \"trace\": true");
  const std::string kind = Text(request, "kind"), subject = Text(request, "subject");
  if (absl::Status known = CheckEventKind(kind); !known.ok()) return known;
  const int64_t from = Number(request, "from"), limit = Number(request, "limit", 100'000);
  ordered_json rows = ordered_json::array();
  for (size_t i = static_cast<size_t>(std::max<int64_t>(from, 0)); i < trace_.size(); ++i) {
    const replay::LoggedEvent& event = trace_[i];
    if (static_cast<int64_t>(rows.size()) >= limit) break;
    if (!subject.empty() && event.subject != subject) continue;
    const std::string name = TraceKindName(event.kind);
    if (!kind.empty() && name != kind) continue;
    rows.push_back(EventRow(event, Beginning()));
  }
  return ordered_json{{"events", rows}};
}

Session::Reply Session::Inputs() const {
  ordered_json rows = ordered_json::array();
  for (const LiveWorld::Done& done : live_->inputs()) {
    rows.push_back({{"number", done.number},
                    {"atNs", (done.at - Beginning()).count()},
                    {"kind", std::string(done.input.kind())},
                    {"cluster", done.input.cluster()}});
  }
  return ordered_json{{"inputs", rows}};
}

}  // namespace wavetank::session
