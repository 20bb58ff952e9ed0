// One cluster of the world: its API server and controllers, its pods, the istiod that may run in it, and what its API
// server asks of webhooks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/debug/log_scopes.h"
#include "core/x509/x509.h"
#include "sim/kernel/node_hosts.h"
#include "sim/webhooks/admission_log.h"
#include "sim/webhooks/foreign_webhook.h"
#include "sim/world.h"

namespace wavetank::fakekube::http {
struct WebhookVerdict;
}
namespace wavetank::pilot {
struct IstiodSettings;
struct WebhookTarget;
}  // namespace wavetank::pilot

namespace wavetank::sim {

class KubeProxy;

inline constexpr Duration kCaLifetime = 24h * 3650;  // of the authorities that the world makes

// Signs that cluster's API server.
x509::CertificateAuthority ApiServerCa(uint64_t seed, std::string_view cluster);

// A cluster that an istiod cannot read, as the first of its API server's refusals says.
struct UnreadCluster {
  std::string at, istiod, cluster, why;  // the istiod's cluster and pod; the other cluster's ID
  std::string Words() const;             // as World::Complaints() has it
};

class World::Site final : public fakekube::PodAdmission, public fakekube::PodRuntime {
 public:
  Site(World& world, const WorldCluster& config, SiteId site);
  ~Site() override;

  // The end of the world, in two acts: proxies hang up before the istiods that serve them go, and istiods leave the API
  // servers of all clusters before one of these goes.
  void StopPods() {
    ++pods_version_;
    pods_.clear();
  }
  void StopIstiods();

  const WorldCluster& config() const { return config_; }
  fakekube::Cluster& cluster() { return *cluster_; }
  ClusterSite& place() { return place_; }
  const kube::TokenAuthority& tokens() const { return tokens_; }
  // What istiod's validation webhook says of an object that is to be stored.
  fakekube::http::WebhookVerdict AskIstio(const nlohmann::json& object) const;
  // Made when the first real client, or the replay of one, asks.
  fakekube::http::RestApi& rest();
  std::string ca_pem() const { return api_ca_.certificate->ToPem(); }
  const std::map<kube::NamespacedName, std::unique_ptr<PodProcess>>& pods() const { return pods_; }
  // Grows when one of them begins or ends; until then they stay where they are.
  uint64_t pods_version() const { return pods_version_; }
  bool Settled() const;
  bool SettledButForPods() const;  // World::SettledButForPods
  void AtWork(std::vector<std::string>* out) const;
  // What of an istiod's own process can be seen and changed, by its name in traces ("POD.CLUSTER"); null: none of that
  // name runs. Whoever holds the scopes has them when it is gone, too.
  struct IstiodLog {
    std::shared_ptr<debug::LogScopes> scopes;
    uint16_t ctrlz_port = 9876;  // 0: any free one
  };
  const IstiodLog* LogOf(std::string_view istiod) const;
  // A ready istiod if there is any; null if none runs.
  IstiodProcess* Serving() const;
  void Istiods(std::vector<const IstiodProcess*>* out) const;
  // As Cluster::SetNodeLost(), and the network hears of it.
  absl::Status SetNodeLost(const std::string& node, bool lost);
  NodeHosts& nodes() { return nodes_; }
  // Why pods that are still wanted were not admitted, one line for those of a ReplicaSet.
  std::vector<std::string> Refusals() const;
  // That its istiod gives it; without an istiod, its installation.
  std::string ClusterId() const;
  // As a client writes it: what is a new pod passes the injector, and is not stored if none answers.
  absl::Status Apply(nlohmann::json object);
  // Pods without a sidecar that a webhook selects, by why.
  std::vector<std::string> LeftOut() const;
  std::string WhyLeftOut(const PodProcess& pod) const;  // "": it is not
  void Complain(std::vector<std::string>* out) const;
  // Clusters that its istiods cannot read.
  std::vector<UnreadCluster> Unread() const;

  // PodRuntime
  void Start(const kube::ObjectRef& pod, std::function<void(bool)> ready) override;
  void Restated(const kube::ObjectRef& pod) override;
  void Terminate(const kube::ObjectRef& pod) override;
  void Remove(const kube::ObjectRef& pod) override;

  // PodAdmission
  void NotStored(const nlohmann::json& pod, const absl::Status& why) override;
  void Review(nlohmann::json pod, const kube::Labels& namespace_labels,
              absl::AnyInvocable<void(absl::StatusOr<nlohmann::json>)> done) override;

 private:
  class Reviewer;
  class Authorizer;
  class IstiodPages;
  struct IstiodRun;
  struct AdmissionRound;

  // Of an istiod pod: environment and arguments of its container. FailedPrecondition: the container cannot start.
  absl::StatusOr<pilot::IstiodSettings> SettingsOf(const kube::NamespacedName& name, IstiodRun& run);
  void WatchValidation(IstiodRun& run);
  LogSink LinesOf(const IstiodRun& run);  // what the process says, to World::on_istiod_log
  // The process ends by itself.
  void EndIstiod(const kube::NamespacedName& name);
  // From now on, whenever a policy changes, or the labels of what policies select.
  void CutWhatPoliciesRefuse();
  // OK: the API server reaches the istiod behind a webhook, and believes it. Else why not, as it says.
  absl::Status ReachIstio(const nlohmann::json& webhook) const;
  bool Validates() const;  // there is a ValidatingWebhookConfiguration
  // Whether more than one istiod may lead here, now or before.
  bool Contested() const;
  void ContestElections();
  void StartIstiod(const kube::NamespacedName& name, WorkloadId workload, std::function<void(bool)> ready);
  // The same, once the certificate is there that an istio-csr makes for it. Manifests tell no order, and istio-csr's
  // guide installs it first; an istiod that starts before has none until it starts again.
  void StartIstiodAfterIstioCsr(const kube::ObjectRef& pod, std::function<void(bool)> ready, Duration waited);
  bool AwaitsIstioCsr(const kube::Object& istiod) const;
  void AskWebhooks(std::shared_ptr<AdmissionRound> round, nlohmann::json pod);
  void CallWebhook(nlohmann::json pod, const pilot::WebhookTarget& target, const std::string& ca_bundle,
                   absl::AnyInvocable<void(absl::StatusOr<nlohmann::json>)> done);

  World& world_;
  const WorldCluster config_;
  kube::TokenAuthority tokens_;
  x509::CertificateAuthority api_ca_;
  std::unique_ptr<fakekube::Cluster> cluster_;
  std::unique_ptr<fakekube::http::RestApi> rest_;
  Subscriptions subscriptions_;
  std::unique_ptr<ClusterDns> dns_;
  std::unique_ptr<KubeProxy> kube_proxy_;
  std::unique_ptr<fakekube::NetworkPolicies> policies_;
  NodeHosts nodes_;
  ClusterSite place_;
  WorkloadId api_server_{};
  std::map<kube::NamespacedName, std::unique_ptr<IstiodRun>> istiods_;
  std::map<kube::NamespacedName, std::unique_ptr<PodProcess>> pods_;
  uint64_t pods_version_ = 0;
  bool more_than_one_ = false;               // istiod has run here at a time, or one was killed
  std::vector<nlohmann::json> left_behind_;  // by istiods that were killed: their locks, as nobody has written them
  int64_t reviews_ = 0, review_count_ = 0;   // under way; all that were asked for, which numbers them
  AdmissionLog admissions_;
  std::unique_ptr<ForeignWebhooks> foreign_webhooks_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

// The same, in any cluster of the world.
const World::Site::IstiodLog* LogOfIstiod(const World& world, std::string_view istiod);

}  // namespace wavetank::sim
