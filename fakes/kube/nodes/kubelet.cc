#include "fakes/kube/nodes/kubelet.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/nodes/node_object.h"
#include "fakes/kube/nodes/pod_events.h"
#include "fakes/kube/objects/conditions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr std::string_view kDefaultScheduler = "default-scheduler";
constexpr char kInitContainers[] = "initContainers";
// The conditions that a kubelet writes, in their order.
constexpr char kInitialized[] = "Initialized", kReady[] = "Ready", kContainersReady[] = "ContainersReady",
               kPodScheduled[] = "PodScheduled";
constexpr std::string_view kOwn[] = {kInitialized, kReady, kContainersReady, kPodScheduled};

// A condition keeps the time at which it became what it is.
json Condition(const kube::Object& pod, const char* type, bool holds, const std::string& now) {
  const char* status = holds ? "True" : "False";
  std::string since = SinceWhen(ConditionOf(At(pod.body, {"status", "conditions"}), type), status, now);
  return JsonObject("type", type, "status", status, "lastProbeTime", nullptr, "lastTransitionTime", std::move(since));
}

// Why a pod whose containers are ready is not; empty: its gates are open, or it has none. kubernetes:
// pkg/kubelet/status/generate.go, GeneratePodReadyCondition.
std::string ShutGates(const kube::Object& pod) {
  std::string out;
  for (const json& gate : Items(At(pod.body, {"spec", "readinessGates"}))) {
    const std::string type = Text(gate, "conditionType");
    const json& condition = ConditionOf(At(pod.body, {"status", "conditions"}), type);
    const std::string status = Text(condition, "status");
    if (status == "True") continue;
    if (!out.empty()) out += ", ";
    out += condition.is_null()
               ? fmt::format("corresponding condition of pod readiness gate \"{}\" does not exist.", type)
               : fmt::format("the status of pod readiness gate \"{}\" is not \"True\", but {}", type, status);
  }
  return out;
}

// `ready`: its containers are. Conditions of others stay. kubernetes: pkg/kubelet/status/status_manager.go,
// mergePodStatus.
json Conditions(const kube::Object& pod, bool ready, const std::string& now) {
  const std::string shut = ready ? ShutGates(pod) : "";
  json own = json::array({Condition(pod, kInitialized, true, now), Condition(pod, kReady, ready && shut.empty(), now),
                          Condition(pod, kContainersReady, ready, now), Condition(pod, kPodScheduled, true, now)});
  if (!shut.empty()) own[1].update(JsonObject("reason", "ReadinessGatesNotReady", "message", shut));
  json out = json::array();
  for (const json& condition : Items(At(pod.body, {"status", "conditions"}))) {
    if (std::none_of(std::begin(kOwn), std::end(kOwn),
                     [&](std::string_view type) { return IsOfType(condition, type); }))
      out.push_back(condition);
  }
  if (out.empty()) return own;
  for (json& condition : own) out.push_back(std::move(condition));
  return out;
}

// The first of a node's addresses within the cluster; empty if it has none.
std::string InternalIp(const kube::Object* node) {
  if (node == nullptr) return {};
  for (const json& address : Items(At(node->body, {"status", "addresses"}))) {
    if (Text(address, "type") == "InternalIP") return Text(address, "address");
  }
  return {};
}

// What a runtime would name an image or a container by.
std::string SimulatedId(const std::string& of) {
  uint64_t word = HashName(of);
  std::string out = "simulated://sha256:";
  for (int i = 0; i < 4; ++i, word = Mix64(word)) out += fmt::format("{:016x}", word);
  return out;
}

// All containers of a pod run, and are ready or not together. Of the init containers those that go on: sidecars.
json ContainerStatuses(const kube::Object& pod, bool ready, const std::string& started,
                       const char* list = "containers") {
  json out = json::array();
  for (const json& container : Items(At(pod.body, {"spec", list}))) {
    if (std::string_view(list) == kInitContainers && Text(container, "restartPolicy") != "Always") continue;
    const std::string name = Text(container, "name"), image = Text(container, "image");
    out.push_back(JsonObject("name", name, "image", image, "imageID", SimulatedId(image), "containerID",
                             SimulatedId(pod.meta.uid + "/" + name), "ready", ready, "started", true, "restartCount",
                             0,  //
                             "state", JsonObject("running", JsonObject("startedAt", started)), "lastState",
                             json::object()));
  }
  return out;
}

void AddSidecars(const kube::Object& pod, bool ready, const std::string& started, json* status) {
  json sidecars = ContainerStatuses(pod, ready, started, kInitContainers);
  if (!sidecars.empty()) (*status)["initContainerStatuses"] = std::move(sidecars);
}

int64_t RestartsOf(const kube::Object& pod) {
  const json& statuses = Items(At(pod.body, {"status", "containerStatuses"}));
  return statuses.empty() ? 0 : Number(statuses.front(), "restartCount");
}

// What `containerStatuses` say once all containers have ended.
json EndedStatuses(const kube::Object& pod, const ContainerRun& run, const std::string& started,
                   const std::string& finished, int64_t restarts, bool again) {
  json out = ContainerStatuses(pod, false, started);
  for (json& status : out) {
    json ended = JsonObject(
        "terminated", JsonObject("exitCode", run.exit_code, "reason", run.exit_code == 0 ? "Completed" : "Error",
                                 "startedAt", started, "finishedAt", finished, "containerID", status["containerID"]));
    status["started"] = again;
    status["restartCount"] = restarts;
    if (again) {
      status["lastState"] = std::move(ended);
      status["state"] = JsonObject("running", JsonObject("startedAt", finished));
    } else {
      status["state"] = std::move(ended);
    }
  }
  return out;
}

// podIP, and the others of podIPs. The first may be empty.
std::vector<std::string> NamedAddresses(const kube::Object& pod) {
  const json& status = At(pod.body, "status");
  std::vector<std::string> out = {Text(status, "podIP")};
  for (const json& ip : Items(At(status, "podIPs"))) {
    if (std::string address = Text(ip, "ip"); address != out.front()) out.push_back(std::move(address));
  }
  return out;
}

}  // namespace

Kubelet::Kubelet(ApiServer& api, const ClusterOptions& options, PodRuntime* runtime)
    : api_(api),
      options_(options),
      runtime_(runtime),
      pending_(api.host()),
      runs_(api.host()),
      jitter_(options.seed, "kubelet/" + options.name),
      ips_(IpPoolsOf(options.pod_cidr)),
      scheduler_(api, options) {
  subscriptions_.Add(api_.Observe("Node", [this](const Change& change) { OnNode(change); }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) {
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    switch (change.type) {
      case kube::WatchEventType::kAdded:
        if (api_.introducing() && !Text(At(change.object->body, "status"), "podIP").empty()) {
          Adopt(change.object);
          break;
        }
        starting_.insert(name);
        pending_.After(options_.schedule, [this, name] { Schedule(name); });
        break;
      case kube::WatchEventType::kModified:
        if (change.object->meta.deleting && !change.previous->meta.deleting) Terminate(change.object);
        if (ShutGates(*change.object) != ShutGates(*change.previous))
          Hear(name, change.object->meta.uid,
               Text(ConditionOf(At(change.object->body, {"status", "conditions"}), kContainersReady), "status") ==
                   "True");
        if (Items(At(change.object->body, {"spec", "ephemeralContainers"})).size() >
            Items(At(change.previous->body, {"spec", "ephemeralContainers"})).size()) {
          pending_.After(options_.container_start,
                         [this, name, uid = change.object->meta.uid] { RunEphemeral(name, uid); });
        }
        // Somebody else has bound it (pods/binding).
        if (unschedulable_.count(name) != 0 && !Text(At(change.object->body, "spec"), "nodeName").empty()) {
          starting_.insert(name);
          pending_.After(Duration::zero(), [this, name] { Schedule(name); });
        }
        break;
      case kube::WatchEventType::kDeleted:
        starting_.erase(name);
        unschedulable_.erase(name);
        Gone(*change.object);
        if (!unschedulable_.empty()) ScheduleWaiting();
        if (runtime_ != nullptr) runtime_->Remove(change.object);
        break;
      case kube::WatchEventType::kBookmark:
        break;
    }
  }));
}

void Kubelet::Adopt(const ObjectRef& pod) {
  const std::vector<std::string> named = NamedAddresses(*pod);
  if (ips_.front().Reserve(named.front())) {
    for (size_t i = 1; i < std::min(named.size(), ips_.size()); ++i) ips_[i].Reserve(named[i]);
    held_[pod->meta.uid] = named;
  }
  if (pod->meta.deleting) Terminate(pod);
}

absl::StatusOr<std::vector<std::string>> Kubelet::AddressesFor(const kube::Object& pod) {
  const std::vector<std::string> named = NamedAddresses(pod);
  std::vector<std::string> out;
  for (IpPool& pool : ips_) {
    const auto of_family = std::find_if(named.begin(), named.end(), [&](const std::string& address) {
      const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
      return !ip.ok() || ip->is_v4() == pool.is_v4();
    });
    // An address that was written by hand is the pod's if nobody has it.
    if (of_family != named.end() && !of_family->empty() && pool.Reserve(*of_family)) {
      out.push_back(*of_family);
      continue;
    }
    absl::StatusOr<std::string> free = pool.Allocate(pod.meta.ns + "/" + pod.meta.name);
    if (!free.ok()) {
      Give(out);
      return free.status();
    }
    out.push_back(*std::move(free));
  }
  return out;
}

void Kubelet::Give(const std::vector<std::string>& addresses) {
  for (size_t i = 0; i < std::min(addresses.size(), ips_.size()); ++i) ips_[i].Release(addresses[i]);
}

void Kubelet::Hear(const NamespacedName& name, const std::string& uid, bool ready) {
  pending_.After(ready ? options_.readiness : Duration::zero(),
                 [this, name, uid, ready] { SetReady(name, uid, ready); });
}

void Kubelet::Gone(const kube::Object& pod) {
  sandboxes_.erase(pod.meta.uid);
  const auto held = held_.find(pod.meta.uid);
  if (held == held_.end()) return;
  WAVETANK_ASSERT(!held->second.empty(), pod.meta.name);
  Give(held->second);
  held_.erase(held);
  for (const auto& [name, uid] : std::exchange(without_ip_, {})) {
    pending_.After(Duration::zero(), [this, name = name, uid = uid] { Run(name, uid); });
  }
}

void Kubelet::Schedule(const NamespacedName& name) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.deleting) return;
  unschedulable_.erase(name);
  if (Text(At(pod->body, "spec"), "nodeName").empty()) {
    const std::string scheduler = Text(At(pod->body, "spec"), "schedulerName", kDefaultScheduler);
    if (scheduler != kDefaultScheduler) {  // it is another one's to bind
      unschedulable_.insert(name);
      starting_.erase(name);
      return;
    }
    const absl::StatusOr<std::string> node = scheduler_.Choose(*pod);
    if (!node.ok()) {
      // It waits for others: nothing that this cluster still has to do.
      unschedulable_.insert(name);
      starting_.erase(name);
      json conditions = At(pod->body, {"status", "conditions"});
      SetCondition(conditions,
                   JsonObject("type", kPodScheduled, "status", "False", "lastProbeTime", nullptr, "reason",
                              "Unschedulable", "message", std::string(Message(node.status()))),
                   api_.DateNow());
      api_.Patch("Pod", name, {{"status", {{"conditions", std::move(conditions)}}}}, kScheduler).IgnoreError();
      TellUnschedulable(api_, *pod, std::string(Message(node.status())));
      if (const std::optional<NodeOptions> another = scheduler_.Another(*pod))
        api_.Create(MakeNode(options_, *another, api_.List("Node").size(), api_.DateNow())).IgnoreError();
      return;
    }
    starting_.insert(name);
    if (api_.Patch("Pod", name, {{"spec", {{"nodeName", *node}}}}, kNobody).ok()) TellScheduled(api_, *pod, *node);
  }
  pending_.After(options_.container_start + BuggifyDelay(BuggifyPoint::kPodLate),
                 [this, name, uid = pod->meta.uid] { Run(name, uid); });
}

void Kubelet::ScheduleWaiting() {
  for (const NamespacedName& name : std::exchange(unschedulable_, {}))
    pending_.After(options_.schedule, [this, name] { Schedule(name); });
}

void Kubelet::OnNode(const Change& change) {
  if (change.type != kube::WatchEventType::kDeleted) return ScheduleWaiting();
  // kubernetes: pkg/controller/podgc. What is bound to a node that stays away goes, without a grace that no kubelet
  // keeps.
  constexpr Duration kQuarantine = 40s;
  pending_.After(kQuarantine, [this, node = change.object->meta.name] {
    if (api_.Get("Node", {"", node}) != nullptr) return;
    for (const ObjectRef& pod : api_.List("Pod")) {
      if (Text(At(pod->body, "spec"), "nodeName") != node) continue;
      api_.Delete("Pod", {pod->meta.ns, pod->meta.name}, {{}, 0}).IgnoreError();
    }
  });
}

bool Kubelet::OnLostNode(const kube::Object& pod) const {
  return lost_.contains(Text(At(pod.body, "spec"), "nodeName"));
}

void Kubelet::Lose(const std::string& node) {
  lost_.insert(node);
  for (const ObjectRef& pod : api_.List("Pod")) {
    if (Text(At(pod->body, "spec"), "nodeName") != node) continue;
    starting_.erase({pod->meta.ns, pod->meta.name});
    if (runtime_ != nullptr) runtime_->Remove(pod);
  }
}

void Kubelet::Return(const std::string& node) {
  if (lost_.erase(node) == 0) return;
  for (const ObjectRef& pod : api_.List("Pod")) {
    if (Text(At(pod->body, "spec"), "nodeName") != node) continue;
    if (pod->meta.deleting) {
      Terminate(pod);
      continue;
    }
    if (HasEnded(pod->body)) continue;
    const NamespacedName name{pod->meta.ns, pod->meta.name};
    starting_.insert(name);
    // A sandbox of its own again, with the address that it had.
    if (const auto held = held_.find(pod->meta.uid); held != held_.end()) {
      Give(held->second);
      held_.erase(held);
    }
    pending_.After(options_.container_start, [this, name, uid = pod->meta.uid] { Run(name, uid); });
  }
}

void Kubelet::Run(const NamespacedName& name, const std::string& uid) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deleting) return;
  if (OnLostNode(*pod)) {  // it was bound to it before anybody knew
    starting_.erase(name);
    return;
  }
  if (held_.contains(uid)) return;  // it runs: its node was lost and came back while it started
  absl::StatusOr<std::vector<std::string>> addresses = AddressesFor(*pod);
  if (!addresses.ok()) {
    // As a sandbox that cannot be made: the pod waits, and says why.
    api_.Patch("Pod", name,
               {{"status",
                 {{"reason", "FailedCreatePodSandBox"},
                  {"message", fmt::format("pod {}/{}: {}", name.ns, name.name, Message(addresses.status()))}}}},
               kKubelet)
        .IgnoreError();
    TellNoSandbox(api_, *pod, std::string(Message(addresses.status())));
    without_ip_.emplace_back(name, uid);
    return;
  }
  WAVETANK_ASSERT(!addresses->empty(), name.ns, name.name);
  const std::string ip = addresses->front();
  WAVETANK_ASSERT(!ip.empty(), name.ns, name.name);
  json pod_ips = json::array();
  for (const std::string& address : *addresses) pod_ips.push_back(JsonObject("ip", address));
  const bool fresh = held_.emplace(uid, *std::move(addresses)).second;
  WAVETANK_ASSERT(fresh, uid, ip);  // a pod has one address of a family
  const std::string started = api_.DateNow();
  json status = JsonObject("phase", "Running", "reason", nullptr, "message", nullptr,  //
                           "podIP", ip, "podIPs", std::move(pod_ips), "startTime", started, "containerStatuses",
                           ContainerStatuses(*pod, false, started), "conditions", Conditions(*pod, false, started));
  AddSidecars(*pod, false, started, &status);
  const ObjectRef node = api_.Get("Node", {"", Text(At(pod->body, "spec"), "nodeName")});
  if (std::string host_ip = InternalIp(node.get()); !host_ip.empty()) status["hostIP"] = std::move(host_ip);
  absl::StatusOr<ObjectRef> running = api_.Patch("Pod", name, JsonObject("status", std::move(status)), kKubelet);
  if (!running.ok()) return;
  TellStarted(api_, **running, options_.container_start, &images_);
  if (const std::optional<ContainerRun> run = RunOf(**running))
    runs_.After(run->time, [this, name, uid, run = *run, number = ++sandboxes_[uid]] { End(name, uid, run, number); });
  const Duration delay =
      options_.readiness + Duration(jitter_.Between(0, std::max<int64_t>(options_.readiness_jitter.count(), 0)));
  if (runtime_ == nullptr) {
    pending_.After(delay, [this, name, uid] { SetReady(name, uid, true); });
    return;
  }
  // The pod's own start-up, then its readiness probe.
  runtime_->Start(*running, [this, name, uid, delay](bool ready) {
    pending_.After(ready ? delay : Duration::zero(), [this, name, uid, ready] { SetReady(name, uid, ready); });
  });
}

void Kubelet::SetReady(const NamespacedName& name, const std::string& uid, bool ready) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deleting || OnLostNode(*pod)) return;
  if (Text(At(pod->body, "status"), "phase") != "Running") return;  // it has ended meanwhile
  if (ready) starting_.erase(name);
  if (!ready && PodReady(*pod)) TellUnready(api_, *pod);
  const std::string started = TextOf(At(pod->body, {"status", "startTime"}), api_.DateNow());
  json status = JsonObject("conditions", Conditions(*pod, ready, api_.DateNow()), "containerStatuses",
                           ContainerStatuses(*pod, ready, started));
  AddSidecars(*pod, ready, started, &status);
  const absl::StatusOr<ObjectRef> restated = api_.Patch("Pod", name, JsonObject("status", std::move(status)), kKubelet);
  if (restated.ok() && runtime_ != nullptr) runtime_->Restated(*restated);
}

// kubernetes: pkg/kubelet, getPhase and the status of what has ended.
void Kubelet::End(const NamespacedName& name, const std::string& uid, const ContainerRun& run, int64_t sandbox) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deleting || OnLostNode(*pod)) return;
  if (sandboxes_[uid] != sandbox) return;  // its node was lost, and it began anew
  const std::string now = api_.DateNow(), started = TextOf(At(pod->body, {"status", "startTime"}), now);
  const int64_t restarts = RestartsOf(*pod);
  if (run.exit_code != 0 && Text(At(pod->body, "spec"), "restartPolicy") == "OnFailure") {
    // Again, after 10 s doubling up to 5 min.
    constexpr Duration kFirst = 10s, kMost = 5min;
    const Duration wait = std::min<Duration>(kFirst * (int64_t{1} << std::min<int64_t>(restarts, 5)), kMost);
    json statuses = EndedStatuses(*pod, run, started, now, restarts + 1, true);
    api_.Patch("Pod", name, JsonObject("status", JsonObject("containerStatuses", std::move(statuses))), kKubelet)
        .IgnoreError();
    runs_.After(wait + run.time, [this, name, uid, run, sandbox] { End(name, uid, run, sandbox); });
    return;
  }
  starting_.erase(name);
  json conditions = Conditions(*pod, false, now);
  for (json& condition : conditions) {
    if (IsOfType(condition, kInitialized) || IsOfType(condition, kReady) || IsOfType(condition, kContainersReady))
      condition["reason"] = "PodCompleted";
  }
  json status = JsonObject("phase", run.exit_code == 0 ? "Succeeded" : "Failed", "conditions", std::move(conditions),
                           "containerStatuses", EndedStatuses(*pod, run, started, now, restarts, false));
  // Sidecars end after the others, whatever they end with.
  if (json sidecars = ContainerStatuses(*pod, false, started, kInitContainers); !sidecars.empty()) {
    for (json& sidecar : sidecars) {
      sidecar["started"] = false;
      sidecar["state"] = JsonObject("terminated", JsonObject("exitCode", 0, "reason", "Completed", "startedAt", started,
                                                             "finishedAt", now, "containerID", sidecar["containerID"]));
    }
    status["initContainerStatuses"] = std::move(sidecars);
  }
  absl::StatusOr<ObjectRef> ended = api_.Patch("Pod", name, JsonObject("status", std::move(status)), kKubelet);
  if (ended.ok() && runtime_ != nullptr) runtime_->Remove(*ended);
}

void Kubelet::RunEphemeral(const NamespacedName& name, const std::string& uid) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deleting || OnLostNode(*pod)) return;
  if (Text(At(pod->body, "status"), "phase") != "Running") return;
  json statuses = ContainerStatuses(*pod, false, api_.DateNow(), "ephemeralContainers");
  api_.Patch("Pod", name, JsonObject("status", JsonObject("ephemeralContainerStatuses", std::move(statuses))), kKubelet)
      .IgnoreError();
}

void Kubelet::Terminate(const ObjectRef& pod) {
  WAVETANK_ASSERT(pod->meta.deleting, pod->meta.name);
  const NamespacedName name{pod->meta.ns, pod->meta.name};
  starting_.erase(name);
  if (OnLostNode(*pod)) return;  // nothing runs there, and no kubelet says so
  TellKilling(api_, *pod);
  if (runtime_ != nullptr) runtime_->Terminate(pod);
  const int64_t grace = Number(At(pod->body, "metadata"), "deletionGracePeriodSeconds", 30);
  // Processes that heed SIGTERM are gone long before the grace period ends.
  const Duration delay = std::min<Duration>(options_.termination, std::chrono::seconds(std::max<int64_t>(grace, 0)));
  pending_.After(delay, [this, name, uid = pod->meta.uid] {
    const ObjectRef now = api_.Get("Pod", name);
    if (now != nullptr && now->meta.uid == uid) api_.Delete("Pod", name, {{}, 0}).IgnoreError();
  });
}

}  // namespace wavetank::fakekube
