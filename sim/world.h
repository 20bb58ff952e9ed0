// A whole multi-cluster mesh in virtual time: one API server per cluster with its controllers, one istiod where an
// istiod pod runs, agent and Envoy in every injected pod, applications, and the network between them.
//
// A world changes only by Do(): every change from outside is an input (sim/inputs/), a small value without keys or
// tokens, and the same inputs at the same times give the same trace. Everything else follows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/log_line.h"
#include "core/base/time.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/kube/http/message/message.h"
#include "sim/apps/token_issuers.h"
#include "sim/cluster_site.h"
#include "sim/istiod_process.h"
#include "sim/kernel/kernel.h"
#include "sim/outside_clients.h"
#include "sim/pod_process.h"
#include "sim/traffic.h"
#include "sim/world_options.h"

namespace wavetank::fakekube::http {
class RestApi;
struct Call;
}  // namespace wavetank::fakekube::http

namespace wavetank::sim {

class Input;  // sim/inputs/input.h

// A request of a Kubernetes client, and where its answer goes.
struct KubeExchange {
  const fakekube::http::Call& call;
  std::unique_ptr<fakekube::http::Response> answer;
};

// The address at which a cluster's API server is known inside the world; remote Secrets hold it.
std::string ApiServerUrl(std::string_view cluster);

class World {
 public:
  class Site;  // one cluster of it: sim/world_site.h

  // InvalidArgument: an unknown profile or timing, or clusters that do not fit together.
  static absl::StatusOr<std::unique_ptr<World>> Create(const WorldOptions& options);
  ~World();

  // Applied now; what follows needs time to pass. InvalidArgument: the input cannot be done to this world, and nothing
  // has changed but inputs(). `exchange`: of the client that waits for a kubeRequest's answer, if one does.
  absl::Status Do(const Input& input, KubeExchange* exchange = nullptr);
  // Every input, also one that is then refused, before what it causes: its number and time.
  Observers<uint64_t, Time, const Input&> on_input;

  Time Now() const { return kernel_.Now(); }
  void RunUntil(Time time) {
    if (pace) return pace(time);
    kernel_.RunUntil(time);
  }
  // How time passes until an instant; empty: at once. The owner that sets it (a real clock) runs the kernel itself.
  std::function<void(Time)> pace;
  // That were given so far, refused ones too; the next one's number.
  uint64_t inputs() const { return inputs_; }
  // Runs until nothing has happened in the control plane for `quiet` and nothing is pending; false if that was not so
  // before `deadline`.
  bool RunUntilSettled(Time deadline, Duration quiet = 1s);
  bool Settled() const;
  // The same, but for pods that have not become ready yet, and may never.
  bool SettledButForPods() const;
  // What keeps it from being settled, by cluster; empty if it is.
  std::vector<std::string> AtWork() const;
  // What all Envoys share: what they refused among it.
  const envoysim::DataPlane& data_plane() const { return *plane_; }
  // The last thing that istiod, agents or Envoys' configuration did.
  Time last_control_plane_event() const { return last_control_; }

  Kernel& kernel() { return kernel_; }
  Commons& commons() { return commons_; }
  const Commons& commons() const { return commons_; }
  const WorldOptions& options() const { return options_; }
  const Timing& timing() const { return timing_; }
  const pilot::Profile& profile() const { return profile_; }

  // Null: there is no such cluster.
  Site* FindSite(std::string_view cluster) const;
  fakekube::Cluster& cluster(std::string_view name);
  // The REST API of a cluster, for what changes nothing. Null: there is no such cluster.
  fakekube::http::RestApi* KubeApi(std::string_view cluster);
  // Issues and reads the tokens of a cluster's ServiceAccounts; null if there is no such cluster.
  const kube::TokenAuthority* tokens(std::string_view cluster) const;
  // Real clients, for the server that serves them.
  OutsideClients& outside() { return *outside_; }
  // The istiod that serves a cluster's proxies, as pods in it would reach one: its own cluster's or its control
  // plane's. A ready one if there is any; null if none runs.
  IstiodProcess* IstiodOf(std::string_view cluster) const;
  // From now on the proxies' ADS streams lead elsewhere, to a real istiod, and those that are open break. Certificates
  // and injection stay with this world's istiods. No input: such a run is no function of its inputs, nor of its seed.
  // `elsewhere` must outlive the world's proxies. Null: back to this world's istiods.
  void MoveAds(AdsElsewhere* elsewhere);
  // Pods that run, in order of cluster, namespace and name.
  std::vector<const PodProcess*> Pods() const;
  std::vector<const PodProcess*> Pods(std::string_view cluster, std::string_view ns, std::string_view app) const;
  // By the name in traces ("sleep-1.sample@cluster1"); null if there is none.
  const PodProcess* FindPod(std::string_view name) const;
  // istiods that run, by pod name.
  std::vector<const IstiodProcess*> Istiods() const;
  // Why something does not come up: istiods and proxies that fail, pods that admission refuses.
  std::vector<std::string> Complaints() const;
  // What it did that no real mesh does, a line each: "mended clusterID (cluster1, cluster2): ...".
  std::vector<std::string> MendedLines() const;
  void Mended(Mend what, const std::string& cluster) { mended_[what].insert(cluster); }
  // Proxies that are not ready and pods that were not admitted, and why, in the words of kubelet, agent and Envoy.
  std::vector<std::string> Unready() const;
  // Pods that run without the sidecar that a webhook would give them: which, why, and what to do.
  std::vector<std::string> LeftOut() const;
  std::string WhyLeftOut(const PodProcess& pod) const;  // "": it has one, or shall have none

  // From now on `tell` sees every line that a proxy writes to an access log (of its configuration, to any file),
  // perhaps ahead of the clock. It changes nothing in the world, nor does the asking.
  void CollectAccessLogs(std::function<void(const PodProcess& pod, const envoysim::AccessLogLine& line)> tell);

  // Hears what istiods log beyond what events say, by their names in traces. It changes nothing in the world.
  std::function<void(const std::string& istiod, Time at, const LogLine& line)> on_istiod_log;

  int64_t requests_under_way() const;
  bool TrafficDone(std::string_view id) const;
  // Its requests that have no answer yet.
  int64_t TrafficPending(std::string_view id) const;

 private:
  explicit World(const WorldOptions& options);

  const WorldOptions options_;
  Timing timing_;
  pilot::Profile profile_;
  std::unique_ptr<CostModel> costs_;
  Kernel kernel_;
  Host* host_;
  std::unique_ptr<Links> links_;
  std::unique_ptr<MeshNetwork> network_;
  std::unique_ptr<envoysim::DataPlane> plane_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<TokenIssuers> issuers_;
  Commons commons_;
  std::unique_ptr<OutsideClients> outside_;
  std::vector<std::unique_ptr<Site>> sites_;
  Subscriptions subscriptions_;
  std::map<std::string, std::unique_ptr<TrafficSource>, std::less<>> traffic_;
  std::map<std::pair<std::string, std::string>, int> secret_generations_;  // (of, in) -> rotations
  std::map<std::string, std::string> rejected_;   // by cluster: why its remote Secret cannot be used
  std::map<Mend, std::set<std::string>> mended_;  // clusters
  uint64_t inputs_ = 0;
  Time last_control_{};
};

}  // namespace wavetank::sim
