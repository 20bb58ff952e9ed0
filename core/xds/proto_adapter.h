// Discovery messages between their protobuf form (envoy.service.discovery.v3) and the plain values of messages.h.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/xds/messages.h"

namespace envoy::config::core::v3 {
class Node;
}
namespace envoy::service::discovery::v3 {
class DeltaDiscoveryRequest;
class DeltaDiscoveryResponse;
class DiscoveryRequest;
class DiscoveryResponse;
}  // namespace envoy::service::discovery::v3
namespace google::protobuf {
class Struct;
}

namespace wavetank::pilot {

// Requests come from outside: InvalidArgument names an unknown type URL or a node that cannot be read.
absl::StatusOr<DiscoveryRequest> FromProto(const envoy::service::discovery::v3::DiscoveryRequest& in);
absl::StatusOr<DeltaDiscoveryRequest> FromProto(const envoy::service::discovery::v3::DeltaDiscoveryRequest& in);
std::shared_ptr<const Node> FromProto(const envoy::config::core::v3::Node& in);

void ToProto(const DiscoveryResponse& in, envoy::service::discovery::v3::DiscoveryResponse* out);
void ToProto(const DeltaDiscoveryResponse& in, envoy::service::discovery::v3::DeltaDiscoveryResponse* out);

// Node as Envoy sends it; `metadata` becomes a google.protobuf.Struct.
void ToProto(const Node& in, envoy::config::core::v3::Node* out);

// `in` is an object.
void ToProto(const nlohmann::json& in, google::protobuf::Struct* out);

}  // namespace wavetank::pilot
