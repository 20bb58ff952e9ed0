// What several rules ask of a mesh.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check/mesh/mesh.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/types.h"
#include "core/profile/changes.h"
#include "core/push/policies/policy_attachment.h"
#include "sim/network/mesh_network.h"

namespace wavetank::sim {
struct UnreadCluster;
}

namespace wavetank::check {

inline constexpr std::string_view kSystemNamespace = "istio-system";

// istiod's own and Kubernetes' namespaces, of which lint asks less.
bool IsSystemNamespace(std::string_view ns);  // in any mesh
bool IsSystemNamespace(const Mesh& mesh, std::string_view ns);
// The namespace of a cluster's control plane, and the mesh's ConfigMap in it that its istiod reads ("istio", of a
// revision "istio-REVISION"; istiod: pilot/pkg/bootstrap/mesh.go, getMeshConfigMapName); null: it is not there.
kube::ObjectRef SystemNamespace(const Mesh& mesh, const MeshCluster& cluster);
kube::ObjectRef MeshConfigMap(const Mesh& mesh, const MeshCluster& cluster);

// Whether the cluster's istiod, of the profile's release with its own variables, has a change.
bool Has(const MeshCluster& cluster, pilot::Change change);

// All labels of `selector` are among `labels`.
bool Selects(const kube::Labels& selector, const kube::Labels& labels);

// What stands in namespace `of` holds for workloads of `ns`: it is theirs, or the mesh's root namespace.
bool HoldsIn(const MeshCluster& primary, std::string_view of, std::string_view ns);
// And for this pod, if it has the selector's labels (none: all have).
bool HoldsFor(const MeshCluster& primary, std::string_view of, const kube::Labels& selector,
              const sim::PodProcess& pod);
bool HoldsFor(const MeshCluster& primary, std::string_view of, const std::optional<kube::Labels>& selector,
              const sim::PodProcess& pod);

// Of a policy that may name Gateways instead of selecting pods (targetRefs), in releases that know such.
template <class Spec>
bool AttachesTo(const MeshCluster& primary, const config::TypedConfig<Spec>& policy, const sim::PodProcess& pod) {
  if constexpr (requires { policy.spec.targets; }) {
    const kube::ObjectMeta& meta = pod.pod()->meta;
    if (!policy.spec.targets.empty() && Has(primary, pilot::Change::kPolicyTargets))
      return pilot::Attaches(policy.spec, policy.meta.ns, meta.ns, meta.labels, true);
  }
  return HoldsFor(primary, policy.meta.ns, policy.spec.selector, pod);
}

// Members of an object as labels; of anything else none.
kube::Labels LabelsIn(const nlohmann::json& object);

inline constexpr const char* kWorkloadKinds[] = {"Deployment", "StatefulSet", "DaemonSet"};
// What makes pods, and their template.
void EachWorkload(
    const Mesh& mesh,
    const std::function<void(const MeshCluster& cluster, const kube::Object& object, const nlohmann::json& pod)>& fn);
// Of a namespace, whether some workload's pods (a Job's and a CronJob's, too, and those of what has a template for a
// controller that is not here) have labels that `takes` takes, run they or not.
bool SomeTemplate(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns,
                  const std::function<bool(const kube::Labels&)>& takes);
// A file can be in the pod's sidecar: a volume that brings files is mounted there at it or above, or its annotation
// asks for mounts.
bool SidecarHasFile(const sim::PodProcess& pod, const std::string& path);

// Its arguments or variables say the number of a port, and so what listens there ("--health-probe-bind-address=:8081").
bool IsTold(const nlohmann::json& container, int64_t port);

// The labels by which an object of Istio's selects workloads; null: it selects none.
const nlohmann::json& WorkloadSelectorOf(const kube::Object& object);

// Some of the comma-separated CIDRs or addresses contains the address.
bool AnyCovers(std::string_view cidrs, std::string_view address);

// "app=a, version=v1".
std::string LabelText(const kube::Labels& labels);

// In full, as istiod completes it in an object of the namespace.
std::string FullHost(std::string_view host, std::string_view ns);

// How WT109 begins of a gateway whose pods do not come up; why they do not WT700 says.
inline constexpr std::string_view kNoProxyRuns = "none of its pods runs a gateway's proxy, and ";

// Services by which istiod finds the gateways of networks: those with the label topology.istio.io/network.
std::vector<kube::ObjectRef> NetworkGatewayServices(const Mesh& mesh, const MeshCluster& cluster);
std::string NetworkOfGateway(const kube::Object& service);

// Pods of the cluster that a Service of it selects.
std::vector<const sim::PodProcess*> Behind(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& service);

// A headless Service of `home` that gives the pods of a StatefulSet their names there, while clients of `there` have
// another Service for each of these pods, as databases over several clusters have for each member.
bool NamesMembersAtHome(const Mesh& mesh, const MeshCluster& home, const kube::Object& service,
                        const MeshCluster& there);

// Services of the pod's cluster that select it.
std::vector<kube::ObjectRef> ServicesBefore(const Mesh& mesh, const sim::PodProcess& pod);

// As istiod reads it, and what its name alone says.
pilot::Protocol ProtocolOf(const kube::ServicePort& port);
pilot::Protocol ProtocolNamed(const kube::ServicePort& port);

// What wrote the pod's template: its Deployment or the like, as far as it is there; else the pod.
kube::ObjectRef OwnerOf(const Mesh& mesh, const MeshCluster& cluster, const sim::PodProcess& pod);
kube::ObjectRef OwnerOf(const Mesh& mesh, const MeshCluster& cluster, const kube::ObjectRef& pod);

// A Deployment, StatefulSet or DaemonSet of the namespace whose pods have such labels; null: none.
kube::ObjectRef WorkloadFor(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns,
                            const kube::Labels& selector);

// Why a pod got no proxy of its cluster's injector, and what to do: no webhook selects it, its Service is not there, or
// istiod's injector, once asked, leaves such pods out (istiod: pkg/kube/inject/inject.go, injectRequired). Empty:
// nothing is known.
struct NotInjectedBecause {
  std::string why, remedy;
};
NotInjectedBecause WhyNotInjected(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& pod);

// An application's, not Istio's or Kubernetes' own.
bool IsApplication(const sim::PodProcess& pod);

// The sources that an AuthorizationPolicy's rules name.
void EachSource(const kube::Object& policy, const std::function<void(const nlohmann::json& source)>& fn);

// Where two values differ first, in the order of their fields. Lists of scalars differ as a whole.
struct Difference {
  nlohmann::json::json_pointer at;
  std::string path;  // "http[0].timeout"; empty: at their root
};
std::optional<Difference> FirstDifference(const nlohmann::json& a, const nlohmann::json& b);
// Null: there is nothing.
const nlohmann::json& AtPointer(const nlohmann::json& in, const nlohmann::json::json_pointer& at);

// A primary whose istiod runs, so that it configures the proxies of its own cluster; and one of whose proxies are those
// of applications, which send requests as it says.
bool IsMeshPrimary(const MeshCluster& cluster);
bool HasClients(const Mesh& mesh, const MeshCluster& primary);

// Some pod of another physical network runs a proxy, so that traffic between networks is wanted at all.
bool HasSeveralNetworks(const Mesh& mesh);

// A Secret by which an istiod reads other clusters, and stands where its istiod looks.
bool IsRemoteSecret(const MeshCluster& cluster, const kube::Object& secret);
// The cluster whose API server a kubeconfig names; null: none of this mesh's names, as of a real address.
const MeshCluster* LeadsTo(const Mesh& mesh, const kube::KubeConfig& config);
// Each kubeconfig of such Secrets that can be read, with the cluster that it is for.
void EachRemoteServer(const Mesh& mesh,
                      const std::function<void(const MeshCluster& cluster, const kube::Object& secret,
                                               const std::string& id, const kube::KubeConfig& config)>& fn);

// Clusters that an istiod of `cluster` does not read, as their API servers are not reached or refuse; without those in
// which only a right is missing.
std::vector<sim::UnreadCluster> UnreadBy(const Mesh& mesh, const MeshCluster& cluster);

// For the workload, or for a port of it.
bool DisablesMtls(const config::PeerAuthentication& policy);
// Each AuthorizationPolicy that an istiod reads, with the pods with a proxy that it holds for.
void EachAuthorization(const Mesh& mesh,
                       const std::function<void(const MeshCluster& cluster, const kube::Object& policy,
                                                const std::vector<const sim::PodProcess*>& pods)>& fn);

// A service of that name is known to the cluster's istiod; wildcards: some is.
bool KnowsHost(const MeshCluster& cluster, std::string_view host);
pilot::ServiceRef ServiceOf(const MeshCluster& cluster, std::string_view host);  // null

// What stands in `ns` is exported to all, or to a namespace with a proxy that can use it.
bool SeenBySomeone(const Mesh& mesh, const MeshCluster& cluster, const std::vector<std::string>& export_to,
                   const std::string& ns);

// The proxy has that cluster, and its filters ask there by HTTP/1.1: it says so, or goes by its client's protocol, and
// what a filter asks counts as HTTP/1.1. Envoy: source/common/http/async_client_impl.cc, AsyncStreamImpl
bool AsksByHttp1(const sim::PodProcess& pod, std::string_view cluster);

// What the network keeps from proxies. They are many, hold mostly the same tables, and the network looks at little of a
// sender, so that each of a few kinds is asked for once. The mesh stands still meanwhile.
class NetworkObstacles {
 public:
  using Obstacle = sim::MeshNetwork::Obstacle;
  struct Kept {
    SocketAddress address;
    const Obstacle* obstacle;
    std::string_view cluster;  // one that has it
  };

  NetworkObstacles(const Mesh& mesh, sim::MeshNetwork::Heed heed)
      : network_(*mesh.world().commons().network), heed_(heed) {}

  // Of one proxy's outbound endpoints those that are kept from it, each address once, in their order.
  std::vector<Kept> KeptFrom(const sim::PodProcess& pod);

 private:
  struct Kind {
    std::map<SocketAddress, Obstacle> by_address;
    std::set<const void*> free;  // tables: nothing in them is kept from this kind
  };

  sim::MeshNetwork& network_;
  const sim::MeshNetwork::Heed heed_;
  std::map<sim::MeshNetwork::SenderKind, Kind> kinds_;
};

// The policy that keeps a client of `here` from a port says whom it wants: it is one of ingress, and admits some
// application there.
bool DropsOnPurpose(const Mesh& mesh, const MeshCluster& here, const sim::PodProcess& client,
                    const sim::MeshNetwork::Obstacle& obstacle, int port);

}  // namespace wavetank::check
