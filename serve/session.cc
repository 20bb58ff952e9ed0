#include "serve/session.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"
#include "replay/recorder.h"
#include "replay/secrets.h"
#include "replay/world_target.h"

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
  if (!options_.modelled_costs) world_options.timing.emplace("istiod.cpus", "0");
  for (const auto& [name, value] : options_.timing) world_options.timing[name] = value;
  if (options_.real_calendar) world_options.start = CalendarTime() - kHeadStart;
  absl::StatusOr<std::unique_ptr<sim::World>> made = sim::World::Create(world_options);
  if (!made.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", options_.scenario.file, Message(made.status())));
  }
  loop_ = std::make_unique<Loop>(*std::move(made));
  sim::World& world = loop_->world();

  if (!options_.log.empty()) {
    replay::LogHeader header;
    replay::DescribeWorld(world, &header);
    header.program_version = WAVETANK_VERSION;
    header.scenario_name = options_.scenario.name;
    std::ifstream file(options_.scenario.file);
    header.scenario_text.assign(std::istreambuf_iterator<char>(file), {});
    absl::StatusOr<std::unique_ptr<replay::LogWriter>> writer = replay::LogWriter::Create(options_.log, header);
    if (!writer.ok()) return writer.status();
    recorder_ = std::make_unique<replay::Recorder>(world.kernel(), *std::move(writer));
    world.on_input = [this](uint64_t number, Time, const sim::Input& input) {
      // What clients write must replay as far as it can; a token's text decides nothing.
      recorder_
          ->Input(number, input.kind,
                  input.kind == "kubeRequest" ? replay::RedactedWithin(input.body) : replay::Redacted(input.body))
          .IgnoreError();
    };
  }
  notes_ = options_.start.notes;
  if (options_.progress) options_.progress("installing the mesh");
  for (const std::vector<sim::Input>& phase : options_.start.phases) {
    for (const sim::Input& input : phase) {
      if (absl::Status status = world.Do(input); !status.ok()) {
        return absl::InvalidArgumentError(
            fmt::format("cluster {}: {}", input.body.value("cluster", "?"), Message(status)));
      }
    }
    if (!world.RunUntilSettled(world.Now() + kStartLimit)) notes_.emplace_back("the mesh has not settled");
  }
  for (const std::string& complaint : world.Complaints()) notes_.push_back(complaint);
  return absl::OkStatus();
}

void Session::GoLive() { loop_->Start(options_.real_calendar ? std::optional<Time>(CalendarTime()) : std::nullopt); }

absl::Status Session::Finish() {
  if (finished_ || loop_ == nullptr) return absl::OkStatus();
  finished_ = true;
  loop_->Stop();
  loop_->world().on_input = nullptr;
  return recorder_ == nullptr ? absl::OkStatus() : recorder_->Finish();
}

}  // namespace wavetank::serve
