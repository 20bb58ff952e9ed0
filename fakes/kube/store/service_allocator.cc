#include "fakes/kube/store/service_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr int kFirstPort = 30000, kPorts = 2768;  // kube-apiserver's --service-node-port-range

struct Held {
  std::vector<std::string> ips;
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
  if (std::string ip = Text(*spec, "clusterIP"); !ip.empty() && ip != "None") held.ips.push_back(std::move(ip));
  for (const json& each : Items(At(*spec, "clusterIPs"))) {
    if (!held.ips.empty() && each.is_string() && each != held.ips.front()) held.ips.push_back(each.get<std::string>());
  }
  if (const auto ports = spec->find("ports"); ports != spec->end() && ports->is_array()) {
    for (const json& port : *ports) {
      if (const int number = NodePort(port); number != 0) held.ports.insert(number);
    }
  }
  return held;
}

bool IsV4(std::string_view address) {
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  return !ip.ok() || ip->is_v4();
}

// An address of a family that the cluster does not have is nobody's to hand out.
bool Take(const std::string& address, std::vector<IpPool>& pools) {
  for (IpPool& pool : pools) {
    if (pool.is_v4() == IsV4(address)) return pool.Reserve(address);
  }
  return true;
}
void Free(const std::string& address, std::vector<IpPool>& pools) {
  for (IpPool& pool : pools) pool.Release(address);
}

std::string_view FamilyOf(const IpPool& pool) { return pool.is_v4() ? "IPv4" : "IPv6"; }

}  // namespace

IpPool* ServiceAllocator::PoolOf(std::string_view family) {
  for (IpPool& pool : ips_) {
    if (FamilyOf(pool) == family) return &pool;
  }
  return &ips_.front();
}

// Kubernetes: pkg/registry/core/service/storage/alloc.go, initIPFamilyFields. Two of one family are refused by
// validation there.
std::optional<FieldError> ServiceAllocator::FillFamilies(json& spec) const {
  const std::string policy = Text(spec, "ipFamilyPolicy", "SingleStack");
  const bool both = ips_.size() > 1;
  json families = json::array();
  for (const json& family : Items(At(spec, "ipFamilies"))) {
    const bool known =
        std::any_of(ips_.begin(), ips_.end(), [&](const IpPool& pool) { return family == FamilyOf(pool); });
    if (!known) {
      return InvalidField("spec.ipFamilies[0]", family, "not configured on this cluster");
    }
    families.push_back(family);
  }
  if (families.empty()) families.push_back(std::string(FamilyOf(ips_.front())));
  if (policy == "RequireDualStack" && !both) {
    return InvalidField("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services");
  }
  if (policy == "SingleStack") {
    families = json::array({families.front()});
  } else if (both && families.size() == 1) {
    for (const IpPool& pool : ips_) {
      if (families.front() != FamilyOf(pool)) families.push_back(std::string(FamilyOf(pool)));
    }
  }
  spec["ipFamilies"] = std::move(families);
  return std::nullopt;
}

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
  // A Service from another cluster, with all its addresses, keeps the families that it had there.
  const bool brought = named.ips.size() > 1 && named.ips.size() == Items(At(spec, "ipFamilies")).size() &&
                       Text(spec, "ipFamilyPolicy") != "SingleStack";
  if (!brought) {
    if (const std::optional<FieldError> error = FillFamilies(spec)) return refuse(*error);
  }
  std::vector<std::string> new_ips;
  std::vector<int> new_ports;
  const auto fail = [&](absl::Status status) {
    for (const std::string& ip : new_ips) Free(ip, ips_);
    for (const int port : new_ports) ports_.erase(port);
    return status;
  };
  if (Text(spec, "clusterIP") == "None") {
    spec["clusterIPs"] = json::array({"None"});
  } else {
    std::vector<std::string> ips = named.ips;
    const json& families = spec["ipFamilies"];
    ips.resize(std::min(ips.size(), families.size()));
    for (const std::string& ip : ips) {
      if (std::find(before.ips.begin(), before.ips.end(), ip) != before.ips.end()) continue;
      if (!Take(ip, ips_)) {
        return fail(
            refuse({"FieldValueInvalid", "spec.clusterIPs",
                    fmt::format("Invalid value: []string{{\"{0}\"}}: failed to allocate IP {0}: provided IP is already "
                                "allocated",
                                ip)}));
      }
      new_ips.push_back(ip);
    }
    while (ips.size() < families.size()) {
      absl::StatusOr<std::string> drawn = PoolOf(TextOf(families[ips.size()]))->Allocate(name);
      if (!drawn.ok()) {
        return fail(absl::Status(drawn.status().code(), fmt::format("Service {}: spec.clusterIP: {}", name,
                                                                    std::string(drawn.status().message()))));
      }
      new_ips.push_back(*drawn);
      ips.push_back(*std::move(drawn));
    }
    spec["clusterIP"] = ips.front();
    spec["clusterIPs"] = ips;
  }

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
  for (const std::string& ip : before.ips) {
    if (std::find(after.ips.begin(), after.ips.end(), ip) == after.ips.end()) Free(ip, ips_);
  }
  for (const int port : before.ports) {
    if (after.ports.count(port) == 0) ports_.erase(port);
  }
}

}  // namespace wavetank::fakekube
