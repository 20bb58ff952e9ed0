// Behaviour profiles: a release of Istio with its known bugs, and one named change per rule that differs between
// releases (the tables: core/profile/releases.h; the names: core/profile/changes.h).
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::pilot {

enum class Change : uint8_t;  // core/profile/changes.h, which only those include that ask for a change

struct Profile {
  // The base, and the releases that it stands for. They live as long as the program.
  std::string_view base = "istio-1.18";
  std::string_view istio = "1.18.2";  // tags of images, and what a proxy calls itself whose tag is no version
  std::string_view envoy = "1.26";    // of the Envoy that the release ships

  // What differs from Istio 1.18.2; by Change.
  std::bitset<256> changes;

  bool Has(Change change) const { return changes[static_cast<size_t>(change)]; }
  void Set(Change change, bool so = true) { changes[static_cast<size_t>(change)] = so; }
  std::string Name() const;  // "istio-1.18+gateway-once-per-cla"
  bool operator==(const Profile&) const = default;
};

// A base followed by any number of "+change" (it is so) and "-change" (it is not so), whatever the base says of them.
// InvalidArgument lists the known bases.
absl::StatusOr<Profile> ParseProfile(std::string_view name);

}  // namespace wavetank::pilot
