// What the control plane may ask of the world around it. In the simulator the kernel answers in virtual time, in
// `serve` a real-time loop does; nothing in core/ can tell which.
//
// Thread rule: every call into core/, and every callback out of a Host, happens on one logical thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "core/base/cost.h"
#include "core/base/time.h"
#include "core/base/trace.h"

namespace wavetank {

using Callback = absl::AnyInvocable<void()>;

// Names a pending timer; 0 is no timer.
enum class TimerId : uint64_t {};
inline constexpr TimerId kNoTimer{0};

class Host {
 public:
  virtual ~Host() = default;

  virtual Time Now() const = 0;

  // What this machine's clock shows, which may be wrong: the dates of certificates and tokens are held against it, and
  // what is signed here is dated by it. Never used for how long a thing takes.
  virtual Time WallClock() const { return Now(); }

  // Runs `fn` once, `delay` from now (delay >= 0), after everything already due at that instant. The cause in force
  // now is in force again while fn runs.
  virtual TimerId RunAfter(Duration delay, Callback fn) = 0;

  // True if the timer was pending; its callback will then never run. Cancelling kNoTimer or a fired timer is allowed.
  virtual bool Cancel(TimerId timer) = 0;

  // Runs `fn` at the present instant, after what is already due.
  void Post(Callback fn) { RunAfter(Duration::zero(), std::move(fn)); }

  // Occupies one of this host's processors for as long as `work` would have taken the real program (the cost model of
  // the host decides), then runs `done`. Waits for a free processor first. A host without a cost model posts.
  virtual void Spend(const Work& work, Callback done) = 0;

  // The inputs of the event log that led to what runs now; carried over timers and messages by the host.
  virtual CauseId cause() const = 0;
  virtual void set_cause(CauseId cause) = 0;
  // The union of two causes. Commutative, idempotent; kNoCause is its neutral element.
  virtual CauseId MergeCauses(CauseId a, CauseId b) = 0;

  // Appends a derived event to the trace, stamped with Now() and cause().
  virtual void Emit(const TraceRecord& record) = 0;

  // The id under which `name` appears in trace records; ids count up from 1 in order of first use.
  virtual NameId Intern(std::string_view name) = 0;
};

// Restores the cause in force at its construction.
class ScopedCause {
 public:
  ScopedCause(Host& host, CauseId cause) : host_(host), saved_(host.cause()) { host.set_cause(cause); }
  ~ScopedCause() { host_.set_cause(saved_); }
  ScopedCause(const ScopedCause&) = delete;
  ScopedCause& operator=(const ScopedCause&) = delete;

 private:
  Host& host_;
  CauseId saved_;
};

}  // namespace wavetank
