// Writes to a cluster's API server, as kubectl would do them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// Creates or replaces an object.
struct ApplyObject {
  static constexpr std::string_view kKind = "apply";
  std::string cluster;
  nlohmann::json object;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct DeleteObject {
  static constexpr std::string_view kKind = "delete";
  std::string cluster, object_kind, ns, name;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// A JSON merge patch.
struct PatchObject {
  static constexpr std::string_view kKind = "patch";
  std::string cluster, object_kind, ns, name;
  nlohmann::json patch;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// A recorded cluster goes on as a live one: its controllers run from now on, and its workloads are what its pods tell
// of them (fakekube::Cluster::GoLive).
struct GoLive {
  static constexpr std::string_view kKind = "live";
  std::string cluster;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
