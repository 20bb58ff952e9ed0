#include <fmt/format.h>

#include "core/base/ip.h"
#include "core/base/status.h"
#include "scenarios/language/install_setting.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"

namespace wavetank::scenario {
namespace {

NodeSpec ReadNode(const Field& f) {
  CheckMapping(f, MappingNamed("node"), nullptr);
  if (f["externalIP"].present() && !IpAddress::Parse(f["externalIP"].Text()).ok())
    f["externalIP"].Fail("is no IP address", "write one such as 203.0.113.1");
  return {f["name"].RequiredText(), f["region"].Text(), f["zone"].Text(), f["externalIP"].Text()};
}

}  // namespace

ClusterSpec ReadCluster(const Field& f) {
  CheckMapping(f, MappingNamed("cluster"), nullptr);
  ClusterSpec c;
  c.name = f["name"].RequiredText();
  c.network = f["network"].Text("network1");
  c.network_untold = !f["network"].present();
  c.control_plane = f["controlPlane"].Text(c.name);
  c.installed_name = f["installed"]["clusterName"].Text();
  c.installed_network = f["installed"]["network"].Text();
  if (f["installed"].present()) CheckMapping(f["installed"], MappingNamed("installed"), nullptr);
  // Those that are not said RangesOf() knows (scenarios/mesh/installer_files.h).
  c.pod_cidr = f["pods"].Text();
  c.service_cidr = f["services"].Text();
  c.load_balancer_cidr = f["loadBalancers"].Text();
  c.network_policies = f["networkPolicies"].Text();
  if (!c.network_policies.empty() && c.network_policies != "enforced" && c.network_policies != "strict" &&
      c.network_policies != "ignored")
    f["networkPolicies"].Fail("is neither enforced nor strict nor ignored", "leave it out, or write one of the three");
  c.load_balancer_hostname = f["loadBalancerHostnames"].Flag(false);
  for (const Field& node : f["nodes"].Items()) c.nodes.push_back(ReadNode(node));
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
  return link;
}

}  // namespace wavetank::scenario
