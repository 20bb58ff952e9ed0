#include "scenarios/runner/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/base/text/shell_word.h"
#include "fakes/envoy/envoy.h"
#include "replay/event_log.h"
#include "replay/world_recorder.h"
#include "replay/world_target.h"
#include "scenarios/actions/action.h"
#include "scenarios/answers/address_names.h"
#include "scenarios/answers/unrest.h"
#include "scenarios/expectations/expectation.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/mesh/world.h"
#include "scenarios/results/convergence.h"
#include "scenarios/results/nacks.h"
#include "scenarios/results/topology.h"
#include "scenarios/results/traffic_account.h"
#include "scenarios/runner/access_log_file.h"
#include "scenarios/runner/start.h"
#include "scenarios/runner/world_endpoints.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/traffic.h"
#include "sim/invariants/watch.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

// How long a mesh may take to come up, and a wave to settle, before the run goes on and says so.
constexpr Duration kStartLimit = 5min;
// A log says no limit of its own.
constexpr Duration kSettleLimit = 10min;
// Patience with requests that are still under way when traffic ends.
constexpr Duration kDrainLimit = 30s;

class ScenarioRun final : public WorldView {
 public:
  ScenarioRun(const Scenario& scenario, const RunOptions& options, std::unique_ptr<sim::World> world)
      : scenario_(scenario),
        options_(options),
        world_(std::move(world)),
        convergence_(world_->kernel()),
        unrest_(*world_),
        nacks_(*world_),
        addresses_(*world_) {
    if (options_.until && options_.until->step.empty()) stop_ = Beginning() + options_.until->offset;
    subscriptions_.Add(world_->commons().on_request.Add([this](const sim::TrafficRecord& record) {
      const auto account = accounts_.find(record.spec.id);
      if (account != accounts_.end()) account->second.Add(record);
      if (const auto of_log = flow_of_log_.find(record.spec.id); of_log != flow_of_log_.end())
        of_log_.at(of_log->second).Add(record);
      if (options_.on_request) options_.on_request(*world_, record);
    }));
    subscriptions_.Add(world_->commons().on_call.Add([this](const sim::TrafficRecord& record) {
      for (Calls* calls : {&calls_, &calls_throughout_}) {
        if (!calls->since) continue;
        calls->accounts
            .try_emplace(record.spec.flow, world_->kernel().names(), addresses_, record.spec.flow, calls->meanwhile,
                         *calls->since)
            .first->second.Add(record);
      }
    }));
    world_->kernel().AddObserver([this](const sim::TraceEvent& event) {
      ++records_;
      if (event.record.kind != TraceKind::kXdsSent) return;
      ++result_.pushes[std::chrono::floor<std::chrono::seconds>(event.time - Beginning()).count()];
    });
  }

  // Before anything happens: everything is recorded.
  absl::Status Record(const std::string& path) {
    absl::StatusOr<std::unique_ptr<replay::Recorder>> recorder =
        replay::RecordWorld(*world_, {.log = path,
                                      .program_version = WAVETANK_VERSION,
                                      .scenario_name = scenario_.name,
                                      .scenario_file = scenario_.file,
                                      .real_istiod = options_.real_istiod,
                                      .invariants = watched_});
    if (!recorder.ok()) return recorder.status();
    recorder_ = *std::move(recorder);
    return absl::OkStatus();
  }

  // Those of the options, and those that steps name. Before Record().
  absl::Status WatchInvariants() {
    watched_ = options_.invariants;
    for (const Step& step : scenario_.steps) {
      for (const Expectation& e : step.expectations) {
        if (e.kind != "invariant" || std::find(watched_.begin(), watched_.end(), e.names.front()) != watched_.end())
          continue;
        watched_.push_back(e.names.front());
      }
    }
    if (watched_.empty()) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<sim::InvariantWatch>> watch =
        sim::InvariantWatch::Attach(*world_, watched_, {.in_trace = !options_.real_istiod});
    if (!watch.ok()) return watch.status();
    invariants_ = *std::move(watch);
    return absl::OkStatus();
  }

  absl::Status FinishRecording() { return recorder_ == nullptr ? absl::OkStatus() : recorder_->Finish(); }

  void Note(std::vector<std::string> notes) { start_notes_ = std::move(notes); }

  absl::Status Start(const StartPhases& start) {
    Say("installing the mesh");
    for (const std::vector<sim::Input>& phase : start.phases) {
      for (const sim::Input& input : phase) {
        if (absl::Status status = Do(input); !status.ok()) return AtItsPlace(scenario_, input, status);
      }
      if (!Rest(world_->Now() + kStartLimit) && !Cut()) NoteUnrest("the mesh has not settled", &start_notes_);
    }
    for (const std::string& complaint : world_->Complaints()) start_notes_.push_back(complaint);
    for (const auto& [what, cluster] : start.mended) world_->Mended(what, cluster);
    for (std::string& line : world_->LeftOut()) start_notes_.push_back(std::move(line));
    for (std::string& line : NotesOfOtherReleases(*world_)) start_notes_.push_back(std::move(line));
    unready_at_start_ = !world_->Unready().empty();
    if (options_.on_up) {
      if (absl::Status status = options_.on_up(*world_); !status.ok()) return status;
    }
    up_ = true;
    origin_ = world_->Now();
    return absl::OkStatus();
  }

  // A log's inputs at their times. `measure`: those after the first instant are steps of the result.
  absl::Status Follow(replay::LogReader& log, bool measure) {
    Say("following the log");
    std::optional<Time> last;
    StepResult out;
    const auto close = [&](std::optional<Time> next) {
      // Until the next change comes, or the world has come to rest.
      const Time deadline = next ? std::min(*next, world_->Now() + kSettleLimit) : world_->Now() + kSettleLimit;
      const bool settled = Rest(deadline);
      out.convergence = convergence_.End();
      out.convergence.connected = Connected();
      if (!settled && next) out.notes.push_back("the next change came before the world was at rest");
      if (!settled && !next && !Cut()) NoteUnrest("had not settled after 10m", &out.notes);
      out.end = world_->Now();
      out.nacks = nacks_.Since();
      JudgeNacks({}, 0, &out);
      if (next) return result_.steps.push_back(std::exchange(out, {}));
      for (const std::string& complaint : world_->Complaints()) out.notes.push_back(complaint);
      result_.steps.push_back(std::exchange(out, {}));
    };
    while (true) {
      absl::StatusOr<replay::LogReader::Item> item = log.Next();
      if (!item.ok()) return item.status();
      if (*item == replay::LogReader::Item::kEnd) break;
      if (*item != replay::LogReader::Item::kInput) continue;
      const replay::LogInput& input = log.input();
      if (Cut() || (stop_ && input.at > *stop_)) break;
      if (options_.from_until && input.at > Beginning() + *options_.from_until) break;
      if (measure && (!last || input.at - *last > kOneChange)) {
        if (last) close(input.at);
        Run(input.at);
        out.start = input.at;
        out.name = last ? fmt::format("change at {}", FormatDuration(input.at - Beginning())) : "the first picture";
        convergence_.Begin(input.at, world_->inputs());
      }
      Run(input.at);
      if (measure && last) out.actions.push_back(DescribeInput(input));
      last = input.at;
      const absl::StatusOr<sim::Input> parsed = replay::InputOf(log.header(), input);
      if (!parsed.ok()) {
        return absl::Status(
            parsed.status().code(),
            fmt::format("{}: {}: {}", log.path(), replay::Describe(input, Beginning()), Message(parsed.status())));
      }
      const absl::Status status = Do(*parsed);
      const std::string refusal = fmt::format("{}: {}", replay::Describe(input, Beginning()), Message(status));
      // As in a replay: what a live world refused changed nothing then, and is refused again.
      if (!status.ok()) (measure ? out.notes : start_notes_).push_back("refused: " + refusal);
    }
    if (options_.from_until) {
      Run(Beginning() + *options_.from_until);
    } else if (measure && last) {
      close(std::nullopt);
    } else if (!Rest(world_->Now() + kStartLimit) && !Cut()) {
      NoteUnrest("the mesh has not settled", &start_notes_);
    }
    for (const std::string& complaint : world_->Complaints()) start_notes_.push_back(complaint);
    up_ = true;
    origin_ = world_->Now();
    return absl::OkStatus();
  }

  // Recorded clusters go on as live ones, so that steps can scale, kill and drain what is in them.
  absl::Status GoLive() {
    for (const sim::WorldCluster& cluster : world_->options().clusters) {
      if (!cluster.observed || world_->cluster(cluster.name).live()) continue;
      if (absl::Status status = Do(sim::inputs::GoLive{cluster.name}); !status.ok()) return status;
      for (const std::string& note : world_->cluster(cluster.name).untold())
        start_notes_.push_back(fmt::format("{}: {}", cluster.name, note));
    }
    return absl::OkStatus();
  }

  absl::Status Steps() {
    if (!scenario_.throughout || Over()) return StepByStep();
    const Step& throughout = *scenario_.throughout;
    StepResult out;
    out.name = throughout.name;
    out.start = world_->Now();
    out.convergence.connected = -1;
    const absl::StatusOr<std::vector<std::string>> ids =
        StartTraffic(throughout.meanwhile, true, out.start, &calls_throughout_);
    if (!ids.ok()) return ids.status();
    const absl::Status played = StepByStep();
    EndThroughout(throughout, *ids, played, std::move(out));
    return played;
  }

  // Whether there is something to tell of a run that an error ended.
  bool up() const { return up_; }

  RunResult Finish() {
    CloseConvergence("the run ended before the world was at rest");
    // What the first step would tell.
    if (result_.steps.empty()) result_.notes.insert(result_.notes.end(), start_notes_.begin(), start_notes_.end());
    CloseTrafficOfLog();
    result_.interrupted = options_.interrupted != nullptr && *options_.interrupted;
    result_.scenario = scenario_.name;
    result_.file = scenario_.file;
    result_.description = scenario_.description;
    result_.profile = world_->options().profile;
    result_.version = WAVETANK_VERSION;
    result_.seed = world_->options().seed;
    if (scenario_.incident) {
      const auto verdict = scenario_.incident->shown.find(result_.profile);
      if (verdict != scenario_.incident->shown.end()) result_.shown_expected = verdict->second;
    }
    result_.end = world_->Now();
    result_.digest = world_->kernel().digest().Hex();
    result_.trace_records = records_;
    for (const Nack& nack : nacks_.Since()) result_.nacks_between += nack.count;
    result_.nacks = nacks_.All();
    result_.without_effect = WithoutEffectOf(*world_);
    result_.mended = world_->MendedLines();
    // Stories of incidents say themselves what is to be seen.
    if (unready_at_start_ && !scenario_.incident && !scenario_.unready) result_.unready = world_->Unready();
    for (std::string& note : ScriptNotes(*world_)) result_.notes.push_back(std::move(note));
    for (std::string& note : PanicNotes(*world_)) result_.notes.push_back(std::move(note));
    AddTopology(*world_, scenario_, &result_);
    result_.invariants = options_.invariants;
    if (invariants_ != nullptr) {
      for (const sim::Violation& v : invariants_->violations()) {
        if (std::find(options_.invariants.begin(), options_.invariants.end(), v.invariant) != options_.invariants.end())
          result_.violations.push_back(v);
      }
      std::stable_sort(result_.violations.begin(), result_.violations.end(),
                       [](const auto& a, const auto& b) { return a.at < b.at; });
    }
    return std::move(result_);
  }

  // WorldView
  std::vector<ProxyEndpoints> EndpointsOf(const std::string& cluster, const std::string& ns, const std::string& app,
                                          const std::string& host, int port) const override {
    return EndpointsIn(*world_, cluster, ns, app, host, port);
  }

 private:
  // "cluster1: apply Service sample/helloworld"; of what no cluster is named for, its fields: "remoteSecret (in
  // cluster1, of cluster2)".
  static std::string DescribeInput(const replay::LogInput& input) {
    const nlohmann::json& body = input.body;
    const auto text = [](const nlohmann::json& in, const char* key) {
      const auto it = in.find(key);
      return it != in.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    std::string kind = text(body, "kind"), ns = text(body, "namespace"), name = text(body, "name");
    if (const auto object = body.find("object"); object != body.end() && object->is_object()) {
      kind = text(*object, "kind");
      if (const auto meta = object->find("metadata"); meta != object->end() && meta->is_object()) {
        ns = text(*meta, "namespace");
        name = text(*meta, "name");
      }
    }
    if (!kind.empty() && kind.find('.') != kind.npos) kind.resize(kind.find('.'));
    const std::string cluster = text(body, "cluster");
    if (cluster.empty()) {
      const std::string subject = replay::SubjectOf(input);
      return subject.empty() ? input.kind : fmt::format("{} ({})", input.kind, subject);
    }
    std::string out = fmt::format("{}: {}", cluster, input.kind);
    // Of a real client, in the words of HTTP.
    for (const char* word : {"method", "path"}) {
      if (const std::string said = text(body, word); !said.empty()) out += " " + said;
    }
    if (!kind.empty()) out += " " + kind;
    if (!name.empty()) out += fmt::format(" {}{}", ns.empty() ? "" : ns + "/", name);
    return out;
  }

  void Say(std::string_view what) {
    what_ = what;
    if (options_.progress) options_.progress(fmt::format("{}: {}", scenario_.name, what));
  }
  bool Over() const {
    if (options_.until_step && result_.steps.size() >= *options_.until_step) return true;
    return Cut();
  }

  Time Beginning() const { return world_->options().start; }

  // The run ends here, wherever it stands.
  bool Cut() const {
    return (options_.interrupted != nullptr && *options_.interrupted) || (stop_ && world_->Now() >= *stop_);
  }
  std::string CutText() const {
    const std::string at = FormatDuration(world_->Now() - Beginning());
    return options_.interrupted != nullptr && *options_.interrupted ? "interrupted at " + at
                                                                    : "ended at " + at + ", as asked for";
  }

  // Virtual time passes until `until`, or until the run is cut.
  void Run(Time until) {
    constexpr Duration kLookUp = 50ms;
    if (stop_) until = std::min(until, *stop_);
    while (world_->Now() < until && !Cut()) {
      world_->RunUntil(std::min(until, world_->Now() + kLookUp));
      if (options_.on_tick) options_.on_tick(Now());
    }
  }

  Tick Now() const {
    return {what_,
            step_number_,
            scenario_.steps.size(),
            world_->Now() - Beginning(),
            records_,
            [this] { return Connected(); }};
  }

  int Connected() const {
    int connected = 0;
    for (const sim::PodProcess* pod : world_->Pods()) {
      if (pod->envoy() != nullptr && pod->envoy()->ads_connected()) ++connected;
    }
    return connected;
  }

  bool AtRest() const {
    constexpr Duration kQuiet = 1s;
    return world_->Settled() && world_->Now() - world_->last_control_plane_event() >= kQuiet;
  }

  // As World::RunUntilSettled, which nobody could end or follow.
  bool Rest(Time deadline) {
    constexpr Duration kLookUp = 50ms;
    while (world_->Now() < deadline && !Cut()) {
      if (AtRest()) return true;
      Run(std::min(deadline, world_->Now() + kLookUp));
    }
    return AtRest();
  }

  void NoteUnrest(std::string what, std::vector<std::string>* notes) const {
    notes->push_back(std::move(what));
    for (std::string& reason : unrest_.Reasons()) notes->push_back("not at rest: " + std::move(reason));
  }

  absl::Status Do(const sim::Input& input) {
    if (const auto* traffic = input.As<sim::inputs::StartTraffic>(); traffic != nullptr) Account(*traffic);
    return world_->Do(input);
  }

  // Requests that no step of the scenario sends: those of the log that it goes on from, and of inputs word for word.
  // What became of them is the run's as well.
  void Account(const sim::inputs::StartTraffic& traffic) {
    if (scenario_.steps.empty() || accounts_.contains(traffic.id)) return;
    const std::string& flow = traffic.flow.empty() ? traffic.id : traffic.flow;
    if (of_log_.empty()) of_log_since_ = world_->Now();
    flow_of_log_[traffic.id] = flow;
    of_log_.try_emplace(flow, world_->kernel().names(), addresses_, flow, true, world_->Now());
  }
  // After all steps, none of which is judged by it. What is under way has not failed.
  void CloseTrafficOfLog() {
    if (of_log_.empty()) return;
    addresses_.Learn();
    StepResult out;
    out.name = kTrafficOfLog;
    out.start = of_log_since_;
    out.end = world_->Now();
    out.convergence.connected = -1;
    for (auto& [flow, account] : of_log_) out.traffic.push_back(account.Finish(world_->Now(), 0));
    result_.steps.push_back(std::move(out));
  }

  absl::Status Act(const Action& action) {
    Inputs inputs = MakeInputs(scenario_, action, nullptr);
    if (!inputs.ok()) return inputs.status();
    for (const sim::Input& input : *inputs) {
      if (absl::Status status = Do(input); !status.ok()) {
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: {}: {}", scenario_.file, action.line, Describe(action), Message(status)));
      }
    }
    return absl::OkStatus();
  }

  // What applications call, while traffic that they serve is under way.
  struct Calls {
    std::map<std::string, TrafficAccount, std::less<>> accounts;
    std::optional<Time> since;
    bool meanwhile = false;
  };

  // Starts traffic of a phase; the accounts fill as requests end, those of `calls`, too.
  // `seconds_since`: as TrafficAccount's.
  absl::StatusOr<std::vector<std::string>> StartTraffic(const std::vector<Traffic>& traffic, bool meanwhile,
                                                        std::optional<Time> seconds_since, Calls* calls) {
    std::vector<std::string> ids;
    if (!traffic.empty()) addresses_.Learn();
    calls->since = world_->Now();
    calls->meanwhile = meanwhile;
    for (const Traffic& t : traffic) {
      std::string id;
      do {
        id = fmt::format("{}#{}", t.flow, traffic_count_++);
      } while (flow_of_log_.contains(id));  // the log's would end, as another begins under its name
      ids.push_back(std::move(id));
      accounts_.emplace(ids.back(), TrafficAccount(world_->kernel().names(), addresses_, t.flow, meanwhile,
                                                   world_->Now(), seconds_since));
      if (absl::Status status = Do(MakeTraffic(*scenario_.FindFlow(t.flow), t, ids.back())); !status.ok())
        return status;
    }
    return ids;
  }
  void AwaitTraffic(const std::vector<std::string>& ids, Time deadline) {
    const auto done = [&] {
      return std::all_of(ids.begin(), ids.end(), [&](const std::string& id) { return world_->TrafficDone(id); });
    };
    while (!done() && world_->Now() < deadline && !Cut()) Pass(std::min(deadline, world_->Now() + 50ms));
  }
  // As long as sending takes, and then the patience with the last.
  Duration TrafficLimit(const Step& step) const {
    Duration longest{};
    for (const Traffic& t : step.then) longest = std::max(longest, SendingTime(*scenario_.FindFlow(t.flow), t));
    return longest + kDrainLimit;
  }
  void NoteEjected(const std::vector<Traffic>& traffic, StepResult* out) {
    for (const Traffic& t : traffic) {
      const FlowSpec& flow = *scenario_.FindFlow(t.flow);
      for (const sim::PodProcess* pod : world_->Pods(flow.from_cluster, flow.from_namespace, flow.from_app)) {
        if (pod->envoy() == nullptr) continue;
        for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
          if (!e.outlier_ejected) continue;
          StepResult::Ejected ejected{pod->name(), e.cluster, addresses_.Named(e.address)};
          if (std::find(out->ejected.begin(), out->ejected.end(), ejected) == out->ejected.end())
            out->ejected.push_back(std::move(ejected));
        }
      }
    }
  }
  void CloseAccounts(const std::vector<std::string>& ids, Calls* calls, StepResult* out) {
    for (const std::string& id : ids) {
      const auto account = accounts_.find(id);
      // When the run is cut, what is under way has not failed.
      const int64_t unanswered = Cut() ? 0 : world_->TrafficPending(id);
      out->traffic.push_back(account->second.Finish(world_->Now(), unanswered));
      accounts_.erase(account);
    }
    for (auto& [name, account] : calls->accounts) out->calls.push_back(account.Finish(world_->Now(), 0));
    *calls = {};
  }

  absl::Status StepByStep() {
    for (const Step& step : scenario_.steps) {
      if (Over()) break;
      ++step_number_;
      Say(step.name);
      if (absl::Status status = RunStep(step); !status.ok()) return status;
      if (!options_.on_step || Cut()) continue;
      if (absl::Status status = options_.on_step(*world_, step); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // `played`: how its steps ended. Nothing is judged by half of it.
  void EndThroughout(const Step& throughout, const std::vector<std::string>& ids, const absl::Status& played,
                     StepResult out) {
    addresses_.Learn();
    for (const std::string& id : ids) Do(sim::inputs::StopTraffic{id}).IgnoreError();
    AwaitTraffic(ids, world_->Now() + kDrainLimit);
    CloseAccounts(ids, &calls_throughout_, &out);
    NoteEjected(throughout.meanwhile, &out);
    out.end = world_->Now();
    if (Cut() || !played.ok()) {
      out.cut = Cut() ? CutText() : "ended at " + FormatDuration(world_->Now() - Beginning()) + ", by an error";
      out.not_judged = throughout.expectations.size();
    } else {
      for (const Expectation& e : throughout.expectations) out.expectations.push_back(Judge(e, out, *this));
    }
    result_.steps.push_back(std::move(out));
  }

  absl::Status RunStep(const Step& step) {
    std::optional<Time> late;  // when it was to begin
    if (step.at) {
      const auto earlier = began_.find(step.at_step);
      const Time wanted = (earlier == began_.end() ? origin_ : earlier->second) + *step.at;
      if (wanted < world_->Now()) late = wanted;
      Run(std::max(world_->Now(), wanted));
    }
    Run(world_->Now() + step.after);
    if (Cut()) return absl::OkStatus();  // it had not begun
    if (options_.until && options_.until->step == step.name && !stop_) stop_ = world_->Now() + options_.until->offset;
    StepResult out;
    out.name = step.name;
    out.start = world_->Now();
    if (result_.steps.empty()) out.notes = start_notes_;
    began_[step.name] = world_->Now();
    if (late) {
      out.notes.push_back(
          fmt::format("was to begin at {}, when the step before had not ended (`settle: 0s` there does "
                      "not wait)",
                      FormatDuration(*late - Beginning())));
    }

    const Time event = world_->Now() + (step.meanwhile.empty() ? Duration::zero() : kMeanwhileLeadIn);
    std::optional<Time> seconds_since;
    Watch watch{step, event, std::vector<std::optional<ExpectationResult>>(step.expectations.size())};
    for (const Expectation& e : step.expectations) {
      if (e.mode.empty()) continue;
      seconds_since = event;
      if (e.kind == "endpoints") watch_ = &watch;
    }
    const auto unwatch = absl::MakeCleanup([this] { watch_ = nullptr; });
    absl::StatusOr<std::vector<std::string>> meanwhile = StartTraffic(step.meanwhile, true, seconds_since, &calls_);
    if (!meanwhile.ok()) return meanwhile.status();
    if (!meanwhile->empty()) Pass(event);
    if (Cut()) return CutShort(step, *meanwhile, std::move(out));

    CloseConvergence("the next step began before the world was at rest");
    convergence_.Begin(world_->Now(), world_->inputs());
    for (const Action& action : step.actions) out.actions.push_back(Describe(action));
    if (step.repeat == 0) {
      for (const Action& action : step.actions) {
        if (absl::Status status = Act(action); !status.ok()) return status;
      }
    } else {
      for (int64_t i = 0; i < step.repeat; ++i) {
        if (i > 0) Pass(world_->Now() + step.every);
        if (Cut()) break;
        const auto turn = static_cast<size_t>(i) % step.actions.size();
        if (absl::Status status = Act(step.actions[turn]); !status.ok()) return status;
      }
    }
    const Duration bound = step.settle.value_or(scenario_.settle);
    if (!step.actions.empty() && bound > Duration::zero()) Settle(bound, &out);
    out.convergence = convergence_.End();
    out.convergence.connected = Connected();
    if (!meanwhile->empty()) {
      Pass(world_->Now() + step.linger);
      if (Cut()) return CutShort(step, *meanwhile, std::move(out));
      addresses_.Learn();  // what the wave brought
      for (const std::string& id : *meanwhile) Do(sim::inputs::StopTraffic{id}).IgnoreError();
      AwaitTraffic(*meanwhile, world_->Now() + kDrainLimit);
      CloseAccounts(*meanwhile, &calls_, &out);
      NoteEjected(step.meanwhile, &out);
    }

    absl::StatusOr<std::vector<std::string>> then = StartTraffic(step.then, false, seconds_since, &calls_);
    if (!then.ok()) return then.status();
    AwaitTraffic(*then, world_->Now() + TrafficLimit(step));
    if (Cut()) return CutShort(step, *then, std::move(out));
    CloseAccounts(*then, &calls_, &out);
    NoteEjected(step.then, &out);

    Look();
    out.end = world_->Now();
    out.nacks = nacks_.Since();
    out.watched = watched_;
    if (invariants_ != nullptr) {
      for (const sim::Violation& v : invariants_->violations()) {
        if (v.at <= out.end && (!v.until || *v.until >= out.start)) out.violations.push_back(v);
      }
    }
    for (size_t i = 0; i < step.expectations.size(); ++i) {
      const std::optional<ExpectationResult>& seen = watch.verdicts[i];
      out.expectations.push_back(seen ? *seen : Judge(step.expectations[i], out, *this));
      if (!step.expectations[i].symptom) continue;
      out.expectations.back().symptom = true;
      out.expectations.back().text = "symptom: " + out.expectations.back().text;
    }
    JudgeNacks(step.expectations, step.line, &out);
    result_.steps.push_back(std::move(out));
    if (!step.actions.empty() && bound == Duration::zero()) converging_ = result_.steps.size() - 1;
    return absl::OkStatus();
  }

  // What a step that does not wait (`settle: 0s`) came to, as far as it came before the next one, or before the run's
  // end. `early`: what to note if the world was not at rest by then.
  void CloseConvergence(std::string_view early) {
    if (!converging_) return;
    StepResult& step = result_.steps[*converging_];
    converging_.reset();
    step.convergence = convergence_.End();
    step.convergence.connected = Connected();
    if (!world_->Settled()) step.notes.emplace_back(early);
  }

  // What Envoys refused, if the step does not expect it.
  static void JudgeNacks(const std::vector<Expectation>& expected, int line, StepResult* out) {
    std::optional<ExpectationResult> unexpected = UnexpectedNacks(expected, *out);
    if (!unexpected) return;
    unexpected->line = line;
    out->expectations.push_back(*std::move(unexpected));
  }

  // What is known of a step in whose middle the run ends. Nothing is judged by half of it.
  absl::Status CutShort(const Step& step, const std::vector<std::string>& traffic, StepResult out) {
    CloseAccounts(traffic, &calls_, &out);
    out.end = world_->Now();
    out.cut = CutText();
    out.not_judged = step.expectations.size();
    out.nacks = nacks_.Since();
    JudgeNacks(step.expectations, step.line, &out);
    result_.steps.push_back(std::move(out));
    return absl::OkStatus();
  }

  // What the endpoints that a step expects always or eventually have been so far: "always" is true until it was not
  // once, "eventually" is not until it was.
  struct Watch {
    const Step& step;
    Time event;
    std::vector<std::optional<ExpectationResult>> verdicts;
  };
  static constexpr Duration kLook = 10ms;  // so often; endpoints do not come and go in less

  void Look() {
    if (watch_ == nullptr) return;
    const Duration since = world_->Now() - watch_->event;
    for (size_t i = 0; i < watch_->verdicts.size(); ++i) {
      const Expectation& e = watch_->step.expectations[i];
      if (e.mode.empty() || e.kind != "endpoints") continue;
      std::optional<ExpectationResult>& verdict = watch_->verdicts[i];
      if (e.mode == "always") {
        if (verdict && !verdict->held) continue;
        verdict = Judge(e, {}, *this);
        if (!verdict->held)
          verdict->explanation = fmt::format("after {}: {}", FormatDuration(since), verdict->explanation);
      } else if (!verdict || !verdict->held) {
        if (since < Duration::zero() || (since > e.within && verdict)) continue;
        verdict = Judge(e, {}, *this);
        verdict->explanation += fmt::format("; {} after {}", verdict->held ? "held" : "not", FormatDuration(since));
      }
    }
  }

  // Goes on until `until`, looking at what a step watches.
  void Pass(Time until) {
    while (watch_ != nullptr && until - world_->Now() > kLook && !Cut()) {
      Run(world_->Now() + kLook);
      Look();
    }
    Run(until);
    Look();
  }

  // Until the world is at rest, and until what must be true eventually is or its time is over.
  void Settle(Duration limit, StepResult* out) {
    const Time deadline = world_->Now() + limit;
    const std::string late = "had not settled after " + FormatDuration(limit);
    if (watch_ == nullptr) {
      if (!Rest(deadline) && !Cut()) NoteUnrest(late, &out->notes);
    } else {
      Look();
      while (world_->Now() < deadline && !Cut() && !AtRest()) Pass(world_->Now() + kLook);
      if (world_->Now() >= deadline && !Cut()) NoteUnrest(late, &out->notes);
      const auto waiting = [&] {
        for (size_t i = 0; i < watch_->verdicts.size(); ++i) {
          const Expectation& e = watch_->step.expectations[i];
          const auto& verdict = watch_->verdicts[i];
          if (e.mode == "eventually" && verdict && !verdict->held && world_->Now() - watch_->event < e.within)
            return true;
        }
        return false;
      };
      while (waiting() && !Cut()) Pass(world_->Now() + kLook);
    }
    for (const std::string& complaint : world_->Complaints()) out->notes.push_back(complaint);
  }

  const Scenario& scenario_;
  const RunOptions& options_;
  std::unique_ptr<sim::World> world_;
  Subscriptions subscriptions_;
  std::unique_ptr<sim::InvariantWatch> invariants_;
  std::vector<std::string> watched_;
  std::unique_ptr<replay::Recorder> recorder_;
  ConvergenceTracker convergence_;
  std::optional<size_t> converging_;  // the step, as result_ has it, whose convergence is not closed yet
  Unrest unrest_;
  NackTally nacks_;
  AddressNames addresses_;
  std::optional<Time> stop_;  // where RunOptions::until is, once that is known
  bool up_ = false;
  std::string what_;
  size_t step_number_ = 0;
  Watch* watch_ = nullptr;
  std::map<std::string, TrafficAccount, std::less<>> accounts_;
  std::map<std::string, std::string, std::less<>> flow_of_log_;  // by id: of traffic that no step sends
  std::map<std::string, TrafficAccount, std::less<>> of_log_;    // by flow
  Time of_log_since_{};
  Calls calls_;                        // of the step
  Calls calls_throughout_;             // of Scenario::throughout
  std::map<std::string, Time> began_;  // steps, by name
  RunResult result_;
  std::vector<std::string> start_notes_;
  bool unready_at_start_ = false;
  Time origin_{};
  int64_t traffic_count_ = 0, records_ = 0;
};

// The command that does the run again: what an invariant that does not hold tells.
std::string CommandOf(const Scenario& scenario, const RunOptions& options, uint64_t seed) {
  std::string out = "wavetank run";
  if (scenario.file != options.from) out += " " + ShellWord(scenario.file);
  if (!options.from.empty()) out += " --from " + ShellWord(options.from);
  out += fmt::format(" --seed {}", seed);
  if (!options.profile.empty()) out += " --profile " + ShellWord(options.profile);
  for (const std::string& setting : scenario.settings) out += " --set " + ShellWord(setting);
  return out;
}

// What `play` does in `world`, watched and recorded as `options` say.
absl::StatusOr<RunResult> RunIn(std::unique_ptr<sim::World> world, const Scenario& scenario, const RunOptions& options,
                                std::vector<std::string> notes, absl::FunctionRef<absl::Status(ScenarioRun&)> play) {
  sim::World& there = *world;
  there.kernel().run().set_reproduce(CommandOf(scenario, options, there.kernel().seed()));
  if (options.on_world) options.on_world(there);
  auto whole = std::make_unique<ScenarioRun>(scenario, options, std::move(world));
  ScenarioRun& run = *whole;
  const auto end = absl::MakeCleanup([&] {
    if (options.on_gone) options.on_gone();
  });
  std::unique_ptr<AccessLogFile> lines;
  if (!options.access_log.empty()) {
    absl::StatusOr<std::unique_ptr<AccessLogFile>> file = AccessLogFile::Create(options.access_log, there);
    if (!file.ok()) return file.status();
    lines = *std::move(file);
  }
  if (absl::Status status = run.WatchInvariants(); !status.ok()) return status;
  if (!options.log.empty()) {
    if (absl::Status status = run.Record(options.log); !status.ok()) return status;
  }
  run.Note(std::move(notes));
  const absl::Status played = play(run);
  if (!played.ok() && !(options.partial && run.up())) return played;
  if (absl::Status status = run.FinishRecording(); !status.ok()) return status;
  if (lines != nullptr) {
    if (absl::Status status = lines->Finish(); !status.ok()) return status;
  }
  if (options.on_end) options.on_end(there);
  RunResult result = run.Finish();
  result.error = Message(played);
  for (const std::string& setting : scenario.settings) {
    result.notes.insert(result.notes.begin(), fmt::format("set: {}, in place of what the scenario says", setting));
  }
  if (lines != nullptr && lines->lines() == 0) {
    result.notes.push_back(
        "no proxy wrote an access log: the mesh's configuration names no accessLogFile, and no Telemetry asks for one "
        "(docs/access-logs.md)");
  }
  if (options.last) {
    // Reachable, so that no leak is reported.
    [[maybe_unused]] static ScenarioRun* left = nullptr;
    left = whole.release();
  }
  return result;
}

absl::StatusOr<RunResult> RunFrom(const Scenario& scenario, const RunOptions& options, bool alone) {
  if (!options.log.empty()) {
    if (absl::Status status = replay::CheckWritable(options.log, options.from); !status.ok()) return status;
  }
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(options.from);
  if (!log.ok()) return log.status();
  if (const auto usable = replay::VerifyUsable(**log); !usable.ok()) return usable.status();
  absl::StatusOr<sim::WorldOptions> world_options = sim::WorldOptions::FromJson((*log)->header().world);
  if (!world_options.ok()) return world_options.status();
  if (options.seed) world_options->seed = *options.seed;
  if (!options.profile.empty()) world_options->profile = options.profile;
  if (!alone) {
    for (const auto& [name, value] : scenario.timing) world_options->timing[name] = value;
    for (const ClusterSpec& cluster : scenario.clusters) {
      const auto& there = world_options->clusters;
      if (std::any_of(there.begin(), there.end(), [&](const auto& c) { return c.name == cluster.name; })) continue;
      return absl::InvalidArgumentError(
          fmt::format("{}: names a cluster '{}', which {} does not hold", scenario.file, cluster.name, options.from));
    }
  }
  std::vector<std::string> notes;
  std::vector<std::string> unheeded = scenario.left_to_log;
  std::erase_if(unheeded, [&](const std::string& key) {
    return (key == "seed" && scenario.seed == world_options->seed) ||
           (key == "profile" && scenario.profile == world_options->profile);
  });
  if (!unheeded.empty())
    notes.push_back(fmt::format("{}: beside {}, which brings its own mesh, what it says of {} has no effect here",
                                scenario.file, options.from, fmt::join(unheeded, ", ")));
  if (absl::Status status = CheckSteps(scenario, &notes); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(*world_options);
  if (!world.ok()) return world.status();
  absl::StatusOr<RunResult> result =
      RunIn(*std::move(world), scenario, options, std::move(notes), [&](ScenarioRun& run) -> absl::Status {
        if (absl::Status status = run.Follow(**log, alone); !status.ok() || alone) return status;
        if (absl::Status status = run.GoLive(); !status.ok()) return status;
        return run.Steps();
      });
  if (!result.ok()) return result.status();
  return SinceBeginning(*std::move(result), world_options->start - Time{});
}

}  // namespace

absl::StatusOr<std::vector<ClusterSpec>> ClustersOfLog(const std::string& log) {
  absl::StatusOr<std::unique_ptr<replay::LogReader>> reader = replay::LogReader::Open(log);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<sim::WorldOptions> options = sim::WorldOptions::FromJson((*reader)->header().world);
  if (!options.ok()) return options.status();
  return ClustersOfWorld(*options);
}

absl::StatusOr<RunResult> RunLog(const RunOptions& options) {
  Scenario scenario;
  scenario.name = "log";
  scenario.file = options.from;
  return RunFrom(scenario, options, true);
}

absl::StatusOr<RunResult> Run(const Scenario& given, const RunOptions& options) {
  if (!options.from.empty()) return RunFrom(given, options, false);
  Scenario scenario = given;
  if (options.mending.chosen()) scenario.mending = options.mending;
  if (options.date) scenario.date = options.date;
  absl::StatusOr<StartPhases> start = MakeStart(scenario);
  if (!start.ok()) return start.status();
  if (options.strict) {
    if (absl::Status status = Strictly(*start); !status.ok()) return status;
  }
  DateByCertificates(*start, &scenario, &start->notes);
  sim::WorldOptions world_options = MakeWorldOptions(scenario);
  if (options.seed) world_options.seed = *options.seed;
  if (!options.profile.empty()) world_options.profile = options.profile;
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(world_options);
  if (!world.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", scenario.file, Message(world.status())));
  }
  absl::StatusOr<RunResult> result =
      RunIn(*std::move(world), scenario, options, std::move(start->notes), [&](ScenarioRun& run) -> absl::Status {
        if (absl::Status status = run.Start(*start); !status.ok()) return status;
        return run.Steps();
      });
  if (!result.ok()) return result.status();
  return SinceBeginning(*std::move(result), world_options.start - Time{});
}

}  // namespace wavetank::scenario
