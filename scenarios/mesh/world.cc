#include "scenarios/mesh/world.h"

#include <algorithm>

#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/profile/image_release.h"
#include "core/profile/releases.h"
#include "fmt/format.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/mesh/retries.h"
#include "sim/inputs/kinds/traffic.h"
#include "sim/world.h"

namespace wavetank::scenario {

sim::WorldOptions MakeWorldOptions(const Scenario& scenario) {
  sim::WorldOptions out;
  out.seed = scenario.seed;
  out.profile = scenario.profile;
  out.timing = scenario.timing;
  out.mending = scenario.mending;
  if (scenario.date) out.start = *scenario.date;
  // JSON is YAML.
  if (!scenario.mesh_config.is_null()) out.mesh_config = JsonText(scenario.mesh_config);
  for (size_t i = 0; i < scenario.clusters.size(); ++i) {
    const ClusterSpec& c = scenario.clusters[i];
    // Of files that cannot be read MakeStart() tells.
    const ClusterRanges files = ReadRanges(c).value_or(ClusterRanges());
    const AddressRanges ranges = RangesOf(c, i, files);
    sim::WorldCluster cluster{c.name,
                              c.network,
                              c.control_plane,
                              ranges.pods,
                              ranges.services,
                              ranges.load_balancers,
                              c.load_balancer_hostname,
                              {}};
    cluster.enforces_policies = EnforcesPolicies(c, files);
    cluster.strict_policies = PoliciesAreStrict(c, files);
    cluster.installed_name = c.installed_name;
    cluster.installed_network = c.installed_network;
    cluster.nodes_untold = c.nodes_untold;
    for (const NodeSpec& n : c.nodes) cluster.nodes.push_back({n.name, n.region, n.zone, n.external_ip});
    out.clusters.push_back(std::move(cluster));
  }
  out.sites = scenario.physical.sites;
  out.routes = scenario.physical.routes;
  out.firewalls = scenario.physical.firewalls;
  out.nat = scenario.physical.nat;
  for (const LinkSpec& l : scenario.links) out.links.push_back({l.a, l.b, l.latency, l.jitter, l.loss_ppm});
  return out;
}

sim::UnderlayPlan MakeUnderlayPlan(const Scenario& scenario) {
  const PhysicalSpec& physical = scenario.physical;
  sim::UnderlayPlan out{{}, physical.sites, physical.routes, physical.firewalls, physical.nat};
  for (const ClusterSpec& cluster : scenario.clusters) out.clusters.push_back({cluster.name, cluster.network});
  return out;
}

std::vector<ClusterSpec> ClustersOfWorld(const sim::WorldOptions& options) {
  std::vector<ClusterSpec> out;
  for (const sim::WorldCluster& cluster : options.clusters) {
    ClusterSpec& spec = out.emplace_back();
    spec.name = cluster.name;
    spec.network = cluster.network;
    spec.control_plane = cluster.control_plane;
  }
  return out;
}

Duration PeriodOf(int64_t rate_per_kilosecond) {
  return Duration(1'000'000'000'000 / std::max<int64_t>(rate_per_kilosecond, 1));
}

namespace {

Duration PeriodIn(const FlowSpec& flow, const Traffic& traffic) {
  return PeriodOf(traffic.rate_per_kilosecond > 0 ? traffic.rate_per_kilosecond : flow.rate_per_kilosecond);
}

}  // namespace

Duration SendingTime(const FlowSpec& flow, const Traffic& traffic) {
  const Duration period = PeriodIn(flow, traffic);
  const int64_t most = bounds::kInputDuration / std::max<Duration>(period, 1ns);
  return traffic.requests >= most ? bounds::kInputDuration : traffic.requests * period;
}

sim::Input MakeTraffic(const FlowSpec& flow, const Traffic& traffic, const std::string& id) {
  sim::inputs::StartTraffic out;
  out.id = id;
  out.flow = flow.name;
  out.cluster = flow.from_cluster;
  out.ns = flow.from_namespace;
  out.app = flow.from_app;
  out.host = flow.host;
  out.port = flow.port;
  out.path = flow.path;
  out.method = flow.method;
  out.headers = flow.headers;
  out.trailers = flow.trailers;
  out.body_bytes = flow.body_bytes;
  out.body_pieces = flow.body_pieces;
  out.body_over = flow.body_over;
  out.keep_alive = flow.keep_alive;
  out.tcp = flow.tcp;
  out.protocol = flow.http;
  out.tls = flow.tls;
  out.requests = traffic.requests;
  out.period = PeriodIn(flow, traffic);
  out.ramp = flow.ramp;
  if (flow.ramp > Duration::zero()) out.last_period = PeriodOf(flow.ramp_to_per_kilosecond);
  out.poisson = flow.poisson;
  out.users = flow.users;
  out.think = flow.think;
  out.timeout = flow.timeout;
  if (!flow.retries.is_null()) out.retry = RetriesOf(flow.retries);
  if (flow.token) {
    const TokenSpec& token = *flow.token;
    // What to sign, not what is signed: that is the world's, and stands in no log.
    out.token = {
        {token.issuer, token.subject, token.audiences, token.claims, token.expires, token.not_before, token.signed_by},
        token.header,
        token.param};
  }
  return out;
}

std::vector<ForeignIstiod> IstiodsOfOtherReleases(sim::World& world) {
  std::vector<ForeignIstiod> out;
  if (world.options().profile != sim::WorldOptions().profile) return out;
  const int simulated = pilot::MinorOf(world.profile().istio);
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    for (const kube::ObjectRef& object : world.cluster(cluster.name).api().List("Deployment")) {
      const nlohmann::json& pod = At(object->body, {"spec", "template"});
      if (Text(At(pod, {"metadata", "labels"}), "app") != "istiod") continue;
      for (const nlohmann::json& container : Items(At(pod, {"spec", "containers"}))) {
        const std::string image = Text(container, "image");
        const int minor = pilot::MinorOfImage(image);
        if (Text(container, "name") != "discovery" || minor == 0 || minor == simulated) continue;
        out.push_back({cluster.name, object, image});
      }
    }
  }
  return out;
}

std::vector<std::string> NotesOfOtherReleases(sim::World& world) {
  std::vector<std::string> out;
  for (const ForeignIstiod& istiod : IstiodsOfOtherReleases(world)) {
    out.push_back(fmt::format(
        "{}: the image of istiod {}/{} is {}, and the one that is simulated is {}'s; --profile chooses "
        "another release",
        istiod.cluster, istiod.deployment->meta.ns, istiod.deployment->meta.name, istiod.image, world.profile().istio));
  }
  return out;
}

}  // namespace wavetank::scenario
