// Why a proxy has the endpoints of a host that it has, and not others: visibility, then every EDS cluster of the host
// endpoint by endpoint. Decisions are those of the generators (core/gen/eds/endpoint_decision.h), asked now: a proxy
// that is behind with its pushes may hold something older.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/gen/eds/endpoint_decision.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

class PushContext;
struct Proxy;

struct HostExplanation {
  // A service of that name in some namespace.
  struct Candidate {
    ServiceRef service;
    bool exported = false;                            // to the proxy's namespace
    std::vector<std::pair<ShardKey, size_t>> shards;  // endpoints, of all ports
  };
  struct Cluster {
    std::string name;
    bool watched = false;  // the proxy asks for its endpoints
    AssignmentExplanation assignment;
  };

  std::string host, proxy, cluster, network, locality;
  std::string sidecar;                // "namespace/name" of the scope
  std::vector<Candidate> candidates;  // by namespace; empty: no registry knows the host
  ServiceRef seen;                    // the one that the proxy sees; null: none
  std::vector<Cluster> clusters;      // those that the proxy watches; if none, one for each port of `seen`
};

// What points into the endpoint index is valid until that changes.
HostExplanation ExplainHost(const Proxy& proxy, const PushContext& push, std::string_view host);

// Keys in a fixed order; `address` not empty: only endpoints of that address.
nlohmann::ordered_json ToJson(const HostExplanation& explanation, std::string_view address);

}  // namespace wavetank::pilot
