// MetalLB, as far as its objects say which addresses it tells the network of (metallb: speaker/layer2_controller.go,
// internal/config/config.go): an address of a pool that no advertisement of its namespace names is given to a Service
// and known inside the cluster alone.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/object.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

inline constexpr const char* kMetalLbPool = "IPAddressPool.metallb.io";
inline constexpr const char* kMetalLbAdvertisements[] = {"L2Advertisement.metallb.io", "BGPAdvertisement.metallb.io"};

// The pool that the address is of; null: it is of none.
kube::ObjectRef PoolOf(const ApiServer& api, std::string_view address);
// It is of no pool, or its pool is advertised.
bool AnnouncesByMetalLb(const ApiServer& api, std::string_view address);

// What a Service asks of whoever gives load balancers their addresses: one of its own (spec.loadBalancerIP, or
// MetalLB's annotation loadBalancerIPs). `refused`: MetalLB is there and gives it none, as the address is of none of
// its pools, or the pool that its annotation names is none (metallb: internal/allocator/allocator.go).
struct BalancerWish {
  std::string address;
  bool refused = false;
};
BalancerWish WishOf(const ApiServer& api, const kube::Object& service);
// The address is of no pool of MetalLB's, or of one whose addresses go to Services that ask for none (autoAssign), and
// to this one (serviceAllocation).
bool GivesByItself(const ApiServer& api, std::string_view address, const kube::Object& service);

}  // namespace wavetank::fakekube
