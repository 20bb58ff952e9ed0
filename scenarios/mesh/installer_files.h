// Files of those who install a mesh, among its manifests: an IstioOperator is what istioctl makes of it, kind's
// clusters and MetalLB's pools say which addresses there are.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/objects/manifest.h"
#include "scenarios/language/scenario.h"

namespace wavetank::scenario {

// What `istioctl install` is given, and what became of it.
struct Installation {
  nlohmann::json istio_operator;
  std::vector<std::string> set;
  std::string revision;  // of its injector's webhooks; empty: it has none
  bool istiod = false;   // it brings one
};

// As fakekube::LoadManifests; each IstioOperator is replaced by what `istioctl manifest generate` prints of it, with
// the charts of that istioctl, of $ISTIO_CHARTS or $ISTIO_HOME/manifests; what it warns of goes to `notes`. istioctl is
// $ISTIOCTL, $ISTIO_HOME/bin/istioctl, or on the PATH; without one, FailedPrecondition says where the IstioOperator
// stands and what to do. kind's files are left out.
// What the spec sets is laid over each of them, as `istioctl install --set` would. `operators`: gets the IstioOperators
// as they were written, too; of a spec of no file one that says nothing. `installations`: one for each of them.
absl::StatusOr<std::vector<fakekube::Manifest>> LoadRendered(const ManifestSpec& spec,
                                                             std::vector<std::string>* notes = nullptr,
                                                             std::vector<fakekube::Manifest>* operators = nullptr,
                                                             std::vector<Installation>* installations = nullptr);

// What `istioctl install` makes in a cluster beside what `manifest generate` prints: the tag "default", whose webhooks
// inject and validate where no revision is named. It is of the installation without a revision that brings an istiod,
// else of the first, unless `objects`, the cluster's, bring an injector already. The webhooks of an injector without a
// revision match nothing from then on: the tag's take their place. Errors: istioctl's.
// istio: operator/cmd/mesh/install.go, Install() ("Making this installation the default for injection and validation")
absl::Status MakeDefault(const std::vector<Installation>& installations, std::vector<nlohmann::json>* objects);

// "[FILE:]PATH=VALUE" each, to the one IstioOperator among the cluster's manifests, or to the one of that file; where
// there is none, the cluster gets an installation of no file. InvalidArgument: it is of another form, or which one is
// meant is not clear.
absl::Status GiveSettings(const std::vector<std::string>& settings, ClusterSpec* cluster);

struct ClusterRanges {
  std::string pods, services;    // CIDRs; empty: nothing is said
  std::string load_balancers;    // a CIDR, "from-to", or "none": they wait for ever
  bool kindnet = false;          // kind's own network plugin is there, which acts upon no NetworkPolicy
  bool strict_policies = false;  // a network plugin is there that looks at connections that stand (Cilium)
  // Ports of the machine that kind's containers take.
  struct HostPort {
    int port = 0;
    std::string address;  // "127.0.0.1", "0.0.0.0"
  };
  std::vector<HostPort> host_ports;
  std::string file;  // of the last kind file or pool that was read, and its line; empty: none was
  int line = 0;
  std::vector<std::string> notes;
};
// What a kind file (kind.x-k8s.io) says of pods and Services, kind's defaults included, and an IPAddressPool of MetalLB
// (or the ConfigMap of its older releases) of load balancers. InvalidArgument: a range is none.
absl::StatusOr<ClusterRanges> ReadRanges(const ClusterSpec& cluster);

// What the scenario's `index`-th cluster is given: what the scenario says, where it says nothing what the cluster's
// `files` give (kind, MetalLB), else the usual.
struct AddressRanges {
  std::string pods, services, load_balancers;
};
AddressRanges RangesOf(const ClusterSpec& cluster, size_t index, const ClusterRanges& files);

// NetworkPolicies act in the cluster: where the scenario says nothing, unless kind's own network plugin is there.
bool EnforcesPolicies(const ClusterSpec& cluster, const ClusterRanges& files);

// They cut connections that stand, too: where the scenario says so, or says nothing and such a plugin is there.
bool PoliciesAreStrict(const ClusterSpec& cluster, const ClusterRanges& files);

// The same addresses, however they are written.
bool SameRange(const std::string& a, const std::string& b);

struct SharedRange {
  std::string text;
  std::vector<size_t> clusters;  // whose they are, by their places in the scenario, in order
};
// Ranges that meet: pods and Services of one cluster, pods of clusters on one network, load balancers; and ports of
// kind's clusters that their machine has once. `files`: of each cluster.
std::vector<SharedRange> SharedRanges(const Scenario& scenario, const std::vector<ClusterRanges>& files);

}  // namespace wavetank::scenario
