#include "fakes/kube/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "fakes/kube/housekeeping/certificate_signers.h"
#include "fakes/kube/housekeeping/disruption_budgets.h"
#include "fakes/kube/housekeeping/resource_quotas.h"
#include "fakes/kube/housekeeping/role_aggregation.h"
#include "fakes/kube/housekeeping/root_ca.h"
#include "fakes/kube/housekeeping/token_controller.h"
#include "fakes/kube/nodes/kubelet.h"
#include "fakes/kube/nodes/node_lifecycle.h"
#include "fakes/kube/nodes/node_object.h"
#include "fakes/kube/nodes/observed_pods.h"
#include "fakes/kube/services/endpoint_slices.h"
#include "fakes/kube/services/load_balancers.h"
#include "fakes/kube/workloads/cron_jobs.h"
#include "fakes/kube/workloads/daemon_sets.h"
#include "fakes/kube/workloads/deployments.h"
#include "fakes/kube/workloads/horizontal_autoscalers.h"
#include "fakes/kube/workloads/inferred.h"
#include "fakes/kube/workloads/jobs.h"
#include "fakes/kube/workloads/replication_controllers.h"
#include "fakes/kube/workloads/stateful_sets.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

ApiServer::Options ServerOptions(const ClusterOptions& options) {
  ApiServer::Options server;
  server.name = options.name;
  server.service_cidr = options.service_cidr;
  server.release = options.release;
  server.first_resource_version = options.first_resource_version;
  server.create_namespaces = options.create_namespaces;
  server.observed = options.observed;
  return server;
}

std::vector<std::string> PodAddresses(const ApiServer& api) {
  std::vector<std::string> out;
  for (const ObjectRef& pod : api.List("Pod")) {
    if (At(pod->body, {"spec", "hostNetwork"}) != true) out.push_back(Text(At(pod->body, "status"), "podIP"));
  }
  return out;
}

std::vector<std::string> LoadBalancerAddresses(const ApiServer& api) {
  std::vector<std::string> out;
  for (const ObjectRef& service : api.List("Service")) {
    for (const json& ingress : Items(At(service->body, {"status", "loadBalancer", "ingress"})))
      out.push_back(Text(ingress, "ip"));
  }
  return out;
}

// Whether load balancers have host names alone.
bool OnlyHostNames(const ApiServer& api) {
  bool any = false;
  for (const ObjectRef& service : api.List("Service")) {
    for (const json& ingress : Items(At(service->body, {"status", "loadBalancer", "ingress"}))) {
      if (!Text(ingress, "ip").empty()) return false;
      any = any || !Text(ingress, "hostname").empty();
    }
  }
  return any;
}

// The IPv4 range of that length in which most of the addresses are; `otherwise` if there is none.
std::string MostFrequentRange(const std::vector<std::string>& addresses, uint32_t length, std::string otherwise) {
  std::map<std::string, int> counts;
  for (const std::string& address : addresses) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
    if (!ip.ok() || !ip->is_v4()) continue;
    if (const absl::StatusOr<IpPrefix> range = IpPrefix::Make(address, length); range.ok()) ++counts[range->ToString()];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? std::move(otherwise) : most->first;
}

}  // namespace

Cluster::Cluster(Host& host, const ClusterOptions& options, PodAdmission* admission, PodRuntime* runtime)
    : options_(options), api_(host, ServerOptions(options)), admission_(admission), runtime_(runtime) {
  if (options_.observed) {
    observed_ = std::make_unique<ObservedPods>(api_, runtime);
    return;
  }
  // Every namespace has a ServiceAccount "default", also after somebody deleted
  // it.
  const auto make_default_account = [this](const std::string& ns) {
    api_.Create(
            {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", "default"}, {"namespace", ns}}}})
        .IgnoreError();
  };
  subscriptions_.Add(api_.Observe("Namespace", [make_default_account](const Change& change) {
    if (change.type == kube::WatchEventType::kAdded) make_default_account(change.object->meta.name);
  }));
  subscriptions_.Add(api_.Observe("ServiceAccount", [this, make_default_account](const Change& change) {
    if (change.type != kube::WatchEventType::kDeleted || change.object->meta.name != "default") return;
    // Not in a namespace that is just going.
    const ObjectRef ns = api_.Get("Namespace", {"", change.object->meta.ns});
    if (ns != nullptr && !ns->meta.deleting) make_default_account(change.object->meta.ns);
  }));
  StartControllers();
  housekeeping_.push_back(std::make_unique<RootCaPublisher>(api_));
  housekeeping_.push_back(std::make_unique<RoleAggregator>(api_));
  housekeeping_.push_back(std::make_unique<CertificateSigners>(api_, options_.seed, options_.name));
  if (options_.issue_token) tokens_ = std::make_unique<TokenController>(api_, options_);

  for (const char* ns : {"default", "kube-system", "kube-public"}) {
    api_.Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}).IgnoreError();
  }
  for (size_t i = 0; i < options_.nodes.size(); ++i)
    api_.Create(MakeNode(options_, options_.nodes[i], i, api_.DateNow())).IgnoreError();
}

Cluster::~Cluster() = default;

void Cluster::StartControllers() {
  load_balancers_ = std::make_unique<LoadBalancerController>(api_, options_);
  endpoint_slices_ = std::make_unique<EndpointSliceController>(api_, options_);
  kubelet_ = std::make_unique<Kubelet>(api_, options_, runtime_);
  node_lifecycle_ = std::make_unique<NodeLifecycle>(api_);
  deployments_ = std::make_unique<DeploymentController>(api_, options_, admission_);
  stateful_sets_ = std::make_unique<StatefulSetController>(api_, admission_);
  daemon_sets_ = std::make_unique<DaemonSetController>(api_, options_, admission_);
  housekeeping_.push_back(std::make_unique<ReplicationManager>(api_, options_, admission_));
  housekeeping_.push_back(std::make_unique<JobController>(api_, options_, admission_));
  housekeeping_.push_back(std::make_unique<CronJobController>(api_));
  housekeeping_.push_back(std::make_unique<ResourceQuotaController>(api_));
  housekeeping_.push_back(std::make_unique<DisruptionBudgetController>(api_));
  housekeeping_.push_back(std::make_unique<HorizontalAutoscaler>(api_));
}

absl::Status Cluster::GoLive() {
  if (live()) return absl::InvalidArgumentError(fmt::format("cluster '{}' lives already", options_.name));
  // What the cluster gives from now on lies beside what it gave before.
  options_.pod_cidr = MostFrequentRange(PodAddresses(api_), 16, options_.pod_cidr);
  options_.load_balancer_cidr = MostFrequentRange(LoadBalancerAddresses(api_), 24, options_.load_balancer_cidr);
  options_.load_balancer_hostname = OnlyHostNames(api_);
  api_.BecomeLive();
  untold_ = InferWorkloads(api_);
  api_.BeginIntroduction();
  StartControllers();
  api_.EndIntroduction();
  observed_->HandOver(
      [this](const NamespacedName& pod, const std::string& uid, bool ready) { kubelet_->Hear(pod, uid, ready); });
  return absl::OkStatus();
}

bool Cluster::Settled() const {
  if (!live()) return observed_->Settled();
  return kubelet_->Settled() && deployments_->Settled() && stateful_sets_->Settled() && daemon_sets_->Settled() &&
         SettledButForPods();
}

bool Cluster::SettledButForPods() const {
  if (!live()) return observed_->Settled();
  return load_balancers_->Settled() && endpoint_slices_->Settled() && kubelet_->Idle() && node_lifecycle_->Settled() &&
         deployments_->SettledButForPods() && stateful_sets_->SettledButForPods() &&
         daemon_sets_->SettledButForPods() && (tokens_ == nullptr || tokens_->Settled()) &&
         std::all_of(housekeeping_.begin(), housekeeping_.end(), [](const auto& each) { return each->Settled(); });
}

absl::Status Cluster::SetNodeLost(const std::string& node, bool lost) {
  if (!live()) {
    return absl::InvalidArgumentError(
        fmt::format("cluster '{}' is a record: its nodes are as they were", options_.name));
  }
  std::string names;
  for (const ObjectRef& each : api_.List("Node")) names += (names.empty() ? "" : ", ") + each->meta.name;
  if (api_.Get("Node", {"", node}) == nullptr)
    return absl::InvalidArgumentError(
        fmt::format("cluster '{}' has no node '{}'; it has {}", options_.name, node, names));
  if (lost) {
    kubelet_->Lose(node);
    node_lifecycle_->Silent(node);
  } else {
    node_lifecycle_->Heard(node);
    kubelet_->Return(node);
  }
  return absl::OkStatus();
}

absl::Status Cluster::SetLoadBalancerAddress(const NamespacedName& service, std::string_view address) {
  if (!live()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a recorded cluster, which has no load balancers; apply the Service with the status that it is "
        "to have",
        options_.name));
  }
  return load_balancers_->Set(service, address);
}

}  // namespace wavetank::fakekube
