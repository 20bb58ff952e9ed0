#include "capacity/sweep/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "capacity/sweep/sweep.h"
#include "core/base/bounds.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/csv.h"
#include "core/base/text/read_up_to.h"
#include "nlohmann/json.hpp"

namespace wavetank::capacity {
namespace {

// Nothing: one has no number.
std::optional<std::vector<double>> ObjectivesOf(const SweepTable& table, const SweepTable::Row& row) {
  std::vector<double> out(table.objectives.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!absl::SimpleAtod(table.Of(row, table.objectives[i]), &out[i])) return std::nullopt;
  }
  return out;
}

// What the sweep said that it is judged by; of a fleet's table that stands alone, what all of them are.
absl::StatusOr<std::vector<std::string>> ReadObjectives(const std::string& table) {
  const std::filesystem::path path = std::filesystem::path(table).replace_extension(".json");
  std::ifstream in(path, std::ios::binary);
  if (!in) return FleetObjectives();
  std::ostringstream whole;
  whole << in.rdbuf();
  const nlohmann::json notes = ParseJson(whole.str());
  std::vector<std::string> out;
  const nlohmann::json& objectives = At(notes, "objectives");
  for (size_t i = 0; objectives.is_array() && i < objectives.size(); ++i) out.push_back(TextOf(objectives[i]));
  if (out.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: does not say what the sweep is judged by; run `wavetank sweep` again", path.string()));
  }
  return out;
}

// Where a value stands among its like; nothing: it is neither number nor duration.
std::optional<double> Rank(const std::string& value) {
  double number = 0;
  if (absl::SimpleAtod(value, &number)) return number;
  if (const std::optional<Duration> duration = ParseDuration(value)) return static_cast<double>(duration->count());
  if (!value.empty() && value.back() == '%' && absl::SimpleAtod(value.substr(0, value.size() - 1), &number)) {
    return number;
  }
  return std::nullopt;
}

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](size_t quarters) { return values[((values.size() - 1) * quarters + 2) / 4]; };
  return {at(0), at(1), at(2), at(3), at(4)};
}

}  // namespace

const std::string& SweepTable::Of(const Row& row, std::string_view column) const {
  static const auto* const kNone = new std::string;
  const auto it = std::find(columns.begin(), columns.end(), column);
  return it == columns.end() ? *kNone : row.results[static_cast<size_t>(it - columns.begin())];
}

absl::StatusOr<SweepTable> ReadTable(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("{} is not there: run the sweep first", path));
  const std::string text = ReadUpTo(in, bounds::kDumpBytes);
  std::string_view rest = text;
  std::vector<std::string> head = TakeCsvRecord(rest);
  SweepTable out;
  const auto seed = std::find(head.begin(), head.end(), "seed");
  if (seed == head.begin() || seed == head.end() || head.back() != "error") {
    return absl::InvalidArgumentError(
        fmt::format("{}: its columns are not those of a sweep's table; run `wavetank sweep` again", path));
  }
  const auto settings = static_cast<size_t>(seed - head.begin());
  out.settings.assign(head.begin(), seed);
  out.columns.assign(seed + 1, head.end());
  absl::StatusOr<std::vector<std::string>> objectives = ReadObjectives(path);
  if (!objectives.ok()) return objectives.status();
  out.objectives = *std::move(objectives);
  for (const std::string& objective : out.objectives) {
    if (std::find(out.columns.begin(), out.columns.end(), objective) == out.columns.end()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: has no column '{}'; run `wavetank sweep` again", path, objective));
    }
  }
  while (!rest.empty()) {
    const std::string_view read = std::string_view(text).substr(0, text.size() - rest.size());
    std::vector<std::string> cells = TakeCsvRecord(rest);
    const auto here = [&] { return 1 + std::count(read.begin(), read.end(), '\n'); };
    if (cells.size() != head.size()) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: {} cells where the head has {}; run `wavetank sweep` again",
                                                    path, here(), cells.size(), head.size()));
    }
    const auto first = cells.begin() + static_cast<ptrdiff_t>(settings);
    out.rows.push_back({{cells.begin(), first}, {first + 1, cells.end()}});
    if (SweepTable::Row& row = out.rows.back(); row.error().empty() && !ObjectivesOf(out, row)) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: neither an error nor results; run `wavetank sweep` again", path, here()));
    }
  }
  return out;
}

std::vector<Combination> CombinationsOf(const SweepTable& table) {
  std::vector<Combination> out;
  std::map<std::vector<std::string>, size_t> known;
  for (const SweepTable::Row& row : table.rows) {
    const auto objectives = ObjectivesOf(table, row);
    if (!row.error().empty() || !objectives) continue;
    const auto [it, fresh] = known.emplace(row.values, out.size());
    if (fresh) out.push_back({row.values, 0, *objectives});
    Combination& combination = out[it->second];
    ++combination.seeds;
    for (size_t i = 0; i < objectives->size(); ++i) {
      combination.worst[i] = std::max(combination.worst[i], (*objectives)[i]);
    }
  }
  return out;
}

std::vector<size_t> Front(const std::vector<Combination>& combinations, const std::vector<size_t>& objectives) {
  std::vector<size_t> order(combinations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) {
    std::vector<double> out;
    for (const size_t objective : objectives) out.push_back(combinations[i].worst[objective]);
    return out;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  // Whoever beats another stands before it, and if it is beaten itself, so does one on the front.
  std::vector<size_t> front;
  std::vector<std::vector<double>> best;
  for (const size_t i : order) {
    const std::vector<double> own = key(i);
    const bool beaten = std::any_of(best.begin(), best.end(), [&](const std::vector<double>& other) {
      return other != own && std::equal(other.begin(), other.end(), own.begin(), std::less_equal<>());
    });
    if (beaten) continue;
    front.push_back(i);
    best.push_back(own);
  }
  return front;
}

std::vector<Response> ResponsesTo(const std::vector<Combination>& combinations, size_t setting) {
  std::vector<Response> out;
  const size_t objectives = combinations.empty() ? 0 : combinations.front().worst.size();
  std::map<std::string, std::vector<std::vector<double>>> seen;
  bool ranked = true;
  for (const Combination& combination : combinations) {
    const std::string& value = combination.values[setting];
    const auto [it, fresh] = seen.try_emplace(value);
    if (fresh) {
      out.push_back({value, 0, {}});
      it->second.resize(objectives);
      ranked = ranked && Rank(value).has_value();
    }
    for (size_t i = 0; i < objectives; ++i) it->second[i].push_back(combination.worst[i]);
  }
  for (Response& response : out) {
    const auto& values = seen[response.value];
    response.combinations = static_cast<int64_t>(values[0].size());
    for (size_t i = 0; i < objectives; ++i) response.spread.push_back(SpreadOf(values[i]));
  }
  if (ranked) {
    std::stable_sort(out.begin(), out.end(),
                     [](const Response& a, const Response& b) { return Rank(a.value) < Rank(b.value); });
  }
  return out;
}

}  // namespace wavetank::capacity
