#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/verb.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "sim/timing.h"

namespace wavetank::cli {

void AddTiming(CLI::App& app, Outcome&) {
  CLI::App* verb =
      app.add_subcommand("timing", "The modelled durations and costs that a scenario's timing: may override");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "As JSON");
  verb->callback([json] {
    const std::vector<sim::TimingRow> rows = sim::TimingTable(sim::Timing());
    if (*json) {
      nlohmann::ordered_json out = nlohmann::ordered_json::array();
      for (const auto& row : rows)
        out.push_back({{"name", row.name}, {"default", row.value}, {"meaning", row.meaning}});
      std::cout << out.dump(1) << "\n";
      return;
    }
    for (const auto& row : rows) std::cout << fmt::format("{:<34} {:>8}  {}\n", row.name, row.value, row.meaning);
  });
}

}  // namespace wavetank::cli
