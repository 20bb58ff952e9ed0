// docs/results.schema.json describes what results are: nothing more, nothing less.
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/report.h"
#include "scenarios/runner/runner.h"
#include "tests/reports/small_result.h"

namespace wavetank::report {
namespace {

using nlohmann::ordered_json;

ordered_json Schema() {
  std::ifstream in(WAVETANK_SOURCE_DIR "/docs/results.schema.json");
  return ordered_json::parse(in);
}

// The part of JSON Schema that the file uses. Returns the first thing that is wrong, "" for nothing.
std::string Fault(const ordered_json& schema, const ordered_json& value, const std::string& place) {
  if (schema.contains("enum")) {
    const auto& choices = schema["enum"];
    return std::find(choices.begin(), choices.end(), value) == choices.end() ? place + ": none of the choices" : "";
  }
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"];  // "#/$defs/NAME"
    return Fault(Schema()["$defs"].at(name.substr(name.rfind('/') + 1)), value, place);
  }
  const std::string type = schema.at("type");
  const bool fits = type == "object"    ? value.is_object()
                    : type == "array"   ? value.is_array()
                    : type == "integer" ? value.is_number_integer()
                    : type == "number"  ? value.is_number()
                    : type == "boolean" ? value.is_boolean()
                                        : value.is_string();
  if (!fits) return place + ": is no " + type;
  if (type == "array") {
    for (const auto& item : value) {
      if (std::string fault = Fault(schema["items"], item, place + "[]"); !fault.empty()) return fault;
    }
  }
  if (type != "object") return "";
  if (schema.contains("required")) {
    for (const std::string key : schema["required"]) {
      if (!value.contains(key)) return place + ": lacks " + key;
    }
  }
  for (const auto& [key, item] : value.items()) {
    const bool known = schema.contains("properties") && schema["properties"].contains(key);
    if (!known && schema.value("additionalProperties", ordered_json()) == false) return place + ": has " + key;
    const ordered_json& part = known ? schema["properties"][key] : schema["additionalProperties"];
    if (std::string fault = Fault(part, item, place + "." + key); !fault.empty()) return fault;
  }
  return "";
}

TEST(ResultsSchemaTest, ASmallResultFits) {
  EXPECT_EQ(Fault(Schema()["$defs"]["run"], ResultsJson(SmallResult()), "run"), "");
}

TEST(ResultsSchemaTest, ARealRunFits) {
  const absl::StatusOr<scenario::Scenario> scenario =
      scenario::LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/two-roots");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const absl::StatusOr<scenario::RunResult> result = scenario::Run(*scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const ordered_json json = ResultsJson(*result);
  EXPECT_EQ(Fault(Schema()["$defs"]["run"], json, "run"), "");
  EXPECT_FALSE(json["steps"][0]["traffic"][0]["series"].empty());
  EXPECT_FALSE(json["deadPaths"].empty());
}

TEST(ResultsSchemaTest, TheCheckItselfSeesWhatDoesNotFit) {
  const ordered_json run = ResultsJson(SmallResult());
  for (const char* key : {"digest", "steps", "topology"}) {
    ordered_json without = run;
    without.erase(key);
    EXPECT_EQ(Fault(Schema()["$defs"]["run"], without, "run"), std::string("run: lacks ") + key);
  }
  ordered_json more = run;
  more["steps"][0]["colour"] = "red";
  EXPECT_EQ(Fault(Schema()["$defs"]["run"], more, "run"), "run.steps[]: has colour");
  ordered_json wrong = run;
  wrong["seed"] = "seven";
  EXPECT_EQ(Fault(Schema()["$defs"]["run"], wrong, "run"), "run.seed: is no integer");
}

}  // namespace
}  // namespace wavetank::report
