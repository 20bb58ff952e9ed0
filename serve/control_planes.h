// A live world whose proxies are served by real istiods: one for each primary cluster, started as children, which watch
// the world's API servers by HTTP on loopback as they would watch real ones.
//
// What stays with the world's own istiods: injection and certificates. What real istiods write (leases, ConfigMaps)
// comes into the world as a Kubernetes client's writes. docs/control-plane.md says what such a run cannot show.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/http/transport/server.h"
#include "serve/grpc/ads_dial.h"
#include "serve/loop/loop.h"
#include "serve/name_server.h"
#include "serve/pilot_discovery.h"

namespace wavetank::serve {

struct ControlPlaneOptions {
  std::string program;  // pilot-discovery; empty: none
  // Logs (CLUSTER.log) and working folders; made if it is not there. Empty: a new one below the system's for temporary
  // files, which goes with the control planes if all went well.
  std::string folder;
  std::map<std::string, std::string> environment;  // of every istiod
  // Address of the first primary's ADS, of each further one 100 ports above; port 0: any.
  std::string listen = "127.0.0.1:0";
  // Where the world's DNS answers the first primary's istiod, those of each further one an address above
  // ("127.0.0.53"); empty: they ask this machine's resolver, which knows no name of the world (serve/name_server.h).
  std::string dns;
  Duration ready_limit = 60s;
};

class ControlPlanes {
 public:
  struct Where {
    std::string cluster, address, log;
    pid_t pid;
  };

  // Starts them, waits until all are ready, and moves the proxies' ADS streams to them. The loop must have begun: in a
  // thread of its own, or driven by this one. InvalidArgument: the program is none, or `listen` is not of loopback;
  // DeadlineExceeded: not ready in time; Unavailable: one has ended, or an address is taken.
  static absl::StatusOr<std::unique_ptr<ControlPlanes>> Start(Loop& loop, ControlPlaneOptions options);
  ~ControlPlanes();
  // Hangs up and ends the children; a loop that is driven ends too. Idempotent. The world must still be there.
  void Stop();

  // Unavailable: one of them has ended.
  absl::Status Check();
  // From now on they go along with the world's own: a new istiod's pod gets one (with the variables that the pod says),
  // and with a pod that has gone its real one ends, when those that begin at that time serve. Their addresses are new.
  // On the loop's thread, which is driven. `assign`: the istiod, by its pod ("POD.CLUSTER"), that a proxy is to connect
  // with; one that is not there, or empty: any. May be null.
  using Assign = std::function<std::string(const std::string& proxy)>;
  void Follow(Assign assign);
  // One that has begun does not serve yet.
  bool Beginning() const;
  // In the order of the clusters.
  std::vector<Where> where() const;
  // Null: no primary of that name.
  const PilotDiscovery* Of(const std::string& cluster) const;
  // Keeps logs when it ends.
  void KeepLogs() { keep_ = true; }
  const std::string& folder() const { return options_.folder; }

 private:
  ControlPlanes(Loop& loop, ControlPlaneOptions options) : loop_(loop), options_(std::move(options)) {}
  absl::Status Begin();
  // Those of a cluster that run in the world, by their pods' names in traces.
  static std::vector<std::string> Pods(sim::World& world, const std::string& cluster);
  PilotDiscoveryOptions OptionsFor(sim::World& world, const sim::WorldCluster& cluster, const std::string& pod);
  void Look(sim::World& world);
  void LookAgain();
  std::string AddressFor(const std::string& control_plane, const std::string& proxy) const;
  absl::Status ServeNames(const std::vector<sim::WorldCluster>& clusters);
  absl::Status ServeApis(const std::vector<sim::WorldCluster>& clusters);
  absl::Status Await();
  void Pass(Duration real);

  Loop& loop_;
  ControlPlaneOptions options_;
  bool own_folder_ = false, keep_ = false, stopped_ = false;
  std::map<std::string, std::string> dns_;  // address, by cluster
  std::vector<std::unique_ptr<NameServer>> name_servers_;
  std::unique_ptr<fakekube::http::Server> apis_;
  // URL of a cluster's API server for an istiod, by (istiod's cluster, cluster).
  std::map<std::pair<std::string, std::string>, std::string> servers_;
  std::vector<std::unique_ptr<PilotDiscovery>> istiods_;
  std::set<std::string> begin_;  // pods whose real ones do not serve yet
  size_t started_ = 0;           // of all of them, for their folders' names
  absl::Status failure_;         // of one that was to follow
  Assign assign_;
  bool follows_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::unique_ptr<AdsDial> ads_;
};

}  // namespace wavetank::serve
