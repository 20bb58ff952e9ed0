// RBAC rules compiled to what Istio's policies use: principals, source addresses, ports, paths and methods.
#pragma once

#include "absl/status/statusor.h"
#include "fakes/envoy/listener_config.h"

namespace envoy::config::rbac::v3 {
class RBAC;
}

namespace wavetank::envoysim {

absl::StatusOr<RbacConfig> CompileRbac(const envoy::config::rbac::v3::RBAC& rules);

// What a rule is asked about.
struct RbacSubject {
  std::string_view principal;  // verified URI SAN; empty without mTLS
  IpAddress source;
  uint16_t port = 0;
  std::string_view path, method;  // empty at the network level
};

// The policy that decides, if the connection or request is refused. An ALLOW filter without a matching policy refuses
// as "none".
std::optional<std::string_view> Denied(const RbacConfig& config, const RbacSubject& subject);

}  // namespace wavetank::envoysim
