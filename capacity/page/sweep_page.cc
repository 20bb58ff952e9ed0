#include "capacity/page/sweep_page.h"

#include <fmt/format.h>

#include <map>

#include "capacity/page/scripts.h"
#include "capacity/sweep/sweep.h"
#include "reports/page.h"

namespace wavetank::capacity {
namespace {

using Json = nlohmann::ordered_json;

// More points cannot be told apart. Those on a front are drawn in any case.
constexpr size_t kMostDrawn = 3000, kMostFailures = 50;

Json Told(const SweepTable& table, const Combination& combination) {
  Json out = {{"values", combination.values}, {"seeds", combination.seeds}};
  for (size_t i = 0; i < table.objectives.size(); ++i) out[table.objectives[i]] = combination.worst[i];
  return out;
}

Json Told(const SweepTable& table, const std::vector<Combination>& combinations, const std::vector<size_t>& which) {
  Json out = Json::array();
  for (const size_t i : which) out.push_back(Told(table, combinations[i]));
  return out;
}

// The first objective against each of the others.
Json Fronts(const SweepTable& table, const std::vector<Combination>& combinations) {
  Json out = Json::array();
  for (size_t i = 1; i < table.objectives.size(); ++i) {
    out.push_back({{"against", table.objectives[i]}, {"rows", Told(table, combinations, Front(combinations, {0, i}))}});
  }
  return out;
}

Json Responses(const SweepTable& table, const std::vector<Combination>& combinations) {
  Json out = Json::array();
  for (size_t setting = 0; setting < table.settings.size(); ++setting) {
    Json values = Json::array();
    for (const Response& response : ResponsesTo(combinations, setting)) {
      Json value = {{"value", response.value}, {"combinations", response.combinations}};
      for (size_t i = 0; i < table.objectives.size(); ++i) {
        const Spread& s = response.spread[i];
        value[table.objectives[i]] = {s.least, s.quarter, s.middle, s.three_quarters, s.most};
      }
      values.push_back(std::move(value));
    }
    out.push_back({{"setting", table.settings[setting]}, {"values", std::move(values)}});
  }
  return out;
}

// What rows say of a kind, and how many say it.
Json Counted(const std::map<std::string, int64_t>& texts) {
  Json out = Json::array();
  for (const auto& [text, rows] : texts) {
    if (out.size() == kMostFailures) break;
    out.push_back({{"text", text}, {"rows", rows}});
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> SweepPage(const std::string& path, const SweepTable& table) {
  const std::vector<Combination> combinations = CombinationsOf(table);
  if (combinations.empty()) {
    return absl::FailedPreconditionError(fmt::format("{}: no row has a result; its column `error` says why", path));
  }
  std::map<std::string, int64_t> failures, extrapolates;
  int64_t failed = 0, not_passed = 0;
  for (const SweepTable::Row& row : table.rows) {
    if (!row.error().empty()) {
      ++failed;
      ++failures[row.error()];
    } else if (const std::string& beyond = table.Of(row, "extrapolates"); !beyond.empty()) {
      ++extrapolates[beyond];
    } else if (table.Of(row, "passed") == "0") {
      ++not_passed;
    }
  }
  const size_t step = (combinations.size() + kMostDrawn - 1) / kMostDrawn;
  std::vector<size_t> drawn;
  for (size_t i = 0; i < combinations.size(); i += step) drawn.push_back(i);
  std::vector<size_t> all(table.objectives.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Json data = {{"table", path},
                     {"settings", table.settings},
                     {"rows", table.rows.size()},
                     {"failed", failed},
                     {"notPassed", not_passed},
                     {"combinations", combinations.size()},
                     {"objectives", table.objectives},
                     {"ofFleet", table.objectives == FleetObjectives()},
                     {"drawn", Told(table, combinations, drawn)},
                     {"fronts", Fronts(table, combinations)},
                     {"best", Told(table, combinations, Front(combinations, all))},
                     {"responses", Responses(table, combinations)},
                     {"failures", Counted(failures)},
                     {"failureKinds", failures.size()},
                     {"extrapolates", Counted(extrapolates)}};
  return report::PageHtml("Sweep: " + path, SweepScript(), data);
}

}  // namespace wavetank::capacity
