// ServiceEntries of resolution DYNAMIC_DNS: one wildcard for names outside the mesh, which sidecars resolve as requests
// ask for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::StartsWith;

// Two servers that no sidecar is before, at fixed addresses, and a client whose agent answers for names that istiod
// tells it. `entry`: what of the ServiceEntry's spec follows its hosts.
std::string Text(const std::string& profile, const std::string& entry) {
  std::string objects;
  const auto add = [&](const std::string& object) { objects += "          - " + object + "\n"; };
  add("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}");
  add("{apiVersion: v1, kind: Namespace, metadata: {name: outside}}");
  for (const auto& [app, address] : {std::pair("one", "10.96.7.1"), std::pair("two", "10.96.7.2")}) {
    add(
        fmt::format("{{apiVersion: v1, kind: Service, metadata: {{name: {0}, namespace: outside}}, spec: {{clusterIP: "
                    "{1}, selector: {{app: {0}}}, ports: [{{port: 8080}}]}}}}",
                    app, address));
  }
  for (const auto& [app, ns] :
       {std::pair("one", "outside"), std::pair("two", "outside"), std::pair("client", "shop")}) {
    add(fmt::format(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: {1}}}, spec: {{selector: "
        "{{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: {{app: {0}}}, annotations: "
        "{{proxy.istio.io/config: 'proxyMetadata: {{ISTIO_META_DNS_CAPTURE: \"true\"}}'}}}}, spec: {{containers: "
        "[{{name: {0}, image: example/{0}, ports: [{{containerPort: 8080}}]}}]}}}}}}}}",
        app, ns));
  }
  add("{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: partners, namespace: shop}, spec: "
      "{hosts: [\"*.partner.example\"], " +
      entry + "}}");
  std::string flows, names;
  for (const char* name : {"one", "two", "nobody"}) {
    flows += fmt::format(
        "  - {{name: {0}, from: {{cluster: c1, namespace: shop, app: client}}, to: '{0}.partner.example:8080', rate: "
        "50/s}}\n",
        name);
    names += fmt::format("{}{{flow: {}, requests: 20}}", names.empty() ? "" : ", ", name);
  }
  return fmt::format(R"(
name: names of requests
profile: {}
clusters:
  - name: c1
    manifests:
      - objects:
{}flows:
{}steps:
  - name: names
    do:
      - {{dns: {{name: one.partner.example, addresses: [10.96.7.1]}}}}
      - {{dns: {{name: two.partner.example, addresses: [10.96.7.2]}}}}
    then: [{}]
)",
                     profile, objects, flows, names);
}

const std::string kDynamicPorts = "resolution: DYNAMIC_DNS, ports: [{number: 8080, name: http, protocol: HTTP}]";

std::map<std::string, TrafficResult> SendToNames(const std::string& profile, const std::string& entry) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("names.yaml", Text(profile, entry));
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  const absl::StatusOr<RunResult> result = Run(*scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  std::map<std::string, TrafficResult> out;
  for (const TrafficResult& traffic : result->steps.back().traffic) out[traffic.flow] = traffic;
  return out;
}

TEST(NamesOfRequests, OneWildcardReachesEachNameThatThereIs) {
  auto traffic = SendToNames("istio-1.30", kDynamicPorts);
  for (const char* name : {"one", "two"}) {
    EXPECT_EQ(traffic[name].sent, 20);
    EXPECT_EQ(traffic[name].failed, 0) << name;
    EXPECT_THAT(traffic[name].by_pod, ElementsAre(Key(StartsWith(std::string(name) + "-"))));
  }
}

TEST(NamesOfRequests, OneThatDoesNotResolveIsAnsweredByTheProxyWhichSaysSo) {
  auto traffic = SendToNames("istio-1.30", kDynamicPorts);
  EXPECT_EQ(traffic["nobody"].by_code, (std::map<int, int64_t>{{503, 20}}));
  EXPECT_EQ(traffic["nobody"].by_flags, (std::map<std::string, int64_t>{{"DF", 20}}));
  ASSERT_FALSE(traffic["nobody"].failures.empty());
  EXPECT_THAT(traffic["nobody"].failures[0].cause, HasSubstr("DNS knows no address of it"));
}

TEST(NamesOfRequests, AReleaseThatDoesNotKnowTheWordRefusesIt) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("names.yaml", Text("istio-1.24", kDynamicPorts));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const absl::StatusOr<RunResult> result = scenario::Run(*scenario, {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("unsupported resolution type"));
}

}  // namespace
}  // namespace wavetank::scenario
