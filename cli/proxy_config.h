// What a proxy holds, as `istioctl proxy-config` shows it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/verb.h"
#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::cli {

// The first row is the head. DataLoss: a resource is no message of its type.
absl::StatusOr<Rows> ProxyConfigTable(pilot::XdsType type, const scenario::XdsSnapshot& snapshot);
// The resources as JSON, in the form of protobuf's JSON mapping: an array of {"name", "resource"}.
// DataLoss: a resource is no message of its type.
absl::StatusOr<std::string> ProxyConfigJson(pilot::XdsType type, const scenario::XdsSnapshot& snapshot);
// The same with the fields' names as Envoy's admin interface writes them: cluster_name, not clusterName.
absl::StatusOr<std::string> AdminConfigJson(pilot::XdsType type, const scenario::XdsSnapshot& snapshot);

}  // namespace wavetank::cli
