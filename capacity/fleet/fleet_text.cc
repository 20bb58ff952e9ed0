#include "capacity/fleet/fleet_text.h"

#include <fmt/format.h>

#include <cmath>

namespace wavetank::capacity {
namespace {

// The largest unit that needs no fraction, milliseconds at least.
std::string Time(Duration d) {
  const int64_t ms = std::max<int64_t>(1, (d.count() + 500'000) / 1'000'000);
  if (ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms % 60'000 == 0) return fmt::format("{}m", ms / 60'000);
  if (ms % 1000 == 0) return fmt::format("{}s", ms / 1000);
  return fmt::format("{}ms", ms);
}

std::string Share(int64_t ppm) { return fmt::format("{:g}%", std::round(static_cast<double>(ppm) / 100) / 100); }

std::string Endpoints(const EndpointsSpec& spec) {
  switch (spec.kind) {
    case EndpointsSpec::Kind::kFixed:
      return fmt::format("{{fixed: {}}}", spec.fixed);
    case EndpointsSpec::Kind::kRange:
      return fmt::format("{{range: {{least: {}, most: {}}}}}", spec.least, spec.most);
    case EndpointsSpec::Kind::kZipf:
      return fmt::format("{{zipf: {{most: {}, exponent: {:.4g}}}}}", spec.most, spec.exponent);
  }
  return "";
}

// In double quotes, whatever it holds.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    const bool shown = static_cast<unsigned char>(c) >= ' ';
    out += shown ? c : ' ';
  }
  return out + "\"";
}

std::string ChurnText(const ChurnSpec& churn) {
  std::string out;
  if (churn.deploys > Duration::zero()) {
    out += fmt::format("  deploys: {{every: {}, surge: {}, podStart: {}}}\n", Time(churn.deploys),
                       Share(churn.surge_ppm), Time(churn.pod_start));
  }
  if (churn.flapping > 0) {
    out += fmt::format("  flapping: {{pods: {}, every: {}}}\n", churn.flapping, Time(churn.flapping_every));
  }
  if (churn.autoscaling > Duration::zero()) {
    out += fmt::format("  autoscaling: {{every: {}, swing: {}}}\n", Time(churn.autoscaling), Share(churn.swing_ppm));
  }
  if (!churn.day_ppm.empty()) {
    std::vector<std::string> shares;
    for (const int64_t ppm : churn.day_ppm) shares.push_back(Share(ppm));
    out += fmt::format("  autoscaling: {{day: {{curve: [{}]{}}}}}\n", fmt::join(shares, ", "),
                       churn.day_begins > Duration::zero() ? ", begins: " + Time(churn.day_begins) : "");
  }
  const auto every = [&](const char* what, Duration time) {
    if (time > Duration::zero()) out += fmt::format("  {}: {{every: {}}}\n", what, Time(time));
  };
  every("nodeLoss", churn.node_loss);
  every("configEdits", churn.config_edits);
  every("secretRotation", churn.secret_rotation);
  every("istiodRestarts", churn.istiod_restarts);
  return out.empty() ? out : "churn:\n" + out;
}

std::string ConfigurationText(const Fleet& fleet) {
  std::string out;
  if (fleet.scope > 0) out += fmt::format("  sidecarScope: {}\n", fleet.scope);
  const auto share = [&](const char* what, int64_t ppm) {
    if (ppm > 0) out += fmt::format("  {}: {}\n", what, Share(ppm));
  };
  share("virtualServices", fleet.virtual_services_ppm);
  share("destinationRules", fleet.destination_rules_ppm);
  share("authorizationPolicies", fleet.authorization_policies_ppm);
  return out.empty() ? out : "configuration:\n" + out;
}

std::string TrafficText(const ServiceGraphSpec& spec) {
  if (spec.entries == 0) return "";
  return fmt::format("traffic: {{entries: {}, rate: {:g}/s, calls: {}, depth: {}, latency: {}}}\n", spec.entries,
                     static_cast<double>(spec.rate_per_kilosecond) / 1000, spec.calls, spec.depth, Time(spec.latency));
}

}  // namespace

std::string FleetText(const Fleet& fleet, const std::vector<std::string>& notes) {
  std::string out = "# Made by `wavetank synth`.\n";
  for (const std::string& note : notes) out += fmt::format("# {}\n", note);
  out += fmt::format("name: {}\nseed: {}\nduration: {}\n", Quoted(fleet.name), fleet.seed, Time(fleet.duration));
  out += fmt::format("clusters: {{count: {}, networks: {}, namespaces: {}, nodes: {}, zones: {}}}\n", fleet.clusters,
                     fleet.one_network ? "one" : "each", fleet.namespaces, fleet.nodes, fleet.zones);
  out += fmt::format("services: {{perCluster: {}, shared: {}, endpoints: {}}}\n", fleet.services,
                     Share(fleet.shared_ppm), Endpoints(fleet.endpoints));
  out += fmt::format("proxies: {{perCluster: {}, gateways: {}}}\n", fleet.proxies, fleet.gateways);
  out += ConfigurationText(fleet) + TrafficText(fleet.traffic) + ChurnText(fleet.churn);
  const IstiodSpec& istiod = fleet.istiod;
  out += fmt::format(
      "istiod: {{replicas: {}, cpu: \"{:g}\", memory: {:g}Mi, debounceAfter: {}, debounceMax: {}, pushThrottle: {}, "
      "requestsPerSecond: {}, kubernetesApiQPS: {}, kubernetesApiBurst: {}}}\n",
      istiod.replicas, istiod.cpus, istiod.memory_mb, Time(istiod.debounce_after), Time(istiod.debounce_max),
      istiod.push_throttle, istiod.requests_per_second, istiod.api_qps, istiod.api_burst);
  return out;
}

}  // namespace wavetank::capacity
