// The command line: one file per verb, each adding its subcommand to the program.
//
// Exit codes: 0 all well, 1 the answer is no (an expectation failed, digests differ), 2 the input or the call is wrong,
// 3 all well as far as it goes, but an event log that was read ends before its run did.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace wavetank::cli {

// The rows of a table that a verb prints, as cells of text; the first may be the head.
using Rows = std::vector<std::vector<std::string>>;

inline constexpr int kOk = 0, kNo = 1, kBadInput = 2, kNotWhole = 3;

// Each verb stores its exit code here when it has run.
struct Outcome {
  int code = kOk;
};

// What is asked for and would do nothing is an error: `options` without `other`, or beside it. By the names under which
// they were added to `verb`.
void OnlyWith(CLI::App* verb, std::initializer_list<const char*> options, const char* other);
void NotWith(CLI::App* verb, std::initializer_list<const char*> options, const char* other);

void AddRun(CLI::App& app, Outcome& outcome);
void AddRecord(CLI::App& app, Outcome& outcome);
void AddImport(CLI::App& app, Outcome& outcome);
void AddCompare(CLI::App& app, Outcome& outcome);
void AddReplay(CLI::App& app, Outcome& outcome);
void AddApply(CLI::App& app, Outcome& outcome);
void AddServe(CLI::App& app, Outcome& outcome);
void AddXds(CLI::App& app, Outcome& outcome);
void AddWhy(CLI::App& app, Outcome& outcome);
void AddGolden(CLI::App& app, Outcome& outcome);
void AddTiming(CLI::App& app, Outcome& outcome);
void AddSchema(CLI::App& app, Outcome& outcome);
void AddProfiles(CLI::App& app, Outcome& outcome);
void AddEnvoyDiff(CLI::App& app, Outcome& outcome);
void AddControlPlaneDiff(CLI::App& app, Outcome& outcome);
void AddCheck(CLI::App& app, Outcome& outcome);
void AddDiff(CLI::App& app, Outcome& outcome);
void AddIncidents(CLI::App& app, Outcome& outcome);
void AddPc(CLI::App& app, Outcome& outcome);
void AddPs(CLI::App& app, Outcome& outcome);
void AddStats(CLI::App& app, Outcome& outcome);
void AddAgent(CLI::App& app, Outcome& outcome);
void AddKubeconfig(CLI::App& app, Outcome& outcome);
void AddSynth(CLI::App& app, Outcome& outcome);
void AddPlan(CLI::App& app, Outcome& outcome);
void AddSweep(CLI::App& app, Outcome& outcome);
void AddCalibrate(CLI::App& app, Outcome& outcome);
void AddSwarm(CLI::App& app, Outcome& outcome);
void AddSession(CLI::App& app, Outcome& outcome);
void AddDocuments(CLI::App& app, Outcome& outcome);
void AddIstiodVariables(CLI::App& app, Outcome& outcome);
void AddCreateRemoteSecret(CLI::App& app, Outcome& outcome);
void AddManifest(CLI::App& app, Outcome& outcome);
void AddVersion(CLI::App& app, Outcome& outcome);
void AddQuestions(CLI::App& app, Outcome& outcome);  // all of cli/questions/
std::string VersionText();                           // "wavetank 0.1 (commit ...; ...), behaviour of Istio 1.18.2"

// Of `timing`, by the cost model (cli/capacity/): its terms, and its predictions beside measured rows, a CSV file's or
// a folder's. `parameters`: a table instead of istiod 1.18.2's, or empty.
int PrintCosts(const std::string& parameters, bool json);
int CompareCosts(const std::string& data, const std::string& parameters, bool json);

// "wavetank: <message>" on standard error, and the exit code for bad input.
int Complain(const absl::Status& status);

// What a verb that has read the event log `path` ends with: `code`, but if the log is not whole, that is said on
// standard error, and kNotWhole takes the place of kOk. That a log keeps secrets is said there, too.
int WithWholeness(int code, const std::string& path, bool whole);
// The same, looked up.
int WithWholeness(int code, const std::string& path);

// The first word of a file. NotFound says which file.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// On standard output, columns as wide as their widest cell.
void PrintTable(const Rows& rows);

// Colour only where a person looks, and not under NO_COLOR.
bool ColourWanted();

// The one real clock that verbs may look at, for what a person at a terminal sees meanwhile.
int64_t RealMillis();

// Rewrites one line on a terminal, for work that takes over a second; elsewhere a line of its own every half a minute.
class Progress {
 public:
  Progress();
  ~Progress();  // wipes the line
  void Say(std::string_view what);
  bool on() const { return on_; }

 private:
  bool on_;  // a terminal: one line, which is written over
  bool shown_ = false;
  int64_t last_ms_ = 0;
  int64_t start_ms_ = 0;
};

}  // namespace wavetank::cli
