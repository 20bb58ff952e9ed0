#include "capacity/fleet/fleet_rows.h"

#include "core/base/assert.h"

namespace wavetank::capacity {

using scenario::FieldType;
using scenario::MappingRow;
namespace row = scenario::row;

const std::vector<MappingRow>& FleetRows() {
  static const auto* const kRows = new std::vector<MappingRow>{
      {"fleet",
       "A fleet",
       {row::Text("name", "What it is called").Required(), row::Text("description", "What it stands for"),
        row::Integer("seed", 0, INT64_MAX, "Of all draws; each part draws for itself"),
        row::Other("duration", FieldType::kDuration, "How long its churn goes on; 10m"),
        row::Mapping("clusters", "clusters", "Clusters, all alike").Required(),
        row::Mapping("services", "services", "Services of each cluster").Required(),
        row::Mapping("proxies", "proxies", "Proxies of each cluster").Required(),
        row::Mapping("configuration", "configuration", "Istio's objects"),
        row::Mapping("traffic", "serviceGraph", "Requests, and which Services call which"),
        row::Mapping("churn", "churn", "What changes, and how often, in the whole mesh"),
        row::Mapping("istiod", "istiod", "The control plane of each cluster")},
       {}},
      {"clusters",
       "Clusters, all alike",
       {row::Integer("count", 1, 1000, "How many").Required(),
        row::Choice("networks", {"each", "one"}, "A network for each, with a gateway; or one for all"),
        row::Integer("namespaces", 1, 10'000, "In each"), row::Integer("nodes", 1, 15'000, "In each"),
        row::Integer("zones", 1, 26, "Over which its nodes are spread")},
       {}},
      {"services",
       "Services of each cluster",
       {row::Integer("perCluster", 1, 100'000, "How many").Required(),
        row::Other("shared", FieldType::kShare, "Of them, of the same name in every cluster"),
        row::Mapping("endpoints", "endpoints", "How many endpoints each has; 2")},
       {}},
      {"endpoints",
       "How many endpoints a Service has",
       {row::Integer("fixed", 0, 1'000'000, "Each as many"), row::Mapping("range", "range", "Uniform"),
        row::Mapping("zipf", "zipf", "Few have many")},
       {"fixed", "range", "zipf"}},
      {"range",
       "Uniform",
       {row::Integer("least", 0, 1'000'000, "At least").Required(),
        row::Integer("most", 0, 1'000'000, "At most").Required()},
       {}},
      {"zipf",
       "The n-th has the first's by n to the exponent, at least one",
       {row::Integer("most", 1, 1'000'000, "Of the first").Required(),
        row::Text("exponent", "From 0.1 to 3; 1 if left out")},
       {}},
      {"proxies",
       "Proxies of each cluster",
       {row::Integer("perCluster", 0, 200'000, "Sidecars").Required(),
        row::Integer("gateways", 0, 1000, "East-west gateways; 1")},
       {}},
      {"configuration",
       "Istio's objects",
       {row::Integer("sidecarScope", 1, 100'000, "Services that a Sidecar in each namespace lets its workloads see"),
        row::Other("virtualServices", FieldType::kShare, "Of the services"),
        row::Other("destinationRules", FieldType::kShare, "Of the services"),
        row::Other("authorizationPolicies", FieldType::kShare, "Of the services")},
       {}},
      {"serviceGraph",
       "Clients of each cluster call entries, which call Services of the layer below, and so on",
       {row::Integer("entries", 1, 1000, "Services that clients call").Required(),
        row::Other("rate", FieldType::kRate, "To each of them, from each cluster, by chance; 10/s"),
        row::Integer("calls", 1, 100, "Services that each one calls before it answers; 2"),
        row::Integer("depth", 0, 10, "Layers below the entries; 2"),
        row::Other("latency", FieldType::kDuration, "Half of the answers take less, without the calls; 5ms")},
       {}},
      {"churn",
       "What changes in the whole mesh",
       {row::Mapping("deploys", "deploys", "Rolling updates"), row::Mapping("flapping", "flapping", "Pods that flap"),
        row::Mapping("autoscaling", "autoscaling", "Services that grow and shrink"),
        row::Mapping("nodeLoss", "every", "A node is lost with its pods, which start elsewhere"),
        row::Mapping("configEdits", "every", "A VirtualService is edited"),
        row::Mapping("secretRotation", "every", "A remote Secret is deleted and comes again"),
        row::Mapping("istiodRestarts", "every", "An istiod dies, and its proxies connect again")},
       {}},
      {"every", "How often", {row::Other("every", FieldType::kDuration, "On average").Required()}, {}},
      {"deploys",
       "Rolling updates, each of one Service",
       {row::Other("every", FieldType::kDuration, "On average").Required(),
        row::Other("surge", FieldType::kShare, "Pods that are replaced at once; 25%"),
        row::Other("podStart", FieldType::kDuration, "Until a new pod is ready; 5s")},
       {}},
      {"flapping",
       "Pods that turn unready and ready again",
       {row::Integer("pods", 1, 1'000'000, "How many").Required(),
        row::Other("every", FieldType::kDuration, "Each of them turns").Required()},
       {}},
      {"autoscaling",
       "Services that grow and shrink",
       {row::Other("every", FieldType::kDuration, "One of them, on average"),
        row::Other("swing", FieldType::kShare, "By that much of its pods; 20%"),
        row::Mapping("day", "day", "Instead: all of them, by a curve over the day")},
       {}},
      {"day",
       "Pods of each Service over the day, as shares of its endpoints",
       {row::Other("curve", FieldType::kTexts, "Shares at hours that divide the day evenly, from midnight on")
            .Required(),
        row::Other("begins", FieldType::kDuration, "Time of day at which the fleet begins; 0s: midnight")},
       {}},
      {"istiod",
       "The control plane of each cluster",
       {row::Integer("replicas", 1, 1000, "Pods"), row::Text("cpu", "Of each, as Kubernetes writes it: 2, 500m"),
        row::Text("memory", "Of each: 4Gi, 512Mi"),
        row::Other("debounceAfter", FieldType::kDuration, "PILOT_DEBOUNCE_AFTER"),
        row::Other("debounceMax", FieldType::kDuration, "PILOT_DEBOUNCE_MAX"),
        row::Integer("pushThrottle", 1, 1'000'000, "PILOT_PUSH_THROTTLE"),
        row::Integer("requestsPerSecond", 1, 1'000'000, "PILOT_MAX_REQUESTS_PER_SECOND"),
        row::Integer("kubernetesApiQPS", 1, 1'000'000, "Requests a second to an API server; 80"),
        row::Integer("kubernetesApiBurst", 1, 1'000'000, "And at once; 160")},
       {}},
  };
  return *kRows;
}

const MappingRow& FleetRow(std::string_view name) {
  for (const MappingRow& row : FleetRows()) {
    if (row.name == name) return row;
  }
  WAVETANK_ASSERT(false, name);
  return FleetRows().front();
}

}  // namespace wavetank::capacity
