// Subresources of pods that lead into them: pods/exec, portforward, proxy and log of a live world's Kubernetes APIs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fakes/kube/http/message/message.h"
#include "serve/grpc/held_config.h"
#include "serve/grpc/pod_logs.h"
#include "serve/loop/loop.h"
#include "serve/pods/pod_commands.h"

namespace wavetank::serve {

class PodAccess {
 public:
  // Where a gRPC port (15010, 15012) of a cluster's istiod really listens; empty: nowhere.
  using ListenerOf = std::function<std::string(const std::string& cluster, uint16_t port)>;

  // Follows the world of `loop`, which has not started yet. It outlives the world; `held`, `logs` and the loop outlive
  // its use.
  PodAccess(Loop& loop, const HeldConfig& held, const PodLogs& logs);
  ~PodAccess();
  void SetListeners(ListenerOf listener_of);
  // Of istiods, before the loop starts; without, they have none.
  void SetMetrics(PodMetrics metrics);

  // On the loop's thread. nullopt: the request is about something else. Who may not do it is refused as by the API.
  std::optional<fakekube::http::Response> Answer(sim::World& world, const std::string& cluster,
                                                 const fakekube::http::Request& request);

  struct State;  // outlives tunnels that still hold it

 private:
  std::shared_ptr<State> state_;
};

}  // namespace wavetank::serve
