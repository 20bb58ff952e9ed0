#include "fakes/kube/nodes/node_object.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/base/random.h"
#include "fakes/kube/nodes/node_conditions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// Of 172.18.0.0/16, each block of 256 without its first and last, as an IpPool gives them out; empty beyond. Those of
// different clusters are in different networks, so that they may be the same.
std::string InternalAddress(size_t place) {
  constexpr size_t kOfBlock = 254;
  const size_t block = place / kOfBlock;
  return block < 256 ? fmt::format("172.18.{}.{}", block, place % kOfBlock + 1) : std::string();
}

// A UUID that is the same in every run.
std::string MachineId(const std::string& cluster, const std::string& node, std::string_view what) {
  const uint64_t a = HashName(node, HashName(cluster, HashName(what))), b = Mix64(a);
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff, (b >> 48) & 0xfff,
                     b & 0xffffffffffff);
}

}  // namespace

json MakeNode(const ClusterOptions& options, const NodeOptions& node, size_t place, const std::string& date) {
  // kubernetes: pkg/kubelet/kubelet_node_status.go, initialNode().
  json labels = {{"kubernetes.io/hostname", node.name},
                 {"kubernetes.io/os", "linux"},
                 {"kubernetes.io/arch", "amd64"},
                 {"beta.kubernetes.io/os", "linux"},
                 {"beta.kubernetes.io/arch", "amd64"}};
  if (!node.region.empty()) labels["topology.kubernetes.io/region"] = node.region;
  if (!node.zone.empty()) labels["topology.kubernetes.io/zone"] = node.zone;
  json addresses = json::array({{{"type", "Hostname"}, {"address", node.name}}});
  if (std::string internal = InternalAddress(place); !internal.empty())
    addresses.push_back({{"type", "InternalIP"}, {"address", std::move(internal)}});
  if (!node.address.empty()) addresses.push_back({{"type", "ExternalIP"}, {"address", node.address}});
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", node.name}, {"labels", labels}}},
          {"status",
           {{"addresses", addresses},
            {"nodeInfo",
             {{"kubeletVersion", options.release.git_version()},
              {"kubeProxyVersion", options.release.git_version()},
              {"machineID", MachineId(options.name, node.name, "machine")},
              {"systemUUID", MachineId(options.name, node.name, "system")},
              {"bootID", MachineId(options.name, node.name, "boot")},
              {"osImage", "simulated"},
              {"kernelVersion", "simulated"},
              {"containerRuntimeVersion", "simulated://1.0"},
              {"operatingSystem", "linux"},
              {"architecture", "amd64"}}},
            {"conditions", ConditionsOfHealthyNode(nullptr, date)}}}};
}

}  // namespace wavetank::fakekube
