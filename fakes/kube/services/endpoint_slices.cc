#include "fakes/kube/services/endpoint_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/ip.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/kube/types.h"
#include "fakes/kube/control/pod_template.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// Kubernetes' default maximum per slice.
constexpr size_t kMaxEndpointsPerSlice = 100;
constexpr const char* kServiceName = "kubernetes.io/service-name";
constexpr const char* kManagedByLabel = "endpointslice.kubernetes.io/managed-by";
constexpr const char* kManager = "endpointslice-controller.k8s.io";
// Of Endpoints that somebody wrote for a Service without selector.
constexpr const char* kMirroring = "endpointslicemirroring-controller.k8s.io";

// The pod's port number behind a Service port: a number, or the name of a container's port. 0 if there is none.
int TargetPort(const json& port, const kube::Object& pod) {
  const auto target = port.find("targetPort");
  if (target == port.end() || target->is_null()) return Number(port, "port");
  if (target->is_number_integer()) return target->get<int>();
  if (!target->is_string()) return 0;
  const std::string name = target->get<std::string>();
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 6)
    return std::stoi(name);
  const json& spec = At(pod.body, "spec");
  for (const json& container : Items(At(spec, "containers"))) {
    if (!container.is_object() || !container.contains("ports")) continue;
    for (const json& candidate : container["ports"]) {
      if (Text(candidate, "name") == name && Text(candidate, "protocol", "TCP") == Text(port, "protocol", "TCP")) {
        return Number(candidate, "containerPort");
      }
    }
  }
  return 0;
}

// A pod's address of an IP family, "IPv4" or "IPv6"; empty: it has none.
std::string AddressOf(const kube::Pod& pod, std::string_view family) {
  if (family.empty()) return {};
  const auto fits = [&](const std::string& text) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
    return !ip.ok() ? family == "IPv4" : ip->is_v4() == (family == "IPv4");
  };
  if (fits(pod.ip)) return pod.ip;
  const auto it = std::find_if(pod.ips.begin(), pod.ips.end(), fits);
  return it == pod.ips.end() ? std::string() : *it;
}

std::string SliceSuffix(const NamespacedName& service, size_t index) {
  return fmt::format("{:05x}", HashName(service.ns + "/" + service.name, index) & 0xfffff);
}

}  // namespace

EndpointSliceController::EndpointSliceController(ApiServer& api, const ClusterOptions& options)
    : api_(api), options_(options), pending_(api.host()) {
  subscriptions_.Add(api_.Observe("Service", [this](const Change& change) { OnService(change); }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) { OnPod(change); }));
  subscriptions_.Add(api_.Observe("EndpointSlice", [this](const Change& change) { OnSlice(change); }));
  subscriptions_.Add(api_.Observe("Endpoints", [this](const Change& change) {
    QueueMirror({change.object->meta.ns, change.object->meta.name});
  }));
}

void EndpointSliceController::OnService(const Change& change) {
  const NamespacedName name{change.object->meta.ns, change.object->meta.name};
  const json& spec = At(change.object->body, "spec");
  const auto selector = spec.find("selector");
  const bool selects =
      selector != spec.end() && selector->is_object() && !selector->empty() && Text(spec, "type") != "ExternalName";
  Forget(name);
  if (change.type == kube::WatchEventType::kDeleted || !selects) {
    // Slices are owned by the Service and go with it.
    services_.erase(name);
    if (change.type != kube::WatchEventType::kDeleted) QueueMirror(name);
    return;
  }
  Selected& selected = services_[name];
  selected.selector = kube::LabelSelector::FromLabels(kube::ParseService(*change.object).selector);
  for (const ObjectRef& pod : api_.List("Pod", name.ns)) {
    if (!selected.selector.Matches(pod->meta.labels)) continue;
    selected.pods.insert(pod->meta.name);
    selected_by_[{name.ns, pod->meta.name}].insert(name);
  }
  Queue(name);
}

void EndpointSliceController::Forget(const NamespacedName& service) {
  const auto known = services_.find(service);
  if (known == services_.end()) return;
  for (const std::string& pod : known->second.pods) {
    const auto by = selected_by_.find({service.ns, pod});
    WAVETANK_ASSERT(by != selected_by_.end(), service.ns, service.name, pod);  // the two tables say the same
    by->second.erase(service);
    if (by->second.empty()) selected_by_.erase(by);
  }
  known->second.pods.clear();
}

void EndpointSliceController::OnPod(const Change& change) {
  // What slices say of a pod: whether it is there, its address, labels and conditions.
  if (change.previous != nullptr && change.type == kube::WatchEventType::kModified) {
    const kube::Pod &before = kube::ParsePod(*change.previous), &now = kube::ParsePod(*change.object);
    const bool same = before.ip == now.ip && before.ready == now.ready &&
                      (before.phase == "Running") == (now.phase == "Running") &&
                      change.previous->meta.labels == change.object->meta.labels &&
                      change.previous->meta.deleting == change.object->meta.deleting;
    if (same) return;
  }
  const NamespacedName pod{change.object->meta.ns, change.object->meta.name};
  const bool gone = change.type == kube::WatchEventType::kDeleted;
  // With the labels of before, a pod is selected by those that selected it before.
  const auto before = selected_by_.find(pod);
  const std::set<NamespacedName> selected_it =
      before == selected_by_.end() ? std::set<NamespacedName>() : before->second;
  const bool relabelled = change.previous == nullptr || change.previous->meta.labels != change.object->meta.labels;
  if (gone || !relabelled) {
    for (const NamespacedName& service : selected_it) {
      const auto known = services_.find(service);
      WAVETANK_ASSERT(known != services_.end(), service.ns, service.name, pod.name);
      if (gone) known->second.pods.erase(pod.name);
      Queue(service);
    }
    if (gone) selected_by_.erase(pod);
    return;
  }
  for (auto it = services_.lower_bound({pod.ns, ""}); it != services_.end() && it->first.ns == pod.ns; ++it) {
    if (it->second.selector.Matches(change.object->meta.labels)) {
      it->second.pods.insert(pod.name);
      selected_by_[pod].insert(it->first);
    } else if (selected_it.count(it->first) != 0) {
      it->second.pods.erase(pod.name);
      selected_by_[pod].erase(it->first);
    } else {
      continue;
    }
    Queue(it->first);
  }
}

void EndpointSliceController::OnSlice(const Change& change) {
  const NamespacedName name{change.object->meta.ns, change.object->meta.name};
  const auto slices_beside = [&](const kube::Object& slice) -> std::set<std::string>* {
    const auto of = slice.meta.labels.find(kServiceName);
    return of == slice.meta.labels.end() ? nullptr : &slices_[{name.ns, of->second}];
  };
  if (change.previous != nullptr) {
    if (auto* slices = slices_beside(*change.previous)) slices->erase(name.name);
  }
  if (auto* slices = slices_beside(*change.object)) {
    if (change.type == kube::WatchEventType::kDeleted) {
      slices->erase(name.name);
    } else {
      slices->insert(name.name);
    }
  }
}

void EndpointSliceController::DeleteOthers(const NamespacedName& service, const std::map<std::string, bool>& wanted,
                                           std::string_view manager) {
  const auto known = slices_.find(service);
  if (known == slices_.end()) return;
  for (const std::string& slice_name : std::set<std::string>(known->second)) {
    if (wanted.count(slice_name) != 0) continue;
    const ObjectRef slice = api_.Get("EndpointSlice", {service.ns, slice_name});
    if (slice == nullptr) continue;
    const auto by = slice->meta.labels.find(kManagedByLabel);
    if (by != slice->meta.labels.end() && by->second == manager) {
      api_.Delete("EndpointSlice", {service.ns, slice_name}).IgnoreError();
    }
  }
}

void EndpointSliceController::Queue(const NamespacedName& service) {
  const auto it = services_.find(service);
  // Slices that were there before this controller are right until something changes.
  if (it == services_.end() || it->second.queued || api_.introducing()) return;
  it->second.queued = true;
  pending_.After(options_.endpoint_slice + BuggifyDelay(BuggifyPoint::kSlicesLate), [this, service] {
    if (const auto again = services_.find(service); again != services_.end()) {
      again->second.queued = false;
      Sync(service);
    }
  });
}

void EndpointSliceController::QueueMirror(const NamespacedName& name) {
  if (api_.introducing() || services_.count(name) != 0 || !mirrors_.insert(name).second) return;
  pending_.After(options_.endpoint_slice + BuggifyDelay(BuggifyPoint::kSlicesLate), [this, name] {
    mirrors_.erase(name);
    if (services_.count(name) == 0) Mirror(name);
  });
}

void EndpointSliceController::Mirror(const NamespacedName& name) {
  const ObjectRef service = api_.Get("Service", name), endpoints = api_.Get("Endpoints", name);
  std::map<std::string, bool> wanted;
  constexpr const char* kSkip = "endpointslice.kubernetes.io/skip-mirror";
  const bool skipped = endpoints != nullptr && At(endpoints->body, {"metadata", "labels", kSkip}) == "true";
  if (service != nullptr && endpoints != nullptr && !skipped) {
    for (const json& subset : Items(At(endpoints->body, "subsets"))) {
      json list = json::array();
      for (const auto& [key, ready] : {std::pair{"addresses", true}, std::pair{"notReadyAddresses", false}}) {
        for (const json& address : Items(At(subset, key))) {
          list.push_back({{"addresses", json::array({Text(address, "ip")})}, {"conditions", {{"ready", ready}}}});
        }
      }
      const std::string slice = name.name + "-" + SliceSuffix(name, wanted.size());
      wanted[slice] = true;
      api_.Apply({{"apiVersion", "discovery.k8s.io/v1"},
                  {"kind", "EndpointSlice"},
                  {"metadata",
                   {{"name", slice},
                    {"namespace", name.ns},
                    {"labels", {{kServiceName, name.name}, {kManagedByLabel, kMirroring}}},
                    {"ownerReferences", json::array({{{"apiVersion", "v1"},
                                                      {"kind", "Endpoints"},
                                                      {"name", name.name},
                                                      {"uid", endpoints->meta.uid},
                                                      {"controller", true}}})}}},
                  {"addressType", "IPv4"},
                  {"ports", Items(At(subset, "ports"))},
                  {"endpoints", std::move(list)}})
          .IgnoreError();
    }
  }
  DeleteOthers(name, wanted, kMirroring);
}

void EndpointSliceController::Sync(const NamespacedName& name) {
  const ObjectRef service = api_.Get("Service", name);
  if (service == nullptr) return;
  const json& spec = service->body.at("spec");
  const bool publish_not_ready = At(spec, "publishNotReadyAddresses") == true;
  const auto selecting = services_.find(name);
  WAVETANK_ASSERT(selecting != services_.end(), name.ns, name.name);  // what selects nothing is not queued
  const std::set<std::string>& selected = selecting->second.pods;

  // Pods whose ports resolve to the same numbers share slices, those of one IP family.
  std::map<std::string, std::pair<json, std::vector<json>>> groups;  // by ports as text
  std::map<std::string, std::vector<json>> others;                   // the same, of the Service's other IP family
  const json& families = Items(At(spec, "ipFamilies"));
  const std::string family = families.empty() ? "IPv4" : TextOf(families[0]),
                    other_family = families.size() > 1 ? TextOf(families[1]) : "";
  json ready_addresses = json::array(), not_ready_addresses = json::array();
  for (const std::string& pod_name : selected) {
    const ObjectRef pod = api_.Get("Pod", {name.ns, pod_name});
    if (pod == nullptr) continue;
    const kube::Pod& state = kube::ParsePod(*pod);
    // What has ended serves nobody (kubernetes: EndpointSlice's ShouldPodBeInEndpoints).
    if (state.ip.empty() || state.phase == "Succeeded" || state.phase == "Failed") continue;
    const std::string ip = AddressOf(state, family);
    if (ip.empty()) continue;
    json ports = json::array();
    for (const json& port : Items(At(spec, "ports"))) {
      const int number = TargetPort(port, *pod);
      if (number == 0) continue;
      json entry = JsonObject("name", Text(port, "name"), "port", number, "protocol", Text(port, "protocol", "TCP"));
      if (port.contains("appProtocol")) entry["appProtocol"] = port["appProtocol"];
      ports.push_back(std::move(entry));
    }
    const bool terminating = pod->meta.deleting;
    const bool serving = state.ready || publish_not_ready;
    const std::string& node = state.node_name;
    json target = JsonObject("kind", "Pod", "name", pod->meta.name, "namespace", name.ns, "uid", pod->meta.uid);
    json endpoint = JsonObject(
        "addresses", json::array({ip}),  //
        "conditions", JsonObject("ready", serving && !terminating, "serving", serving, "terminating", terminating),
        "targetRef", target, "nodeName", node);
    for (const NodeOptions& known : options_.nodes) {
      if (known.name == node && !known.zone.empty()) endpoint["zone"] = known.zone;
    }
    json address = JsonObject("ip", ip, "nodeName", node, "targetRef", std::move(target));
    // A name of its own below the Service's, as a StatefulSet's pods have.
    if (!state.hostname.empty() && state.subdomain == name.name)
      endpoint["hostname"] = address["hostname"] = state.hostname;
    (serving && !terminating ? ready_addresses : not_ready_addresses).push_back(std::move(address));
    const std::string key = JsonText(ports);
    if (std::string other = AddressOf(state, other_family); !other.empty()) {
      json second = endpoint;
      second["addresses"] = json::array({std::move(other)});
      others[key].push_back(std::move(second));
    }
    auto& group = groups[key];
    group.first = std::move(ports);
    group.second.push_back(std::move(endpoint));
  }
  if (groups.empty()) {
    // A Service without pods keeps one empty slice.
    groups[""].first = json::array();
  }

  size_t index = 0;
  const json owner = json::array({JsonObject("apiVersion", "v1", "kind", "Service", "name", name.name, "uid",
                                             service->meta.uid, "controller", true, "blockOwnerDeletion", true)});
  std::map<std::string, bool> wanted;
  const auto write = [&](const std::string& address_type, const json& ports, std::vector<json>& list) {
    for (size_t start = 0; start == 0 || start < list.size(); start += kMaxEndpointsPerSlice) {
      const size_t end = std::min(start + kMaxEndpointsPerSlice, list.size());
      json endpoints = json::array();
      WAVETANK_ASSERT(end - start <= kMaxEndpointsPerSlice, start, end);
      for (size_t i = start; i < end; ++i) endpoints.push_back(std::move(list[i]));
      const std::string slice = name.name + "-" + SliceSuffix(name, index++);
      wanted[slice] = true;
      json labels = JsonObject(kServiceName, name.name, kManagedByLabel, kManager);
      api_.Apply(JsonObject("apiVersion", "discovery.k8s.io/v1", "kind", "EndpointSlice",  //
                            "metadata",
                            JsonObject("name", slice, "namespace", name.ns, "labels", std::move(labels),
                                       "ownerReferences", owner),
                            "addressType", address_type, "ports", ports, "endpoints", std::move(endpoints)))
          .IgnoreError();
    }
  };
  for (auto& [key, group] : groups) write(family, group.first, group.second);
  if (!other_family.empty()) {
    for (auto& [key, group] : groups) write(other_family, group.first, others[key]);
  }
  DeleteOthers(name, wanted, kManager);

  json subsets = json::array();
  if (!ready_addresses.empty() || !not_ready_addresses.empty()) {
    json subset = {{"ports", groups.begin()->second.first}};
    if (!ready_addresses.empty()) subset["addresses"] = std::move(ready_addresses);
    if (!not_ready_addresses.empty()) subset["notReadyAddresses"] = std::move(not_ready_addresses);
    subsets.push_back(std::move(subset));
  }
  api_.Apply(JsonObject("apiVersion", "v1", "kind", "Endpoints",  //
                        "metadata", JsonObject("name", name.name, "namespace", name.ns, "ownerReferences", owner),
                        "subsets", std::move(subsets)))
      .IgnoreError();
}

}  // namespace wavetank::fakekube
