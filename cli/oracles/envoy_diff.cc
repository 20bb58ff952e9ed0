#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "oracles/envoy/envoydiff.h"

namespace wavetank::cli {
namespace {

struct EnvoyDiffArguments {
  std::string path;
  envoydiff::Options options;
  envoydiff::GeneratedCases generated;
  bool generates = false;
  bool json = false, verbose = false;
};

constexpr std::string_view kGenerated = "generated ";

void PrintOutcome(const char* who, const envoydiff::Outcome& o) {
  std::cout << "    " << who << "\n";
  for (const std::string& message : o.ads) std::cout << "      " << message << "\n";
  for (size_t i = 0; i < o.requests.size(); ++i) {
    std::map<std::string, int> counts;
    for (const envoydiff::RequestOutcome& r : o.requests[i]) ++counts[r.Key()];
    for (const auto& [key, n] : counts) std::cout << fmt::format("      requests {}: {} x {}\n", i + 1, n, key);
  }
}

void PrintCase(const envoydiff::CaseResult& result, bool verbose) {
  if (!result.left_out.empty()) {
    std::cout << "left out   " << result.name << ": " << result.left_out << std::endl;
    return;
  }
  std::cout << (result.differences.empty() ? "same       " : "DIFFERENT  ") << result.name << "\n";
  for (const std::string& difference : result.differences) std::cout << "    " << difference << "\n";
  if (result.tries > 1) std::cout << fmt::format("    after {} tries; the first said:\n", result.tries);
  for (const std::string& difference : result.at_first) std::cout << "      " << difference << "\n";
  if (!result.differences.empty() && result.name.starts_with(kGenerated)) {
    std::string seed = result.name.substr(kGenerated.size());
    seed.resize(std::min(seed.find(' '), seed.size()));
    std::cout << fmt::format("    reproduce: wavetank envoy-diff --generate {}\n", seed);
  }
  if (!result.smaller.empty()) std::cout << fmt::format("    less of it: {{\"cases\": [{}]}}\n", result.smaller);
  if (verbose) {
    PrintOutcome("simulated", result.simulated);
    PrintOutcome("real", result.real);
  }
  std::cout << std::flush;
}

int RunEnvoyDiff(const EnvoyDiffArguments& a) {
  if (a.generates == !a.path.empty()) {
    return Complain(absl::InvalidArgumentError("name a case file or folder, or --generate a seed: one of the two"));
  }
  envoydiff::Options options = a.options;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  absl::StatusOr<std::string> envoy = envoydiff::FindEnvoy(options.envoy, {program.parent_path().string(), "build"});
  if (!envoy.ok()) return Complain(envoy.status());
  options.envoy = *std::move(envoy);
  int ran = 0;
  Progress progress;
  const auto done = [&](const envoydiff::CaseResult& result) {
    ++ran;
    if (a.json) {
      progress.Say(fmt::format("{} cases", ran));
    } else {
      PrintCase(result, a.verbose);
    }
  };
  absl::StatusOr<std::vector<envoydiff::CaseResult>> results =
      a.generates ? envoydiff::RunGenerated(a.generated, options, done) : envoydiff::RunCases(a.path, options, done);
  if (!results.ok()) return Complain(results.status());
  const auto different =
      std::count_if(results->begin(), results->end(), [](const auto& result) { return !result.differences.empty(); });
  if (a.json) {
    nlohmann::ordered_json cases = nlohmann::ordered_json::array();
    for (const envoydiff::CaseResult& result : *results) {
      cases.push_back({{"file", result.file},
                       {"name", result.name},
                       {"same", result.differences.empty() && result.left_out.empty()},
                       {"left_out", result.left_out},
                       {"tries", result.tries},
                       {"smaller", result.smaller},
                       {"differences", result.differences}});
    }
    const nlohmann::ordered_json all = {
        {"envoy", options.envoy}, {"cases", results->size()}, {"different", different}, {"results", cases}};
    std::cout << JsonText(all, 1) << "\n";
  } else {
    std::cout << fmt::format("{} cases, {} different\n", results->size(), different);
  }
  return different == 0 ? kOk : kNo;
}

}  // namespace

void AddEnvoyDiff(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("envoy-diff", "Runs cases on the simulated and on a real Envoy and compares them");
  auto a = std::make_shared<EnvoyDiffArguments>();
  verb->add_option("path", a->path, "A case file, or a folder of them (oracles/envoy/case.h tells the format)");
  const auto* const seed = verb->add_option("--generate", a->generated.first,
                                            "Cases that nobody wrote, of this seed and, with --count, those after it");
  verb->add_option("--count", a->generated.count, "How many to generate")->check(CLI::Range(1, 100000));
  verb->add_option("--shrink", a->generated.shrink,
                   "How often a generated case that differs may run again to become smaller")
      ->check(CLI::Range(0, 1000));
  verb->add_option("--envoy", a->options.envoy,
                   "The real Envoy (default: $WAVETANK_ENVOY, what tools/envoy installed, or envoy on $PATH)");
  verb->add_option("--filter", a->options.filter, "Only cases whose name contains this");
  verb->add_option("--every", a->options.every, "A sample: only every so-manieth case")->check(CLI::Range(1, 1000));
  verb->add_option("--jobs", a->options.jobs, "Cases at a time")->check(CLI::Range(1, 8));
  verb->add_option("--retries", a->options.retries, "Run a case that differs again, alone, up to this often")
      ->check(CLI::Range(0, 10));
  verb->add_option("--keep", a->options.keep, "Keep bootstraps and logs in this folder");
  verb->add_flag("--json", a->json, "Results as JSON on standard output");
  verb->add_flag("--verbose", a->verbose, "Print what each of the two did");
  OnlyWith(verb, {"--count", "--shrink"}, "--generate");
  NotWith(verb, {"--filter", "--every"}, "--generate");
  verb->footer(
      "Exit code 0: the two agree; 1: they differ; 2: a case or Envoy cannot be read or run. Addresses are loopback "
      "addresses of this process's own.");
  verb->callback([a, seed, &outcome] {
    a->generates = seed->count() > 0;
    outcome.code = RunEnvoyDiff(*a);
  });
}

}  // namespace wavetank::cli
