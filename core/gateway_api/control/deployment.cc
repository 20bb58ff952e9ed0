#include "core/gateway_api/control/deployment.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "core/base/json_access.h"
#include "core/gateway_api/gateways.h"
#include "core/inject/injection_templates.h"
#include "core/inject/proxy_config.h"
#include "core/kube/types.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

constexpr std::string_view kNetworkLabel = "topology.istio.io/network";
constexpr int kStatusPort = 15021;

// Objects of one Gateway.
class Renderer {
 public:
  Renderer(const kube::Object& gateway, const DeploymentData& data)
      : gateway_(gateway),
        data_(data),
        by_name_(data.in.profile.Has(pilot::Change::kGatewayPodsByName)),
        labels_(Infrastructure("labels", gateway.meta.labels)),
        annotations_(Infrastructure("annotations", gateway.meta.annotations)) {
    for (const char* own : {"kubectl.kubernetes.io/last-applied-configuration", "gateway.istio.io/name-override",
                            "gateway.istio.io/service-account", "gateway.istio.io/controller-version"}) {
      annotations_.erase(own);
    }
  }

  json Account() const {
    return {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", Meta(ServiceAccountOf(gateway_))}};
  }

  json Deployment() const {
    json pod = Pod();
    json spec = {{"selector", {{"matchLabels", Selector()}}}, {"template", std::move(pod)}};
    return {{"apiVersion", "apps/v1"},
            {"kind", "Deployment"},
            {"metadata", Meta(ServiceNameOf(gateway_))},
            {"spec", std::move(spec)}};
  }

  json Service() const {
    const auto type = gateway_.meta.annotations.find("networking.istio.io/service-type");
    const std::string service_type = type == gateway_.meta.annotations.end() ? "LoadBalancer" : type->second;
    json spec = {{"type", service_type}, {"ports", Ports()}, {"selector", Selector()}};
    if (by_name_) spec["ipFamilyPolicy"] = "PreferDualStack";
    if (const json& addresses = Items(At(gateway_.body, {"spec", "addresses"}));
        !addresses.empty() && service_type == "LoadBalancer") {
      spec["loadBalancerIP"] = Text(addresses[0], "value");
    }
    return {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", Meta(ServiceNameOf(gateway_))}, {"spec", spec}};
  }

 private:
  // Of spec.infrastructure, else the Gateway's own.
  json Infrastructure(const char* what, const kube::Labels& own) const {
    json out = json::object();
    if (const json& said = At(gateway_.body, {"spec", "infrastructure", what}); said.is_object()) {
      for (const auto& [name, value] : said.items()) {
        if (!name.starts_with("gateway.networking.k8s.io/")) out[name] = TextOf(value);
      }
      return out;
    }
    for (const auto& [name, value] : own) out[name] = value;
    return out;
  }

  std::string NameLabel() const {
    return by_name_ ? "gateway.networking.k8s.io/gateway-name" : "istio.io/gateway-name";
  }
  json Selector() const { return {{NameLabel(), gateway_.meta.name}}; }

  json AllLabels() const {
    json out = labels_;
    if (by_name_) {
      out["gateway.networking.k8s.io/gateway-class-name"] = Text(At(gateway_.body, "spec"), "gatewayClassName");
    }
    out[NameLabel()] = gateway_.meta.name;
    return out;
  }

  json Meta(const std::string& name) const {
    json labels = AllLabels();
    // Whoever has this label is istiod's to change.
    labels["gateway.istio.io/managed"] = "istio.io-gateway-controller";
    json out = {
        {"name", name},
        {"namespace", gateway_.meta.ns},
        {"labels", std::move(labels)},
        {"ownerReferences",
         json::array({{{"apiVersion", by_name_ ? "gateway.networking.k8s.io/v1" : "gateway.networking.k8s.io/v1beta1"},
                       {"kind", "Gateway"},
                       {"name", gateway_.meta.name},
                       {"uid", gateway_.meta.uid}}})}};
    if (!annotations_.empty()) out["annotations"] = annotations_;
    return out;
  }

  // One for each port number, the first listener's name.
  json Ports() const {
    json out =
        json::array({{{"name", "status-port"}, {"port", kStatusPort}, {"protocol", "TCP"}, {"appProtocol", "tcp"}}});
    std::set<int> seen;
    const auto add = [&](const json& listeners) {
      for (const json& listener : Items(listeners)) {
        const int port = PortOf(listener);
        if (port == 0 || !seen.insert(port).second) continue;
        out.push_back({{"name", absl::StrReplaceAll(Text(listener, "name"), {{".", "-"}}).substr(0, 63)},
                       {"port", port},
                       {"protocol", "TCP"},
                       {"appProtocol", absl::AsciiStrToLower(Text(listener, "protocol"))}});
      }
    };
    add(At(gateway_.body, {"spec", "listeners"}));
    for (const kube::ObjectRef& set : data_.in.Of("ListenerSet")) {
      const json& parent = At(set->body, {"spec", "parentRef"});
      const bool ours =
          Text(parent, "name") == gateway_.meta.name && Text(parent, "namespace", set->meta.ns) == gateway_.meta.ns;
      if (ours && TakesListenersOf(data_.in, gateway_, set->meta.ns)) add(At(set->body, {"spec", "listeners"}));
    }
    return out;
  }

  json Pod() const {
    const std::string name = ServiceNameOf(gateway_);
    json labels = {{"sidecar.istio.io/inject", "false"},
                   {"service.istio.io/canonical-name", name},
                   {"service.istio.io/canonical-revision", "latest"}};
    labels.update(AllLabels());
    if (by_name_) labels["gateway.istio.io/managed"] = "istio.io-gateway-controller";
    json annotations = annotations_;
    annotations["istio.io/rev"] = data_.revision;
    annotations.update({{"prometheus.io/path", "/stats/prometheus"},
                        {"prometheus.io/port", "15020"},
                        {"prometheus.io/scrape", "true"}});
    json pod = {{"metadata", {{"namespace", gateway_.meta.ns}, {"labels", labels}, {"annotations", annotations}}},
                {"spec", {{"serviceAccountName", ServiceAccountOf(gateway_)}, {"containers", json::array()}}}};
    // The injector's template for gateways, as if such a pod asked for it.
    const kube::WorkloadReference workload{name, "Deployment", "apps/v1"};
    const json proxy_config =
        pilot::EffectiveProxyConfig(At(data_.mesh.raw, "defaultConfig"), data_.proxy_configs, data_.root_namespace,
                                    gateway_.meta.ns, LabelsOf(labels), nullptr);
    const json rendered =
        pilot::GatewayTemplate({pod, workload, proxy_config, data_.mesh, data_.injection.values, data_.revision});
    json spec = At(rendered, "spec");
    for (json& container : spec["containers"]) FinishProxy(container);
    spec["serviceAccountName"] = ServiceAccountOf(gateway_);
    spec["securityContext"] = {
        {"sysctls", json::array({{{"name", "net.ipv4.ip_unprivileged_port_start"}, {"value", "0"}}})}};
    return {{"metadata", {{"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
            {"spec", std::move(spec)}};
  }

  static kube::Labels LabelsOf(const json& labels) {
    kube::Labels out;
    for (const auto& [name, value] : labels.items()) out[name] = TextOf(value);
    return out;
  }

  // What kube-gateway.yaml says otherwise than the injector's template.
  void FinishProxy(json& container) const {
    const auto set = [&](const char* name, const std::string& value) {
      for (json& variable : container["env"]) {
        if (Text(variable, "name") != name) continue;
        variable = {{"name", name}, {"value", value}};
        return;
      }
      container["env"].push_back({{"name", name}, {"value", value}});
    };
    set("ISTIO_META_POD_PORTS", "[]");
    set("ISTIO_META_APP_CONTAINERS", "");
    if (Text(At(data_.injection.values, {"global", "multiCluster"}), "clusterName").empty()) {
      set("ISTIO_META_CLUSTER_ID", data_.cluster_id);
    }
    const std::string network = Text(labels_, kNetworkLabel);
    if (network.empty()) return;
    set("ISTIO_META_NETWORK", network);
    set("ISTIO_META_REQUESTED_NETWORK_VIEW", network);
  }

  const kube::Object& gateway_;
  const DeploymentData& data_;
  const bool by_name_;
  json labels_, annotations_;
};

}  // namespace

std::vector<json> RenderGateway(const kube::Object& gateway, const DeploymentData& data) {
  const Renderer renderer(gateway, data);
  return {renderer.Account(), renderer.Deployment(), renderer.Service()};
}

bool Covers(const json& object, const json& wanted) {
  if (wanted.is_object()) {
    if (!object.is_object()) return false;
    for (const auto& [name, value] : wanted.items()) {
      if (!Covers(At(object, name), value)) return false;
    }
    return true;
  }
  if (wanted.is_array()) {
    if (!object.is_array() || object.size() != wanted.size()) return false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!Covers(object[i], wanted[i])) return false;
    }
    return true;
  }
  return object == wanted;
}

json Overlaid(json object, const json& wanted) {
  if (!wanted.is_object() || !object.is_object()) {
    // Of lists of the same things each keeps what else it has: a Service's ports their node ports.
    if (!wanted.is_array() || !object.is_array() || wanted.size() != object.size()) return wanted;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool same = Text(object[i], "name") == Text(wanted[i], "name") && wanted[i].is_object();
      object[i] = same ? Overlaid(std::move(object[i]), wanted[i]) : wanted[i];
    }
    return object;
  }
  for (const auto& [name, value] : wanted.items()) {
    if (object.contains(name)) {
      object[name] = Overlaid(std::move(object[name]), value);
    } else {
      object[name] = value;
    }
  }
  return object;
}

}  // namespace wavetank::gatewayapi
