// What answers HTTP at a port of a simulated pod: istiod's monitoring and debug ports, an Envoy's admin interface, the
// agent's status port.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "fakes/kube/http/message/message.h"
#include "serve/grpc/held_config.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::serve {

struct PodPort {
  std::string cluster, ns, pod;
  uint16_t port = 0;
};

// The istiod of a cluster runs in this pod.
bool IsIstiod(const sim::World& world, const PodPort& where);
// Nothing listens there: nullopt. `metrics`: what an istiod's /metrics is; null: 404. On the loop's thread.
using PodMetrics = std::function<std::string(const std::string& cluster)>;
std::optional<fakekube::http::Response> AnswerInPod(const sim::World& world, const HeldConfig& held,
                                                    const PodPort& where, const fakekube::http::Request& request,
                                                    const PodMetrics& metrics = {});
// Whether anything does.
bool ListensInPod(const sim::World& world, const PodPort& where);

}  // namespace wavetank::serve
