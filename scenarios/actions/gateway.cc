#include <fmt/format.h>

#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/manifests.h"
#include "sim/inputs/kinds/network.h"
#include "sim/inputs/kinds/nodes.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {
namespace {

constexpr const char* kEastWest = "istio-system/istio-eastwestgateway";
constexpr const char* kNetworkLabel = "topology.istio.io/network";

void CheckGateway(const Field& f) {
  const std::string state = f["state"].Text();
  const bool somewhere = f["address"].present() || f["node"].present() || f["network"].present() || f["to"].present();
  if ((state == "added") != f["manifest"].present())
    f.Fail(state == "added" ? "what is added?" : "adds nothing", "manifest: FILE goes with state: added");
  if ((state == "moved") != somewhere)
    f.Fail(state == "moved" ? "where to?" : "does not move", "to, address, node and network go with state: moved");
  const Field address = f["address"];
  if (address.present() && address.Text() != "new" && !IpAddress::Parse(address.Text()).ok())
    address.Fail("is no address", "write one such as 172.30.1.9, or new");
}

Inputs InputsOfGateway(const Arguments& a, const ActionContext& context) {
  using sim::inputs::PatchObject;
  std::string cluster = a.Text("cluster");
  const std::string state = a.Text("state");
  kube::NamespacedName name = a.Named("name");
  if (!a.Has("name")) name = {"istio-system", "istio-eastwestgateway"};
  std::vector<sim::Input> out;
  if (a.Has("to")) {
    out.emplace_back(sim::inputs::MoveGateway{cluster, a.Text("to"), name.ns, name.name});
    cluster = a.Text("to");  // where the rest of it holds
  }
  if (state == "added") {
    absl::StatusOr<std::vector<nlohmann::json>> objects =
        LoadManifestObjects({a.Text("manifest"), name.ns, ""}, context.notes);
    if (!objects.ok()) return objects.status();
    for (nlohmann::json& object : *objects) out.emplace_back(sim::inputs::ApplyObject{cluster, std::move(object)});
  }
  if (state == "removed") {
    for (const char* kind : {"Service", "Deployment"})
      out.emplace_back(sim::inputs::DeleteObject{cluster, kind, name.ns, name.name});
  }
  if (a.Has("address")) out.emplace_back(sim::inputs::SetLoadBalancer{cluster, name.ns, name.name, a.Text("address")});
  if (a.Has("network")) {
    const nlohmann::json labels = {{"labels", {{kNetworkLabel, a.Text("network")}}}};
    out.emplace_back(PatchObject{cluster, "Service", name.ns, name.name, {{"metadata", labels}}});
    out.emplace_back(
        PatchObject{cluster, "Deployment", name.ns, name.name, {{"spec", {{"template", {{"metadata", labels}}}}}}});
  }
  if (a.Has("node")) {
    const nlohmann::json selector = {{"nodeSelector", {{"kubernetes.io/hostname", a.Text("node")}}}};
    out.emplace_back(
        PatchObject{cluster, "Deployment", name.ns, name.name, {{"spec", {{"template", {{"spec", selector}}}}}}});
  }
  return out;
}

std::string DescribeGateway(const Arguments& a) {
  std::string out =
      fmt::format("gateway {} of {} is {}", a.Text("name", kEastWest), a.Text("cluster"), a.Text("state"));
  if (a.Has("to")) out += " to " + a.Text("to");
  for (const char* where : {"address", "node", "network"}) {
    if (a.Has(where)) out += fmt::format(", {} {}", where, a.Text(where));
  }
  return out;
}

}  // namespace

void RegisterGateway(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"gateway",
               "A gateway between networks comes, goes, or is elsewhere",
               {row::Cluster().Required(), row::Choice("state", {"added", "removed", "moved"}, "").Required(),
                row::Named("name", "Of its Service and Deployment; istio-system/istio-eastwestgateway if left out"),
                row::Other("manifest", FieldType::kPath, "What is added: file or folder, relative to the scenario"),
                row::Cluster("to", "Moved: the cluster to which it goes"),
                row::Text("address", "Moved: the load balancer's address, or new"),
                row::Text("node", "Moved: the node on which its pods run"),
                row::Text("network", "Moved: the network to which it leads, the label of its Service and pods")}},
       .example = "{cluster: c2, state: moved, address: 172.30.2.9}",
       .what =
           "its Service and Deployment go (`removed`), are applied from a `manifest` (`added`), or it is elsewhere: "
           "in another cluster (`to`), behind another `address`, on another `node`, leading to another `network`",
       .check = CheckGateway,
       .describe = DescribeGateway,
       .inputs = InputsOfGateway});
}

}  // namespace wavetank::scenario
