#include "wavetank/mesh.h"

#include <algorithm>
#include <set>

namespace wavetank {
namespace {

using List = Value::List;
using Map = Value::Map;

Value Meta(std::string name, std::string ns, Map labels = {}) {
  Map out{{"name", std::move(name)}};
  if (!ns.empty()) out["namespace"] = std::move(ns);
  if (!labels.empty()) out["labels"] = std::move(labels);
  return out;
}

Value NamespaceOf(const std::string& name, Map labels) {
  return Map{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Meta(name, "", std::move(labels))}};
}

Value AccountOf(const std::string& name, const std::string& ns) {
  return Map{{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", Meta(name, ns)}};
}

struct Port {
  const char* name;
  int port, target;
};

Value ServiceOf(const std::string& name, const std::string& ns, Map labels, Map selector, const List& ports,
                const char* type = nullptr) {
  Map spec{{"selector", std::move(selector)}, {"ports", ports}};
  if (type != nullptr) spec["type"] = type;
  return Map{{"apiVersion", "v1"},
             {"kind", "Service"},
             {"metadata", Meta(name, ns, std::move(labels))},
             {"spec", std::move(spec)}};
}

List Ports(const std::vector<Port>& ports) {
  List out;
  for (const Port& port : ports)
    out.push_back(Map{{"name", port.name}, {"port", port.port}, {"targetPort", port.target}});
  return out;
}

struct PodSpec {
  Map labels, annotations, container;
  std::string account;
};

Value DeploymentOf(const std::string& name, const std::string& ns, int replicas, Map selector, PodSpec pod) {
  Map meta{{"labels", pod.labels}};
  if (!pod.annotations.empty()) meta["annotations"] = std::move(pod.annotations);
  Map spec{{"containers", List{std::move(pod.container)}}};
  if (!pod.account.empty()) spec["serviceAccountName"] = pod.account;
  return Map{{"apiVersion", "apps/v1"},
             {"kind", "Deployment"},
             {"metadata", Meta(name, ns, pod.labels)},
             {"spec", Map{{"replicas", replicas},
                          {"selector", Map{{"matchLabels", std::move(selector)}}},
                          {"template", Map{{"metadata", std::move(meta)}, {"spec", std::move(spec)}}}}}};
}

List ContainerPorts(const std::vector<int>& ports) {
  List out;
  for (const int port : ports) out.push_back(Map{{"containerPort", port}});
  return out;
}

// As Istio's guides install it: an istiod runs where this pod does.
void AddIstiod(const Cluster& cluster, List* out) {
  out->push_back(AccountOf("istiod", "istio-system"));
  out->push_back(DeploymentOf("istiod", "istio-system", cluster.istiods, {{"istio", "pilot"}},
                              {.labels = {{"app", "istiod"}, {"istio", "pilot"}, {"sidecar.istio.io/inject", "false"}},
                               .container = {{"name", "discovery"},
                                             {"image", "example/pilot:1.18.2"},
                                             {"ports", ContainerPorts({15010, 15012, 15017})}},
                               .account = "istiod"}));
  out->push_back(ServiceOf("istiod", "istio-system", {{"app", "istiod"}, {"istio", "pilot"}}, {{"istio", "pilot"}},
                           Ports({{"grpc-xds", 15010, 15010},
                                  {"https-dns", 15012, 15012},
                                  {"https-webhook", 443, 15017},
                                  {"http-monitoring", 15014, 15014}})));
}

void AddGateway(const Cluster& cluster, List* out) {
  const Map labels{
      {"app", "istio-eastwestgateway"}, {"istio", "eastwestgateway"}, {"topology.istio.io/network", cluster.network}};
  Map pod = labels;
  pod["sidecar.istio.io/inject"] = "true";
  out->push_back(AccountOf("eastwest", "istio-system"));
  out->push_back(DeploymentOf(
      "istio-eastwestgateway", "istio-system", cluster.gateways, {{"istio", "eastwestgateway"}},
      {.labels = pod,
       .annotations = {{"inject.istio.io/templates", "gateway"}},
       .container = {{"name", "istio-proxy"},
                     {"image", "auto"},
                     {"env", List{Map{{"name", "ISTIO_META_REQUESTED_NETWORK_VIEW"}, {"value", cluster.network}}}},
                     {"ports", ContainerPorts({15021, 15443, 15012, 15017})}},
       .account = "eastwest"}));
  Value service = ServiceOf("istio-eastwestgateway", "istio-system", labels, {{"istio", "eastwestgateway"}},
                            Ports({{"status-port", 15021, 15021},
                                   {"tls", 15443, 15443},
                                   {"tls-istiod", 15012, 15012},
                                   {"tls-webhook", 15017, 15017}}),
                            cluster.gateway == Gateway::kNodePort ? "NodePort" : "LoadBalancer");
  if (cluster.gateway == Gateway::kNodePort) {
    Map meta = service["metadata"].Entries();
    meta["annotations"] = Map{{"traffic.istio.io/nodeSelector", "{}"}};
    service.Set("metadata", std::move(meta));
  }
  out->push_back(std::move(service));
}

// Whoever presents a certificate of the mesh may reach any Service of the cluster through its gateway.
void ExposeServices(List* out) {
  out->push_back(
      Map{{"apiVersion", "networking.istio.io/v1alpha3"},
          {"kind", "Gateway"},
          {"metadata", Meta("cross-network-gateway", "istio-system")},
          {"spec", Map{{"selector", Map{{"istio", "eastwestgateway"}}},
                       {"servers", List{Map{{"port", Map{{"number", 15443}, {"name", "tls"}, {"protocol", "TLS"}}},
                                            {"tls", Map{{"mode", "AUTO_PASSTHROUGH"}}},
                                            {"hosts", List{"*.local"}}}}}}}});
}

// A remote cluster reaches its istiod through the gateway of the istiod's cluster.
void ExposeIstiod(List* out) {
  List servers, routes;
  struct Exposed {
    int port, target;
    const char* name;
  };
  for (const Exposed& each : {Exposed{15012, 15012, "tls-istiod"}, Exposed{15017, 443, "tls-webhook"}}) {
    servers.push_back(Map{{"port", Map{{"number", each.port}, {"name", each.name}, {"protocol", "TLS"}}},
                          {"tls", Map{{"mode", "PASSTHROUGH"}}},
                          {"hosts", List{"*"}}});
    routes.push_back(Map{{"match", List{Map{{"port", each.port}, {"sniHosts", List{"*"}}}}},
                         {"route", List{Map{{"destination", Map{{"host", "istiod.istio-system.svc.cluster.local"},
                                                                {"port", Map{{"number", each.target}}}}}}}}});
  }
  out->push_back(Map{{"apiVersion", "networking.istio.io/v1alpha3"},
                     {"kind", "Gateway"},
                     {"metadata", Meta("istiod-gateway", "istio-system")},
                     {"spec", Map{{"selector", Map{{"istio", "eastwestgateway"}}}, {"servers", servers}}}});
  out->push_back(Map{{"apiVersion", "networking.istio.io/v1alpha3"},
                     {"kind", "VirtualService"},
                     {"metadata", Meta("istiod", "istio-system")},
                     {"spec", Map{{"hosts", List{"*"}}, {"gateways", List{"istiod-gateway"}}, {"tls", routes}}}});
}

void AddApp(const App& app, const Cluster& cluster, List* out) {
  bool here = std::find(app.also_in.begin(), app.also_in.end(), cluster.name) != app.also_in.end();
  for (const Deployment& d : app.deployments) {
    if (d.cluster != cluster.name) continue;
    here = true;
    const Map labels{{"app", app.name}, {"version", d.version}};
    out->push_back(DeploymentOf(d.name.empty() ? app.name + "-" + d.version : d.name, app.ns, d.replicas, labels,
                                {.labels = labels,
                                 .container = {{"name", app.name},
                                               {"image", "example/" + app.name + ":" + d.version},
                                               {"ports", ContainerPorts({app.port})}}}));
  }
  if (!here) return;
  out->push_back(ServiceOf(app.name, app.ns, {{"app", app.name}}, {{"app", app.name}},
                           List{Map{{"name", app.port_name}, {"port", app.port}, {"targetPort", app.port}}}));
}

void AddClient(List* out) {
  out->push_back(AccountOf("sleep", "sample"));
  out->push_back(
      ServiceOf("sleep", "sample", {{"app", "sleep"}}, {{"app", "sleep"}}, List{Map{{"name", "http"}, {"port", 80}}}));
  out->push_back(DeploymentOf("sleep", "sample", 1, {{"app", "sleep"}},
                              {.labels = {{"app", "sleep"}},
                               .container = {{"name", "sleep"}, {"image", "example/sleep"}},
                               .account = "sleep"}));
}

std::set<std::string> NamespacesOf(const Mesh& mesh) {
  std::set<std::string> out = {"sample"};
  for (const App& app : mesh.apps) out.insert(app.ns);
  return out;
}

List ObjectsOf(const Mesh& mesh, const Cluster& cluster) {
  const bool several = mesh.SeveralNetworks();
  List out;
  Map network;
  if (several) network["topology.istio.io/network"] = cluster.network;
  out.push_back(NamespaceOf("istio-system", std::move(network)));
  for (const std::string& ns : NamespacesOf(mesh)) out.push_back(NamespaceOf(ns, {{"istio-injection", "enabled"}}));
  if (cluster.control_plane.empty() || cluster.control_plane == cluster.name) AddIstiod(cluster, &out);
  const bool serves = std::any_of(mesh.clusters.begin(), mesh.clusters.end(), [&](const Cluster& other) {
    return other.control_plane == cluster.name && other.name != cluster.name;
  });
  const bool exposes = several && cluster.gateway != Gateway::kNone;
  if (exposes || serves) AddGateway(cluster, &out);
  if (exposes) ExposeServices(&out);
  if (serves) ExposeIstiod(&out);
  for (const App& app : mesh.apps) AddApp(app, cluster, &out);
  AddClient(&out);
  for (const Object& object : mesh.objects)
    if (object.cluster == cluster.name) out.push_back(object.object);
  return out;
}

Value ClusterOf(const Mesh& mesh, const Cluster& cluster) {
  Map out{{"name", cluster.name},
          {"network", cluster.network},
          {"manifests", List{Map{{"objects", ObjectsOf(mesh, cluster)}}}}};
  if (!cluster.control_plane.empty()) out["controlPlane"] = cluster.control_plane;
  if (cluster.gateway == Gateway::kLoadBalancerHostname) out["loadBalancerHostnames"] = true;
  std::vector<Node> nodes = cluster.nodes;
  // Nodes of a gateway at node ports are reached from elsewhere.
  if (cluster.gateway == Gateway::kNodePort && nodes.empty()) nodes.push_back({cluster.name + "-node1"});
  if (nodes.empty()) return out;
  size_t index = 0;
  for (const Cluster& other : mesh.clusters) {
    if (&other == &cluster) break;
    ++index;
  }
  List list;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Map node{{"name", nodes[i].name}, {"region", nodes[i].region}, {"zone", nodes[i].zone}};
    if (cluster.gateway == Gateway::kNodePort) node["externalIP"] = "203.0.113." + std::to_string(index * 20 + i + 1);
    list.push_back(std::move(node));
  }
  out["nodes"] = std::move(list);
  return out;
}

std::string Counted(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

Mesh Mesh::FromScenario(std::string path) {
  Mesh out;
  out.scenario_ = std::move(path);
  return out;
}

bool Mesh::SeveralNetworks() const {
  return std::any_of(clusters.begin(), clusters.end(),
                     [&](const Cluster& c) { return c.network != clusters.front().network; });
}

std::string Mesh::ToScenario() const { return ToScenario(std::vector<Value>()); }

std::string Mesh::ToScenario(const std::vector<Value>& actions) const {
  if (!scenario_.empty()) return {};
  List list, secrets;
  for (const Cluster& cluster : clusters) {
    list.push_back(ClusterOf(*this, cluster));
    for (const Cluster& in : clusters) {
      const bool primary = in.control_plane.empty() || in.control_plane == in.name;
      if (in.name != cluster.name && primary) secrets.push_back(Map{{"of", cluster.name}, {"in", in.name}});
    }
  }
  Map out{{"name", "mesh"}, {"seed", static_cast<int64_t>(seed)}, {"clusters", std::move(list)}};
  if (!profile.empty()) out["profile"] = profile;
  if (!secrets.empty()) out["remoteSecrets"] = std::move(secrets);
  List steps;
  for (const Value& action : actions) {
    const std::string name = action.IsMap() && !action.Entries().empty() ? action.Entries().begin()->first : "action";
    steps.push_back(Map{{"name", std::to_string(steps.size() + 1) + ": " + name}, {"do", List{action}}});
  }
  if (!steps.empty()) out["steps"] = std::move(steps);
  return Value(std::move(out)).Print() + "\n";
}

std::string Mesh::Describe() const {
  if (!scenario_.empty()) return "the mesh of " + scenario_;
  std::set<std::string> networks;
  for (const Cluster& cluster : clusters) networks.insert(cluster.network);
  int pods = 0;
  for (const App& app : apps)
    for (const Deployment& d : app.deployments) pods += d.replicas;
  return Counted(clusters.size(), "cluster") + " on " + Counted(networks.size(), "network") + ", " +
         Counted(apps.size(), "app") + ", " + Counted(static_cast<size_t>(pods), "pod") + ", " +
         Counted(objects.size(), "further object");
}

}  // namespace wavetank
