// What a real agent needs to be a pod of the served mesh: a folder with the files that Kubernetes mounts into the
// proxy's container, and the container's environment.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "sim/world.h"

namespace wavetank::serve {

// Files by their path in the folder: "var/run/secrets/istio/root-cert.pem", "var/run/secrets/tokens/istio-token",
// "etc/istio/pod/labels", "etc/istio/pod/annotations", and "env" with one NAME=VALUE on each line, quoted for a shell.
// `discovery`: where istiod listens with TLS, "127.0.0.1:15012"; `envoy`: the Envoy's program, or empty. Holds a token:
// never for logs. NotFound: no such pod; FailedPrecondition: it has no proxy, or its roots are not there.
absl::StatusOr<std::map<std::string, std::string>> PodFolder(sim::World& world, const std::string& pod,
                                                             const std::string& discovery, const std::string& envoy);

// Writes the files of one pod below `folder`, readable by their owner only.
absl::Status WritePodFolder(const std::string& folder, const std::map<std::string, std::string>& files);

}  // namespace wavetank::serve
