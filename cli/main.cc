#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/help.h"
#include "cli/verb.h"
#include "core/base/text/program_call.h"
#include "core/base/text/shell_word.h"
#include "core/base/text/token_text.h"

namespace wavetank::cli {
namespace {

// Null: there is none.
CLI::App* Verb(CLI::App& app, std::string_view name) {
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    if (verb->check_name(std::string(name))) return verb;  // its aliases, too
  }
  return nullptr;
}

int Help(CLI::App& app, const std::string& verb) {
  app.clear();  // or CLI11 takes the question to be about the verb `help`
  if (verb.empty()) {
    std::cout << app.help();
  } else if (CLI::App* const named = Verb(app, verb)) {
    std::cout << named->help("wavetank");
  } else {
    std::cerr << NoSuchVerb(app, verb) << "\n";
    return kBadInput;
  }
  return kOk;
}

// The command line, without what may be a token: values of headers, and what looks like one.
std::string Call(int argc, char** argv) {
  std::string out = "wavetank";
  std::string_view before;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool secret = before == "--header" || before == "-H" || argument.starts_with("--header=") ||
                        (argument.starts_with("-H") && argument.size() > 2) || FindToken(argument).has_value();
    out += " " + ShellWord(secret ? argument.substr(0, argument.find(':') + 1) : argument) + (secret ? "..." : "");
    before = argument;
  }
  return out;
}

// An answer that did not come out, as on a full disk, is no answer.
int Printed(int code) {
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "wavetank: standard output cannot be written, so the answer is not whole\n";
  return kBadInput;
}

}  // namespace
}  // namespace wavetank::cli

int main(int argc, char** argv) {
  using namespace wavetank::cli;
  CLI::App app(
      "A wave tank for multi-cluster Istio: runs a mesh's manifests in virtual time, makes waves, and says what "
      "happens to every request.",
      "wavetank");
  UseHelpFormat(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText());
  app.set_help_all_flag("--help-all", "Help of every verb");
  app.fallthrough(false);
  Outcome outcome;
  AddRun(app, outcome);
  AddRecord(app, outcome);
  AddImport(app, outcome);
  AddCompare(app, outcome);
  AddReplay(app, outcome);
  AddApply(app, outcome);
  AddServe(app, outcome);
  AddXds(app, outcome);
  AddWhy(app, outcome);
  AddGolden(app, outcome);
  AddTiming(app, outcome);
  AddProfiles(app, outcome);
  AddSchema(app, outcome);
  AddEnvoyDiff(app, outcome);
  AddControlPlaneDiff(app, outcome);
  AddCheck(app, outcome);
  AddDiff(app, outcome);
  AddIncidents(app, outcome);
  AddPc(app, outcome);
  AddPs(app, outcome);
  AddStats(app, outcome);
  AddAgent(app, outcome);
  AddKubeconfig(app, outcome);
  AddSynth(app, outcome);
  AddPlan(app, outcome);
  AddSweep(app, outcome);
  AddCalibrate(app, outcome);
  AddQuestions(app, outcome);
  AddSwarm(app, outcome);
  AddSession(app, outcome);
  AddDocuments(app, outcome);
  AddIstiodVariables(app, outcome);
  AddCreateRemoteSecret(app, outcome);
  AddManifest(app, outcome);
  AddVersion(app, outcome);
  CLI::App* help = app.add_subcommand("help", "What a verb does, or which there are");
  std::string about;
  help->add_option("verb", about, "A verb; without one, all are listed");
  help->callback([&] { outcome.code = Help(app, about); });
  app.footer(
      "`wavetank help VERB` says more of one. Exit code 0: all is well; 1: the answer is no (an expectation failed, "
      "something differs); 2: the input or the call is wrong.");
  if (argc <= 1) return Printed(Help(app, ""));
  // CLI11 would only say that a verb is missing.
  if (const std::string_view word = argv[1]; !word.starts_with('-') && Verb(app, word) == nullptr) {
    std::cerr << NoSuchVerb(app, word) << "\n";
    return kBadInput;
  }
  wavetank::assertion::ProgramCall() = Call(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // help and version
      app.exit(e);
      return Printed(kOk);
    }
    std::cerr << BadCall(app, e) << "\n";
    return kBadInput;
  }
  return Printed(outcome.code);
}
