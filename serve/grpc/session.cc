#include "serve/grpc/session.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"
#include "replay/world_recorder.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/mesh/world.h"
#include "sim/invariants/watch.h"

namespace wavetank::serve {
namespace {

// How long each phase of the start may take in virtual time, and how far before the present the world therefore begins:
// when it is at rest its clock must not be ahead of the calendar.
constexpr Duration kStartLimit = 5min;
constexpr Duration kHeadStart = 3 * kStartLimit;

}  // namespace

Session::Session(SessionOptions options) : options_(std::move(options)) {}

Session::~Session() { Finish().IgnoreError(); }

absl::StatusOr<std::unique_ptr<Session>> Session::Create(SessionOptions options) {
  std::unique_ptr<Session> session(new Session(std::move(options)));
  if (absl::Status status = session->Start(); !status.ok()) return status;
  return session;
}

absl::Status Session::Start() {
  sim::WorldOptions world_options = scenario::MakeWorldOptions(options_.scenario);
  world_options.write_elections = options_.write_elections;
  if (!options_.modelled_costs) world_options.timing.emplace("istiod.cpus", "0");
  for (const auto& [name, value] : options_.timing) world_options.timing[name] = value;
  if (options_.real_calendar) {
    world_options.start = CalendarTime() - kHeadStart;
    // Certificates of the manifests may be younger than the head start.
    const std::optional<Time> date = options_.start.certificates.DateBeside(world_options.start);
    if (date) world_options.start = std::clamp(*date, world_options.start, CalendarTime());
  }
  absl::StatusOr<std::unique_ptr<sim::World>> made = sim::World::Create(world_options);
  if (!made.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", options_.scenario.file, Message(made.status())));
  }
  loop_ = std::make_unique<Loop>(*std::move(made));
  sim::World& world = loop_->world();
  if (options_.on_world) options_.on_world(world);
  if (options_.keep_configuration) {
    held_.Watch(world);
    logs_.Watch(world);
  }

  if (!options_.log.empty()) {
    absl::StatusOr<std::unique_ptr<replay::Recorder>> recorder =
        replay::RecordWorld(world, {.log = options_.log,
                                    .program_version = WAVETANK_VERSION,
                                    .scenario_name = options_.scenario.name,
                                    .scenario_file = options_.scenario.file,
                                    .real_istiod = options_.real_istiod,
                                    .invariants = options_.invariants,
                                    .durable_commits = options_.durability != Durability::kSession,
                                    .keep_secrets = options_.keep_secrets});
    if (!recorder.ok()) return recorder.status();
    recorder_ = *std::move(recorder);
    if (options_.durability == Durability::kAcknowledged) {
      loop_->SetDurability({[this] { return recorder_->uncommitted(); }, [this] { return recorder_->Commit(); }});
    }
  }
  if (!options_.invariants.empty()) {
    auto watch = sim::InvariantWatch::Attach(world, options_.invariants, {.in_trace = !options_.real_istiod});
    if (!watch.ok()) return watch.status();
    invariants_ = *std::move(watch);
  }
  notes_ = options_.start.notes;
  if (options_.progress) options_.progress("installing the mesh");
  for (const std::vector<sim::Input>& phase : options_.start.phases) {
    for (const sim::Input& input : phase) {
      if (absl::Status status = world.Do(input); !status.ok())
        return scenario::AtItsPlace(options_.scenario, input, status);
    }
    if (!world.RunUntilSettled(world.Now() + kStartLimit)) notes_.emplace_back("the mesh has not settled");
  }
  for (const std::string& complaint : world.Complaints()) notes_.push_back(complaint);
  for (const auto& [what, cluster] : options_.start.mended) world.Mended(what, cluster);
  for (std::string& line : world.LeftOut()) notes_.push_back(std::move(line));
  for (const std::string& proxy : world.Unready()) notes_.push_back("not ready: " + proxy);
  for (std::string& deed : world.MendedLines()) notes_.push_back(std::move(deed));
  return absl::OkStatus();
}

// What no client waits for (a changed manifest, a scenario's step) is no later on disk than this.
void Session::CommitLater() {
  loop_->PostAfter(1s, [this](sim::World&) {
    recorder_->Commit().IgnoreError();  // the writer keeps its first error, and Finish() returns it
    CommitLater();
  });
}

void Session::GoLive() {
  if (recorder_ != nullptr && options_.durability != Durability::kSession) {
    recorder_->Commit().IgnoreError();
    CommitLater();
  }
  loop_->Start(options_.real_calendar ? std::optional<Time>(CalendarTime()) : std::nullopt);
}

const std::vector<sim::Violation>& Session::violations() const {
  static const auto* const none = new std::vector<sim::Violation>();
  return invariants_ == nullptr ? *none : invariants_->violations();
}

absl::Status Session::Finish() {
  if (finished_ || loop_ == nullptr) return absl::OkStatus();
  finished_ = true;
  loop_->Stop();
  return recorder_ == nullptr ? absl::OkStatus() : recorder_->Finish();
}

}  // namespace wavetank::serve
