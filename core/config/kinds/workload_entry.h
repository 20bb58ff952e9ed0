// networking.istio.io WorkloadEntry; also the endpoints of ServiceEntries.
#pragma once

#include <map>
#include <string>

#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct WorkloadEntry {
  std::string address;
  std::map<std::string, uint32_t> ports;  // by name
  Labels labels;
  std::string network, locality;
  uint32_t weight = 0;
  std::string service_account;
  friend bool operator==(const WorkloadEntry&, const WorkloadEntry&) = default;
};
using WorkloadEntryRef = TypedConfigRef<WorkloadEntry>;

}  // namespace wavetank::config
