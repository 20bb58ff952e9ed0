#include "capacity/sweep/executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/assert.h"
#include "core/base/json_text.h"
#include "nlohmann/json.hpp"

namespace wavetank::capacity {
namespace {

namespace fs = std::filesystem;

// The exit code of a process that could not write its result.
constexpr int kNotWritten = 3, kNoMemory = 4;

fs::path PathOf(const std::string& folder, const SweepTask& task) { return fs::path(folder) / (task.key + ".json"); }
fs::path FailurePath(const std::string& folder, const SweepTask& task) {
  return fs::path(folder) / (task.key + ".failed");
}

bool WriteWhole(const fs::path& path, const std::string& text) {
  const fs::path part = path.string() + fmt::format(".{}", getpid());
  {
    std::ofstream out(part, std::ios::binary);
    out << text;
    out.flush();
    if (!out) {
      std::error_code error;
      fs::remove(part, error);
      return false;
    }
  }
  return rename(part.c_str(), path.c_str()) == 0;
}

// In the child; does not return.
// What is thrown ends the task's process, which says so; unwound into the parent's program it would go on twice.
[[noreturn]] void Work(const Sweep& sweep, const SweepTask& task, const CostModel& model,
                       const ExecutorOptions& options) noexcept {
  if (options.memory_mb > 0) {
    const auto bytes = static_cast<rlim_t>(options.memory_mb) << 20;
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  // The allocator's own answer to a lack of memory.
  std::set_new_handler([] { _exit(kNoMemory); });
  const nlohmann::json row = RunTask(sweep, task, model);
  _exit(WriteWhole(PathOf(options.folder, task), JsonText(row)) ? 0 : kNotWritten);
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return fmt::format("its process was killed by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == kNoMemory) return "it needs more memory than --memory lets it have";
  if (WEXITSTATUS(status) == kNotWritten) return "its result could not be written; is the disk full?";
  return fmt::format("its process ended with code {}", WEXITSTATUS(status));
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

}  // namespace

absl::StatusOr<ExecutorResult> RunTasks(const Sweep& sweep, const std::vector<SweepTask>& tasks, const CostModel& model,
                                        const ExecutorOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) return absl::UnavailableError(fmt::format("{}: cannot be made: {}", options.folder, error.message()));
  ExecutorResult result;
  std::vector<const SweepTask*> open;
  std::set<std::string> seen;  // two rows of a sample may be the same task
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (static_cast<int64_t>(i) % options.shares != options.share) continue;
    if (!seen.insert(tasks[i].key).second) {
      ++result.twice;
      continue;
    }
    if (fs::exists(PathOf(options.folder, tasks[i]), error)) {
      ++result.kept;
    } else {
      open.push_back(&tasks[i]);
    }
  }
  std::map<pid_t, const SweepTask*> running;
  size_t next = 0, done = 0;
  while (next < open.size() || !running.empty()) {
    while (next < open.size() && static_cast<int>(running.size()) < options.at_a_time) {
      const pid_t pid = fork();
      if (pid < 0 && running.empty()) {
        return absl::UnavailableError(fmt::format("no process can be started: {}", std::strerror(errno)));
      }
      if (pid < 0) break;  // when another has ended there will be room
      if (pid == 0) Work(sweep, *open[next], model, options);
      running[pid] = open[next++];
    }
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    const auto it = running.find(pid);
    if (it == running.end()) continue;
    const SweepTask& task = *it->second;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      ++result.ran;
      fs::remove(FailurePath(options.folder, task), error);
    } else {
      ++result.failed;
      WriteWhole(FailurePath(options.folder, task), HowItEnded(status));
    }
    running.erase(it);
    if (options.progress) options.progress(++done, open.size());
  }
  return result;
}

std::vector<SweepRow> ReadResults(const Sweep& sweep, const std::string& folder, const std::vector<SweepTask>& tasks) {
  const auto text = [](const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  };
  const size_t cells = ResultColumns(sweep).size();
  std::vector<SweepRow> out;
  for (const SweepTask& task : tasks) {
    const nlohmann::json row = ParseJson(text(PathOf(folder, task)));
    SweepRow& read = out.emplace_back();
    for (size_t i = 0; row.is_array() && i < row.size(); ++i) {
      if (row[i].is_string()) read.push_back(row[i].get<std::string>());
    }
    if (read.size() == cells && row.size() == cells) continue;
    const std::string failure = text(FailurePath(folder, task));
    read = FailedRow(sweep, failure.empty() ? "was not run" : failure);
  }
  return out;
}

std::string Csv(const Sweep& sweep, const std::vector<SweepTask>& tasks, const std::vector<SweepRow>& rows) {
  WAVETANK_ASSERT(tasks.size() == rows.size(), tasks.size(), rows.size());
  std::string out;
  const auto line = [&out](const SweepRow& cells) {
    for (size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : ",") + Quoted(cells[i]);
    out += "\n";
  };
  const auto joined = [](SweepRow first, const std::string& seed, const SweepRow& results) {
    first.push_back(seed);
    first.insert(first.end(), results.begin(), results.end());
    return first;
  };
  SweepRow settings;
  for (const SweepSetting& setting : sweep.settings) {
    // The column `seed` tells the rows of one combination apart; readers find settings before it.
    settings.push_back(setting.path != "seed" ? setting.path : sweep.of_scenario() ? "scenario.seed" : "fleet.seed");
  }
  line(joined(settings, "seed", ResultColumns(sweep)));
  for (size_t i = 0; i < tasks.size(); ++i) line(joined(tasks[i].values, std::to_string(tasks[i].seed), rows[i]));
  return out;
}

std::vector<std::string> EmptyColumns(const Sweep& sweep, const std::vector<SweepRow>& rows) {
  const auto failed = [](const SweepRow& row) { return !row.back().empty(); };
  if (std::all_of(rows.begin(), rows.end(), failed)) return {};
  std::vector<std::string> out;
  const size_t own = ResultColumns(sweep).size() - sweep.columns.size() - 1;
  for (size_t i = 0; i < sweep.columns.size(); ++i) {
    const auto has_nothing = [&](const SweepRow& row) {
      return failed(row) || row[own + i] == sweep.columns[i].otherwise;
    };
    if (std::all_of(rows.begin(), rows.end(), has_nothing)) out.push_back(sweep.columns[i].name);
  }
  return out;
}

std::string TableNotes(const Sweep& sweep) { return JsonText(nlohmann::json{{"objectives", sweep.objectives}}) + "\n"; }

}  // namespace wavetank::capacity
