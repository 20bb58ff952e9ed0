#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/ip.h"
#include "core/base/status.h"
#include "core/base/text/kube_names.h"
#include "fakes/kube/store/ip_pool.h"
#include "scenarios/language/install_setting.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"
#include "sim/network/links.h"

namespace wavetank::scenario {
namespace {

// What stands in a label, as Kubernetes takes it.
void CheckLabel(const Field& f) {
  const std::string value = f.Text();
  if (value.size() > kLongestDnsLabel || !ReadsAsLabelValue(value))
    f.Fail("is no label's value, which it becomes", "write letters, digits, -, _ and ., at most 63 of them");
}

// A cluster's name is nobody's label: kubeconfigs call some `arn:aws:eks:...:cluster/east`. But it stands in tables and
// is asked for by it.
void CheckClusterName(const Field& f) {
  constexpr size_t kLongest = 253;
  const std::string name = f.Text();
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (name.empty() || name.size() > kLongest || std::any_of(name.begin(), name.end(), control))
    f.Fail("is no name of a cluster", "write one such as cluster1, of at most 253 characters in one line");
}

void CheckRanges(const Field& f) {
  if (!f.present()) return;
  if (absl::Status status = fakekube::CheckRanges(f.Text()); !status.ok()) f.Fail(Message(status));
}

NodeSpec ReadNode(const Field& f) {
  CheckMapping(f, MappingNamed("node"), nullptr);
  const std::string name = f["name"].Text();
  if (f["name"].present() && (name.size() > kLongestDnsSubdomain || !ReadsAsDnsSubdomain(name)))
    f["name"].Fail("is no name of a node", "write small letters, digits, - and ., at most 253 of them");
  CheckLabel(f["region"]);
  CheckLabel(f["zone"]);
  if (f["externalIP"].present() && !IpAddress::Parse(f["externalIP"].Text()).ok())
    f["externalIP"].Fail("is no IP address", "write one such as 203.0.113.1");
  return {f["name"].RequiredText(), f["region"].Text(), f["zone"].Text(), f["externalIP"].Text()};
}

}  // namespace

ClusterSpec ReadCluster(const Field& f) {
  CheckMapping(f, MappingNamed("cluster"), nullptr);
  ClusterSpec c;
  c.name = f["name"].RequiredText();
  CheckClusterName(f["name"]);
  c.network = f["network"].Text("network1");
  CheckLabel(f["network"]);  // topology.istio.io/network of pods
  c.network_untold = !f["network"].present();
  c.control_plane = f["controlPlane"].Text(c.name);
  c.installed_name = f["installed"]["clusterName"].Text();
  c.installed_network = f["installed"]["network"].Text();
  if (f["installed"].present()) CheckMapping(f["installed"], MappingNamed("installed"), nullptr);
  // Those that are not said RangesOf() knows (scenarios/mesh/installer_files.h).
  c.pod_cidr = f["pods"].Text();
  c.service_cidr = f["services"].Text();
  c.load_balancer_cidr = f["loadBalancers"].Text();
  for (const char* ranges : {"pods", "services"}) CheckRanges(f[ranges]);
  if (const Field& range = f["loadBalancers"]; range.present()) {
    if (absl::Status status = fakekube::IpPool(range.Text()).readable(); !status.ok()) range.Fail(Message(status));
  }
  c.network_policies = f["networkPolicies"].Text();
  if (!c.network_policies.empty() && c.network_policies != "enforced" && c.network_policies != "strict" &&
      c.network_policies != "ignored")
    f["networkPolicies"].Fail("is neither enforced nor strict nor ignored", "leave it out, or write one of the three");
  c.load_balancer_hostname = f["loadBalancerHostnames"].Flag(false);
  for (const Field& node : f["nodes"].Items()) {
    NodeSpec read = ReadNode(node);
    if (std::any_of(c.nodes.begin(), c.nodes.end(), [&](const NodeSpec& other) { return other.name == read.name; }))
      node["name"].Fail(fmt::format("two nodes are named '{}'", read.name), "rename one");
    c.nodes.push_back(std::move(read));
  }
  c.nodes_untold = c.nodes.empty();
  if (c.nodes_untold) c.nodes.push_back({c.name + "-node1", "region1", "zone1", ""});
  for (const Field& manifest : f["manifests"].Items()) {
    if (!manifest.IsScalar()) CheckMapping(manifest, MappingNamed("manifest"), nullptr);
    const Field path = manifest.IsScalar() ? manifest : manifest["path"], objects = manifest["objects"];
    ManifestSpec spec{path.Text(), manifest["namespace"].Text(), manifest["selector"].Text()};
    if (objects.present()) spec.objects = objects.Json();
    const auto take = [&](const char* key) {
      if (manifest.IsScalar()) return;
      for (const Field& setting : manifest[key].Items()) {
        if (absl::Status status = CheckInstallSetting(setting.Text()); !status.ok())
          setting.Fail(fmt::format("is no setting of an installation: {}", Message(status)), "write PATH=VALUE");
        spec.set.push_back(setting.Text());
      }
    };
    take("install");
    if (spec.path.empty() && spec.objects.is_null() && spec.set.empty())
      path.Fail("names nothing", "write a file's or a folder's path");
    take("set");
    if (!spec.set.empty() && !spec.objects.is_null()) objects.Fail("are no IstioOperator's", "leave `set` out");
    spec.file = manifest.file();
    spec.line = (objects.present() ? objects : manifest).line();
    c.manifests.push_back(std::move(spec));
  }
  return c;
}

LinkSpec ReadLink(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("link"), &scenario);
  LinkSpec link;
  const std::vector<Field> ends = f["between"].Items();
  if (ends.size() != 2) return link;  // a mistake that was told
  link.a = ends[0].Text();
  link.b = ends[1].Text();
  link.latency = f["latency"].Time(link.latency);
  link.jitter = f["jitter"].Time(link.jitter);
  link.loss_ppm = f["loss"].Share(0);
  for (const auto& [field, quality] : {std::pair("latency", sim::LineQuality{link.latency, {}, 0, false}),
                                       std::pair("jitter", sim::LineQuality{{}, link.jitter, 0, false})}) {
    if (absl::Status status = sim::CheckQuality(quality); !status.ok()) f[field].Fail(Message(status), "write 2ms");
  }
  return link;
}

}  // namespace wavetank::scenario
