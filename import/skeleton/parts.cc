#include "import/skeleton/parts.h"

#include <map>

#include "absl/strings/escaping.h"
#include "core/kube/credentials/kubeconfig.h"
#include "fakes/kube/objects/dumped.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

constexpr const char* kIstiodIp = "10.1.0.10";

json Object(std::string_view version, std::string_view kind, const std::string& ns, const std::string& name) {
  json out = {{"apiVersion", version}, {"kind", kind}, {"metadata", {{"name", name}}}};
  if (!ns.empty()) out["metadata"]["namespace"] = ns;
  // Of a pod its proxy tells istiod the annotations.
  if (kind != "Pod") out["metadata"]["annotations"] = {{fakekube::kMadeUp, "by wavetank import"}};
  return out;
}

json RunningStatus(const std::string& ip) {
  return {{"phase", "Running"},
          {"podIP", ip},
          {"podIPs", json::array({{{"ip", ip}}})},
          {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}};
}

json Field(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

// A label's value, of any text.
std::string LabelValue(std::string text) {
  for (char& c : text) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (!good) c = '-';
  }
  return text.substr(0, 60);
}

}  // namespace

json NamespaceObject(const std::string& name, const std::string& network) {
  json out = Object("v1", "Namespace", "", name);
  out["metadata"]["labels"] = {{"kubernetes.io/metadata.name", name}};
  if (!network.empty()) out["metadata"]["labels"]["topology.istio.io/network"] = network;
  out["status"] = {{"phase", "Active"}};
  return out;
}

json IstiodPod() {
  json out = Object("v1", "Pod", kSystemNamespace, "istiod-0");
  out["metadata"]["labels"] = {{"app", "istiod"}, {"istio", "pilot"}};
  out["spec"] = {{"serviceAccountName", "istiod"},
                 {"containers", json::array({{{"name", "discovery"}, {"image", "example/pilot:1.18.2"}}})}};
  out["status"] = RunningStatus(kIstiodIp);
  return out;
}

json IstiodService() {
  json out = Object("v1", "Service", kSystemNamespace, "istiod");
  out["spec"] = {
      {"clusterIP", "10.96.0.10"},
      {"clusterIPs", json::array({"10.96.0.10"})},
      {"type", "ClusterIP"},
      {"selector", {{"app", "istiod"}}},
      {"ports", json::array({{{"name", "https-dns"}, {"port", 15012}, {"targetPort", 15012}, {"protocol", "TCP"}}})}};
  return out;
}

json IstiodEndpoints() {
  json out = Object("discovery.k8s.io/v1", "EndpointSlice", kSystemNamespace, "istiod-imported");
  out["metadata"]["labels"] = {{"kubernetes.io/service-name", "istiod"}};
  out["addressType"] = "IPv4";
  out["ports"] = json::array({{{"name", "https-dns"}, {"port", 15012}, {"protocol", "TCP"}}});
  out["endpoints"] = json::array({{{"addresses", json::array({kIstiodIp})}, {"conditions", {{"ready", true}}}}});
  return out;
}

json MeshConfigMap(const std::string& mesh, const std::string& networks) {
  json out = Object("v1", "ConfigMap", kSystemNamespace, "istio");
  out["data"] = {{"mesh", mesh.empty() ? "{}" : mesh}};
  if (!networks.empty()) out["data"]["meshNetworks"] = networks;
  return out;
}

json ProxyPod(const std::string& cluster, const std::string& ns, const std::string& name, int number) {
  json out = Object("v1", "Pod", ns, name);
  out["metadata"]["labels"] = {{"app", LabelValue(name)}};
  json env = json::array({Field("POD_NAME", "metadata.name"), Field("POD_NAMESPACE", "metadata.namespace"),
                          Field("INSTANCE_IP", "status.podIP"), Field("SERVICE_ACCOUNT", "spec.serviceAccountName")});
  env.push_back({{"name", "ISTIO_META_CLUSTER_ID"}, {"value", cluster}});
  env.push_back({{"name", "CA_ADDR"}, {"value", "istiod.istio-system.svc:15012"}});
  const json proxy = {
      {"name", "istio-proxy"},
      {"image", "example/proxyv2:1.18.2"},
      {"args", {"proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local"}},
      {"env", std::move(env)},
      {"volumeMounts", json::array({{{"name", "istiod-ca-cert"}, {"mountPath", "/var/run/secrets/istio"}},
                                    {{"name", "istio-token"}, {"mountPath", "/var/run/secrets/tokens"}}})}};
  // What the application asks goes through its proxy, as where istiod injected it.
  const json init = {{"name", "istio-init"},
                     {"image", "example/proxyv2:1.18.2"},
                     {"args",
                      {"istio-iptables", "-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-x",
                       "", "-b", "*", "-d", "15090,15021,15020"}}};
  out["spec"] = {{"serviceAccountName", "default"},
                 {"initContainers", json::array({init})},
                 {"containers", json::array({{{"name", "app"}, {"image", "example/app"}}, proxy})},
                 {"volumes", json::array({{{"name", "istiod-ca-cert"}, {"configMap", {{"name", "istio-ca-root-cert"}}}},
                                          {{"name", "istio-token"},
                                           {"projected",
                                            {{"sources", json::array({{{"serviceAccountToken",
                                                                        {{"path", "istio-token"},
                                                                         {"audience", "istio-ca"},
                                                                         {"expirationSeconds", 43200}}}}})}}}}})}};
  out["status"] = RunningStatus(fmt::format("10.1.{}.{}", 100 + number / 250, 1 + number % 250));
  return out;
}

json WorkloadPod(const std::string& ns, const std::string& name, const std::string& ip, const std::string& account) {
  json out = Object("v1", "Pod", ns, name);
  out["metadata"]["labels"] = {{"app", LabelValue(name)}};
  out["spec"] = {{"serviceAccountName", account},
                 {"containers", json::array({{{"name", "app"}, {"image", "example/app"}}})}};
  out["status"] = RunningStatus(ip);
  return out;
}

namespace {
// As a Service has them, or a slice.
json PortList(const std::vector<PortPart>& ports, bool of_slice) {
  json out = json::array();
  for (const PortPart& part : ports) {
    json one = {{"name", part.name}, {"port", of_slice ? part.target : part.port}, {"protocol", "TCP"}};
    if (!of_slice) one["targetPort"] = part.target;
    out.push_back(std::move(one));
  }
  return out;
}
}  // namespace

json ServiceObject(const std::string& ns, const std::string& name, int number, int64_t turn,
                   const std::vector<PortPart>& parts) {
  json out = Object("v1", "Service", ns, name);
  const std::string ip = fmt::format("10.96.{}.{}", 1 + number / 250, 1 + number % 250);
  json ports = PortList(parts, false);
  if (turn % 2 == 1) ports.push_back({{"name", "tcp-more"}, {"port", 9000}, {"targetPort", 9000}, {"protocol", "TCP"}});
  out["spec"] = {{"clusterIP", ip},
                 {"clusterIPs", json::array({ip})},
                 {"type", "ClusterIP"},
                 {"selector", {{"app", LabelValue(name)}}},
                 {"ports", std::move(ports)}};
  return out;
}

json GatewayService(const std::string& name, int64_t turn, int number) {
  json out = ServiceObject(kSystemNamespace, name, 0, 0);
  out["metadata"]["labels"] = {
      {"topology.istio.io/network", number == 0 ? "network-of-gateway" : fmt::format("network-of-gateway-{}", number)}};
  out["spec"]["type"] = "LoadBalancer";
  out["spec"]["clusterIP"] = "10.96.0.11";
  out["spec"]["clusterIPs"] = json::array({"10.96.0.11"});
  out["spec"]["ports"] = json::array({{{"name", "tls"}, {"port", 15443}, {"targetPort", 15443}, {"protocol", "TCP"}}});
  out["status"]["loadBalancer"]["ingress"] =
      json::array({{{"ip", fmt::format("172.30.9.{}", 1 + 2 * (number % 120) + turn % 2)}}});
  return out;
}

json NodePortGateway(int number) {
  json out = GatewayService("istio-nodeportgateway", 0, number);
  out["metadata"]["annotations"]["traffic.istio.io/nodeSelector"] = "{\"imported\": \"node\"}";
  out["spec"]["type"] = "NodePort";
  out["spec"]["clusterIP"] = "10.96.0.12";
  out["spec"]["clusterIPs"] = json::array({"10.96.0.12"});
  out["spec"]["ports"][0]["nodePort"] = 31443;
  out.erase("status");
  return out;
}

json NodeObject(int64_t turn, int number) {
  json out = Object("v1", "Node", "", "imported-node");
  out["metadata"]["labels"] = {{"imported", "node"}};
  out["status"]["addresses"] = json::array(
      {{{"type", "ExternalIP"}, {"address", fmt::format("172.30.8.{}", 1 + 2 * (number % 120) + turn % 2)}}});
  return out;
}

json ServerPod(const std::string& ns, const std::string& name, const std::string& ip,
               const std::vector<PortPart>& ports) {
  json out = WorkloadPod(ns, name, ip, "default");
  json& declared = out["spec"]["containers"][0]["ports"] = json::array();
  for (const PortPart& part : ports) declared.push_back({{"containerPort", part.target}, {"protocol", "TCP"}});
  return out;
}

json SliceObject(const std::string& ns, const std::string& service, const std::vector<EndpointPart>& endpoints,
                 const std::vector<PortPart>& ports) {
  json out = Object("discovery.k8s.io/v1", "EndpointSlice", ns, service + "-imported");
  out["metadata"]["labels"] = {{"kubernetes.io/service-name", service}};
  out["addressType"] = "IPv4";
  out["ports"] = PortList(ports, true);
  out["endpoints"] = json::array();
  for (const EndpointPart& endpoint : endpoints) {
    json one = {{"addresses", json::array({endpoint.ip})}, {"conditions", {{"ready", true}}}};
    if (!endpoint.pod.empty()) one["targetRef"] = {{"kind", "Pod"}, {"name", endpoint.pod}, {"namespace", ns}};
    out["endpoints"].push_back(std::move(one));
  }
  return out;
}

json ServiceEntryObject(const std::string& ns, const std::string& host, int64_t turn) {
  json out = Object("networking.istio.io/v1alpha3", "ServiceEntry", ns, LabelValue(host));
  json ports = json::array({{{"name", "http"}, {"number", 80}, {"protocol", "HTTP"}}});
  if (turn % 2 == 1) ports.push_back({{"name", "tcp-more"}, {"number", 9000}, {"protocol", "TCP"}});
  out["spec"] = {{"hosts", json::array({host})},
                 {"location", "MESH_INTERNAL"},
                 {"resolution", "STATIC"},
                 {"ports", std::move(ports)},
                 {"workloadSelector", {{"labels", {{"imported", LabelValue(host)}}}}}};
  return out;
}

json WorkloadEntryObject(const std::string& ns, const std::string& host, int64_t turn, const std::string& account) {
  json out = Object("networking.istio.io/v1alpha3", "WorkloadEntry", ns, LabelValue(host));
  out["spec"] = {{"address", fmt::format("10.3.{}.{}", 1 + turn / 250 % 250, 1 + turn % 250)},
                 {"labels", {{"imported", LabelValue(host)}}}};
  if (!account.empty()) out["spec"]["serviceAccount"] = account;
  return out;
}

json SecretObject(const std::string& ns, const std::string& name, int64_t turn) {
  json out = Object("v1", "Secret", ns, name);
  out["metadata"]["labels"] = {{"imported", fmt::format("{}", turn)}};
  out["type"] = "Opaque";
  return out;
}

std::string KubeconfigFor(const std::string& cluster, int64_t turn) {
  return kube::RenderKubeConfig(
      {cluster, "https://" + LabelValue(cluster) + ".example:6443", "", fmt::format("imported-{}", turn)});
}

json RemoteSecretObject(const std::string& ns, const std::string& name,
                        const std::vector<std::pair<std::string, std::string>>& kubeconfigs, int64_t turn) {
  json out = SecretObject(ns, name, turn);
  out["metadata"]["labels"]["istio/multiCluster"] = "true";
  out["data"] = json::object();
  for (const auto& [cluster, text] : kubeconfigs) out["data"][cluster] = absl::Base64Escape(text);
  return out;
}

json ConfigObject(const std::string& kind, const std::string& ns, const std::string& name, int64_t turn) {
  const bool odd = turn % 2 == 1;
  const std::string host = fmt::format("{}.{}.imported.example", LabelValue(name), ns);
  static const std::map<std::string, std::string> kVersions = {
      {"PeerAuthentication", "security.istio.io/v1beta1"},  {"RequestAuthentication", "security.istio.io/v1beta1"},
      {"AuthorizationPolicy", "security.istio.io/v1beta1"}, {"DestinationRule", "networking.istio.io/v1alpha3"},
      {"VirtualService", "networking.istio.io/v1alpha3"},   {"Gateway", "networking.istio.io/v1alpha3"},
      {"Sidecar", "networking.istio.io/v1alpha3"},          {"EnvoyFilter", "networking.istio.io/v1alpha3"},
      {"ProxyConfig", "networking.istio.io/v1beta1"},       {"Telemetry", "telemetry.istio.io/v1alpha1"},
      {"WasmPlugin", "extensions.istio.io/v1alpha1"}};
  const auto version = kVersions.find(kind);
  if (version == kVersions.end()) return nullptr;
  json out = Object(version->second, kind, ns, name);
  json& spec = out["spec"];
  // A workload that is not there, so that what is in force stays as it was.
  const json unselected = {{"matchLabels", {{"imported", "none"}}}};
  if (kind == "PeerAuthentication") {
    spec = {{"selector", unselected}, {"mtls", {{"mode", odd ? "STRICT" : "PERMISSIVE"}}}};
  } else if (kind == "AuthorizationPolicy") {
    spec = {{"selector", unselected}, {"action", odd ? "DENY" : "ALLOW"}, {"rules", json::array({json::object()})}};
  } else if (kind == "RequestAuthentication") {
    spec = {{"selector", unselected}, {"jwtRules", json::array()}};
    if (odd) spec["jwtRules"].push_back({{"issuer", "imported"}, {"jwks", "{\"keys\":[]}"}});
  } else if (kind == "DestinationRule") {
    spec = {{"host", host}, {"trafficPolicy", {{"loadBalancer", {{"simple", odd ? "RANDOM" : "ROUND_ROBIN"}}}}}};
  } else if (kind == "VirtualService") {
    spec = {{"hosts", json::array({host})},
            {"http", json::array({{{"timeout", odd ? "1s" : "2s"},
                                   {"route", json::array({{{"destination", {{"host", host}}}}})}}})}};
  } else if (kind == "Gateway") {
    spec = {{"selector", {{"imported", "none"}}},
            {"servers", json::array({{{"port", {{"number", odd ? 80 : 81}, {"name", "http"}, {"protocol", "HTTP"}}},
                                      {"hosts", json::array({host})}}})}};
  } else if (kind == "Sidecar") {
    spec = {{"workloadSelector", {{"labels", {{"imported", "none"}}}}},
            {"egress", json::array({{{"hosts", odd ? json::array({"*/*"}) : json::array({"./*"})}}})}};
  } else if (kind == "ProxyConfig") {
    spec = {{"selector", unselected}, {"concurrency", odd ? 1 : 2}};
  } else if (kind == "Telemetry") {
    spec = {{"selector", unselected}, {"accessLogging", json::array({{{"disabled", odd}}})}};
  } else if (kind == "WasmPlugin") {
    spec = {{"selector", unselected}, {"url", "oci://imported.example/none:v1"}, {"priority", odd ? 1 : 2}};
  } else {
    spec = {{"workloadSelector", {{"labels", {{"imported", "none"}}}}},
            {"configPatches", json::array()},
            {"priority", odd ? 1 : 2}};
  }
  return out;
}

}  // namespace wavetank::importing
