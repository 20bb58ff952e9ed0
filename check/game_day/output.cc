#include <algorithm>

#include "check/game_day/game_day.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;

std::string Cell(const Effect& e) {
  if (e.fate == Fate::kLost && e.failed == 0) return "lost, waits without end";
  if (e.fate == Fate::kLost) {
    const std::string recovery =
        e.recovered ? fmt::format("{}.{} s", e.recovery / 1s, e.recovery % 1s / 100ms) : "no end";
    return fmt::format("lost {} of {}, {}", e.failed, e.sent, recovery);
  }
  if (e.fate == Fate::kSlower) return fmt::format("slower, p99 {} to {} ms", e.p99_before / 1ms, e.p99 / 1ms);
  return std::string(FateName(e.fate));
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      out += i + 1 < row.size() ? fmt::format("{:<{}}", row[i], widths[i] + 3) : row[i];
    out += "\n";
  }
  return out;
}

}  // namespace

std::string GameDayText(const GameDay& day) {
  std::vector<std::vector<std::string>> rows{{"FAILURE"}};
  rows[0].insert(rows[0].end(), day.flows.begin(), day.flows.end());
  for (const Trial& trial : day.trials) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(trial.failure);
    for (const Effect& e : trial.effects) row.push_back(Cell(e));
  }
  std::string out = Table(rows);
  if (day.pairs_possible > 0)
    out += fmt::format("\n{} pairs are possible; {} of them were tried\n", day.pairs_possible, day.pairs_tried);
  const auto worst = day.Worst(10);
  if (!worst.empty()) out += "\nThe worst:\n";
  for (size_t i = 0; i < worst.size(); ++i) {
    for (size_t line = 0; line < worst[i]->chain.size(); ++line)
      out += line == 0 ? fmt::format("{:>2}. {}\n", i + 1, worst[i]->chain[line])
                       : fmt::format("      {}\n", worst[i]->chain[line]);
  }
  out += "\nPoints of single failure (every way of the flow passes them):\n";
  if (day.weak_points.empty()) out += "  none\n";
  for (const WeakPoint& point : day.weak_points) out += fmt::format("  {}: {}\n", point.flow, point.point);
  if (!day.capacities.empty()) out += "\nBetween clusters:\n";
  for (const Capacity& c : day.capacities)
    out += fmt::format("  {} to {}: {} gateway pods at once; narrowest: {}\n", c.from, c.to, c.gateways, c.cut);
  return out;
}

ordered_json GameDayJson(const GameDay& day) {
  ordered_json out;
  out["flows"] = day.flows;
  out["trials"] = ordered_json::array();
  for (const Trial& trial : day.trials) {
    ordered_json& each = out["trials"].emplace_back();
    each["failure"] = trial.failure;
    each["effects"] = ordered_json::array();
    for (size_t i = 0; i < trial.effects.size(); ++i) {
      const Effect& e = trial.effects[i];
      each["effects"].push_back({{"flow", day.flows[i]},
                                 {"fate", FateName(e.fate)},
                                 {"sent", e.sent},
                                 {"failed", e.failed},
                                 {"retried", e.retried},
                                 {"recovered", e.recovered},
                                 {"recoveryNs", e.recovery.count()},
                                 {"p99BeforeNs", e.p99_before.count()},
                                 {"p99Ns", e.p99.count()},
                                 {"byCluster", e.by_cluster},
                                 {"reasons", e.reasons}});
    }
    each["chain"] = trial.chain;
  }
  out["pairsPossible"] = day.pairs_possible;
  out["pairsTried"] = day.pairs_tried;
  out["worst"] = ordered_json::array();
  for (const Trial* trial : day.Worst(10)) out["worst"].push_back(trial->failure);
  out["pointsOfSingleFailure"] = ordered_json::array();
  for (const WeakPoint& p : day.weak_points)
    out["pointsOfSingleFailure"].push_back({{"flow", p.flow}, {"point", p.point}});
  out["capacities"] = ordered_json::array();
  for (const Capacity& c : day.capacities)
    out["capacities"].push_back({{"from", c.from}, {"to", c.to}, {"gatewayPods", c.gateways}, {"narrowest", c.cut}});
  return out;
}

}  // namespace wavetank::check
