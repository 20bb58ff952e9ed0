// Compares simulated with real Envoys: every case on both, differences in words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "oracles/envoy/case.h"
#include "oracles/envoy/outcome.h"

namespace wavetank::envoydiff {

struct Options {
  std::string envoy;   // path of the real one
  std::string filter;  // only cases whose name contains this
  std::string keep;    // folder for bootstraps, logs and outcomes; empty: a temporary one, removed
  int every = 1;       // 2: every second case alone, and so on: a sample
  int jobs = 1;        // cases at a time
  // A case that differs runs again, alone, up to this often: a real process on a busy machine may lose its race against
  // a case's real time.
  int retries = 0;
};

struct CaseResult {
  std::string file, name;
  std::vector<std::string> differences;  // none: the two agree. A case that could not run has its error here.
  std::string left_out;                  // why it did not run at all: what it needs is not to be had on this system
  int tries = 1;                         // more than one: it differed at first (Options::retries)
  std::vector<std::string> at_first;     // the differences of the first try, if there were more
  Outcome simulated, real;
  std::string smaller;  // of a generated case that differs: the least part of it that does, as a case file has it
};

// In the cases' order. `done` is told after each case, from any thread but one at a time. InvalidArgument or NotFound:
// no case can be read there, or none matches.
absl::StatusOr<std::vector<CaseResult>> RunCases(const std::string& path, const Options& options,
                                                 const std::function<void(const CaseResult&)>& done);

// The same for cases made elsewhere, which send no requests or run one at a time: all share their addresses.
absl::StatusOr<std::vector<CaseResult>> RunCases(std::vector<Case> cases, const Options& options,
                                                 const std::function<void(const CaseResult&)>& done);

// Cases that nobody wrote: those of the seeds from `first` on (generate/generator.h).
struct GeneratedCases {
  uint64_t first = 1;
  int count = 1;
  int shrink = 60;  // how often a case that differs may run again to become smaller; 0: not
};
// Each case's result, those that differ made smaller; `done` sees each when it is known. Errors are those of the real
// Envoy: it is not there, or does not start.
absl::StatusOr<std::vector<CaseResult>> RunGenerated(const GeneratedCases& cases, const Options& options,
                                                     const std::function<void(const CaseResult&)>& done);

// A real Envoy that can be run: `given` if not empty; else $WAVETANK_ENVOY, what tools/envoy installed below one of
// `builds`, or `envoy` on $PATH. NotFound says what to do.
absl::StatusOr<std::string> FindEnvoy(const std::string& given, const std::vector<std::string>& builds);

}  // namespace wavetank::envoydiff
