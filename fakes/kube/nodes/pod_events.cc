#include "fakes/kube/nodes/pod_events.h"

#include <fmt/format.h>

#include <string_view>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fakes/kube/store/event_store.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

std::string NodeOf(const kube::Object& pod) { return Text(At(pod.body, "spec"), "nodeName"); }

void TellOfContainer(EventStore* events, const kube::Object& pod, const char* list, const json& container, bool warning,
                     std::string_view reason, std::string message) {
  events->Tell(pod, {.component = "kubelet",
                     .host = NodeOf(pod),
                     .warning = warning,
                     .reason = reason,
                     .message = std::move(message),
                     .field_path = fmt::format("spec.{}{{{}}}", list, Text(container, "name"))});
}

// As Go writes a duration of less than a minute.
std::string GoSeconds(Duration duration) {
  const int64_t millis = duration / std::chrono::milliseconds(1);
  return millis < 1000 ? fmt::format("{}ms", millis) : fmt::format("{}s", static_cast<double>(millis) / 1000);
}

bool PullsAlways(const json& container) {
  const std::string image = Text(container, "image"), policy = Text(container, "imagePullPolicy");
  return policy.empty() ? image.ends_with(":latest") || image.find(':') == std::string::npos : policy == "Always";
}

// kubernetes: pkg/probe.
std::string ProbeFailure(const kube::Object& pod, const json& probe) {
  if (At(probe, "httpGet").is_object()) return "HTTP probe failed with statuscode: 503";
  if (const json& socket = At(probe, "tcpSocket"); socket.is_object()) {
    return fmt::format("dial tcp {}:{}: connect: connection refused", Text(At(pod.body, "status"), "podIP"),
                       At(socket, "port").is_string() ? Text(socket, "port") : JsonText(At(socket, "port")));
  }
  return "";
}

}  // namespace

void TellScheduled(ApiServer& api, const kube::Object& pod, const std::string& node) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  events->TellSeries(pod,
                     {.component = "default-scheduler",
                      .reason = "Scheduled",
                      .message = fmt::format("Successfully assigned {}/{} to {}", pod.meta.ns, pod.meta.name, node),
                      .action = "Binding"});
}

void TellUnschedulable(ApiServer& api, const kube::Object& pod, const std::string& why) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  events->TellSeries(pod, {.component = "default-scheduler",
                           .warning = true,
                           .reason = "FailedScheduling",
                           .message = why,
                           .action = "Scheduling"});
}

void TellNoSandbox(ApiServer& api, const kube::Object& pod, const std::string& why) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  events->Tell(pod, {.component = "kubelet",
                     .host = NodeOf(pod),
                     .warning = true,
                     .reason = "FailedCreatePodSandBox",
                     .message = "Failed to create pod sandbox: " + why});
}

void TellStarted(ApiServer& api, const kube::Object& pod, Duration took, NodeImages* images) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : Items(At(pod.body, {"spec", list}))) {
      const std::string image = Text(container, "image"), name = Text(container, "name");
      const auto tell = [&](std::string_view reason, std::string message) {
        TellOfContainer(events, pod, list, container, false, reason, std::move(message));
      };
      const bool fresh = images->insert({NodeOf(pod), image}).second;
      if (Text(container, "imagePullPolicy") != "Never" && (fresh || PullsAlways(container))) {
        tell("Pulling", fmt::format("Pulling image \"{}\"", image));
        tell("Pulled", fmt::format("Successfully pulled image \"{}\" in {} ({} including waiting)", image,
                                   GoSeconds(took), GoSeconds(took)));
      } else {
        tell("Pulled", fmt::format("Container image \"{}\" already present on machine", image));
      }
      tell("Created", "Created container " + name);
      tell("Started", "Started container " + name);
    }
  }
}

void TellUnready(ApiServer& api, const kube::Object& pod) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : Items(At(pod.body, {"spec", list}))) {
      const json& probe = At(container, "readinessProbe");
      if (!probe.is_object()) continue;
      TellOfContainer(events, pod, list, container, true, "Unhealthy",
                      "Readiness probe failed: " + ProbeFailure(pod, probe));
    }
  }
}

void TellKilling(ApiServer& api, const kube::Object& pod) {
  EventStore* events = api.listening();
  if (events == nullptr || At(pod.body, {"status", "containerStatuses"}).empty()) return;
  for (const json& container : Items(At(pod.body, {"spec", "containers"}))) {
    TellOfContainer(events, pod, "containers", container, false, "Killing",
                    "Stopping container " + Text(container, "name"));
  }
}

void TellNodeNotReady(ApiServer& api, const kube::Object& pod) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  events->Tell(
      pod, {.component = "node-controller", .warning = true, .reason = "NodeNotReady", .message = "Node is not ready"});
}

void TellNodeStatus(ApiServer& api, const kube::Object& node, bool ready) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  const std::string_view status = ready ? "NodeReady" : "NodeNotReady";
  events->Tell(node, {.component = ready ? "kubelet" : "node-controller",
                      .host = ready ? node.meta.name : "",
                      .reason = status,
                      .message = fmt::format("Node {} status is now: {}", node.meta.name, status)});
}

void TellEvicted(ApiServer& api, const kube::Object& pod) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  events->Tell(pod, {.component = "taint-controller",
                     .reason = "TaintManagerEviction",
                     .message = fmt::format("Marking for deletion Pod {}/{}", pod.meta.ns, pod.meta.name)});
}

}  // namespace wavetank::fakekube
