// A network client of an ApiServer: kube::Client with latency, per-watch order, bookmarks and the server's faults.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "core/kube/client.h"
#include "core/kube/credentials/access_review.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

struct ClientLatency {
  Duration request = 1ms;        // the server's own time for a request
  Duration watch_delay = 220us;  // written -> on the watcher's socket
  Duration watch_jitter = 160us;
  // One way over the line to the server now; nothing while the line is cut. Null: no line.
  std::function<std::optional<Duration>()> transit;
};

// What the server says to a request of this client before it does it: OK, Unauthenticated, PermissionDenied; or
// Unavailable, why there is no connection. Asked each time, so that rights may change; `user` is left empty. A list of
// the one object of a name is a `get`: whoever reads one so may have asked either way.
using ClientPermit = std::function<absl::Status(const kube::AccessRequest& request)>;

// `server` and `host` must outlive the client. `name` keys its random stream and names it in the trace.
std::unique_ptr<kube::Client> MakeClient(ApiServer& server, Host& host, std::string name, uint64_t seed,
                                         ClientLatency latency, ClientPermit permit = nullptr);

}  // namespace wavetank::fakekube
