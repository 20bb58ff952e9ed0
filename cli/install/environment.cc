#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/settings/istiod_settings.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {
namespace {

std::string_view EffectName(pilot::VariableEffect effect) {
  switch (effect) {
    case pilot::VariableEffect::kActs:
      return "acts";
    case pilot::VariableEffect::kImplied:
      return "so anyway";
    case pilot::VariableEffect::kNone:
      return "no effect";
  }
  return "";
}

struct VariableArguments {
  bool json = false, page = false;
};

// "1.19..1.24", "..1.26"; empty: all know it.
std::string Releases(const pilot::IstiodVariable& v) {
  return v.since.empty() && v.until.empty() ? std::string() : fmt::format("{}..{}", v.since, v.until);
}

void PrintPage() {
  std::cout
      << "# istiod's environment\n\n"
         "Printed by `wavetank istiod-variables --page`; a test holds it.\n\n"
         "Environment and arguments of container `discovery` are read from istiod's Deployment as pilot-discovery "
         "1.18.2 reads them\n(values, `valueFrom`, `$(NAME)`). Each variable of `pilot-discovery help` is a row: it "
         "*acts*, or the simulation is *so anyway*\nwhatever it says, or it has *no effect*, which `run`, `apply` "
         "and `check` note by name when a manifest sets another value than\nthe default (`--strict`: an error). "
         "A value that cannot be read leaves the default, as in istiod, and is noted. Where a scenario's\n`timing:` "
         "names the same quantity, it holds instead.\nA variable that only some releases know (the last column: from "
         "the first, to the first that knows it no more) does something in their profiles alone, and is noted\nin "
         "others.\n\n"
         "| variable | type | default | effect here | | releases |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const pilot::IstiodVariable& v : pilot::IstiodVariables()) {
    std::cout << fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", v.name, pilot::VariableTypeName(v.type),
                             v.default_value.empty() ? "" : fmt::format("`{}`", v.default_value), EffectName(v.effect),
                             v.meaning, Releases(v));
  }
  std::cout << "\nOf the arguments of `pilot-discovery discovery`, `--clusterID`, `--clusterAliases`, `--domain`, "
               "`--namespace`, `--registries`,\n`--meshConfig`, `--networksConfig`, `--configDir`, `--caCertFile`, "
               "`--tlsCertFile`, `--tlsKeyFile`, `--keepaliveMaxServerConnectionAge`,\n`--ctrlz_port` and those of "
               "logging act; the others are noted. A value of another type keeps istiod from starting, as there.\n";
}

int PrintVariables(const VariableArguments& a) {
  if (a.page) {
    PrintPage();
    return kOk;
  }
  if (a.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const pilot::IstiodVariable& v : pilot::IstiodVariables()) {
      out.push_back({{"name", v.name},
                     {"type", pilot::VariableTypeName(v.type)},
                     {"default", v.default_value},
                     {"effect", EffectName(v.effect)},
                     {"meaning", v.meaning},
                     {"since", v.since},
                     {"until", v.until}});
    }
    std::cout << JsonText(out, 1) << "\n";
    return kOk;
  }
  Rows rows = {{"VARIABLE", "DEFAULT", "EFFECT", "RELEASES", "HERE"}};
  for (const pilot::IstiodVariable& v : pilot::IstiodVariables()) {
    rows.push_back({std::string(v.name), std::string(v.default_value), std::string(EffectName(v.effect)), Releases(v),
                    std::string(v.meaning)});
  }
  PrintTable(rows);
  return kOk;
}

}  // namespace

void AddIstiodVariables(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "istiod-variables", "Prints every variable of pilot-discovery 1.18.2 and what it does here, if it does anything");
  auto a = std::make_shared<VariableArguments>();
  verb->add_flag("--json", a->json, "As JSON");
  verb->add_flag("--page", a->page, "As docs/istiod-environment.md");
  NotWith(verb, {"--json"}, "--page");
  verb->callback([a, &outcome] { outcome.code = PrintVariables(*a); });
}

}  // namespace wavetank::cli
