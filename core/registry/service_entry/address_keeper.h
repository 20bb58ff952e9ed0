// Where addresses that ServiceEntries were given automatically outlive istiod: their statuses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/kube/object.h"

namespace wavetank::pilot {

// The `number`-th address of 240.240.0.0/16, and of 2001:2::/48.
struct AllocatedAddress {
  std::string host;
  uint32_t number = 0;
  friend bool operator==(const AllocatedAddress&, const AllocatedAddress&) = default;
};
using AllocatedAddresses = std::vector<AllocatedAddress>;

class AddressKeeper {
 public:
  virtual ~AddressKeeper() = default;
  // What is kept now, by ServiceEntry.
  virtual std::map<kube::NamespacedName, AllocatedAddresses> Kept() const = 0;
  // Keeps these instead; none: whatever stands there goes.
  virtual void Keep(const kube::NamespacedName& entry, const AllocatedAddresses& addresses) = 0;
};

}  // namespace wavetank::pilot
