#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/made/commit.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/profile/releases.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {

std::string VersionText() {
  return fmt::format("wavetank {} (commit {}; {}), behaviour of Istio {}", WAVETANK_VERSION, Commit(), Build(),
                     pilot::Releases().front().istio);
}

void AddVersion(CLI::App& app, Outcome&) {
  CLI::App* verb = app.add_subcommand("version", "The program's version and the behaviour it reproduces");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "As JSON");
  verb->callback([json] {
    if (*json) {
      const pilot::Release& release = pilot::Releases().front();
      std::cout << JsonText(nlohmann::json{{"version", WAVETANK_VERSION},
                                           {"profile", release.name},
                                           {"istio", release.istio},
                                           {"commit", Commit()},
                                           {"build", Build()}})
                << "\n";
    } else {
      std::cout << VersionText() << "\n";
    }
  });
}

}  // namespace wavetank::cli
