#include "core/kube/types.h"

#include <array>
#include <memory>
#include <utility>

#include "core/base/json_access.h"
#include "core/kube/made_of_pod.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

int Integer(const json& in, const char* key) {
  const json& value = At(in, key);
  return value.is_number_integer() ? value.get<int>() : 0;
}

bool Flag(const json& in, const char* key) {
  const json& value = At(in, key);
  return value.is_boolean() && value.get<bool>();
}

std::optional<bool> OptionalFlag(const json& in, const char* key) {
  const json& value = At(in, key);
  return value.is_boolean() ? std::optional<bool>(value.get<bool>()) : std::nullopt;
}

std::vector<std::string> Texts(const json& in, const char* key) {
  std::vector<std::string> out;
  const json& value = At(in, key);
  if (!value.is_array()) return out;
  for (const json& item : value) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

Labels Map(const json& value) {
  Labels out;
  if (!value.is_object()) return out;
  for (const auto& [name, text] : value.items()) {
    if (text.is_string()) out.emplace(name, text.get<std::string>());
  }
  return out;
}

Service ReadService(const Object& object) {
  Service out;
  const json& spec = At(object.body, "spec");
  out.type = Text(spec, "type", "ClusterIP");
  out.cluster_ip = Text(spec, "clusterIP");
  out.cluster_ips = Texts(spec, "clusterIPs");
  out.external_name = Text(spec, "externalName");
  out.external_ips = Texts(spec, "externalIPs");
  out.internal_traffic_policy = Text(spec, "internalTrafficPolicy");
  out.traffic_distribution = Text(spec, "trafficDistribution");
  out.publish_not_ready = Flag(spec, "publishNotReadyAddresses");
  out.has_selector = At(spec, "selector").is_object();
  out.selector = Map(At(spec, "selector"));
  for (const json& p : At(spec, "ports")) {
    ServicePort port;
    port.name = Text(p, "name");
    port.protocol = Text(p, "protocol", "TCP");
    port.app_protocol = Text(p, "appProtocol");
    port.port = Integer(p, "port");
    port.node_port = Integer(p, "nodePort");
    const json& target = At(p, "targetPort");
    if (target.is_number_integer()) port.target_port = target.get<int>();
    if (target.is_string()) port.target_port_name = target.get<std::string>();
    out.ports.push_back(std::move(port));
  }
  for (const json& ingress : At(At(At(object.body, "status"), "loadBalancer"), "ingress")) {
    out.ingress.push_back({Text(ingress, "ip"), Text(ingress, "hostname")});
  }
  return out;
}

Pod ReadPod(const Object& object) {
  Pod out;
  const json& spec = At(object.body, "spec");
  const json& status = At(object.body, "status");
  out.ip = Text(status, "podIP");
  for (const json& ip : At(status, "podIPs")) out.ips.push_back(Text(ip, "ip"));
  out.phase = Text(status, "phase");
  out.node_name = Text(spec, "nodeName");
  out.service_account = Text(spec, "serviceAccountName");
  out.hostname = Text(spec, "hostname");
  out.subdomain = Text(spec, "subdomain");
  out.host_network = Flag(spec, "hostNetwork");
  out.generate_name = Text(At(object.body, "metadata"), "generateName");
  for (const json& condition : At(status, "conditions")) {
    if (Text(condition, "type") != "Ready") continue;
    out.ready = Text(condition, "status") == "True";
    break;
  }
  for (const json& container : At(spec, "containers")) {
    for (const json& port : At(container, "ports")) {
      out.ports.push_back({Text(port, "name"), Text(port, "protocol", "TCP"), Integer(port, "containerPort")});
    }
  }
  return out;
}

EndpointSlice ReadEndpointSlice(const Object& object) {
  EndpointSlice out;
  out.address_type = Text(object.body, "addressType");
  for (const json& p : At(object.body, "ports")) {
    EndpointSlice::Port port;
    const json& name = At(p, "name");
    if (name.is_string()) port.name = name.get<std::string>();
    const json& number = At(p, "port");
    if (number.is_number_integer()) port.port = number.get<int>();
    out.ports.push_back(std::move(port));
  }
  for (const json& e : At(object.body, "endpoints")) {
    EndpointSlice::Endpoint endpoint;
    endpoint.addresses = Texts(e, "addresses");
    const json& conditions = At(e, "conditions");
    endpoint.ready = OptionalFlag(conditions, "ready");
    endpoint.serving = OptionalFlag(conditions, "serving");
    endpoint.terminating = OptionalFlag(conditions, "terminating");
    const json& target = At(e, "targetRef");
    endpoint.has_target = target.is_object();
    endpoint.target_kind = Text(target, "kind");
    endpoint.target_name = Text(target, "name");
    endpoint.target_namespace = Text(target, "namespace");
    out.endpoints.push_back(std::move(endpoint));
  }
  return out;
}

// What `Read` makes of the object, kept with it.
template <auto Read>
struct Kept final : Object::View {
  explicit Kept(const Object& of) : typed(Read(of)) {}
  const decltype(Read(std::declval<const Object&>())) typed;
  mutable Object::ViewSlot made_of_it;
};

template <auto Read>
const Kept<Read>& KeptWith(const Object& object) {
  // An exact type: cheaper than dynamic_cast, which would look for bases, and asked for with every event.
  if (const Object::View* const view = object.view.kept.get(); view != nullptr && typeid(*view) == typeid(Kept<Read>))
    return static_cast<const Kept<Read>&>(*view);
  auto made = std::make_unique<const Kept<Read>>(object);
  const Kept<Read>& kept = *made;
  object.view.kept.reset(made.release());
  return kept;
}

template <auto Read>
const auto& Once(const Object& object) {
  return KeptWith<Read>(object).typed;
}

}  // namespace

const Service& ParseService(const Object& object) { return Once<ReadService>(object); }
const Pod& ParsePod(const Object& object) { return Once<ReadPod>(object); }
Object::ViewSlot& MadeOfPod(const Object& pod) { return KeptWith<ReadPod>(pod).made_of_it; }
const EndpointSlice& ParseEndpointSlice(const Object& object) { return Once<ReadEndpointSlice>(object); }

WorkloadReference WorkloadOf(const Object& pod, const Pod& typed) {
  WorkloadReference out;
  out.name = pod.meta.name;
  if (typed.generate_name.empty()) return out;
  const OwnerReference* controller = nullptr;
  for (const OwnerReference& owner : pod.meta.owner_references) {
    if (owner.controller) controller = &owner;
    if (owner.controller) break;
  }
  if (controller == nullptr) return out;
  if (!controller->name.empty()) out.name = controller->name;
  out.kind = controller->kind;
  out.api_version = controller->api_version;
  const auto label = [&](const char* name) {
    const auto it = pod.meta.labels.find(name);
    return it == pod.meta.labels.end() ? std::string() : it->second;
  };
  if (controller->kind == "ReplicaSet") {
    const std::string hash = label("pod-template-hash");
    if (!hash.empty() && out.name.ends_with(hash)) {
      out.kind = "Deployment";
      if (out.name.ends_with("-" + hash)) out.name.resize(out.name.size() - hash.size() - 1);
    }
  } else if (controller->kind == "ReplicationController") {
    if (const std::string config = label("deploymentconfig"); !config.empty()) {
      out.name = config;
      out.kind = "DeploymentConfig";
    }
  } else if (controller->kind == "Job") {
    // A CronJob's Job ends in its time: "-" and 8 to 10 digits.
    const size_t dash = out.name.rfind('-');
    if (dash != std::string::npos) {
      const std::string digits = out.name.substr(dash + 1);
      if (digits.size() >= 8 && digits.size() <= 10 && digits.find_first_not_of("0123456789") == std::string::npos) {
        out.name.resize(dash);
        out.kind = "CronJob";
        out.api_version = "batch/v1beta1";
      }
    }
  }
  return out;
}

Node ParseNode(const Object& object) {
  Node out;
  for (const json& address : At(At(object.body, "status"), "addresses")) {
    if (Text(address, "type") == "ExternalIP" && !Text(address, "address").empty()) {
      out.external_ip = Text(address, "address");
      break;
    }
  }
  return out;
}

std::map<std::string, std::string> ConfigMapData(const Object& object) {
  std::map<std::string, std::string> out;
  for (auto& [key, value] : Map(At(object.body, "data"))) out[key] = value;
  return out;
}

namespace {

using LabelNames = std::array<std::string_view, 2>;
constexpr LabelNames kAppLabels = {"app", "app.kubernetes.io/name"};
constexpr LabelNames kVersionLabels = {"version", "app.kubernetes.io/version"};

std::string First(const Labels& labels, const LabelNames& names) {
  for (const std::string_view name : names) {
    if (const auto it = labels.find(name); it != labels.end() && !it->second.empty()) return it->second;
  }
  return {};
}

std::string First(const nlohmann::json& labels, const LabelNames& names) {
  for (const std::string_view name : names) {
    if (std::string text = Text(labels, name); !text.empty()) return text;
  }
  return {};
}

}  // namespace

std::string AppOf(const Labels& labels) { return First(labels, kAppLabels); }
std::string VersionOf(const Labels& labels) { return First(labels, kVersionLabels); }
std::string AppOf(const nlohmann::json& labels) { return First(labels, kAppLabels); }
std::string VersionOf(const nlohmann::json& labels) { return First(labels, kVersionLabels); }

int TargetPortOf(const ServicePort& port, const Pod& pod) {
  if (port.target_port_name.empty()) return port.Target();
  for (const ContainerPort& container : pod.ports) {
    if (container.name == port.target_port_name && container.protocol == port.protocol) return container.container_port;
  }
  return 0;
}

}  // namespace wavetank::kube
