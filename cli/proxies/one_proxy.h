// The one proxy that a verb is about: of a simulated mesh by its name, of a running `serve --kube` by its API.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}
namespace wavetank::sim {
class PodProcess;
class World;
}  // namespace wavetank::sim

namespace wavetank::cli {

// "sleep@cluster1", "deploy/sleep.sample@cluster1" or a pod's full name. NotFound, InvalidArgument: none or several,
// with what there is.
absl::StatusOr<const sim::PodProcess*> FindProxy(sim::World& world, const std::string& name);

struct ServerArguments {
  std::string url, token_file;

  void AddTo(CLI::App* verb);
};

// GET, or `method`, of `path` of the admin interface of `proxy` (POD.NAMESPACE), by the API server's way to a pod's
// ports. InvalidArgument: the name; NotFound: the server refuses; Unavailable: it cannot be reached.
absl::StatusOr<std::string> AdminPage(const ServerArguments& server, const std::string& proxy, const std::string& path,
                                      const std::string& method = "GET");

}  // namespace wavetank::cli
