// A ClusterLoadAssignment on its way to the wire.
//
// Endpoints of one workload differ in little but their address, so what they share (their metadata) is encoded once, as
// a shape, and an endpoint refers to it. The bytes are those of protobuf's deterministic serialisation: fields by
// number, map entries by key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/endpoint.h"

namespace wavetank::pilot {

// Shared by the endpoints of a workload, and by all gateways of an assignment.
struct EndpointShape {
  // Field LbEndpoint.metadata, encoded with its tag: the profile's (ProfileMetadata), or LoadAssignment's own.
  std::string_view metadata;
  const Labels* labels = nullptr;                            // of the workload; failoverPriority looks at them
  const std::vector<std::string>* more_addresses = nullptr;  // Endpoint.additional_addresses; null or empty: none
};

// Points into the endpoint index or the gateways; lives no longer than they do.
struct LbEndpoint {
  const std::string* address = nullptr;
  uint32_t port = 0;
  uint32_t weight = 1;
  uint32_t shape = 0;  // index into LoadAssignment::shapes
  uint8_t health = 0;  // envoy.config.core.v3.HealthStatus; 0 is UNKNOWN
};

struct LocalityLbEndpoints {
  std::string_view locality;       // "region/zone/subzone"
  std::optional<uint32_t> weight;  // not set: Envoy does not use the locality
  uint32_t priority = 0;
  std::vector<LbEndpoint> endpoints;

  // The sum of the endpoints' weights, which wraps as istiod's does.
  uint32_t SumOfWeights() const;
};

struct LoadAssignment {
  std::vector<EndpointShape> shapes;
  std::vector<LocalityLbEndpoints> localities;
  std::vector<std::unique_ptr<const Labels>> owned_labels;          // of shapes that are no workload's
  std::vector<std::unique_ptr<const std::string>> owned_metadata;   // the same
  std::vector<std::unique_ptr<const std::string>> owned_addresses;  // of gateways that were chosen for one proxy
  std::vector<std::vector<LbEndpoint>> spare;                       // memory for localities to come

  size_t EndpointCount() const;
  // A serialised envoy.config.endpoint.v3.ClusterLoadAssignment, in `buffer` until its next use.
  std::string_view Encode(std::string_view cluster_name, std::string& buffer) const;
  std::string Encode(std::string_view cluster_name) const;

  // Empty, but for the memory of what it held: a caller that makes one after the other allocates for the largest only.
  void Clear();
  std::vector<LbEndpoint> TakeSpare();
};

// The fields of an endpoint's metadata (istiod: pilot/pkg/networking/util/util.go, AppendLbEndpointMetadata).
struct EndpointMetadata {
  std::string_view tls_mode;  // empty or kDisabledTlsMode: no transport socket match
  std::string_view workload_name, ns, cluster;
  const Labels* labels = nullptr;
};
// Field LbEndpoint.metadata with its tag: which transport socket to use, and the workload for telemetry.
std::string EncodeEndpointMetadata(const EndpointMetadata& metadata);
// The same of a profile, made when first asked for and kept with it; `without_tls`: as if it had no mTLS.
const std::string& ProfileMetadata(const EndpointProfile& profile, bool without_tls);

}  // namespace wavetank::pilot
