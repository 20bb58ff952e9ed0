#include "core/inject/app_probe.h"

#include <array>
#include <utility>

#include "core/inject/json_access.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, const char*>, 3> kProbes = {
    {{"readinessProbe", "readyz"}, {"livenessProbe", "livez"}, {"startupProbe", "startupz"}}};

std::string AgentPath(const json& container, const char* probe) {
  return fmt::format("/app-health/{}/{}", Text(container, "name"), probe);
}

const char* ActionOf(const json& probe) {
  for (const char* action : {"httpGet", "tcpSocket", "grpc"}) {
    if (At(probe, action).is_object()) return action;
  }
  return nullptr;
}

}  // namespace

json DumpAppProbers(const json& pod_spec, int status_port) {
  json out;
  const json& containers = At(pod_spec, "containers");
  if (!containers.is_array()) return out;
  for (const json& container : containers) {
    if (Text(container, "name") == "istio-proxy") continue;
    for (const auto& [field, name] : kProbes) {
      const json& probe = At(container, field);
      const char* action = ActionOf(probe);
      if (action == nullptr) continue;
      json prober = {{action, probe[action]}};
      if (action != std::string_view("grpc")) {
        json& port = prober[action]["port"];
        if (port.is_string()) {
          const json* named = FindNamed(At(container, "ports"), port.get_ref<const std::string&>());
          if (named == nullptr) continue;
          port = At(*named, "containerPort");
        } else if (port == status_port) {
          continue;
        }
      }
      if (const json& timeout = At(probe, "timeoutSeconds"); timeout.is_number() && timeout != 0) {
        prober["timeoutSeconds"] = timeout;
      }
      out[AgentPath(container, name)] = std::move(prober);
    }
  }
  return out;
}

void RewriteAppProbes(json& pod_spec, int status_port) {
  const auto containers = pod_spec.find("containers");
  if (containers == pod_spec.end() || !containers->is_array()) return;
  for (json& container : *containers) {
    if (Text(container, "name") == "istio-proxy") continue;
    for (const auto& [field, name] : kProbes) {
      const auto probe = container.find(field);
      if (probe == container.end()) continue;
      const char* action = ActionOf(*probe);
      if (action == nullptr) continue;
      json get = json::object();
      if (action == std::string_view("httpGet")) get = (*probe)[action];
      get["port"] = status_port;
      get["path"] = AgentPath(container, name);
      if (Text(get, "scheme") == "HTTPS") get["scheme"] = "HTTP";  // the agent speaks TLS to the application then
      probe->erase(action);
      (*probe)["httpGet"] = std::move(get);
    }
  }
}

}  // namespace wavetank::pilot
