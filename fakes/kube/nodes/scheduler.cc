#include "fakes/kube/nodes/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/json_access.h"
#include "core/kube/label_selector.h"
#include "core/kube/quantity.h"
#include "fakes/kube/control/node_fit.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/nodes/node_object.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kTooNear = "node(s) didn't match pod anti-affinity rules";
constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

// Of all containers together; nothing where the sum cannot be told.
absl::int128 Requested(const kube::Object& pod, const std::string& resource) {
  if (resource == "pods") return static_cast<absl::int128>(1'000'000'000);
  absl::int128 sum = 0;
  for (const json& container : Items(At(pod.body, {"spec", "containers"}))) {
    if (const auto amount = kube::QuantityNanos(At(container, {"resources", "requests", resource}))) sum += *amount;
  }
  return sum;
}

// Pods that a term of podAffinity or podAntiAffinity means.
bool TermMeans(const json& term, const kube::Object& of, const kube::Object& other) {
  const json& namespaces = Items(At(term, "namespaces"));
  const bool there = namespaces.empty()
                         ? other.meta.ns == of.meta.ns
                         : std::find(namespaces.begin(), namespaces.end(), other.meta.ns) != namespaces.end();
  const auto selector = kube::LabelSelector::FromJson(At(term, "labelSelector"));
  return there && selector.ok() && selector->Matches(other.meta.labels);
}

}  // namespace

std::vector<ObjectRef> Scheduler::Nodes() const {
  std::vector<ObjectRef> out;
  for (const NodeOptions& node : options_.nodes) {
    if (ObjectRef object = api_.Get("Node", {"", node.name}); object != nullptr) out.push_back(std::move(object));
  }
  for (ObjectRef& node : api_.List("Node")) {
    const bool own = std::any_of(options_.nodes.begin(), options_.nodes.end(),
                                 [&](const NodeOptions& each) { return each.name == node->meta.name; });
    if (!own) out.push_back(std::move(node));
  }
  return out;
}

std::string Scheduler::Crowded(const kube::Object& node, const kube::Object& pod) const {
  const json& allocatable = At(node.body, {"status", "allocatable"});
  const json &near = Items(At(pod.body, {"spec", "affinity", "podAffinity", kRequired})),
             &far = Items(At(pod.body, {"spec", "affinity", "podAntiAffinity", kRequired}));
  const bool measured = allocatable.is_object() && !allocatable.empty();
  if (!measured && near.empty() && far.empty()) return {};
  std::vector<ObjectRef> pods;
  for (ObjectRef& other : api_.List("Pod")) {
    if (!Text(At(other->body, "spec"), "nodeName").empty() && !HasEnded(other->body)) pods.push_back(std::move(other));
  }
  if (measured) {
    for (const auto& [resource, quantity] : allocatable.items()) {
      const auto all = kube::QuantityNanos(quantity);
      if (!all) continue;
      absl::int128 used = Requested(pod, resource);
      if (used == 0) continue;
      for (const ObjectRef& other : pods) {
        if (Text(At(other->body, "spec"), "nodeName") == node.meta.name) used += Requested(*other, resource);
      }
      if (used > *all) return resource == "pods" ? "Too many pods" : fmt::format("Insufficient {}", resource);
    }
  }
  const auto together = [&](const json& term) {
    const auto domain = node.meta.labels.find(Text(term, "topologyKey"));
    if (domain == node.meta.labels.end()) return false;
    return std::any_of(pods.begin(), pods.end(), [&](const ObjectRef& other) {
      const ObjectRef where = api_.Get("Node", {"", Text(At(other->body, "spec"), "nodeName")});
      if (where == nullptr || !TermMeans(term, pod, *other)) return false;
      const auto label = where->meta.labels.find(domain->first);
      return label != where->meta.labels.end() && label->second == domain->second;
    });
  };
  if (std::any_of(far.begin(), far.end(), together)) return kTooNear;
  for (const json& term : near) {
    // The first of pods that want to be together starts somewhere.
    const bool first = TermMeans(term, pod, pod) && std::none_of(pods.begin(), pods.end(), [&](const ObjectRef& other) {
                         return TermMeans(term, pod, *other);
                       });
    if (!first && !together(term)) return "node(s) didn't match pod affinity rules";
  }
  return {};
}

std::optional<NodeOptions> Scheduler::Another(const kube::Object& pod) const {
  if (!options_.nodes_untold || options_.nodes.empty()) return std::nullopt;
  const std::vector<ObjectRef> nodes = Nodes();
  const json& spec = At(pod.body, "spec");
  for (const ObjectRef& node : nodes) {
    if (!NodeRefuses(*node, spec, false).empty() || Crowded(*node, pod) != kTooNear) return std::nullopt;
  }
  NodeOptions another = options_.nodes.front();
  another.address.clear();
  for (size_t i = nodes.size() + 1;; ++i) {
    another.name = fmt::format("{}-node{}", options_.name, i);
    if (api_.Get("Node", {"", another.name}) == nullptr) break;
  }
  const auto takes = [&](const NodeOptions& node) {
    const absl::StatusOr<ObjectRef> made = kube::Object::FromJson(MakeNode(options_, node, nodes.size(), ""));
    return made.ok() && NodeRefuses(**made, spec, false).empty() && Crowded(**made, pod).empty();
  };
  if (takes(another)) return another;
  // Those that want zones of their own.
  const std::string zone = another.zone.substr(0, another.zone.find_last_not_of("0123456789") + 1);
  another.zone = fmt::format("{}{}", zone, nodes.size() + 1);
  if (takes(another)) return another;
  return std::nullopt;
}

absl::StatusOr<std::string> Scheduler::Choose(const kube::Object& pod) {
  const std::vector<ObjectRef> nodes = Nodes();
  // A cluster that says nothing of nodes has one.
  if (nodes.empty() && options_.nodes.empty()) return std::string("node1");
  std::map<std::string, int> reasons;
  const uint64_t first = next_;
  for (uint64_t i = 0; i < nodes.size(); ++i) {
    const kube::Object& node = *nodes[(first + i) % nodes.size()];
    std::string why = NodeRefuses(node, At(pod.body, "spec"), false);
    if (why.empty()) why = Crowded(node, pod);
    if (why.empty()) {
      next_ = first + i + 1;
      return node.meta.name;
    }
    ++reasons[why];
  }
  std::string all;
  for (const auto& [why, count] : reasons) all += fmt::format("{}{} {}", all.empty() ? "" : ", ", count, why);
  return absl::FailedPreconditionError(
      fmt::format("0/{} nodes are available: {}.", nodes.size(), all.empty() ? "no node is there" : all));
}

}  // namespace wavetank::fakekube
