// Discovery messages as plain values (envoy.service.discovery.v3), so that the hot path copies no protobuf. Resources
// are encoded once and shared by all responses that carry them. core/xds/proto_adapter.h converts at the wire.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/trace.h"
#include "core/model/proxy.h"
#include "core/xds/generator.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// envoy.config.core.v3.Node, as far as istiod reads it.
struct Node {
  std::string id, cluster;
  ProxyLocality locality;
  nlohmann::json metadata;
};

struct ErrorDetail {
  int32_t code = 0;  // google.rpc.Code
  std::string message;
};

struct DiscoveryRequest {
  XdsType type = XdsType::kCds;
  std::string version_info, response_nonce;
  SharedVector<std::string> resource_names;  // a transport may share what many proxies repeat with every ACK
  std::shared_ptr<const Node> node;          // required in the first request of a stream, ignored later
  std::optional<ErrorDetail> error_detail;
};

struct DiscoveryResponse {
  XdsType type = XdsType::kCds;
  std::string version_info, nonce;
  ResourceList resources;
  int64_t bytes = 0;  // of all resources
};

struct DeltaDiscoveryRequest {
  XdsType type = XdsType::kCds;
  std::vector<std::string> resource_names_subscribe, resource_names_unsubscribe;
  std::map<std::string, std::string> initial_resource_versions;
  std::string response_nonce;
  std::shared_ptr<const Node> node;
  std::optional<ErrorDetail> error_detail;
};

struct DeltaDiscoveryResponse {
  XdsType type = XdsType::kCds;
  std::string system_version_info, nonce;
  ResourceList resources;
  std::vector<std::string> removed_resources;  // sorted
  int64_t bytes = 0;
};

}  // namespace wavetank::pilot
