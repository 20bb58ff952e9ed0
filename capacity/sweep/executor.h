// Tasks in processes on this machine. A result is a file named by its task's key, written whole or not at all: so a
// sweep goes on where it was killed, runs nothing twice, and counts nothing twice.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/sweep/sweep.h"

namespace wavetank::capacity {

struct ExecutorOptions {
  std::string folder;  // of results; made
  int at_a_time = 1;
  int64_t memory_mb = 0;  // of each process; 0: no limit
  // Only tasks whose number leaves this remainder: a share of a job array.
  int64_t share = 0, shares = 1;
  std::function<void(size_t done, size_t all)> progress;
};

struct ExecutorResult {
  size_t ran = 0, kept = 0, failed = 0;  // kept: results that were there
  size_t twice = 0;                      // rows that are the task of another row, and have its result
};

// Runs what has no result yet. A process that dies leaves a result that says how, marked to be tried again.
// Unavailable: the folder cannot be written, or the system refuses processes.
absl::StatusOr<ExecutorResult> RunTasks(const Sweep& sweep, const std::vector<SweepTask>& tasks, const CostModel& model,
                                        const ExecutorOptions& options);

// The row of each task, in the tasks' order; FailedRow where there is none.
std::vector<SweepRow> ReadResults(const Sweep& sweep, const std::string& folder, const std::vector<SweepTask>& tasks);

// One line for each task, settings first, as RFC 4180 has it. `rows`: of ReadResults().
std::string Csv(const Sweep& sweep, const std::vector<SweepTask>& tasks, const std::vector<SweepRow>& rows);

// The sweep's own columns that no row with a result has anything in.
std::vector<std::string> EmptyColumns(const Sweep& sweep, const std::vector<SweepRow>& rows);

// What stands beside the table, for those who read it: {"objectives": [...]}.
std::string TableNotes(const Sweep& sweep);

}  // namespace wavetank::capacity
