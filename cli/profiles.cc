#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/help.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/profile/known_profiles.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {
namespace {

void PrintProfiles(bool json) {
  if (json) {
    nlohmann::ordered_json out = {{"base", pilot::ProfileBase()}, {"switches", nlohmann::ordered_json::array()}};
    for (const pilot::ProfileSwitch& each : pilot::ProfileSwitches()) {
      out["switches"].push_back({{"name", each.name}, {"meaning", each.meaning}});
    }
    std::cout << JsonText(out, 1) << "\n";
    return;
  }
  std::cout << pilot::ProfileBase() << "\n    Istio 1.18.2 as it was released, with its bugs\n";
  for (const pilot::ProfileSwitch& each : pilot::ProfileSwitches()) {
    std::cout << fmt::format("+{}\n    {}\n", each.name, Wrapped(each.meaning, kHelpWidth - 6, 4));
  }
  std::cout << fmt::format("\nA profile is the first, followed by any of the others: {}+{}\n", pilot::ProfileBase(),
                           pilot::ProfileSwitches().front().name);
}

}  // namespace

void AddProfiles(CLI::App& app, Outcome&) {
  CLI::App* verb = app.add_subcommand("profiles", "The behaviour profiles that --profile and scenarios take");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "As JSON");
  verb->callback([json] { PrintProfiles(*json); });
}

}  // namespace wavetank::cli
