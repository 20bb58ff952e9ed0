// The corpus of control-plane-diff: that it can be read, and, where a real istiod can be had, that it holds what ours
// holds after every step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fakes/kube/objects/manifest.h"
#include "oracles/control_plane/control_plane_diff.h"
#include "scenarios/reader/read_scenario.h"
#include "tests/left_out.h"
#include "tests/long.h"

namespace wavetank::serve {
namespace {

const std::vector<std::string>& Corpus() {
  static const auto* const names =
      new std::vector<std::string>{"environment", "mesh", "odd", "orchard", "policies", "registry"};
  return *names;
}

// What only later releases know: for istio-1.30 and a pilot-discovery of it.
const std::vector<std::string>& LaterCorpus() {
  static const auto* const names =
      new std::vector<std::string>{"allowed",  "asked",   "gateway-api", "headers", "hosts", "newer",
                                   "observed", "outside", "patched",     "scoped",  "tls",   "traffic"};
  return *names;
}

absl::StatusOr<scenario::Scenario> Load(const std::string& name) {
  return scenario::LoadScenario(WAVETANK_SOURCE_DIR "/tests/oracles/control_plane/corpus/" + name);
}

// Tells the cluster's istiod, which its manifests bring.
void SetVariable(scenario::ClusterSpec& cluster, const std::string& name, const std::string& value) {
  for (scenario::ManifestSpec& manifest : cluster.manifests) {
    if (!manifest.path.ends_with("/istiod.yaml")) continue;
    const auto objects = fakekube::LoadManifests(manifest.path);
    ASSERT_TRUE(objects.ok()) << objects.status();
    manifest.objects = nlohmann::json::array();
    for (const fakekube::Manifest& read : *objects) {
      nlohmann::json object = read.object;
      if (object["kind"] == "Deployment")
        object["spec"]["template"]["spec"]["containers"][0]["env"] = {{{"name", name}, {"value", value}}};
      manifest.objects.push_back(std::move(object));
    }
    manifest.path.clear();
  }
}

TEST(ControlPlaneCorpus, EveryScenarioCanBeRead) {
  std::vector<std::string> all = Corpus();
  all.insert(all.end(), LaterCorpus().begin(), LaterCorpus().end());
  for (const std::string& name : all) {
    const auto scenario = Load(name);
    ASSERT_TRUE(scenario.ok()) << name << ": " << scenario.status();
    EXPECT_GE(scenario->steps.size(), 4u) << name;
  }
}

TEST(ControlPlaneCorpus, ARealIstiodHoldsWhatOursHoldsAfterEveryStep) {
  NEEDS_LONG(LongTests());
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY names a pilot-discovery of Istio 1.18.2");
  for (const std::string& name : Corpus()) {
    DiffOptions options;
    options.control_plane.program = program;
    const auto result = DiffControlPlanes(*Load(name), options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status();
    EXPECT_TRUE(result->Judged() && result->Equal()) << name << "\n" << DifferencesText(*result);
  }
}

// The istiods of both sides are told the same. What a variable does is in docs/istiod-environment.md.
TEST(ControlPlaneCorpus, ARealIstiodDoesByEachVariableWhatOursDoes) {
  NEEDS_LONG(LongTests());
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY names a pilot-discovery of Istio 1.18.2");
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"ENABLE_AUTO_MTLS_CHECK_POLICIES", "false"},
                                          {"ENABLE_AUTO_SNI", "true"},
                                          {"ENABLE_LEGACY_LB_ALGORITHM_DEFAULT", "true"},
                                          {"ENABLE_MULTICLUSTER_HEADLESS", "false"},
                                          {"ISTIO_DEFAULT_REQUEST_TIMEOUT", "5s"},
                                          {"PILOT_ENABLE_ALPN_FILTER", "false"},
                                          {"PILOT_ENABLE_CDS_CACHE", "false"},
                                          {"PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES", "true"},
                                          {"PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS", "false"},
                                          {"PILOT_ENABLE_INBOUND_PASSTHROUGH", "false"},
                                          {"PILOT_ENABLE_LEGACY_AUTO_PASSTHROUGH", "true"},
                                          {"PILOT_ENABLE_MONGO_FILTER", "false"},
                                          {"PILOT_ENABLE_MYSQL_FILTER", "true"},
                                          {"PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND", "false"},
                                          {"PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND", "false"},
                                          {"PILOT_ENABLE_RDS_CACHE", "false"},
                                          {"PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION", "false"},
                                          {"PILOT_FILTER_GATEWAY_CLUSTER_CONFIG", "true"},
                                          {"PILOT_HTTP10", "true"},
                                          {"PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT", "3s"},
                                          {"PILOT_PARTIAL_FULL_PUSHES", "false"},
                                          {"PILOT_SIDECAR_USE_REMOTE_ADDRESS", "true"},
                                          {"PILOT_SKIP_VALIDATE_TRUST_DOMAIN", "true"},
                                          {"SIDECAR_IGNORE_PORT_IN_HOST_MATCH", "false"},
                                          {"VERIFY_CERTIFICATE_AT_CLIENT", "true"},
                                          {"PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY", "false"},
                                          {"PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES", "false"},
                                          {"PILOT_ENABLE_SERVICEENTRY_SELECT_PODS", "false"}}) {
    const bool of_workloads = name.find("SELECT") != name.npos || name.find("WORKLOAD") != name.npos;
    absl::StatusOr<scenario::Scenario> scenario = Load(of_workloads ? "registry" : "environment");
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    for (scenario::ClusterSpec& cluster : scenario->clusters) SetVariable(cluster, name, value);
    DiffOptions options;
    options.control_plane.program = program;
    options.control_plane.environment[name] = value;
    const auto result = DiffControlPlanes(*scenario, options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status();
    EXPECT_TRUE(result->Judged() && result->Equal()) << name << "\n" << DifferencesText(*result);
  }
}

// Those that 1.30 knows and 1.18 does not.
TEST(ControlPlaneCorpus, ARealIstiodOf130DoesByEachVariableWhatOursDoes) {
  NEEDS_LONG(LongTests());
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY_1_30");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY_1_30 names a pilot-discovery of Istio 1.30.3");
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"DISABLE_SHADOW_HOST_SUFFIX", "false"},
                                          {"DISABLE_TRACK_REMAINING_CB_METRICS", "false"},
                                          {"ENABLE_100_CONTINUE_HEADERS", "false"},
                                          {"ENABLE_ENHANCED_DESTINATIONRULE_MERGE", "false"},
                                          {"ENABLE_LOCALITY_WEIGHTED_LB_CONFIG", "true"},
                                          {"ENABLE_PROXY_FIND_POD_BY_IP", "true"},
                                          {"PILOT_DNS_CARES_UDP_MAX_QUERIES", "0"},
                                          {"PILOT_DNS_JITTER_DURATION", "0s"},
                                          {"PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN", "false"},
                                          {"PILOT_ENABLE_IP_AUTOALLOCATE", "false"},
                                          {"PILOT_SIDECAR_PICK_BEST_SERVICE_NAMESPACE", "false"},
                                          {"PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY", "false"},
                                          {"PILOT_UNIFIED_SIDECAR_SCOPE", "false"},
                                          {"PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES", "false"}}) {
    for (const char* mesh : {"environment", "newer"}) {
      absl::StatusOr<scenario::Scenario> scenario = Load(mesh);
      ASSERT_TRUE(scenario.ok()) << scenario.status();
      for (scenario::ClusterSpec& cluster : scenario->clusters) SetVariable(cluster, name, value);
      DiffOptions options;
      options.profile = "istio-1.30";
      options.control_plane.program = program;
      options.control_plane.environment[name] = value;
      options.control_plane.environment["KUBE_FEATURE_WatchListClient"] = "false";
      const auto result = DiffControlPlanes(*scenario, options);
      ASSERT_TRUE(result.ok()) << name << ": " << result.status();
      EXPECT_TRUE(result->Judged() && result->Equal()) << name << " in " << mesh << "\n" << DifferencesText(*result);
    }
  }
}

// Fields of today, at the release that reads them all.
TEST(ControlPlaneCorpus, ARealIstiodOf130HoldsWhatOursHoldsOfNewerFields) {
  NEEDS_LONG(LongTests());
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY_1_30");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY_1_30 names a pilot-discovery of Istio 1.30.3");
  DiffOptions options;
  options.profile = "istio-1.30";
  options.control_plane.program = program;
  options.control_plane.environment["KUBE_FEATURE_WatchListClient"] = "false";
  for (const char* name : {"asked", "newer", "hosts"}) {
    const auto result = DiffControlPlanes(*Load(name), options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status();
    EXPECT_TRUE(result->Judged() && result->Equal()) << name << "\n" << DifferencesText(*result);
  }
}

}  // namespace
}  // namespace wavetank::serve
