#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "library/rows/actions_header.h"
#include "scenarios/reader/mappings.h"

namespace wavetank::cli {

void AddSchema(CLI::App& app, Outcome&) {
  CLI::App* verb = app.add_subcommand("schema", "The JSON schema of scenarios, for editors");
  auto tables = std::make_shared<bool>(false);
  verb->add_flag("--tables", *tables,
                 "The tables of actions and expectations instead, as scenarios/README.md has them");
  auto form = std::make_shared<std::string>();
  verb->add_option("--actions", *form, "Instead: the actions as the library's C++ header or Python module has them")
      ->check(CLI::IsMember({"cpp", "python"}));
  NotWith(verb, {"--tables"}, "--actions");
  verb->callback([tables, form] {
    if (!form->empty()) {
      std::cout << (*form == "cpp" ? library::ActionsHeader() : library::ActionsModule());
    } else if (*tables) {
      std::cout << scenario::ActionTable() << "\n" << scenario::ExpectationTable();
    } else {
      std::cout << JsonText(scenario::ScenarioSchema(), 1) << "\n";
    }
  });
}

}  // namespace wavetank::cli
