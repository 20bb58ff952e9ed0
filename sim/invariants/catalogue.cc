#include "sim/invariants/catalogue.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/invariant.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

constexpr std::string_view kWire = "a look at each distinct ClusterLoadAssignment", kRest = "at rest, what changed",
                           kEvents = "a note per event";

const Invariant kInvariants[] = {
    {"I1", "no-foreign-pod-address", "no proxy is sent the address of a pod in another network",
     "A03-A06 A09 A15 A16 L1 L2", kWire, MakeForeignAddresses},
    {"I2", "replicas-agree", "at rest, all replicas of an istiod know the same endpoints, gateways and clusters",
     "A09 A33 A35 L6 L8", "at rest, a dump of each replica", MakeReplicas},
    {"I3", "endpoints-are-true", "at rest, what istiod knows of a cluster's endpoints is what its API server says",
     "A29-A56 L4 L5", kRest, MakeTrueEndpoints},
    {"I4", "no-address-twice", "no ClusterLoadAssignment holds an address twice: Envoy keeps the first alone",
     "A01 A02", kWire, MakeAddressesTwice},
    {"I5", "load-follows-capacity", "networks get the share of a service's load that their endpoints are of all",
     "A01 A08 A22", kRest, MakeLoadShares},
    {"I6", "sni-closure", "each gateway that a proxy is sent for a service knows the SNI that it will see", "A26",
     kRest, MakeSniClosure},
    {"I7", "handshakes-succeed", "every TLS handshake between proxies is verified", "A57 A58 A59", kEvents,
     MakeHandshakes},
    {"I8", "removal-is-complete", "at rest, istiod holds nothing of a cluster whose Secret has gone", "A32 A42 A45 L4",
     "at rest, a walk over the index while a cluster is gone", MakeRemovals},
    {"I9", "reconnecting-loses-nothing",
     "a proxy that connects anew does not lose endpoints that are given back to it later", "A34 A51",
     "a comparison per assignment after a connection", MakeRestarts},
    {"I10", "cache-changes-nothing",
     "at rest, the endpoints that proxies hold are those that are generated without a cache", "A19 A49",
     "at rest, two proxies generated anew", MakeCacheTwins},
    {"I11", "delta-equals-state-of-the-world",
     "at rest, a proxy of delta xDS holds what state of the world would give it", "A50", "as I10", MakeDeltaTwins},
    {"I12", "merged-pushes-lose-nothing",
     "at rest, the clusters that proxies hold are those that a push of all would bring", "A40", "as I10",
     MakeMergeTwins},
    {"I13", "gateways-are-true",
     "at rest, the gateways that istiod knows are those of the Services, whatever came first", "A54 L1", kRest,
     MakeTrueGateways},
    {"I14", "warming-ends", "what a proxy received is in force, or refused, within 30 s", "A48", kEvents, MakeWarming},
    {"I15", "rotation-ends", "every cluster of a readable remote Secret is watched", "A28-A31 L5 L6", kRest,
     MakeRotation},
    {"I16", "no-blackout-on-rotation", "a changed remote Secret takes no endpoint away for longer than a second",
     "A30 L7", "a comparison per assignment after such a change", MakeBlackouts},
    {"I17", "no-stale-endpoint", "no proxy holds the address of a pod that has gone for 30 s", "A46 A52",
     "a walk over distinct assignments after pods went", MakeStaleEndpoints},
    {"I18", "one-gateway-on-the-way", "a request passes at most one gateway after its client's proxy", "A22",
     "a look at each request's hops", MakeGatewayHops},
    {"I19", "connections-are-true", "the proxies that istiod counts as connected are connected", "A39",
     "a list per 5 s", MakeConnections},
    {"I20", "nack-isolation", "a refused resource keeps no other one out", "A25 istio#18938 istio#42050",
     "at rest, proxies that refused", MakeNackIsolation},
};

constexpr KnownBug kBugs[] = {
    {"A01", "istio#56355: an east-west gateway is sent once per locality group, and Envoy keeps the first alone",
     "gateway-once-per-cla"},
    {"A34", "an istiod that has waited PILOT_REMOTE_CLUSTER_TIMEOUT for a cluster serves without it", ""},
    {"L1", "reloadNetworkGateways stops at the first gateway Service that has changed", ""},
    {"L2",
     "a gateway's host name that resolves to nothing takes the gateway away, and its network's pods are sent as "
     "they are",
     ""},
    {"L4", "workload instances are kept by namespace and name alone, and a removed cluster's stay", ""},
    {"L5", "the old client of a cluster stops before the new kubeconfig is read", "graceful-secret-update"},
    {"L6", "a second Secret for a cluster is looked at once, and never again", ""},
    {"L7", "istio#36365: a changed remote Secret removes the cluster before it is read again",
     "graceful-secret-update"},
    {"stale-gateway", "a deleted remote Secret leaves its cluster's gateways until something else makes istiod look",
     ""},
    {"kept-address", "a gateway Service that loses its last address keeps it, until istiod starts anew", ""},
    {"early-pod", "an endpoint that is read before its pod has a node stays without a place until it changes", ""},
    {kNodePortBug,
     "istio#58743, of 1.30: addresses of a gateway at node ports are not kept, so the next change of networks drops "
     "it, and its network's pods are sent as they are",
     ""},
    {"L8", "SortGateways is no order, so replicas may differ", ""},
    {kSwapBug,
     "istio#61043, of 1.30 until 1.30.4: the clean-up after the old registry of a changed remote Secret removes the "
     "new "
     "one's endpoints, and its gateways stay unknown, until istiod starts again",
     ""},
};

}  // namespace

std::span<const Invariant> Invariants() { return kInvariants; }

const Invariant* FindInvariant(std::string_view name) {
  const auto* const it = std::find_if(std::begin(kInvariants), std::end(kInvariants),
                                      [&](const Invariant& i) { return i.name == name || i.id == name; });
  return it == std::end(kInvariants) ? nullptr : it;
}

absl::StatusOr<std::vector<std::string>> ParseInvariants(std::string_view text) {
  std::vector<const Invariant*> found;
  if (text == "all") {
    for (const Invariant& each : kInvariants) found.push_back(&each);
  } else {
    for (const absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
      const absl::string_view word = absl::StripAsciiWhitespace(part);
      const Invariant* const named = FindInvariant({word.data(), word.size()});
      if (named == nullptr) {
        return absl::InvalidArgumentError(
            fmt::format("no invariant is named '{}'; `wavetank invariants` lists them, and `all` is all of them",
                        std::string_view(word.data(), word.size())));
      }
      found.push_back(named);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (const Invariant* each : found) names.emplace_back(each->name);
  return names;
}

std::span<const KnownBug> KnownBugs() { return kBugs; }

const KnownBug* FindKnownBug(std::string_view id) {
  const auto* const it =
      std::find_if(std::begin(kBugs), std::end(kBugs), [&](const KnownBug& bug) { return bug.id == id; });
  return it == std::end(kBugs) ? nullptr : it;
}

}  // namespace wavetank::sim
