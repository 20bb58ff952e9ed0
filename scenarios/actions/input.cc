#include "sim/inputs/input.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "scenarios/actions/action.h"

namespace wavetank::scenario {

void RegisterInput(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"input",
               "An input as event logs have it (`wavetank replay --inputs`), for what no other action says",
               {row::Text("kind", "Its kind").Required(), row::Other("body", FieldType::kObject, "Its body")}},
       .example = "{kind: stopTraffic, body: {id: one}}",
       .what = "what an event log holds, word for word; `wavetank export` writes it",
       .describe = [](const Arguments& a) { return fmt::format("input {}", a.Text("kind")); },
       .inputs = [](const Arguments& a, const ActionContext& context) -> Inputs {
         absl::StatusOr<sim::Input> input = sim::Input::Parse(a.Text("kind"), a.Json("body"));
         if (input.ok()) return std::vector<sim::Input>{*std::move(input)};
         return absl::InvalidArgumentError(
             fmt::format("{}:{}: input: {}", context.scenario.file, a.line(), Message(input.status())));
       }});
}

}  // namespace wavetank::scenario
