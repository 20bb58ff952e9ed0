#include "capacity/fleet/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "capacity/fleet/day.h"
#include "capacity/fleet/service_graph.h"
#include "core/base/duration.h"
#include "core/base/random.h"

namespace wavetank::capacity {
namespace {

constexpr size_t kMostSteps = 200;
// Of a pod's start, what comes before its readiness probe succeeds (`wavetank timing`: kube.schedule,
// kube.container_start, half of kube.readiness_jitter).
constexpr Duration kBeforeReadiness = 720ms;

std::string ClusterName(int64_t cluster) { return fmt::format("cluster{}", cluster + 1); }
std::string Network(const Fleet& fleet, int64_t cluster) {
  return fleet.one_network ? "network1" : fmt::format("network{}", cluster + 1);
}

// Of a Service that every cluster has, or of this one alone.
std::string ServiceName(const Fleet& fleet, int64_t cluster, int64_t service) {
  const int64_t shared = fleet.services * fleet.shared_ppm / 1'000'000;
  return service < shared ? fmt::format("shared-{}", service) : fmt::format("c{}-{}", cluster + 1, service);
}
std::string NamespaceName(int64_t ns) { return fmt::format("ns-{}", ns); }
std::string NamespaceOf(const Fleet& fleet, int64_t service) { return NamespaceName(service % fleet.namespaces); }

std::string HostOf(const Fleet& fleet, int64_t cluster, int64_t service) {
  return fmt::format("{}.{}.svc.cluster.local", ServiceName(fleet, cluster, service), NamespaceOf(fleet, service));
}

// How the application of a Service takes its time and whom it calls; `more`: what else it does. Empty: as any does.
std::string Behaviour(const Fleet& fleet, const ServiceGraph& graph, int64_t cluster, int64_t service,
                      const std::string& more) {
  std::string how = more;
  const auto calls = graph.calls.find(service);
  if (graph.callers.contains(service)) {
    const int64_t us = fleet.traffic.latency.count() / 1000;
    how += fmt::format(", latency: {{p50: {}us, p99: {}us}}", us, 4 * us);
  }
  if (calls != graph.calls.end()) {
    std::vector<std::string> to;
    for (const int64_t callee : calls->second)
      to.push_back(fmt::format("{{to: \"{}:5000\"}}", HostOf(fleet, cluster, callee)));
    how += fmt::format(", calls: [{}]", fmt::join(to, ", "));
  }
  if (how.empty()) return "";
  return fmt::format("behaviour: {{cluster: {}, namespace: {}, app: {}{}}}", ClusterName(cluster),
                     NamespaceOf(fleet, service), ServiceName(fleet, cluster, service), how);
}

bool Drawn(const Fleet& fleet, std::string_view what, int64_t service, int64_t ppm) {
  RandomStream random(fleet.seed, fmt::format("{}/{}", what, service));
  return random.Chance(static_cast<uint64_t>(ppm));
}

std::string Workload(const std::string& ns, const std::string& name, int64_t pods, bool injected) {
  return fmt::format(
      "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {0}, namespace: {1}}}\nspec:\n  replicas: {2}\n"
      "  selector: {{matchLabels: {{app: {0}}}}}\n  template:\n    metadata: {{labels: {{app: {0}, "
      "sidecar.istio.io/inject: \"{3}\"}}}}\n    spec: {{containers: [{{name: app, image: example/app, ports: "
      "[{{containerPort: 5000}}]}}]}}\n",
      name, ns, pods, injected);
}

std::string ServiceText(const std::string& ns, const std::string& name) {
  return fmt::format(
      "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {0}, namespace: {1}, labels: {{app: {0}}}}}\nspec:\n"
      "  selector: {{app: {0}}}\n  ports: [{{name: http, port: 5000}}]\n",
      name, ns);
}

std::string ControlPlane(const Fleet& fleet, int64_t cluster) {
  std::string out = fmt::format(
      "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: istio-system\n  labels: {{topology.istio.io/network: {}}}\n",
      Network(fleet, cluster));
  out += fmt::format(
      "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: istiod, namespace: istio-system}}\n"
      "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: istiod, namespace: istio-system, labels: {{app: "
      "istiod, istio: pilot}}}}\nspec:\n  replicas: {}\n  selector: {{matchLabels: {{istio: pilot}}}}\n  template:\n"
      "    metadata: {{labels: {{app: istiod, istio: pilot, sidecar.istio.io/inject: \"false\"}}}}\n    spec:\n"
      "      serviceAccountName: istiod\n      containers: [{{name: discovery, image: \"example/pilot:1.18.2\"}}]\n"
      "---\napiVersion: v1\nkind: Service\nmetadata: {{name: istiod, namespace: istio-system, labels: {{app: istiod, "
      "istio: pilot}}}}\nspec:\n  selector: {{istio: pilot}}\n  ports:\n    - {{name: grpc-xds, port: 15010}}\n"
      "    - {{name: https-dns, port: 15012}}\n    - {{name: https-webhook, port: 443, targetPort: 15017}}\n",
      fleet.istiod.replicas);
  return out;
}

std::string Gateway(const Fleet& fleet, int64_t cluster) {
  if (fleet.gateways == 0) return "";
  const std::string network = Network(fleet, cluster);
  return fmt::format(
      "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: istio-eastwestgateway, namespace: istio-system}}\n"
      "spec:\n  replicas: {1}\n  selector: {{matchLabels: {{istio: eastwestgateway}}}}\n  template:\n    metadata:\n"
      "      labels: {{istio: eastwestgateway, topology.istio.io/network: {0}, sidecar.istio.io/inject: \"true\"}}\n"
      "      annotations: {{inject.istio.io/templates: gateway}}\n    spec:\n      containers:\n        - name: "
      "istio-proxy\n          image: auto\n          env: [{{name: ISTIO_META_REQUESTED_NETWORK_VIEW, value: {0}}}]\n"
      "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: istio-eastwestgateway\n  namespace: istio-system\n"
      "  labels: {{istio: eastwestgateway, topology.istio.io/network: {0}}}\nspec:\n  type: LoadBalancer\n"
      "  selector: {{istio: eastwestgateway}}\n  ports: [{{name: tls, port: 15443, targetPort: 15443}}]\n"
      "---\napiVersion: networking.istio.io/v1alpha3\nkind: Gateway\nmetadata: {{name: cross-network-gateway, "
      "namespace: "
      "istio-system}}\nspec:\n  selector: {{istio: eastwestgateway}}\n  servers:\n    - port: {{number: 15443, name: "
      "tls, protocol: TLS}}\n      tls: {{mode: AUTO_PASSTHROUGH}}\n      hosts: [\"*.local\"]\n",
      network, fleet.gateways);
}

std::string VirtualService(const std::string& ns, const std::string& name, int seconds) {
  return fmt::format(
      "---\napiVersion: networking.istio.io/v1beta1\nkind: VirtualService\nmetadata: {{name: {0}, namespace: "
      "{1}}}\nspec:\n"
      "  hosts: [{0}.{1}.svc.cluster.local]\n  http: [{{timeout: {2}s, route: [{{destination: {{host: "
      "{0}.{1}.svc.cluster.local}}}}]}}]\n",
      name, ns, seconds);
}

// Workloads get sidecars until there are as many as the fleet has. `left`: proxies of clients behind no Service.
std::vector<bool> Injected(const std::vector<int64_t>& endpoints, int64_t* left) {
  std::vector<bool> out;
  for (const int64_t pods : endpoints) {
    out.push_back(*left >= pods);
    if (out.back()) *left -= pods;
  }
  return out;
}

// `injected`: which Services' pods have sidecars.
std::string Configuration(const Fleet& fleet, const ServiceGraph& graph, int64_t cluster, int64_t service,
                          const std::vector<bool>& injected) {
  const std::string ns = NamespaceOf(fleet, service), name = ServiceName(fleet, cluster, service);
  std::string out;
  if (Drawn(fleet, "virtual services", service, fleet.virtual_services_ppm)) out += VirtualService(ns, name, 10);
  if (Drawn(fleet, "destination rules", service, fleet.destination_rules_ppm)) {
    out += fmt::format(
        "---\napiVersion: networking.istio.io/v1beta1\nkind: DestinationRule\nmetadata: {{name: {0}, namespace: {1}}}\n"
        "spec:\n  host: {0}.{1}.svc.cluster.local\n  trafficPolicy: {{connectionPool: {{tcp: {{maxConnections: "
        "100}}}}}}\n",
        name, ns);
  }
  if (Drawn(fleet, "authorization policies", service, fleet.authorization_policies_ppm)) {
    // Its own namespace, and those from which it is called.
    std::vector<std::string> allowed = {ns};
    if (const auto callers = graph.callers.find(service); callers != graph.callers.end()) {
      for (const int64_t caller : callers->second) {
        if (std::string from = NamespaceName(caller); from != ns) allowed.push_back(std::move(from));
      }
    }
    // Who calls without a sidecar has no identity that a policy could name (istiod:
    // pilot/pkg/security/authz/model/generator.go, srcNamespaceGenerator).
    const bool plain = std::any_of(graph.calls.begin(), graph.calls.end(), [&](const auto& call) {
      const auto& [caller, callees] = call;
      return !injected[static_cast<size_t>(caller)] &&
             std::find(callees.begin(), callees.end(), service) != callees.end();
    });
    out += fmt::format(
        "---\napiVersion: security.istio.io/v1beta1\nkind: AuthorizationPolicy\nmetadata: {{name: {0}, namespace: "
        "{1}}}\n"
        "spec:\n  selector: {{matchLabels: {{app: {0}}}}}\n  rules: [{{from: [{{source: {{namespaces: "
        "[{2}]}}}}]}}{3}]\n",
        name, ns, fmt::join(allowed, ", "), plain ? ", {to: [{operation: {ports: [\"5000\"]}}]}" : "");
  }
  return out;
}

// Which Services the workloads of a namespace see: its own first, then others that are drawn, and what they call.
std::string Scope(const Fleet& fleet, const ServiceGraph& graph, int64_t cluster, int64_t ns) {
  if (fleet.scope == 0) return "";
  RandomStream random(fleet.seed, fmt::format("sidecar scope/{}/{}", cluster, ns));
  std::vector<std::string> hosts = {"./*", "istio-system/*"};
  const int64_t own = (fleet.services + fleet.namespaces - 1) / fleet.namespaces;
  for (int64_t i = own; i < std::min(fleet.scope, fleet.services); ++i) {
    const auto service = static_cast<int64_t>(random.Below(static_cast<uint64_t>(fleet.services)));
    hosts.push_back(NamespaceOf(fleet, service) + "/" + HostOf(fleet, cluster, service));
  }
  if (const auto abroad = graph.abroad.find(ns); abroad != graph.abroad.end()) {
    for (const int64_t service : abroad->second) {
      std::string host = NamespaceOf(fleet, service) + "/" + HostOf(fleet, cluster, service);
      if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(std::move(host));
    }
  }
  return fmt::format(
      "---\napiVersion: networking.istio.io/v1beta1\nkind: Sidecar\nmetadata: {{name: default, namespace: "
      "ns-{}}}\nspec:\n"
      "  egress: [{{hosts: [\"{}\"]}}]\n",
      ns, fmt::join(hosts, "\", \""));
}

struct TimedStep {
  Duration at{};
  std::string text;
};

// A lost machine comes back, as an operator's autoscaler replaces it.
constexpr Duration kNodeIsBack = 15min;
// Until then its pods may not be back, an istiod that cannot be killed again among them.
constexpr Duration kNodeIsMissed = kNodeIsBack + 1min;
constexpr Duration kIstiodIsBack = 30s;

// Churn as steps: what an operator or a controller would do, of which the changes follow. Each has its moment, whether
// what came before has settled or not.
class Steps {
 public:
  explicit Steps(const Fleet& fleet) : fleet_(fleet), graph_(DrawServiceGraph(fleet)) {
    Flapping();
    Arrivals("deploys", fleet_.churn.deploys, [&](RandomStream&, Duration, int64_t cluster, int64_t service) {
      return fmt::format("restart: {{cluster: {}, deployment: {}}}", ClusterName(cluster), Workload(cluster, service));
    });
    Arrivals("autoscaling", fleet_.churn.autoscaling,
             [&](RandomStream& random, Duration, int64_t cluster, int64_t service) {
               return Scaling(random, cluster, service);
             });
    FollowDay();
    Arrivals("config edits", fleet_.churn.config_edits,
             [&](RandomStream& random, Duration, int64_t cluster, int64_t service) {
               return Edit(random, cluster, service);
             });
    Arrivals("node loss", fleet_.churn.node_loss, [&](RandomStream& random, Duration at, int64_t cluster, int64_t) {
      return LoseNode(random, at, cluster);
    });
    if (fleet_.clusters > 1) {
      Arrivals("secret rotation", fleet_.churn.secret_rotation, [&](RandomStream&, Duration, int64_t cluster, int64_t) {
        return fmt::format("remoteSecret: {{of: {}, in: {}, state: rotated}}", ClusterName(cluster),
                           ClusterName((cluster + 1) % fleet_.clusters));
      });
    }
    // After the nodes, which may have taken an istiod with them.
    Arrivals("istiod restarts", fleet_.churn.istiod_restarts,
             [&](RandomStream&, Duration at, int64_t cluster, int64_t) { return KillIstiod(at, cluster); });
    if (!killed_at_.empty() && fleet_.istiod.replicas > 1) {
      left_out_.push_back("deaths of single istiods: all of a cluster die together");
    }
    std::stable_sort(out_.begin(), out_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    if (out_.size() <= kMostSteps) return;
    left_out_.push_back(fmt::format("{} of {} changes: a scenario of `synth` has {} steps, which end at {}",
                                    out_.size() - kMostSteps, out_.size(), kMostSteps,
                                    FormatDuration(out_[kMostSteps - 1].at)));
    out_.resize(kMostSteps);
  }

  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < out_.size(); ++i) {
      text += fmt::format("  - name: change {}\n    at: {}ms\n    settle: 0s\n    do:\n      - {}\n", i + 1,
                          out_[i].at.count() / 1'000'000, out_[i].text);
    }
    // What goes on by itself, flapping pods and requests, does so to the end.
    const bool goes_on = !out_.empty() || !graph_.entries.empty();
    if (goes_on && (out_.empty() || out_.back().at < fleet_.duration)) {
      text += fmt::format("  - name: the end\n    at: {}ms\n    settle: 0s\n", fleet_.duration.count() / 1'000'000);
    }
    return text;
  }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  // `then` gives the text of a step, or nothing.
  template <class Then>
  void Arrivals(std::string_view what, Duration every, Then then) {
    if (every <= Duration::zero()) return;
    RandomStream random(fleet_.seed, fmt::format("steps/{}", what));
    Duration at{};
    while (out_.size() < 10 * kMostSteps) {
      at += Duration(random.Between(every.count() / 2, every.count() * 3 / 2));
      if (at >= fleet_.duration) return;
      const auto cluster = static_cast<int64_t>(random.Below(static_cast<uint64_t>(fleet_.clusters)));
      const auto service = static_cast<int64_t>(random.Below(static_cast<uint64_t>(fleet_.services)));
      if (std::string text = then(random, at, cluster, service); !text.empty()) out_.push_back({at, std::move(text)});
    }
  }

  // Whole Services flap, as many as have the pods.
  void Flapping() {
    int64_t left = fleet_.churn.flapping;
    if (left == 0) return;
    const int64_t every = fleet_.churn.flapping_every.count() / 1'000'000;
    for (int64_t cluster = 0; cluster < fleet_.clusters && left > 0; ++cluster) {
      const std::vector<int64_t> endpoints = DrawEndpoints(fleet_, cluster);
      for (int64_t service = fleet_.services - 1; service >= 0 && left > 0; --service) {
        const int64_t pods = endpoints[static_cast<size_t>(service)];
        if (pods == 0 || pods > left) continue;
        left -= pods;
        out_.push_back({Duration::zero(), Behaviour(fleet_, graph_, cluster, service,
                                                    fmt::format(", readyFor: {0}ms, unreadyFor: {0}ms", every))});
      }
    }
    if (left > 0) left_out_.push_back(fmt::format("{} flapping pods: no Service is small enough for them", left));
  }

  // What the autoscalers of the day's curve do.
  void FollowDay() {
    if (fleet_.churn.day_ppm.empty()) return;
    for (int64_t cluster = 0; cluster < fleet_.clusters; ++cluster) {
      const std::vector<int64_t> endpoints = DrawEndpoints(fleet_, cluster);
      for (const Resize& resize : ResizesOfDay(fleet_, endpoints)) {
        out_.push_back(
            {resize.at, fmt::format("scale: {{cluster: {}, deployment: {}, replicas: {}}}", ClusterName(cluster),
                                    Workload(cluster, static_cast<int64_t>(resize.service)), resize.to)});
      }
    }
  }

  // Away from what it has by the fleet's page, and back the next time: each changes as many pods as `plan` counts. One
  // pod stays, as of an autoscaler (kubernetes: pkg/apis/autoscaling/v2/defaults.go, minReplicas).
  std::string Scaling(RandomStream& random, int64_t cluster, int64_t service) {
    const int64_t pods = std::max<int64_t>(1, DrawEndpoints(fleet_, cluster)[static_cast<size_t>(service)]);
    const int64_t by = std::max<int64_t>(1, pods * fleet_.churn.swing_ppm / 1'000'000);
    const bool more = random.Chance(500'000) || pods - by < 1;
    int64_t& now = replicas_.try_emplace({cluster, service}, pods).first->second;
    now = now != pods ? pods : more ? pods + by : pods - by;
    return fmt::format("scale: {{cluster: {}, deployment: {}, replicas: {}}}", ClusterName(cluster),
                       Workload(cluster, service), now);
  }

  std::string Edit(RandomStream& random, int64_t cluster, int64_t service) const {
    return fmt::format(
        "apply: {{cluster: {}, objects: [{{apiVersion: networking.istio.io/v1beta1, kind: VirtualService, metadata: "
        "{{name: {}, namespace: {}}}, spec: {{hosts: [{}], http: [{{timeout: {}s, route: [{{destination: {{host: "
        "{}}}}}]}}]}}}}]}}",
        ClusterName(cluster), ServiceName(fleet_, cluster, service), NamespaceOf(fleet_, service),
        HostOf(fleet_, cluster, service), random.Between(1, 60), HostOf(fleet_, cluster, service));
  }

  // One that stands; it comes back while there is time for it.
  std::string LoseNode(RandomStream& random, Duration at, int64_t cluster) {
    const int64_t first = random.Between(0, fleet_.nodes - 1);
    for (int64_t i = 0; i < fleet_.nodes; ++i) {
      const int64_t node = (first + i) % fleet_.nodes;
      Duration& back = back_at_[{cluster, node}];
      if (back > at) continue;
      back = at + kNodeIsBack;
      lost_at_[cluster].push_back(at);
      const auto step = [&](std::string_view state) {
        return fmt::format("node: {{cluster: {}, node: node{}, state: {}}}", ClusterName(cluster), node + 1, state);
      };
      if (back < fleet_.duration) out_.push_back({back, step("back")});
      return step("lost");
    }
    left_out_.push_back(
        fmt::format("a lost node of {} at {}: all of them are lost", ClusterName(cluster), FormatDuration(at)));
    return "";
  }

  // All that run in the cluster; none, while they start.
  std::string KillIstiod(Duration at, int64_t cluster) {
    if (const auto killed = killed_at_.find(cluster);
        killed != killed_at_.end() && at < killed->second + kIstiodIsBack) {
      left_out_.push_back(fmt::format("a restart of {}'s istiod at {}: the one before is not over",
                                      ClusterName(cluster), FormatDuration(at)));
      return "";
    }
    const std::vector<Duration>& lost = lost_at_[cluster];
    if (std::any_of(lost.begin(), lost.end(), [&](Duration l) { return at >= l && at < l + kNodeIsMissed; })) {
      left_out_.push_back(fmt::format("a restart of {}'s istiod at {}: it may have been on a node that is lost",
                                      ClusterName(cluster), FormatDuration(at)));
      return "";
    }
    killed_at_[cluster] = at;
    return fmt::format("kill: {{cluster: {}, namespace: istio-system, app: istiod}}", ClusterName(cluster));
  }

  std::string Workload(int64_t cluster, int64_t service) const {
    return NamespaceOf(fleet_, service) + "/" + ServiceName(fleet_, cluster, service);
  }

  const Fleet& fleet_;
  const ServiceGraph graph_;
  std::vector<TimedStep> out_;
  std::vector<std::string> left_out_;
  std::map<std::pair<int64_t, int64_t>, Duration> back_at_;  // by cluster and node
  std::map<int64_t, std::vector<Duration>> lost_at_;         // nodes, by cluster
  std::map<int64_t, Duration> killed_at_;                    // by cluster
  std::map<std::pair<int64_t, int64_t>, int64_t> replicas_;  // by cluster and Service: what it was last scaled to
};

// What clients send, as long as the fleet's time goes on.
std::string Requests(const Fleet& fleet) {
  const ServiceGraph graph = DrawServiceGraph(fleet);
  if (graph.entries.empty()) return "";
  std::string flows = "\nflows:\n", sent = "\nthroughout:\n  traffic:\n";
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    for (const int64_t entry : graph.entries) {
      const std::string name = fmt::format("{} to {}", ClusterName(cluster), ServiceName(fleet, cluster, entry));
      flows += fmt::format(
          "  - {{name: {}, from: {{cluster: {}, namespace: ns-0, app: clients}}, to: \"{}:5000\", rate: {:g}/s, "
          "arrivals: poisson}}\n",
          name, ClusterName(cluster), HostOf(fleet, cluster, entry),
          static_cast<double>(fleet.traffic.rate_per_kilosecond) / 1000);
      sent += fmt::format("    - {{flow: {}}}\n", name);
    }
  }
  return flows + sent;
}

// How the applications behave that requests reach, from the beginning on.
std::string Behaviours(const Fleet& fleet) {
  const ServiceGraph graph = DrawServiceGraph(fleet);
  if (graph.entries.empty()) return "";
  std::string out;
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    for (int64_t service = 0; service < fleet.services; ++service) {
      const std::string behaviour = Behaviour(fleet, graph, cluster, service, "");
      if (!behaviour.empty()) out += "      - " + behaviour + "\n";
    }
  }
  return out;
}

absl::Status Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) return absl::UnavailableError(fmt::format("{}: cannot be written", path.string()));
  return absl::OkStatus();
}

}  // namespace

std::string ClusterManifests(const Fleet& fleet, int64_t cluster) {
  const ServiceGraph graph = DrawServiceGraph(fleet);
  std::string out = "# Made by `wavetank synth`.\n" + ControlPlane(fleet, cluster) + Gateway(fleet, cluster);
  for (int64_t ns = 0; ns < fleet.namespaces; ++ns) {
    out += fmt::format(
        "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: ns-{}, labels: {{istio-injection: enabled}}}}\n", ns);
    out += Scope(fleet, graph, cluster, ns);
  }
  const int64_t senders = graph.entries.empty() ? 0 : 1;  // one at least
  int64_t left = fleet.proxies - senders;
  const std::vector<int64_t> endpoints = DrawEndpoints(fleet, cluster);
  const std::vector<bool> injected = Injected(endpoints, &left);
  for (int64_t service = 0; service < fleet.services; ++service) {
    const std::string ns = NamespaceOf(fleet, service), name = ServiceName(fleet, cluster, service);
    const auto at = static_cast<size_t>(service);
    out +=
        ServiceText(ns, name) + Workload(ns, name, PodsAt(fleet.churn, endpoints[at], Duration::zero()), injected[at]);
    out += Configuration(fleet, graph, cluster, service, injected);
  }
  if (left + senders > 0) out += Workload("ns-0", "clients", left + senders, true);
  return out;
}

std::string ScenarioText(const Fleet& fleet) {
  std::string out = fmt::format("# Made by `wavetank synth`.\nname: \"{}\"\nseed: {}\nca: common-root\n\nclusters:\n",
                                fleet.name, fleet.seed);
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    out += fmt::format("  - name: {0}\n    network: {1}\n    manifests: [{0}.yaml]\n    nodes:\n", ClusterName(cluster),
                       Network(fleet, cluster));
    for (int64_t node = 0; node < fleet.nodes; ++node) {
      out += fmt::format("      - {{name: node{}, region: region{}, zone: zone{}}}\n", node + 1, cluster + 1,
                         static_cast<char>('a' + node % fleet.zones));
    }
  }
  if (fleet.clusters > 1) {
    out += "\nremoteSecrets:\n";
    for (int64_t of = 0; of < fleet.clusters; ++of) {
      for (int64_t in = 0; in < fleet.clusters; ++in) {
        if (of != in) out += fmt::format("  - {{of: {}, in: {}}}\n", ClusterName(of), ClusterName(in));
      }
    }
  }
  const IstiodSpec& i = fleet.istiod;
  out += fmt::format(
      "\ntiming: {{istiod.debounce_after: {}ms, istiod.debounce_max: {}ms, istiod.push_throttle: \"{}\", "
      "istiod.connections_per_second: \"{}\", kube.readiness: {}ms}}\n",
      i.debounce_after.count() / 1'000'000, i.debounce_max.count() / 1'000'000, i.push_throttle, i.requests_per_second,
      std::max(Duration::zero(), fleet.churn.pod_start - kBeforeReadiness).count() / 1'000'000);
  out += Requests(fleet) + "\nsteps:\n  - name: at rest\n";
  if (const std::string behaviours = Behaviours(fleet); !behaviours.empty()) out += "    do:\n" + behaviours;
  return out + Steps(fleet).Text();
}

std::vector<std::string> LeftOut(const Fleet& fleet) { return Steps(fleet).left_out(); }

absl::Status WriteScenario(const Fleet& fleet, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error) &&
      !fs::exists(fs::path(folder) / "scenario.yaml", error)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: holds other files; name an empty folder, or one that `synth` wrote", folder));
  }
  fs::create_directories(folder, error);
  if (error) return absl::UnavailableError(fmt::format("{}: cannot be made: {}", folder, error.message()));
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    const fs::path path = fs::path(folder) / (ClusterName(cluster) + ".yaml");
    if (absl::Status status = Write(path, ClusterManifests(fleet, cluster)); !status.ok()) return status;
  }
  return Write(fs::path(folder) / "scenario.yaml", ScenarioText(fleet));
}

}  // namespace wavetank::capacity
