#include "sim/inputs/kinds/claim.h"

#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void Claim::Fields(FieldVisitor& visitor) { visitor.Visit("claim", Need::kRequired, claim); }

absl::Status Claim::Apply(InputTarget&) const { return absl::OkStatus(); }

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterClaim(InputTable& table) { table.Add<inputs::Claim>(); }
}  // namespace wavetank::sim
