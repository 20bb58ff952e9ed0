// Principals of policies over the mesh's trust domains: a principal of one of them stands for the same in all
// (istiod: pilot/pkg/security/trustdomain).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/mesh/mesh_config.h"

namespace wavetank::pilot::authz {

class TrustDomains {
 public:
  explicit TrustDomains(const config::MeshConfig& mesh);

  // Each principal of one of the domains, or of "cluster.local", in all of them; others as they are. Not idempotent:
  // what comes out twice goes in as twice as many.
  std::vector<std::string> Expand(const std::vector<std::string>& principals) const;

  // Names of domains: each of the mesh's stands for all of them. Each once.
  std::vector<std::string> ExpandDomains(const std::vector<std::string>& domains) const;

 private:
  bool Knows(std::string_view domain) const;
  std::vector<std::string> domains_;  // the mesh's own first
};

}  // namespace wavetank::pilot::authz
