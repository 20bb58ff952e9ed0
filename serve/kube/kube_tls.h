// A certificate for the served Kubernetes APIs, from a CA that is made for this one server and then thrown away.
//
// Unlike everything in a world, its keys come from chance: knowing a scenario's seed must not be enough to be its
// server.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/http/transport/server.h"

namespace wavetank::serve {

struct KubeTls {
  std::string ca_pem;  // for kubeconfigs
  fakekube::http::TlsIdentity identity;
  fakekube::http::TlsIdentity admin;  // a client certificate of group system:masters
};

// For these hosts (names or addresses), loopback, and the names that a Pod knows its API server by. Valid for a year
// from an hour before `unix_now` on, so that clocks may differ a little.
absl::StatusOr<KubeTls> MakeKubeTls(std::vector<std::string> hosts, int64_t unix_now);

}  // namespace wavetank::serve
