#include "sim/invariants/catalogue.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {
namespace {

int PrintInvariants(bool as_json) {
  if (as_json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array(), bugs = nlohmann::ordered_json::array();
    for (const sim::Invariant& i : sim::Invariants()) {
      all.push_back(
          {{"id", i.id}, {"name", i.name}, {"meaning", i.meaning}, {"incidents", i.incidents}, {"cost", i.cost}});
    }
    for (const sim::KnownBug& bug : sim::KnownBugs())
      bugs.push_back({{"id", bug.id}, {"what", bug.what}, {"mendedBy", bug.mended_by}});
    std::cout << JsonText(nlohmann::ordered_json{{"invariants", all}, {"knownBugs", bugs}}, 1) << "\n";
    return kOk;
  }
  Rows rows = {{"ID", "NAME", "MEANING", "INCIDENTS", "COST"}};
  for (const sim::Invariant& i : sim::Invariants()) {
    rows.push_back({std::string(i.id), std::string(i.name), std::string(i.meaning), std::string(i.incidents),
                    std::string(i.cost)});
  }
  PrintTable(rows);
  std::cout << "\nWhat istiod itself does wrong, 1.18.2 where no release is named; a breach that one of these explains "
               "is told with its name, and is "
               "no failure of a run.\n";
  rows = {{"BUG", "WHAT", "MENDED BY"}};
  for (const sim::KnownBug& bug : sim::KnownBugs()) {
    rows.push_back({std::string(bug.id), std::string(bug.what),
                    bug.mended_by.empty() ? "-" : "istio-1.18+" + std::string(bug.mended_by)});
  }
  PrintTable(rows);
  return kOk;
}

}  // namespace

void AddInvariants(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "invariants", "What must be true of any mesh: names, meanings, incidents that paid for them, cost");
  auto as_json = std::make_shared<bool>(false);
  verb->add_flag("--json", *as_json, "As JSON");
  verb->footer(
      "`--invariants` of run, replay and serve watches them, and so does `always: {invariant: NAME}` in a step.");
  verb->callback([as_json, &outcome] { outcome.code = PrintInvariants(*as_json); });
}

}  // namespace wavetank::cli
