#include "replay/recorder.h"

#include <utility>

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
      self_(std::make_shared<Recorder*>(this)) {
  if (what == What::kInputs) return;
  kernel.AddObserver([self = self_](const sim::TraceEvent& event) {
    if (*self != nullptr) (*self)->Observe(event);
  });
}

Recorder::~Recorder() { *self_ = nullptr; }

void Recorder::Observe(const sim::TraceEvent& event) {
  if (!writer_->status().ok()) return;
  // The writer keeps its first error, and Finish() returns it.
  (void)writer_->Add(event.time, event.record, event.cause, kernel_.names(), kernel_.causes(), event.hash());
  if (writer_->CheckpointDue()) {
    (void)writer_->AddCheckpoint(kernel_.digest().Hex(), state_digest_ ? state_digest_() : "");
  }
}

absl::Status Recorder::Input(uint64_t seq, std::string kind, nlohmann::json body) {
  const Time now = kernel_.Now();
  absl::Status status = writer_->Add({.at = now, .seq = seq, .kind = std::move(kind), .body = std::move(body)});
  // Beside a trace they are committed with it. Alone they are few, and a killed run should have lost none.
  if (!status.ok() || what_ != What::kInputs || now == committed_) return status;
  committed_ = now;
  return writer_->Commit();
}

absl::Status Recorder::Finish() {
  *self_ = nullptr;
  if (what_ == What::kInputs) return writer_->Finish(kernel_.Now(), "");
  return writer_->Finish(kernel_.Now(), kernel_.digest().Hex(), state_digest_ ? state_digest_() : "");
}

}  // namespace wavetank::replay
