#include "sim/world_inputs.h"

#include "core/base/assert.h"
#include "fmt/format.h"
#include "sim/inputs/input.h"

namespace wavetank::sim {

absl::StatusOr<World::Site*> InputTarget::FindSite(std::string_view name) const {
  if (World::Site* site = world.FindSite(name); site != nullptr) return site;
  return absl::InvalidArgumentError(fmt::format("no cluster of this world is named '{}'", name));
}

std::vector<PodProcess*> InputTarget::AllPods() const {
  std::vector<PodProcess*> out;
  for (const auto& site : sites) {
    for (const auto& [name, pod] : site->pods()) out.push_back(pod.get());
  }
  return out;
}

absl::Status World::Do(const Input& input, KubeExchange* exchange) {
  // What is due now comes first, so that inputs at one instant mean the same in a replay, where time is advanced to it
  // before each.
  kernel_.RunUntil(Now());
  const assertion::ScopedRun run(kernel_.run());
  // What the world reads is what a log of it says: one value, whatever a client put into it.
  const absl::StatusOr<Input> read = input.AsItsTextSays();
  if (!read.ok()) return read.status();
  ScopedCause scope(*host_, kernel_.causes().Of(inputs_));
  const uint64_t number = inputs_++;
  on_input.Tell(number, Now(), *read);
  InputTarget target{.world = *this,
                     .options = options_,
                     .profile = profile_,
                     .host = *host_,
                     .links = *links_,
                     .commons = commons_,
                     .issuers = *issuers_,
                     .outside = *outside_,
                     .traffic = traffic_,
                     .sites = sites_,
                     .secret_generations = secret_generations_,
                     .subscriptions = subscriptions_,
                     .exchange = exchange};
  return read->Apply(target);
}

}  // namespace wavetank::sim
