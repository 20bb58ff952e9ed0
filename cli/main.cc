#include <CLI/CLI.hpp>

#include "cli/verb.h"

int main(int argc, char** argv) {
  using namespace wavetank::cli;
  CLI::App app(
      "A wave tank for multi-cluster Istio: runs a mesh's manifests in virtual time, makes waves, and says what "
      "happens to every request.",
      "wavetank");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every verb");
  app.fallthrough(false);
  Outcome outcome;
  AddRun(app, outcome);
  AddRecord(app, outcome);
  AddReplay(app, outcome);
  AddApply(app, outcome);
  AddServe(app, outcome);
  AddXds(app, outcome);
  AddWhy(app, outcome);
  AddGolden(app, outcome);
  AddTiming(app, outcome);
  AddEnvoyDiff(app, outcome);
  AddControlPlaneDiff(app, outcome);
  AddKubeconfig(app, outcome);
  AddVersion(app, outcome);
  CLI::App* help = app.add_subcommand("help", "What each verb does");
  help->callback([&app] {
    app.clear();  // or CLI11 takes the question to be about the verb `help`
    std::cout << app.help("", CLI::AppFormatMode::All);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? kOk : kBadInput;
  }
  return outcome.code;
}
