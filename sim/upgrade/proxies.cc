#include "sim/upgrade/proxies.h"

#include <optional>
#include <set>
#include <utility>

#include "core/base/json_access.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/kube/time_format.h"
#include "fakes/kube/control/owned.h"
#include "fmt/format.h"
#include "sim/upgrade/release_of_pod.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr char kRevisionLabel[] = "istio.io/rev", kInjectionLabel[] = "istio-injection";

bool IsIstiod(const kube::Object& pod) {
  const auto app = pod.meta.labels.find("app");
  return app != pod.meta.labels.end() && app->second == "istiod";
}

// pilot-agent's own word: "proxy router".
bool IsGateway(const json& pod) {
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    if (Text(container, "name") != "istio-proxy") continue;
    for (const json& argument : Items(At(container, "args"))) {
      if (argument == "router") return true;
    }
  }
  return false;
}

constexpr char kGatewayKind[] = "Gateway.gateway.networking.k8s.io";

// The Gateway for which istiod deployed the workload, if it did.
std::optional<std::string> GatewayOf(const fakekube::ApiServer& api, const ProxyWorkload& workload) {
  const kube::ObjectRef object = api.Get(workload.kind, {workload.ns, workload.name});
  if (object == nullptr || !object->meta.labels.contains("gateway.istio.io/managed")) return std::nullopt;
  for (const kube::OwnerReference& owner : object->meta.owner_references) {
    if (owner.kind == "Gateway" && api.Get(kGatewayKind, {workload.ns, owner.name}) != nullptr) return owner.name;
  }
  return std::nullopt;
}

ProxyWorkload WorkloadOf(const fakekube::ApiServer& api, const kube::Object& pod) {
  ProxyWorkload out{"Pod", pod.meta.ns, pod.meta.name, IsGateway(pod.body)};
  const kube::OwnerReference* owner = fakekube::ControllerOf(pod);
  if (owner == nullptr) return out;
  out.kind = owner->kind;
  out.name = owner->name;
  if (owner->kind != "ReplicaSet") return out;
  const kube::ObjectRef set = api.Get("ReplicaSet", {pod.meta.ns, owner->name});
  const kube::OwnerReference* const above = set == nullptr ? nullptr : fakekube::ControllerOf(*set);
  if (above != nullptr) {
    out.kind = above->kind;
    out.name = above->name;
  }
  return out;
}

}  // namespace

std::vector<ProxyWorkload> ProxyWorkloads(const fakekube::ApiServer& api) {
  std::set<ProxyWorkload> out;
  for (const kube::ObjectRef& pod : api.List("Pod")) {
    if (!pod->meta.deleting && !IsIstiod(*pod) && pilot::HasProxy(pod->body)) out.insert(WorkloadOf(api, *pod));
  }
  return {out.begin(), out.end()};
}

absl::Status MoveProxies(fakekube::ApiServer& api, bool gateways, std::string_view revision) {
  const json restarted = {{"kubectl.kubernetes.io/restartedAt", kube::FormatRfc3339(api.UnixNow())}};
  std::set<std::string> labelled;
  for (const ProxyWorkload& workload : ProxyWorkloads(api)) {
    if (workload.gateway != gateways || workload.kind == "Pod" || workload.kind == "ReplicaSet") continue;
    // What istiod deployed for a Gateway it deploys anew: the next release at once, another revision if the Gateway
    // names it.
    if (const std::optional<std::string> deployed = GatewayOf(api, workload)) {
      if (revision.empty()) continue;
      const json labels = {{"metadata", {{"labels", {{kRevisionLabel, revision}}}}}};
      if (auto done = api.Patch(kGatewayKind, {workload.ns, *deployed}, labels); !done.ok()) return done.status();
      continue;
    }
    json metadata = {{"annotations", restarted}};
    if (!revision.empty()) {
      const kube::ObjectRef ns = api.Get("Namespace.", {"", workload.ns});
      const bool asks =
          ns != nullptr && (ns->meta.labels.contains(kInjectionLabel) || ns->meta.labels.contains(kRevisionLabel));
      if (!asks) {
        metadata["labels"] = {{kRevisionLabel, revision}};
      } else if (labelled.insert(workload.ns).second) {
        const json labels = {{"metadata", {{"labels", {{kInjectionLabel, nullptr}, {kRevisionLabel, revision}}}}}};
        if (auto done = api.Patch("Namespace", {"", workload.ns}, labels); !done.ok()) return done.status();
      }
    }
    const json patch = {{"spec", {{"template", {{"metadata", std::move(metadata)}}}}}};
    if (auto done = api.Patch(workload.kind, {workload.ns, workload.name}, patch); !done.ok()) return done.status();
  }
  return absl::OkStatus();
}

absl::Status ExchangePods(fakekube::ApiServer& api, PodsOf which, const pilot::Profile& profile) {
  for (const kube::ObjectRef& pod : api.List("Pod")) {
    const bool istiod = IsIstiod(*pod);
    if (!istiod && !pilot::HasProxy(pod->body)) continue;
    const PodsOf is = istiod ? PodsOf::kIstiod : IsGateway(pod->body) ? PodsOf::kGateways : PodsOf::kSidecars;
    if (is != which) continue;
    json body = pod->body;
    if (istiod) {
      GiveIstiodRelease(profile, &body);
    } else {
      GiveProxyRelease(profile.istio, &body);
    }
    // Another life: an API server that records tells it by another identity.
    for (const char* own : {"uid", "resourceVersion"}) body["metadata"].erase(own);
    if (absl::Status status = api.Delete("Pod", {pod->meta.ns, pod->meta.name}); !status.ok()) return status;
    if (auto done = api.Apply(std::move(body)); !done.ok()) return done.status();
  }
  return absl::OkStatus();
}

}  // namespace wavetank::sim
