#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/help.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/profile/releases.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {
namespace {

void PrintProfilesJson() {
  nlohmann::ordered_json bases = nlohmann::ordered_json::array(), switches = nlohmann::ordered_json::array();
  for (const pilot::Release& base : pilot::Releases()) {
    bases.push_back(
        {{"name", base.name}, {"istio", base.istio}, {"envoy", base.envoy}, {"kubernetes", base.kubernetes}});
  }
  for (const pilot::ProfileRow& row : pilot::ProfileRows()) {
    switches.push_back({{"name", row.name},
                        {"what", row.what},
                        {"since", row.since},
                        {"until", row.until},
                        {"issue", row.issue},
                        {"proxies", row.proxies},
                        {"guardedUntil", row.guarded_until}});
  }
  std::cout << JsonText(nlohmann::ordered_json{{"bases", bases}, {"switches", switches}}, 1) << "\n";
}

std::string WhenOf(const pilot::ProfileRow& row) {
  if (row.since.empty()) return "in no release of Istio yet";
  const std::string until = row.until.empty() ? "" : fmt::format(" until {}", row.until);
  const std::string guard =
      row.proxies.empty() ? "" : fmt::format(", before {} for proxies since {} alone", row.guarded_until, row.proxies);
  return fmt::format("since Istio {}{}{}", row.since, until, guard);
}

// The releases that have the change, in the order of the table.
std::string HeldBy(const pilot::ProfileRow& row) {
  std::string out;
  for (const pilot::Release& base : pilot::Releases()) {
    if (pilot::ProfileOf(base).Has(row.change)) out += fmt::format("{}{}", out.empty() ? "; in " : ", ", base.name);
  }
  return out;
}

void PrintProfiles() {
  for (const pilot::Release& base : pilot::Releases()) {
    std::cout << fmt::format("{}\n    Istio {} as it was released, with its bugs; clusters of Kubernetes {}\n",
                             base.name, base.istio, base.kubernetes);
  }
  for (const pilot::ProfileRow& row : pilot::ProfileRows()) {
    const std::string what = fmt::format("{}; {}{}", row.what, WhenOf(row), HeldBy(row));
    std::cout << fmt::format("+{}\n    {}\n", row.name, Wrapped(what, kHelpWidth - 6, 4));
    if (!row.issue.empty()) std::cout << fmt::format("    {}\n", row.issue);
  }
  std::cout << fmt::format(
      "\nA profile is a release, followed by any of the others with a + (it is so) or a - (it is not so): {}+{}\n",
      pilot::Releases().front().name, pilot::ProfileRows().front().name);
}

}  // namespace

void AddProfiles(CLI::App& app, Outcome&) {
  CLI::App* verb = app.add_subcommand("profiles", "The behaviour profiles that --profile and scenarios take");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "As JSON");
  verb->callback([json] { *json ? PrintProfilesJson() : PrintProfiles(); });
}

}  // namespace wavetank::cli
