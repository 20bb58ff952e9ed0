// networking.istio.io ServiceEntry.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/kinds/typed_config.h"
#include "core/config/kinds/workload_entry.h"

namespace wavetank::config {

struct ServiceEntry {
  enum class Location : uint8_t { kMeshExternal, kMeshInternal };
  enum class Resolution : uint8_t { kNone, kStatic, kDns, kDnsRoundRobin, kDynamicDns };
  std::vector<std::string> hosts, addresses, export_to, subject_alt_names;
  std::vector<PortSpec> ports;
  Location location = Location::kMeshExternal;
  Resolution resolution = Resolution::kNone;
  std::vector<WorkloadEntry> endpoints;
  std::optional<Labels> workload_selector;
  friend bool operator==(const ServiceEntry&, const ServiceEntry&) = default;
};
using ServiceEntryRef = TypedConfigRef<ServiceEntry>;

}  // namespace wavetank::config
