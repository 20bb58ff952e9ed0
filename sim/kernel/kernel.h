// The deterministic kernel of a world: a virtual clock, a queue of events, virtual processors, and the trace.
//
// It is an object; two worlds live in one process without knowing of each other. Nothing in it reads a real clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cause_table.h"
#include "core/base/containers/name_table.h"
#include "core/base/digest.h"
#include "core/base/host.h"
#include "core/base/run_context.h"
#include "sim/kernel/event_queue.h"

namespace wavetank::sim {

// What a piece of work costs on one processor.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Duration Cost(const Work& work) const = 0;
};

// A trace record as observers see it.
struct TraceEvent {
  uint64_t index;  // from 0
  Time time;
  CauseId cause;
  const TraceRecord& record;
  const TraceDigest& digest;  // to which it was the last to be added

  uint64_t hash() const { return digest.LastHash(); }  // of the record alone; worked out when it is asked for
};

class Kernel {
 public:
  explicit Kernel(uint64_t seed);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

  uint64_t seed() const { return seed_; }
  Time Now() const { return now_; }

  // A host with processors of its own. cpus 0: work costs nothing. Lives as long as the kernel; `costs` must too.
  Host& NewHost(std::string name, int cpus, const CostModel* costs);
  // How far the clock of one of its hosts is ahead; behind, if negative.
  void SetClock(Host& host, Duration ahead);

  // Runs the earliest event; false if there is none.
  bool Step();
  // Runs everything due until `time`, included; the clock stands at `time` afterwards.
  void RunUntil(Time time);
  // Processor time that all hosts have spent on modelled work, or promised to.
  Duration spent() const { return spent_; }
  size_t pending() const { return queue_.size(); }
  // When the next event is due; nothing if none is.
  std::optional<Time> NextTime() { return queue_.empty() ? std::nullopt : std::optional<Time>(queue_.NextTime()); }
  uint64_t dispatched() const { return dispatched_; }

  CauseTable& causes() { return causes_; }
  const CauseTable& causes() const { return causes_; }
  NameTable& names() { return names_; }
  const NameTable& names() const { return names_; }
  CauseId cause() const { return cause_; }
  void set_cause(CauseId cause) { cause_ = cause; }

  const TraceDigest& digest() const { return digest_; }
  // Observers see every record, in order, before Emit returns; they must not emit.
  void AddObserver(std::function<void(const TraceEvent&)> observer);

  // What an assertion that fails within this kernel's events says of the run.
  assertion::RunContext& run() { return run_; }

 private:
  class KernelHost;

  void Emit(const TraceRecord& record);
  bool StepOnce();

  const uint64_t seed_;
  Time now_{};
  assertion::RunContext run_;
  CauseId cause_ = kNoCause;
  EventQueue queue_;
  uint64_t dispatched_ = 0;
  Duration spent_{};
  CauseTable causes_;
  NameTable names_;
  TraceDigest digest_;
  std::vector<std::function<void(const TraceEvent&)>> observers_;
  bool emitting_ = false;
  std::vector<std::unique_ptr<KernelHost>> hosts_;
};

}  // namespace wavetank::sim
