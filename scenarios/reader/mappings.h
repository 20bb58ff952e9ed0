// The rows of all mappings of the language, the actions' and the expectations' included.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "scenarios/language/rows.h"

namespace wavetank::scenario {

// In the schema's order: "scenario" first, "action.scale" and "expect.split" among them.
const std::vector<MappingRow>& AllMappings();
// One of them; its name must be known.
const MappingRow& MappingNamed(std::string_view name);

// scenarios/scenario.schema.json, as `wavetank schema` prints it.
nlohmann::ordered_json ScenarioSchema();

// The tables of scenarios/README.md, as `wavetank schema --tables` prints them: lines of Markdown.
std::string ActionTable();
std::string ExpectationTable();

}  // namespace wavetank::scenario
