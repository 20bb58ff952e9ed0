#include "sim/inputs/kinds/buggify.h"

#include <memory>
#include <optional>

#include "core/base/buggify/buggify.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void SwitchBuggify::Fields(FieldVisitor& visitor) {
  visitor.Visit("seed", Need::kLenient, seed);
  visitor.Visit("points", Need::kLenient, points);
}

absl::Status SwitchBuggify::Apply(InputTarget& target) const {
  std::vector<BuggifyPoint> on;
  for (const std::string& name : points) {
    const std::optional<BuggifyPoint> point = FindBuggifyPoint(name);
    if (!point) return absl::InvalidArgumentError(fmt::format("buggify: no point is called '{}'", name));
    on.push_back(*point);
  }
  assertion::RunContext& run = target.world.kernel().run();
  Buggify* buggify = Buggify::Of(&run);
  if (buggify == nullptr) {
    auto made = std::make_shared<Buggify>(run, seed);
    buggify = made.get();
    target.subscriptions.Add(Subscription(std::move(made)));
  }
  buggify->Switch(on);
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterBuggify(InputTable& table) { table.Add<inputs::SwitchBuggify>(); }
}  // namespace wavetank::sim
