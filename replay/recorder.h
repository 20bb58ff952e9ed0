// Ties a kernel to an event log: every trace record is appended as it is emitted, checkpoints fall due by themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/base/observers.h"
#include "core/base/run_context.h"
#include "replay/event_log.h"
#include "sim/kernel/kernel.h"

namespace wavetank::replay {

// The event with names and causes as text, as a log gives it back.
LoggedEvent Logged(const sim::Kernel& kernel, const sim::TraceEvent& event);

class Recorder {
 public:
  // What of a run: a run that is no function of its inputs leaves a trace that no replay could be held against.
  enum class What { kInputsAndTrace, kInputs };

  // `kernel` must outlive the recorder's use; it keeps an observer that does nothing once the recorder is gone.
  // `state_digest`, if given, is asked at each checkpoint; it must not emit.
  Recorder(sim::Kernel& kernel, std::unique_ptr<LogWriter> writer, std::function<std::string()> state_digest = nullptr,
           What what = What::kInputsAndTrace);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // To be called before the input has any effect. Fills in the time. Errors are the writer's.
  absl::Status Input(uint64_t seq, std::string kind, nlohmann::json body);
  // Everything so far is in the file, and stays there (LogWriterOptions::durable_commits). One sync for all of it.
  // Errors are the writer's.
  absl::Status Commit();
  // Whether there is anything that Commit() would bring there.
  bool uncommitted() const { return writer_->uncommitted(); }
  // The first error of anything that was appended; a run may look now and then, and Finish() tells it anyway.
  const absl::Status& status() const { return writer_->status(); }
  // The log gets its name; nothing is recorded afterwards. The first error of anything that was appended.
  absl::Status Finish();

  const LogWriter& writer() const { return *writer_; }
  // Whatever else it follows, as long as it lives.
  void Keep(Subscription subscription) { kept_.Add(std::move(subscription)); }

 private:
  void Observe(const sim::TraceEvent& event);
  // Before the process dies of an assertion: the log as far as it goes, and where it is.
  std::string LastWord();

  sim::Kernel& kernel_;
  const What what_;
  Time committed_{};  // of inputs alone
  std::unique_ptr<LogWriter> writer_;
  std::function<std::string()> state_digest_;
  uint64_t observed_;  // records of the kernel's trace
  bool writing_ = false;
  std::shared_ptr<Recorder*> self_;  // what the kernel's observer holds
  assertion::RunContext::Registration last_word_;
  Subscriptions kept_;
};

}  // namespace wavetank::replay
