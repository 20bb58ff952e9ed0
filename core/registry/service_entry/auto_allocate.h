// Virtual addresses for ServiceEntries without addresses
// (istiod: pilot/pkg/serviceregistry/serviceentry/controller.go, autoAllocateIPs).
#pragma once

#include <string>
#include <vector>

#include "core/model/service.h"

namespace wavetank::pilot {

// No address of its own, resolution other than NONE, and no wildcard host unless it is DYNAMIC_DNS.
bool NeedsAutoAllocation(const Service& service);

// One address of 240.240.0.0/16 per service of `services`, in their order; empty for those that get none (an address
// of its own, a wildcard host, resolution NONE). The same set in the same order gets the same addresses everywhere.
// O(n log n), however full the range is until it overflows.
std::vector<std::string> AutoAllocateIps(const std::vector<ServiceRef>& services);

}  // namespace wavetank::pilot
