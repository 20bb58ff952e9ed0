// The monitoring port of a live world's istiods (15014), one for each primary: /debug/..., /ready, /version.
//
// Whoever reaches the port may look, as at a real istiod from its own pod. Looking changes nothing and is no input.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/http/transport/server.h"
#include "serve/loop/loop.h"

namespace wavetank::serve {

struct DebugListener {
  std::string cluster, address;  // "127.0.0.1:15014"
};

// What /metrics answers for the istiod of a cluster; without one, 404.
using MetricsPage = std::function<std::string(const std::string& cluster)>;

// What the istiod of `cluster` answers to a request for one of its pages. On the loop's thread.
fakekube::http::Response DebugAnswer(const sim::World& world, const std::string& cluster,
                                     const fakekube::http::Request& request, const MetricsPage& metrics = {});

class DebugPorts {
 public:
  // `listen`: address of the first primary, each further one 100 ports above; port 0: any free ones. `loop` outlives
  // it. InvalidArgument or Unavailable names the address.
  static absl::StatusOr<std::unique_ptr<DebugPorts>> Start(Loop& loop, const std::vector<std::string>& primaries,
                                                           const std::string& listen, MetricsPage metrics = {});
  ~DebugPorts();  // Stop()
  void Stop();

  const std::vector<DebugListener>& where() const { return where_; }

 private:
  DebugPorts() = default;

  std::vector<DebugListener> where_;
  std::unique_ptr<fakekube::http::Server> server_;
};

}  // namespace wavetank::serve
