// The invariants by name, and which bugs of the simulated release are known to break them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::sim {

class Checker;

struct Invariant {
  std::string_view id, name, meaning;
  std::string_view incidents;  // that paid for it
  std::string_view cost;       // what watching it takes
  std::unique_ptr<Checker> (*make)();
};

// I1 to I20, in order.
std::span<const Invariant> Invariants();
// By name or ID; null: there is none.
const Invariant* FindInvariant(std::string_view name);
// "all", or names and IDs between commas; names in the catalogue's order. InvalidArgument names the one that is not
// there, and those that are near.
absl::StatusOr<std::vector<std::string>> ParseInvariants(std::string_view text);

// A bug of istiod by which it breaks an invariant on its own; of 1.18.2 where it names no release.
struct KnownBug {
  std::string_view id, what;
  std::string_view mended_by;  // the switch of profile istio-1.18; empty: none has it
};
std::span<const KnownBug> KnownBugs();
const KnownBug* FindKnownBug(std::string_view id);

}  // namespace wavetank::sim
