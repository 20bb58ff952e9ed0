// The command line: one file per verb, each adding its subcommand to the program.
//
// Exit codes: 0 all well, 1 the answer is no (an expectation failed, digests differ), 2 the input or the call is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rows.h"

namespace CLI {
class App;
}

namespace wavetank::cli {

inline constexpr int kOk = 0, kNo = 1, kBadInput = 2;

// Each verb stores its exit code here when it has run.
struct Outcome {
  int code = kOk;
};

void AddRun(CLI::App& app, Outcome& outcome);
void AddRecord(CLI::App& app, Outcome& outcome);
void AddReplay(CLI::App& app, Outcome& outcome);
void AddApply(CLI::App& app, Outcome& outcome);
void AddServe(CLI::App& app, Outcome& outcome);
void AddXds(CLI::App& app, Outcome& outcome);
void AddWhy(CLI::App& app, Outcome& outcome);
void AddGolden(CLI::App& app, Outcome& outcome);
void AddTiming(CLI::App& app, Outcome& outcome);
void AddEnvoyDiff(CLI::App& app, Outcome& outcome);
void AddControlPlaneDiff(CLI::App& app, Outcome& outcome);
void AddCheck(CLI::App& app, Outcome& outcome);
void AddDiff(CLI::App& app, Outcome& outcome);
void AddKubeconfig(CLI::App& app, Outcome& outcome);
void AddProfiles(CLI::App& app, Outcome& outcome);
void AddVersion(CLI::App& app, Outcome& outcome);
std::string VersionText();  // "wavetank 0.1, behaviour of Istio 1.18.2"

// "wavetank: <message>" on standard error, and the exit code for bad input.
int Complain(const absl::Status& status);

// The first word of a file. NotFound says which file.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// On standard output, columns as wide as their widest cell.
void PrintTable(const Rows& rows);

// Colour only where a person looks, and not under NO_COLOR.
bool ColourWanted();

// The one real clock that verbs may look at, for what a person at a terminal sees meanwhile.
int64_t RealMillis();

// Rewrites one line on a terminal, for work that takes over a second; silent elsewhere.
class Progress {
 public:
  Progress();
  ~Progress();  // wipes the line
  void Say(std::string_view what);
  bool on() const { return on_; }

 private:
  bool on_;
  bool shown_ = false;
  int64_t last_ms_ = 0;
  int64_t start_ms_ = 0;
};

}  // namespace wavetank::cli
