#include "core/push/cluster_local.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace wavetank::pilot {

ClusterLocalHosts::ClusterLocalHosts(const config::MeshConfig& mesh, std::string_view domain_suffix,
                                     bool most_specific) {
  std::vector<std::string> defaults = {fmt::format("*.kube-system.svc.{}", domain_suffix),
                                       fmt::format("kubernetes.default.svc.{}", domain_suffix)};
  const std::string& discovery = mesh.discovery_address;
  if (const size_t colon = discovery.rfind(':');
      colon != std::string::npos && colon + 1 < discovery.size() &&
      discovery.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    std::string host = discovery.substr(0, colon);
    if (!host.ends_with(domain_suffix)) host.append(".").append(domain_suffix);
    defaults.push_back(std::move(host));
  }
  for (const config::MeshConfig::ServiceSettings& settings : mesh.service_settings) {
    for (const std::string& host : settings.hosts) {
      if (settings.cluster_local) {
        hosts_[host] = true;
        continue;
      }
      if (most_specific) hosts_[host] = false;
      // Said not to be cluster-local: a default that is this host, or a wildcard over it, no longer holds.
      std::erase_if(defaults, [&](const std::string& d) {
        return host == d || (IsWildcard(d) && host.ends_with(std::string_view(d).substr(1)));
      });
    }
  }
  for (const std::string& host : defaults) hosts_[host] = true;
}

}  // namespace wavetank::pilot
