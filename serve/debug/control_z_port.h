// ControlZ of a simulated istiod, at --ctrlz_port of its pod's loopback: what port-forwards and commands in the pod
// reach. Looking changes nothing; a scope's new level is an input of the world (core/debug/control_z.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fakes/kube/http/message/message.h"
#include "serve/debug/debug_ports.h"

namespace wavetank::serve {

// A port of a pod.
struct ControlZPort {
  std::string cluster, ns, pod;
  uint16_t port = 0;
};
bool IsControlZ(const sim::World& world, const ControlZPort& where);
// nullopt: it is not there. On the loop's thread.
std::optional<fakekube::http::Response> ControlZAnswer(sim::World& world, const ControlZPort& where,
                                                       const fakekube::http::Request& request,
                                                       const MetricsPage& metrics);

}  // namespace wavetank::serve
