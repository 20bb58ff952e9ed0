// PeerAuthentications by namespace, and the mTLS modes that follow from them; RequestAuthentications
// (istiod: pilot/pkg/model/authentication.go; pilot/pkg/security/authn).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/peer_authentication.h"
#include "core/config/kinds/request_authentication.h"
#include "core/model/service.h"

namespace wavetank::pilot {

// istiod: MutualTLSMode.
enum class MutualTlsMode : uint8_t { kUnknown, kDisable, kPermissive, kStrict };

// The one policy that a workload's PeerAuthentications amount to (istiod: authn.MergedPeerAuthentication).
struct MergedPeerAuthentication {
  MutualTlsMode mode = MutualTlsMode::kPermissive;
  std::map<uint32_t, MutualTlsMode> per_port;
  MutualTlsMode ForPort(uint32_t port) const {
    auto it = per_port.find(port);
    return it == per_port.end() ? mode : it->second;
  }
  friend bool operator==(const MergedPeerAuthentication&, const MergedPeerAuthentication&) = default;
};

class AuthenticationPolicies {
 public:
  AuthenticationPolicies() = default;
  // Both sorted by creation time. `by_target`: as of Attaches(), of RequestAuthentications.
  AuthenticationPolicies(const std::vector<config::PeerAuthenticationRef>& peers,
                         const std::vector<config::RequestAuthenticationRef>& requests, std::string root_namespace,
                         bool by_target);

  // By namespace's policy, else the mesh's; kUnknown when there is neither.
  MutualTlsMode GetNamespaceMutualTlsMode(std::string_view ns) const;
  // Those of its namespace, then those of the root namespace, each by creation time.
  std::vector<config::PeerAuthenticationRef> GetPeerAuthenticationsForWorkload(std::string_view ns,
                                                                               const Labels& labels) const;
  // The same of those that say which issuers' JWTs are accepted.
  std::vector<config::RequestAuthenticationRef> GetJwtPoliciesForWorkload(std::string_view ns,
                                                                          const Labels& labels) const;
  // What a workload's server side enforces (istiod: authn.ComposePeerAuthentication).
  MergedPeerAuthentication ComposeForWorkload(std::string_view ns, const Labels& labels) const;

  const std::string& root_namespace() const { return root_namespace_; }
  // Changes whenever any PeerAuthentication does: part of the EDS cache key.
  const std::string& version() const { return version_; }

 private:
  std::string root_namespace_, version_;
  std::map<std::string, std::vector<config::PeerAuthenticationRef>, std::less<>> by_namespace_;
  std::map<std::string, std::vector<config::RequestAuthenticationRef>, std::less<>> requests_by_namespace_;
  std::map<std::string, MutualTlsMode, std::less<>> namespace_modes_;
  bool by_target_ = false;
  MutualTlsMode global_mode_ = MutualTlsMode::kUnknown;
};

}  // namespace wavetank::pilot
