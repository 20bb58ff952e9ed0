// wavetank-envoy-diff PATH: compares the simulated Envoy with a real one. Exit code 0: they agree, 1: they do not, 2:
// the comparison could not be made.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "envoydiff/envoydiff.h"

int main(int argc, char** argv) {
  CLI::App app("Runs cases on the simulated and on a real Envoy and compares what they do.");
  std::string path;
  wavetank::envoydiff::Options options;
  app.add_option("PATH", path, "A case file, or a folder of them")->required();
  app.add_option("--envoy", options.envoy, "The real Envoy (default: $WAVETANK_ENVOY, or what tools/envoy installed)");
  app.add_option("--filter", options.filter, "Only cases whose name contains this");
  app.add_option("--keep", options.keep, "Keep bootstraps and logs in this folder");
  app.add_flag("--verbose", options.verbose, "Print what each of the two did");
  CLI11_PARSE(app, argc, argv);
  options.envoy = wavetank::envoydiff::FindEnvoy(options.envoy, "build");
  if (options.envoy.empty()) {
    std::fprintf(stderr, "wavetank-envoy-diff: no Envoy; run tools/envoy, or name one with --envoy\n");
    return 2;
  }
  options.print = [](const std::string& line) { std::printf("%s\n", line.c_str()), std::fflush(stdout); };
  const auto summary = wavetank::envoydiff::RunCases(path, options);
  if (!summary.ok()) {
    std::fprintf(stderr, "wavetank-envoy-diff: %s\n", summary.status().ToString().c_str());
    return 2;
  }
  std::printf("%d cases, %d different\n", summary->cases, summary->differing);
  return summary->differing == 0 ? 0 : 1;
}
