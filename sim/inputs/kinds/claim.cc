#include "nlohmann/json.hpp"
#include "sim/inputs/fields.h"
#include "sim/inputs/input.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

// What a source of evidence says of the real mesh at this instant. It changes nothing: a replay passes it by and judges
// what its own mesh did (import/judge/). Logs alone hold it, so that nobody else has to know the type.
struct Claim {
  static constexpr std::string_view kKind = "claim";
  nlohmann::json claim;  // docs/import.md says what it may hold

  void Fields(FieldVisitor& visitor) { visitor.Visit("claim", Need::kRequired, claim); }
  absl::Status Apply(InputTarget&) const { return absl::OkStatus(); }
};

}  // namespace
}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterClaim(InputTable& table) { table.Add<inputs::Claim>(); }
}  // namespace wavetank::sim
