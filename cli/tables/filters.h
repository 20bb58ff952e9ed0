// What a user narrows istioctl's tables by. Empty or 0: everything.
#pragma once

#include <cstdint>
#include <string>

namespace wavetank::cli::tables {

struct ClusterFilter {
  std::string fqdn, subset, direction;  // parts of the cluster's name
  int64_t port = 0;
};
struct ListenerFilter {
  std::string address, type;  // "HTTP", "TCP", "HTTP+TCP", "UNKNOWN"
  int64_t port = 0;
  bool verbose = true;
};
struct RouteFilter {
  std::string name;
  bool verbose = true;
};
struct EndpointFilter {
  std::string address, cluster, status;  // "healthy"
  int64_t port = 0;
};

// The form of an answer.
enum class Output { kShort, kJson, kYaml };

// Same letters, whatever their case.
bool SameLetters(const std::string& a, const std::string& b);

}  // namespace wavetank::cli::tables
