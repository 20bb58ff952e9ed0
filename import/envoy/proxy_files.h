// Files that tell what proxies held and who was connected: config dumps, `/clusters`, istioctl's tables, and istiod's
// debug pages, by themselves or in the archive of `istioctl bug-report`.
#pragma once

#include <string>
#include <string_view>

#include "import/evidence/evidence.h"

namespace wavetank::importing {

enum class ProxyFile : uint8_t {
  kNone,
  kHeld,    // config_dump, /clusters, what `istioctl proxy-config` prints
  kStatus,  // `istioctl proxy-status`
  kPage,    // of istiod's debug interface: clusterz, syncz
  kMute     // of a bug report, and says nothing that an import wants
};
ProxyFile KindOfProxyFile(std::string_view path, std::string_view head);

// Reads a whole file into claims (what was held, who was connected) and, of clusterz, remote clusters. `path`: with the
// folders above it; `file`: for people. O(text).
void ReadProxyFile(ProxyFile kind, std::string_view text, const std::string& path, const std::string& file,
                   const std::string& cluster, Evidence& evidence);

}  // namespace wavetank::importing
