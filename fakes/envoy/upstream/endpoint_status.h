// Endpoints as an Envoy's admin interface lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ip.h"

namespace wavetank::envoysim {

struct ClusterConfig;
struct EndpointTable;

// The endpoints of one cluster without their health, as they are in use: valid until the world goes on. Envoys that
// were told the same share both.
struct EndpointsInUse {
  std::string_view cluster;
  const ClusterConfig* config = nullptr;
  const EndpointTable* table = nullptr;  // null: none has come
  std::vector<SocketAddress> dialled;    // of ORIGINAL_DST
};

// One endpoint as `istioctl proxy-config endpoints` lists it.
struct EndpointStatus {
  std::string cluster;
  std::string address;
  uint32_t weight = 0;
  uint32_t priority = 0;
  std::string locality;  // "region/zone/subzone"
  bool healthy = true;
  bool outlier_ejected = false;
  bool tls = false;  // the transport socket that would be chosen is TLS
  // Of active health checks, in the order of Envoy's health flags after those of the control plane.
  bool failed_active_hc : 1 = false, degraded_active_hc : 1 = false, pending_dynamic_removal : 1 = false;
  bool pending_active_hc : 1 = false, excluded_via_immediate_hc_fail : 1 = false, active_hc_timeout : 1 = false;
};

// Its flags in Envoy's words and order, "/failed_active_hc/active_hc_timeout"; empty: none.
// Envoy: source/common/upstream/host_utility.cc, healthFlagsToString
std::string HealthFlags(const EndpointStatus& endpoint);

}  // namespace wavetank::envoysim
