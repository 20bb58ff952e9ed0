#include "scenarios/language/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/ip.h"
#include "core/base/status.h"
#include "scenarios/language/scenario.h"

namespace wavetank::scenario {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kDurationPattern[] =
    "^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)\\s*(ns|us|µs|ms|s|m|min|h)(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h))*$";

FieldRow Row(std::string_view name, FieldType type, std::string_view meaning) {
  FieldRow row;
  row.name = name;
  row.type = type;
  row.meaning = meaning;
  return row;
}

const char* Example(Range::Unit unit) {
  switch (unit) {
    case Range::Unit::kShare:
      return ">= 10%";
    case Range::Unit::kDuration:
      return "<= 500ms";
    default:
      return "<= 3";
  }
}

// Nothing is nothing in any unit; any other quantity has to be of one that it can have.
void CheckRange(const Field& f, const FieldRow& row) {
  const absl::StatusOr<Range> range = ParseRange(f.Text());
  if (!range.ok()) return f.Fail(Message(range.status()), "write 0, <= 3, >= 10%, 40..60% or <= 500ms");
  if (range->text == "0" || std::find(row.units.begin(), row.units.end(), range->unit) != row.units.end()) return;
  std::vector<std::string> examples;
  for (const Range::Unit unit : row.units) examples.emplace_back(Example(unit));
  f.Fail(fmt::format("'{}' has another unit than {} has", range->text, row.name),
         fmt::format("write something like {}", fmt::join(examples, " or ")));
}

void CheckCluster(const Field& f, const Scenario* scenario) {
  const std::string name = f.Text();
  if (scenario == nullptr || scenario->FindCluster(name) != nullptr) return;
  f.Fail(fmt::format("no cluster is named '{}'", name), "name one of the scenario's clusters");
}

void CheckNamespaced(const Field& f) {
  const std::string text = f.Text();
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size())
    f.Fail(fmt::format("'{}' is not namespace/name", text), "write sample/helloworld-v2");
}

void CheckLength(const Field& f, const FieldRow& row) {
  const auto size = static_cast<int64_t>(f.Items().size());
  if (size < row.low || size > row.high)
    f.Fail(row.low == row.high ? fmt::format("has {} items", size)
                               : fmt::format("has {} item{}", size, size == 1 ? "" : "s"),
           row.low == row.high ? fmt::format("give {}", row.low) : fmt::format("give {} to {}", row.low, row.high));
}

void CheckValue(const Field& f, const FieldRow& row, const Scenario* scenario) {
  switch (row.type) {
    case FieldType::kText:
    case FieldType::kPath:
      f.Text();
      return;
    case FieldType::kCluster:
      return CheckCluster(f, scenario);
    case FieldType::kFlow:
      if (scenario != nullptr && scenario->FindFlow(f.Text()) == nullptr)
        f.Fail(fmt::format("no flow is named '{}'", f.Text()), "name one of the scenario's flows");
      return;
    case FieldType::kNamespacedName:
      return CheckNamespaced(f);
    case FieldType::kInteger:
      f.Integer(0, row.low, row.high);
      return;
    case FieldType::kFlag:
      f.Flag(false);
      return;
    case FieldType::kDuration:
      f.Time(0ns);
      return;
    case FieldType::kSignedDuration:
      f.SignedTime(0ns);
      return;
    case FieldType::kShare:
      f.Share(0);
      return;
    case FieldType::kRate:
      f.RatePerKilosecond(0);
      return;
    case FieldType::kChoice:
      f.OneOf(row.choices, "");
      return;
    case FieldType::kTexts:
      for (const Field& item : f.Items()) item.Text();
      return CheckLength(f, row);
    case FieldType::kClusters:
      CheckLength(f, row);
      for (const Field& item : f.Items()) CheckCluster(item, scenario);
      return;
    case FieldType::kAddresses:
      for (const Field& address : f.Items()) {
        if (!IpAddress::Parse(address.Text()).ok()) address.Fail("is no IP address", "write one such as 172.30.1.9");
      }
      return;
    case FieldType::kTextMap:
      for (const auto& [name, value] : f.Entries()) value.Text();
      return;
    case FieldType::kShares:
      for (const auto& [name, value] : f.Entries()) value.Share(0);
      return;
    case FieldType::kRange:
      return CheckRange(f, row);
    case FieldType::kObject:
      if (!f.IsMap()) f.Fail("expected a mapping");
      return;
    case FieldType::kTextOrObject:
      if (!f.IsMap()) f.Text();
      return;
    case FieldType::kMapping:
    case FieldType::kMappings:
    case FieldType::kManifests:
    case FieldType::kObjects:
      return;  // whoever reads them looks into them
  }
}

Json Typed(const char* type) { return Json{{"type", type}}; }

std::string RangeHint() { return ": 0, <= 3, >= 10%, 40..60%, <= 500ms"; }

Json SchemaOfValue(const FieldRow& row) {
  const Json scalar = {"string", "number", "boolean"};
  switch (row.type) {
    case FieldType::kText:
    case FieldType::kCluster:
    case FieldType::kFlow:
    case FieldType::kPath:
      return Typed("string");
    case FieldType::kNamespacedName:
      return {{"type", "string"}, {"pattern", "^[^/]+/.+$"}};
    case FieldType::kInteger: {
      Json out = {{"type", "integer"}, {"minimum", row.low}};
      if (row.high != INT64_MAX) out["maximum"] = row.high;
      return out;
    }
    case FieldType::kFlag:
      return Typed("boolean");
    case FieldType::kDuration:
      return {{"type", "string"}, {"pattern", kDurationPattern}};
    case FieldType::kSignedDuration:
      return {{"type", "string"}, {"pattern", std::string("^-?") + (kDurationPattern + 1)}};
    case FieldType::kShare:
      return {{"type", {"string", "number"}}};
    case FieldType::kRate:
      return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?/(s|m|min)$"}};
    case FieldType::kChoice: {
      Json choices = Json::array();
      for (const std::string_view choice : row.choices) choices.push_back(choice);
      return {{"enum", choices}};
    }
    case FieldType::kTexts:
    case FieldType::kClusters:
    case FieldType::kAddresses: {
      Json out = {{"type", {"array", "string"}}, {"items", {{"type", scalar}}}};
      if (row.low > 1) out["type"] = "array";
      if (row.low > 0) out["minItems"] = row.low;
      if (row.high != INT64_MAX) out["maxItems"] = row.high;
      return out;
    }
    case FieldType::kTextMap:
      return {{"type", "object"}, {"additionalProperties", {{"type", scalar}}}};
    case FieldType::kShares:
      return {{"type", "object"}, {"additionalProperties", {{"type", {"string", "number"}}}}};
    case FieldType::kRange:
      return {{"type", {"string", "integer"}}};
    case FieldType::kMapping:
      return {{"$ref", fmt::format("#/$defs/{}", row.row)}};
    case FieldType::kMappings: {
      Json out = {{"type", "array"}, {"items", {{"$ref", fmt::format("#/$defs/{}", row.row)}}}};
      if (row.low > 0) out["minItems"] = row.low;
      return out;
    }
    case FieldType::kManifests:
      return {{"type", "array"}, {"items", {{"anyOf", {{{"type", "string"}}, {{"$ref", "#/$defs/manifest"}}}}}}};
    case FieldType::kObject:
      return Typed("object");
    case FieldType::kObjects:
      return {{"type", {"array", "object"}}, {"items", {{"type", "object"}}}};
    case FieldType::kTextOrObject:
      return {{"type", {"string", "object"}}};
  }
  return {};
}

nlohmann::json ReadValue(const Field& f, const FieldRow& row) {
  switch (row.type) {
    case FieldType::kInteger:
      return f.Integer(0, row.low, row.high);
    case FieldType::kFlag:
      return f.Flag(false);
    case FieldType::kTexts:
    case FieldType::kClusters:
    case FieldType::kAddresses: {
      nlohmann::json out = nlohmann::json::array();
      for (const Field& item : f.Items()) out.push_back(item.Text());
      return out;
    }
    case FieldType::kTextMap:
    case FieldType::kShares: {
      nlohmann::json out = nlohmann::json::object();
      for (const auto& [name, value] : f.Entries()) out[name] = value.Text();
      return out;
    }
    case FieldType::kMappings:
    case FieldType::kObjects: {
      nlohmann::json out = nlohmann::json::array();
      for (const Field& item : f.Items()) out.push_back(item.Json());
      return out;
    }
    case FieldType::kMapping:
    case FieldType::kManifests:
    case FieldType::kObject:
      return f.Json();
    case FieldType::kTextOrObject:
      if (f.IsMap()) return f.Json();
      return f.Text();
    default:
      return f.Text();
  }
}

}  // namespace

namespace row {

FieldRow Text(std::string_view name, std::string_view meaning) { return Row(name, FieldType::kText, meaning); }
FieldRow Cluster(std::string_view name, std::string_view meaning) { return Row(name, FieldType::kCluster, meaning); }
FieldRow Named(std::string_view name, std::string_view meaning) {
  return Row(name, FieldType::kNamespacedName, meaning);
}
FieldRow Integer(std::string_view name, int64_t low, int64_t high, std::string_view meaning) {
  FieldRow out = Row(name, FieldType::kInteger, meaning);
  out.low = low;
  out.high = high;
  return out;
}
FieldRow Choice(std::string_view name, std::vector<std::string_view> choices, std::string_view meaning) {
  FieldRow out = Row(name, FieldType::kChoice, meaning);
  out.choices = std::move(choices);
  return out;
}
FieldRow Range(std::string_view name, std::vector<scenario::Range::Unit> units, std::string_view meaning) {
  FieldRow out = Row(name, FieldType::kRange, meaning);
  out.units = std::move(units);
  return out;
}
FieldRow Mapping(std::string_view name, std::string_view of, std::string_view meaning) {
  FieldRow out = Row(name, FieldType::kMapping, meaning);
  out.row = of;
  return out;
}
FieldRow Mappings(std::string_view name, std::string_view of, std::string_view meaning) {
  FieldRow out = Row(name, FieldType::kMappings, meaning);
  out.row = of;
  return out;
}
FieldRow Other(std::string_view name, FieldType type, std::string_view meaning) { return Row(name, type, meaning); }

}  // namespace row

std::vector<std::string_view> MappingRow::Names() const {
  std::vector<std::string_view> out;
  for (const FieldRow& field : fields) out.push_back(field.name);
  return out;
}

const MappingRow& ClientRow() {
  static const auto* const row =
      new MappingRow{"client",
                     "Pods of an app",
                     {row::Cluster().Required(), row::Text("namespace", "Namespace; default if left out"),
                      row::Text("app", "The pods' label app, or app.kubernetes.io/name").Required()}};
  return *row;
}

const MappingRow& RetriesRow() {
  static const auto* const row = new MappingRow{
      "retries",
      "A client's own retries, beside those of its proxy",
      {row::Integer("attempts", 1, 100, "In all").Required(),
       row::Other("backOff", FieldType::kDuration, "Before the second, then twice as long each time; 25ms if left out"),
       row::Other("most", FieldType::kDuration, "But never longer; 10s if left out"),
       row::Other("on", FieldType::kTexts,
                  "5xx, 4xx, gateway-error, no-answer (refused, reset, timed out), a status; 5xx and no-answer if left "
                  "out")}};
  return *row;
}

Field FieldOf(const Field& f, const MappingRow& row, std::string_view name) {
  return f.IsScalar() && name == row.bare ? f : f[std::string(name)];
}

void CheckMapping(const Field& f, const MappingRow& row, const Scenario* scenario) {
  if (!f.present()) {
    // An empty mapping lacks what it must have, and may be left as it is otherwise.
    for (const FieldRow& field : row.fields) {
      if (field.required) return f.Fail(fmt::format("lacks {}", field.name), "add it");
    }
    return;
  }
  if (row.bare.empty() || !f.IsScalar()) f.ExpectKeys(row.Names());
  if (!f.IsMap() && (row.bare.empty() || !f.IsScalar())) return;
  for (const FieldRow& field : row.fields) {
    const Field value = FieldOf(f, row, field.name);
    if (value.present()) {
      CheckValue(value, field, scenario);
    } else if (field.required) {
      value.Fail("is required but missing", field.type == FieldType::kChoice
                                                ? fmt::format("write one of {}", fmt::join(field.choices, ", "))
                                                : std::string("add it"));
    }
  }
  if (row.one_of.empty()) return;
  const auto given = std::count_if(row.one_of.begin(), row.one_of.end(),
                                   [&](std::string_view name) { return f[std::string(name)].present(); });
  if (given != 1)
    f.Fail(given == 0 ? "says not what it is about" : "says twice what it is about",
           fmt::format("give one of {}", fmt::join(row.one_of, ", ")));
}

nlohmann::json ReadMapping(const Field& f, const MappingRow& row) {
  nlohmann::json out = nlohmann::json::object();
  for (const FieldRow& field : row.fields) {
    const Field value = f[std::string(field.name)];
    if (value.present()) out[std::string(field.name)] = ReadValue(value, field);
  }
  return out;
}

Json SchemaOf(const MappingRow& row) {
  Json properties = Json::object(), required = Json::array();
  for (const FieldRow& field : row.fields) {
    Json value = SchemaOfValue(field);
    // A reference stands alone, as schemas of old have it.
    if (!field.meaning.empty() && field.type != FieldType::kMapping) {
      value["description"] = std::string(field.meaning) + (field.type == FieldType::kRange ? RangeHint() : "");
    }
    properties[std::string(field.name)] = std::move(value);
    if (field.required) required.push_back(field.name);
  }
  Json out = {{"type", "object"}};
  if (!row.bare.empty()) out["type"] = {"object", "string", "integer"};
  if (!row.meaning.empty()) out["description"] = row.meaning;
  out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  if (!row.one_of.empty()) {
    out["oneOf"] = Json::array();
    for (const std::string_view name : row.one_of) out["oneOf"].push_back({{"required", Json::array({name})}});
  }
  out["additionalProperties"] = false;
  if (row.single) {
    out["minProperties"] = 1;
    out["maxProperties"] = 1;
  }
  return out;
}

}  // namespace wavetank::scenario
