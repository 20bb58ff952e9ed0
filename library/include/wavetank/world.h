// A mesh that lives, in virtual time.
/// \file
/// A mesh that lives, in virtual time: it is told what to do, time passes, and it is asked what became of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wavetank/action.h"
#include "wavetank/mesh.h"
#include "wavetank/result.h"
#include "wavetank/value.h"

namespace wavetank {

namespace client {
struct Living;
}

using Nanoseconds = std::chrono::nanoseconds;

struct WorldOptions {
  std::optional<uint64_t> seed = {};  ///< instead of the mesh's
  std::string profile = {};           ///< instead of the mesh's, if not empty
  bool trace = false;                 ///< keep the trace, for Trace()
  /// The program `wavetank`; empty: $WAVETANK_PROGRAM, the one that was installed with the library, or that of $PATH.
  std::string program = {};
};

/// Requests that the pods of an app send.
struct Flow {
  std::string cluster, host;  ///< of the client; "web.sample:8080" as the application writes it
  std::string app = "sleep", ns = "sample";
  std::string rate = "100/s", path = "/";
  bool keep_alive = false, tcp = false;
  std::map<std::string, std::string> headers = {};
  /// "http1.0", "http2", "grpc" or "websocket"; empty: HTTP/1.1, or TCP. gRPC needs a Service whose port says so
  /// (App::port_name).
  std::string protocol = {};
};

/// What became of requests. `all` is the whole answer, as docs/results.md describes it.
struct Requests {
  int64_t sent = 0, failed = 0, retried = 0, remote = 0, mtls_verified = 0;
  std::map<std::string, int64_t> by_version, by_cluster, by_pod;  ///< of answered ones
  /// Envoy's response flags. Where there are none: "-" of what was answered well, and of a failure what Envoy says of
  /// it in %RESPONSE_CODE_DETAILS%.
  std::map<std::string, int64_t> by_flags;
  Nanoseconds p50{}, p99{};
  struct Failure {
    std::string flags, upstream, cause;
    int code = 0;
    int64_t count = 0;
  };
  std::vector<Failure> failures;
  Value all;
};

struct Service {
  std::string cluster, ns, name, type, cluster_ip, external, ports;
};

struct Endpoint {
  std::string cluster, proxy, address, status, outlier_check, upstream;
};

/// What was done, up to the last proxy that uses what followed from it.
struct Convergence {
  Nanoseconds total{};
  struct Proxy {
    std::string name;
    Nanoseconds total{};
    std::map<std::string, Nanoseconds> stages;  ///< "Kubernetes", "debounce", "generation", ...
  };
  std::vector<Proxy> proxies;  ///< that were sent something, slowest first
};

struct Settled {
  bool settled = false;                          ///< nothing happens any more
  std::vector<std::string> at_work, complaints;  ///< what kept it from that; what does not come up
  std::vector<std::string> disconnected;         ///< proxies without an istiod
  Convergence convergence;                       ///< of what was done since the last time
};

/// One thing that happened. `inputs`: numbers of what caused it (World::Inputs).
struct TraceEvent {
  uint64_t index = 0;
  Nanoseconds at{};
  std::string kind, subject, object, detail;
  int64_t a = 0, b = 0;
  std::vector<uint64_t> inputs;
};

/// Something that was done to the world from outside.
struct Input {
  uint64_t number = 0;
  Nanoseconds at{};
  std::string kind, cluster;
};

/// A named truth that does not hold (docs/swarm.md lists them).
struct Breach {
  std::string invariant, what;
};

/// Of a log that was run again.
struct Replay {
  bool identical = false;
  std::string digest;
  int64_t inputs = 0, events = 0;
  std::string difference;  ///< what was expected and what came; empty if identical
};

/// A world is a process of its own: worlds in several threads know nothing of each other, and one that comes to grief
/// ends with an error in every further call. One thread at a time may use a World; it can be moved, and Fork() copies
/// it.
/// \code
/// auto world = wavetank::World::Open(mesh);
/// world->Do(wavetank::actions::Scale{.cluster = "east", .deployment = "sample/web-v1", .replicas = 3});
/// auto settled = world->Settle();
/// auto requests = world->Send({.cluster = "west", .host = "web.sample:8080"}, 1000);
/// \endcode
class World {
 public:
  /// The mesh is up and at rest when this returns. Errors are the mesh's: file, line and remedy.
  static Result<World> Open(const Mesh& mesh, const WorldOptions& options = {});
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  /// Notes on the mesh: fields that have no effect, pods that do not come up.
  const std::vector<std::string>& notes() const;

  /// Now; what follows needs time to pass.
  Status Do(const Action& action);
  /// Virtual time since the world's beginning.
  Nanoseconds Now() const;
  Status Step(Nanoseconds time);
  Result<Settled> Settle(Nanoseconds limit = std::chrono::minutes(10));
  /// As Settle(), and until every proxy has its istiod: what waits to try again is at rest otherwise.
  Result<Settled> Recover(Nanoseconds limit = std::chrono::minutes(20));
  /// In steps of `every`, until `holds` says so; false: it never did within `limit`. `holds` may ask the world
  /// anything.
  Result<bool> Until(const std::function<bool(World&)>& holds, Nanoseconds limit,
                     Nanoseconds every = std::chrono::milliseconds(100));

  /// Sends so many, waits for the answers, and says what became of them.
  Result<Requests> Send(const Flow& flow, int64_t count);
  /// Goes on until Finish(), while other things are done.
  Result<std::string> Start(const Flow& flow);
  Result<Requests> Finish(const std::string& traffic);

  Result<std::vector<Service>> Services();
  Result<std::vector<std::string>> Proxies();
  /// Of one proxy ("sleep@east", or its whole name), or of all.
  Result<std::vector<Endpoint>> Endpoints(const std::string& proxy = "");
  /// What the proxy was sent: cds, eds, lds, rds or ecds, a list of {name, resource}.
  Result<Value> Config(const std::string& proxy, const std::string& type);
  /// With WorldOptions::trace. Empty: every kind, every subject.
  Result<std::vector<TraceEvent>> Trace(const std::string& kind = "", const std::string& subject = "");
  Result<std::vector<Input>> Inputs();
  /// The invariants of a mesh at rest that do not hold; empty: all is well.
  Result<std::vector<Breach>> Check();

  /// A copy that goes its own way from here, for the price of what it changes.
  Result<World> Fork();
  Result<std::string> Digest();
  /// An event log of all that was done, for `wavetank replay` and Replay().
  Status WriteLog(const std::string& path);
  /// What was done so far as a scenario: the mesh and a step for each action. Empty if the mesh is a scenario's.
  std::string Story() const;

 private:
  Result<Settled> Rest(Nanoseconds limit, bool connected);
  explicit World(std::unique_ptr<client::Living> living);
  std::unique_ptr<client::Living> living_;
};

/// Runs a log again. Errors are the file's.
Result<Replay> ReplayLog(const std::string& path, const WorldOptions& options = {});

}  // namespace wavetank
