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
  std::string metadata;            // field LbEndpoint.metadata, encoded with its tag
  const Labels* labels = nullptr;  // of the workload; failoverPriority looks at them
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
  std::vector<std::unique_ptr<const Labels>> owned_labels;  // of shapes that are no workload's

  size_t EndpointCount() const;
  // A serialised envoy.config.endpoint.v3.ClusterLoadAssignment; allocates a fixed number of times.
  std::string Encode(std::string_view cluster_name) const;
};

// The fields of an endpoint's metadata (istiod: pilot/pkg/networking/util/util.go, AppendLbEndpointMetadata).
struct EndpointMetadata {
  std::string_view tls_mode;  // empty or kDisabledTlsMode: no transport socket match
  std::string_view workload_name, ns, cluster;
  const Labels* labels = nullptr;
};
// Field LbEndpoint.metadata with its tag: which transport socket to use, and the workload for telemetry.
std::string EncodeEndpointMetadata(const EndpointMetadata& metadata);

}  // namespace wavetank::pilot
