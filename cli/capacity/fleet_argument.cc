#include "cli/capacity/fleet_argument.h"

#include <fmt/format.h>

#include <iostream>

#include "capacity/fleet/fleet_text.h"
#include "capacity/fleet/scale.h"
#include "cli/verb.h"
#include "replay/world_target.h"

namespace wavetank::cli {
namespace {

absl::StatusOr<capacity::RecordedFleet> Unscaled(const FleetArgument& argument) {
  if (replay::LooksLikeLog(argument.path)) {
    absl::StatusOr<replay::SecretSource> secrets = replay::SecretSource::Load(argument.secrets);
    if (!secrets.ok()) return secrets.status();
    Progress progress;
    return capacity::FleetOfLog(argument.path, *std::move(secrets), [&](std::string_view what) { progress.Say(what); });
  }
  absl::StatusOr<capacity::Fleet> fleet = capacity::LoadFleet(argument.path);
  if (!fleet.ok()) return fleet.status();
  return capacity::RecordedFleet{*std::move(fleet), {}};
}

}  // namespace

absl::StatusOr<capacity::RecordedFleet> ReadFleet(const FleetArgument& argument) {
  double times = 1;
  if (!argument.scale.empty()) {
    const absl::StatusOr<double> asked = capacity::ParseScale(argument.scale);
    if (!asked.ok()) return asked.status();
    times = *asked;
  }
  absl::StatusOr<capacity::RecordedFleet> read = Unscaled(argument);
  if (!read.ok() || argument.scale.empty()) return read;
  read->fleet = capacity::ScaledWithChurn(read->fleet, times);
  read->fleet.name += fmt::format(", {:g} times as large", times);
  // A larger fleet may be none that can be: its page says why.
  const absl::StatusOr<capacity::Fleet> possible =
      capacity::ParseFleet("--scale " + argument.scale, capacity::FleetText(read->fleet));
  if (!possible.ok()) return possible.status();
  return read;
}

void SayNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
}

}  // namespace wavetank::cli
