#include "replay/recorder.h"

#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::replay {

LoggedEvent Logged(const sim::Kernel& kernel, const sim::TraceEvent& event) {
  return {.index = event.index,
          .time = event.time,
          .kind = event.record.kind,
          .subject = kernel.names().Text(event.record.subject),
          .object = kernel.names().Text(event.record.object),
          .detail = std::string(event.record.detail),
          .a = event.record.a,
          .b = event.record.b,
          .inputs = kernel.causes().Inputs(event.cause)};
}

Recorder::Recorder(sim::Kernel& kernel, std::unique_ptr<LogWriter> writer, std::function<std::string()> state_digest,
                   What what)
    : kernel_(kernel),
      what_(what),
      writer_(std::move(writer)),
      state_digest_(std::move(state_digest)),
      observed_(kernel.digest().records()),
      self_(std::make_shared<Recorder*>(this)),
      last_word_(kernel.run(), [this] { return LastWord(); }) {
  WAVETANK_ASSERT(writer_ != nullptr);
  if (what == What::kInputs) return;
  kernel.AddObserver([self = self_](const sim::TraceEvent& event) {
    if (*self != nullptr) (*self)->Observe(event);
  });
}

Recorder::~Recorder() { *self_ = nullptr; }

void Recorder::Observe(const sim::TraceEvent& event) {
  // Every record, in order: a replay is held against all of them.
  WAVETANK_ASSERT(event.index == observed_, event.index, observed_);
  ++observed_;
  if (!writer_->status().ok()) return;
  writing_ = true;
  // The writer keeps its first error, and Finish() returns it.
  (void)writer_->Add(event.time, event.record, event.cause, kernel_.names(), kernel_.causes(), event.hash());
  if (writer_->CheckpointDue()) {
    (void)writer_->AddCheckpoint(kernel_.digest().Hex(), state_digest_ ? state_digest_() : "");
  }
  writing_ = false;
}

std::string Recorder::LastWord() {
  const std::string path = writer_->partial_path();
  if (writing_) return fmt::format("the event log {} was being written and lacks its end", path);
  // Where the trace has gone on without the log, its digest says nothing about what the log holds.
  const bool level = what_ == What::kInputsAndTrace && kernel_.digest().records() == observed_;
  if (const absl::Status status = writer_->Rescue(kernel_.Now(), level ? kernel_.digest().Hex() : ""); !status.ok()) {
    return fmt::format("the event log could not be written: {}", Message(status));
  }
  return fmt::format("the event log as far as here: {0}; it leads here again: wavetank replay {0}", path);
}

absl::Status Recorder::Input(uint64_t seq, std::string kind, nlohmann::json body) {
  const Time now = kernel_.Now();
  WAVETANK_ASSERT(!writing_, seq, kind);  // no input comes of the log's own writing
  writing_ = true;
  absl::Status status = writer_->Add({.at = now, .seq = seq, .kind = std::move(kind), .body = std::move(body)});
  writing_ = false;
  // Beside a trace they are committed with it. Alone they are few, and a killed run should have lost none.
  if (!status.ok() || what_ != What::kInputs || now == committed_) return status;
  committed_ = now;
  return writer_->Commit();
}

absl::Status Recorder::Commit() {
  WAVETANK_ASSERT(!writing_);
  writing_ = true;
  absl::Status status = writer_->Commit();
  writing_ = false;
  return status;
}

absl::Status Recorder::Finish() {
  *self_ = nullptr;
  kept_.Clear();
  last_word_.Drop();
  if (what_ == What::kInputs) return writer_->Finish(kernel_.Now(), "");
  return writer_->Finish(kernel_.Now(), kernel_.digest().Hex(), state_digest_ ? state_digest_() : "");
}

}  // namespace wavetank::replay
