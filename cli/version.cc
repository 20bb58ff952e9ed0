#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {

std::string VersionText() { return "wavetank " WAVETANK_VERSION ", behaviour of Istio 1.18.2"; }

void AddVersion(CLI::App& app, Outcome&) {
  CLI::App* verb = app.add_subcommand("version", "The program's version and the behaviour it reproduces");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "As JSON");
  verb->callback([json] {
    if (*json) {
      std::cout << JsonText(
                       nlohmann::json{{"version", WAVETANK_VERSION}, {"profile", "istio-1.18"}, {"istio", "1.18.2"}})
                << "\n";
    } else {
      std::cout << VersionText() << "\n";
    }
  });
}

}  // namespace wavetank::cli
