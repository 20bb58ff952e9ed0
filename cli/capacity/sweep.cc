#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "capacity/page/sweep_page.h"
#include "capacity/sweep/executor.h"
#include "cli/capacity/parameters_file.h"
#include "cli/verb.h"
#include "core/base/text/shell_word.h"
#include "fmt/format.h"
#include "reports/page.h"

namespace wavetank::cli {
namespace {

struct SweepArguments {
  std::string sweep, out, share, memory, parameters, slurm, report;
  int jobs = 0;
};

// A job array whose jobs share the tasks, and one that depends on it and writes the table.
std::string SlurmScript(const SweepArguments& a, size_t tasks, int jobs) {
  const std::string call = fmt::format("wavetank sweep {} -o {}{}", ShellWord(a.sweep), ShellWord(a.out),
                                       a.parameters.empty() ? "" : " --parameters " + ShellWord(a.parameters));
  const std::string report = a.report.empty() ? "" : " --report " + ShellWord(a.report);
  return fmt::format(
      "#!/bin/bash\n# {} tasks in {} jobs. Submit with: bash {}\n# A job that is killed leaves what it has done; "
      "submit "
      "again, and only the rest runs.\nset -e\n"
      "array=$(sbatch --parsable --array=0-{} --ntasks=1 --wrap {})\n"
      "sbatch --dependency=afterany:$array --wrap {}\n",
      tasks, jobs, ShellWord(a.slurm), jobs - 1,
      // The job's own shell knows its number.
      ShellWord(fmt::format("{} --jobs 1 --share $SLURM_ARRAY_TASK_ID/{}", call, jobs)),
      ShellWord(fmt::format("{} --share 0/0{}", call, report)));
}

// "2/8": the third of eight shares; "0/0": the table alone. False: it is none.
bool ReadShare(const std::string& text, capacity::ExecutorOptions* options) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return false;
  char* end = nullptr;
  options->share = std::strtoll(text.c_str(), &end, 10);
  if (end != text.c_str() + slash) return false;
  options->shares = std::strtoll(text.c_str() + slash + 1, &end, 10);
  return *end == '\0' && slash + 1 < text.size() && options->share >= 0 &&
         (options->share < options->shares || (options->share == 0 && options->shares == 0));
}

// report.html of a table that is there.
int DrawTable(const std::string& table, const std::string& folder) {
  const absl::StatusOr<capacity::SweepTable> read = capacity::ReadTable(table);
  if (!read.ok()) return Complain(read.status());
  const absl::StatusOr<std::string> page = SweepPage(table, *read);
  if (!page.ok()) return Complain(page.status());
  const std::string path = folder + "/report.html";
  absl::Status status = report::MakeFolder(folder);
  if (status.ok()) status = report::WriteWhole(path, *page);
  if (!status.ok()) return Complain(status);
  std::cout << fmt::format("{}: {} rows\n", path, read->rows.size());
  return kOk;
}

int Run(const SweepArguments& a) {
  const std::string table = a.out + "/sweep.csv";
  if (a.sweep.empty()) {
    if (!a.report.empty()) return DrawTable(table, a.report);
    return Complain(
        absl::InvalidArgumentError("no sweep is named: its YAML, or --report DIR for a table that is there"));
  }
  const absl::StatusOr<capacity::Parameters> parameters = ReadParameters(a.parameters);
  if (!parameters.ok()) return Complain(parameters.status());
  const absl::StatusOr<capacity::Sweep> sweep = capacity::LoadSweep(a.sweep);
  if (!sweep.ok()) return Complain(sweep.status());
  const absl::StatusOr<std::vector<capacity::SweepTask>> tasks = TasksOf(*sweep, *parameters, VersionText());
  if (!tasks.ok()) return Complain(tasks.status());
  const int jobs = a.jobs > 0 ? a.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (!a.slurm.empty()) {
    if (absl::Status status = report::WriteWhole(a.slurm, SlurmScript(a, tasks->size(), jobs)); !status.ok())
      return Complain(status);
    std::cout << fmt::format("{}: {} tasks in an array of {} jobs; submit with: bash {}\n", a.slurm, tasks->size(),
                             jobs, a.slurm);
    return kOk;
  }
  capacity::ExecutorOptions options;
  options.folder = a.out + "/rows";
  options.at_a_time = jobs;
  if (!a.share.empty() && !ReadShare(a.share, &options)) {
    return Complain(
        absl::InvalidArgumentError(fmt::format("--share '{}': write 2/8 for the third of eight shares", a.share)));
  }
  if (!a.memory.empty()) {
    char* end = nullptr;
    options.memory_mb = std::strtoll(a.memory.c_str(), &end, 10);
    if (options.memory_mb < 16 || std::string_view(end) != "Mi") {
      return Complain(absl::InvalidArgumentError(fmt::format("--memory '{}': write 16Mi or more, as 512Mi", a.memory)));
    }
  }
  // A page that cannot be written is better known before the tasks have run.
  if (!a.report.empty()) {
    if (options.shares > 1) {
      return Complain(absl::InvalidArgumentError(
          "--report: a share of the tasks has no table; draw it when all are done, with --share 0/0"));
    }
    if (absl::Status status = report::MakeFolder(a.report); !status.ok()) return Complain(status);
  }
  capacity::ExecutorResult result;
  if (options.shares > 0) {
    Progress progress;
    const int64_t start = RealMillis();
    options.progress = [&](size_t done, size_t all) {
      const double seconds = static_cast<double>(std::max<int64_t>(1, RealMillis() - start)) / 1000;
      const double rate = static_cast<double>(done) / seconds;
      progress.Say(
          fmt::format("{} of {}, {:.1f}/s, {:.0f} s left", done, all, rate, static_cast<double>(all - done) / rate));
    };
    const capacity::CostModel model(*parameters);
    const absl::StatusOr<capacity::ExecutorResult> ran = RunTasks(*sweep, *tasks, model, options);
    if (!ran.ok()) return Complain(ran.status());
    result = *ran;
  }
  if (options.shares <= 1) {
    const std::vector<capacity::SweepRow> rows = ReadResults(*sweep, options.folder, *tasks);
    absl::Status status = report::WriteWhole(table, Csv(*sweep, *tasks, rows));
    if (status.ok()) status = report::WriteWhole(a.out + "/sweep.json", TableNotes(*sweep));
    if (!status.ok()) return Complain(status);
    for (const std::string& column : EmptyColumns(*sweep, rows)) {
      std::cout << fmt::format("note: column '{}' found nothing in any row: is its path or its series called so?\n",
                               column);
    }
  }
  std::cout << fmt::format("{}: {} rows; {} run now, {} were there, {} failed{}\n",
                           options.shares <= 1 ? table : options.folder, tasks->size(), result.ran, result.kept,
                           result.failed,
                           result.twice > 0 ? fmt::format(", {} the same as another", result.twice) : "");
  if (!a.report.empty()) {
    if (const int code = DrawTable(table, a.report); code != kOk) return code;
  }
  return result.failed == 0 ? kOk : kNo;
}

}  // namespace

void AddSweep(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("sweep", "Fleets, or runs of a scenario, that differ in some settings, as a table");
  auto a = std::make_shared<SweepArguments>();
  verb->add_option("sweep", a->sweep,
                   "A sweep's YAML (docs/capacity.md); with --report alone, the table of -o is taken as it is");
  verb->add_option("-o,--out", a->out, "Folder for sweep.csv and the results of tasks, which are kept and used again")
      ->required();
  verb->add_option("-j,--jobs", a->jobs, "Processes at a time, or jobs of an array; as many as there are processors")
      ->check(CLI::Range(1, 100'000));
  verb->add_option("--memory", a->memory,
                   "Limit of each process, as 512Mi; a task that needs more is a row that says so");
  verb->add_option("--share", a->share, "Of the tasks, as 2/8: a job of an array; 0/0: only the table");
  verb->add_option("--slurm", a->slurm, "Script to write instead, which submits a job array to Slurm");
  verb->add_option("--report", a->report,
                   "Folder for report.html: Pareto fronts, what each setting does, the best rows");
  verb->add_option("--parameters", a->parameters, "Table of the cost model's parameters (of `wavetank calibrate`)");
  OnlyWith(verb, {"--jobs", "--memory", "--share", "--slurm", "--parameters"}, "sweep");
  NotWith(verb, {"--share", "--memory"}, "--slurm");
  verb->footer("Exit code 0: every task has a result; 1: some failed (their rows say why); 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
