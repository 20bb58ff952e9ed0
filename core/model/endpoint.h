// One endpoint of a service, as a registry sees it (istiod: pilot/pkg/model/service.go, IstioEndpoint).
//
// A mesh has many endpoints that differ in little but their address, so what they share is a profile of its own; a
// registry should hand the same profile to all endpoints of a workload.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/service.h"

namespace wavetank::pilot {

struct Locality {
  std::string label;  // "region/zone/subzone", parts may be missing
  ClusterId cluster;
  friend auto operator<=>(const Locality&, const Locality&) = default;
};

// istiod: HealthStatus, with Envoy's numbers. Endpoints of ServiceEntries and WorkloadEntries are kUnknown, which Envoy
// takes for healthy; those of Kubernetes Services are not. kTerminating is never sent.
enum class HealthStatus : uint8_t { kUnknown, kHealthy, kUnhealthy, kDraining, kTerminating };

inline constexpr std::string_view kDisabledTlsMode = "disabled";
inline constexpr std::string_view kMutualTlsMode = "istio";

// What generators made of a profile, kept with it as all endpoints of the workload need it (istiod keeps
// IstioEndpoint.EnvoyEndpoint): no part of its value, so that copies begin without and comparison does not look.
struct EncodedProfile {
  std::string metadata[2];       // with and without mTLS
  std::optional<bool> draining;  // by label
  EncodedProfile() = default;
  EncodedProfile(const EncodedProfile&) {}
  EncodedProfile& operator=(const EncodedProfile&) {
    for (std::string& text : metadata) text.clear();
    draining.reset();
    return *this;
  }
  friend bool operator==(const EncodedProfile&, const EncodedProfile&) { return true; }
};

struct EndpointProfile {
  Labels labels;
  std::string service_port_name;
  std::string service_account;  // SPIFFE URI
  NetworkId network;
  Locality locality;
  std::string tls_mode;  // kDisabledTlsMode, kMutualTlsMode or the pod's own
  std::string ns;
  std::string workload_name;
  std::string host_name, sub_domain;  // headless pods
  std::string node_name;
  std::vector<std::string> more_addresses;         // of the workload, after the endpoint's own (istiod: Addresses[1:])
  bool discoverable_in_same_cluster_only = false;  // EndpointDiscoverabilityPolicy
  int entry_port = 0;  // of a ServiceEntry's: the number of its port (istiod: LegacyClusterPortKey); 0: of another
  mutable EncodedProfile encoded = {};
  friend bool operator==(const EndpointProfile&, const EndpointProfile&) = default;
};

struct IstioEndpoint {
  std::string address;  // IP, host name of a DNS ServiceEntry endpoint, or "unix://path"
  uint32_t endpoint_port = 0;
  uint32_t lb_weight = 0;  // 0: not set
  HealthStatus health = HealthStatus::kUnknown;
  std::shared_ptr<const EndpointProfile> profile;

  const EndpointProfile& p() const { return *profile; }
  friend bool operator==(const IstioEndpoint& a, const IstioEndpoint& b) {
    return a.address == b.address && a.endpoint_port == b.endpoint_port && a.lb_weight == b.lb_weight &&
           a.health == b.health && (a.profile == b.profile || *a.profile == *b.profile);
  }
};

// A service, one of its ports and one endpoint of it (istiod: ServiceInstance).
struct ServiceInstance {
  ServiceRef service;
  Port service_port;
  IstioEndpoint endpoint;
};

}  // namespace wavetank::pilot
