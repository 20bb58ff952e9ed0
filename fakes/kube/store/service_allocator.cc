#include "fakes/kube/store/service_allocator.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/assert.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "fakes/kube/objects/api_error.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr int kFirstPort = 30000, kPorts = 2768;  // kube-apiserver's --service-node-port-range

struct Held {
  std::string ip;
  std::set<int> ports;
};

int NodePort(const json& port) {
  const auto it = port.is_object() ? port.find("nodePort") : port.end();
  return port.is_object() && it != port.end() && it->is_number_integer() ? it->get<int>() : 0;
}

Held HeldBy(const json& body) {
  Held held;
  const auto spec = body.find("spec");
  if (spec == body.end() || !spec->is_object()) return held;
  if (const auto ip = spec->find("clusterIP"); ip != spec->end() && ip->is_string() && *ip != "None") held.ip = *ip;
  if (const auto ports = spec->find("ports"); ports != spec->end() && ports->is_array()) {
    for (const json& port : *ports) {
      if (const int number = NodePort(port); number != 0) held.ports.insert(number);
    }
  }
  return held;
}

}  // namespace

absl::StatusOr<int> ServiceAllocator::FreePort(std::string_view key) const {
  const auto start = static_cast<int>(HashName(key) % kPorts);
  for (int i = 0; i < kPorts; ++i) {
    const int port = kFirstPort + (start + i) % kPorts;
    if (ports_.count(port) == 0) return port;
  }
  return absl::ResourceExhaustedError(
      fmt::format("all {} node ports are taken; remove Services of type NodePort or LoadBalancer", kPorts));
}

absl::Status ServiceAllocator::Assign(json& body, const kube::Object* previous) {
  json& spec = body["spec"];
  const json& metadata = body["metadata"];
  const std::string name = metadata.value("namespace", "") + "/" + metadata.value("name", "");
  const Held before = previous == nullptr ? Held() : HeldBy(previous->body), named = HeldBy(body);
  const auto type = spec.find("type");
  if (type == spec.end() || !type->is_string() || *type == "ExternalName") return absl::OkStatus();

  // Kubernetes: pkg/registry/core/service/storage.
  const auto refuse = [&](const FieldError& error) {
    return InvalidObject({"Service", ""}, metadata.value("name", ""), {error});
  };
  std::string new_ip;
  std::vector<int> new_ports;
  const auto fail = [&](absl::Status status) {
    ips_.Release(new_ip);
    for (const int port : new_ports) ports_.erase(port);
    return status;
  };
  const auto ip = spec.find("clusterIP");
  if (ip == spec.end() || !ip->is_string() || ip->get_ref<const std::string&>().empty()) {
    absl::StatusOr<std::string> drawn = ips_.Allocate(name);
    if (!drawn.ok()) {
      return absl::Status(drawn.status().code(),
                          fmt::format("Service {}: spec.clusterIP: {}", name, std::string(drawn.status().message())));
    }
    spec["clusterIP"] = new_ip = *drawn;
    spec["clusterIPs"] = json::array({new_ip});
  } else if (!named.ip.empty() && named.ip != before.ip) {
    if (!ips_.Reserve(named.ip)) {
      return refuse(
          {"FieldValueInvalid", "spec.clusterIPs",
           fmt::format("Invalid value: []string{{\"{0}\"}}: failed to allocate IP {0}: provided IP is already "
                       "allocated",
                       named.ip)});
    }
    new_ip = named.ip;
  }
  if (!spec.contains("clusterIPs")) spec["clusterIPs"] = json::array({spec["clusterIP"]});

  for (const int port : named.ports) {
    if (before.ports.count(port) != 0) continue;
    size_t i = 0;
    while (i < spec["ports"].size() && NodePort(spec["ports"][i]) != port) ++i;
    WAVETANK_ASSERT(i < spec["ports"].size(), port, i);  // it was read from there
    const std::string field = fmt::format("spec.ports[{}].nodePort", i);
    if (port < kFirstPort || port >= kFirstPort + kPorts) {
      return fail(
          refuse(InvalidField(field, port,
                              fmt::format("provided port is not in the valid range. The range of valid ports is {}-{}",
                                          kFirstPort, kFirstPort + kPorts - 1))));
    }
    if (!ports_.insert(port).second)
      return fail(refuse(InvalidField(field, port, "provided port is already allocated")));
    new_ports.push_back(port);
  }
  const bool exposed =
      *spec.find("type") == "NodePort" ||
      (*spec.find("type") == "LoadBalancer" && spec.value("allocateLoadBalancerNodePorts", json(true)) != false);
  if (!exposed || !spec.contains("ports") || !spec["ports"].is_array()) return absl::OkStatus();
  for (json& port : spec["ports"]) {
    if (!port.is_object() || NodePort(port) != 0) continue;
    const absl::StatusOr<int> free =
        FreePort(fmt::format("{}/{}", name, port.contains("port") ? JsonText(port["port"]) : ""));
    if (!free.ok()) return fail(free.status());
    WAVETANK_ASSERT(*free >= kFirstPort, *free);
    WAVETANK_ASSERT(*free < kFirstPort + kPorts, *free);
    ports_.insert(*free);
    new_ports.push_back(*free);
    port["nodePort"] = *free;
  }
  return absl::OkStatus();
}

void ServiceAllocator::Release(const kube::Object& previous, const kube::Object* now) {
  const Held before = HeldBy(previous.body), after = now == nullptr ? Held() : HeldBy(now->body);
  if (before.ip != after.ip) ips_.Release(before.ip);
  for (const int port : before.ports) {
    if (after.ports.count(port) == 0) ports_.erase(port);
  }
}

}  // namespace wavetank::fakekube
