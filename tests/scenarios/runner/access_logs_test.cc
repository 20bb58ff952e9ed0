// What a reader finds in the access logs of a mesh of two clusters: Telemetry, over istiod's listeners, to the lines
// of client, gateway and server.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Two clusters on two networks; helloworld runs in the second only, so that every request of cluster1 passes a gateway.
std::string TwoClusters(const std::string& mesh_config, const std::string& steps) {
  const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";
  const auto cluster = [&](int n, const std::string& more) {
    return fmt::format(
        "  - name: cluster{1}\n    network: network{1}\n    manifests: [{0}network{1}.yaml, {0}istiod.yaml, "
        "{0}eastwest-network{1}.yaml, {0}expose-services.yaml, {0}sample.yaml, {0}helloworld-service.yaml{2}]\n",
        manifests, n, more);
  };
  return fmt::format(
      "name: logs\nca: common-root\nmeshConfig: {}\nclusters:\n{}{}remoteSecrets: [{{of: cluster2, in: cluster1}}, "
      "{{of: cluster1, in: cluster2}}]\nissuers: [{{name: https://accounts.example}}]\nflows:\n"
      "  - {{name: hello, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: \"helloworld.sample:5000\", "
      "path: /hello, headers: {{user-agent: curl/7.88.1}}, rate: 100/s, token: {{issuer: https://accounts.example, "
      "subject: alice, param: access_token}}}}\nsteps:\n{}",
      mesh_config, cluster(1, fmt::format(", {}sleep.yaml", manifests)),
      cluster(2, fmt::format(", {}helloworld-v2.yaml", manifests)), steps);
}

constexpr char kTwoRequests[] = R"(
  - name: two requests
    then: [{flow: hello, requests: 2}]
  - name: the server goes
    do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 0}}]
  - name: one more
    then: [{flow: hello, requests: 1}]
)";

struct Logged {
  std::vector<std::string> lines;
  std::string digest;
};

Logged RunLogged(const std::string& text, bool collect = true) {
  const std::string path = testing::TempDir() + "/access-logs-test.txt";
  std::filesystem::remove(path);
  const absl::StatusOr<Scenario> scenario = ParseScenario("logs.yaml", text);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  RunOptions options;
  if (collect) options.access_log = path;
  const absl::StatusOr<RunResult> result = Run(*scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_EQ(std::filesystem::exists(path), collect);
  Logged out;
  out.digest = result->digest;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) out.lines.push_back(line);
  return out;
}

// Those of pods whose name begins so.
std::vector<std::string> Of(const Logged& logged, const std::string& pod) {
  std::vector<std::string> out;
  std::copy_if(logged.lines.begin(), logged.lines.end(), std::back_inserter(out),
               [&](const std::string& line) { return line.starts_with(pod); });
  return out;
}

TEST(AccessLogs, OfTheMeshTellARequestAtItsClientItsGatewayAndItsServer) {
  const std::string text = TwoClusters("{accessLogFile: /dev/stdout}", kTwoRequests);
  const Logged logged = RunLogged(text);
  const auto client = Of(logged, "cluster1/sample/sleep-"), server = Of(logged, "cluster2/sample/helloworld-v2-"),
             gateway = Of(logged, "cluster2/istio-system/istio-eastwestgateway-");
  ASSERT_EQ(client.size(), 3u);
  ASSERT_EQ(server.size(), 2u);
  ASSERT_GE(gateway.size(), 1u);
  EXPECT_THAT(client[0], ContainsRegex("^cluster1/sample/sleep-[a-z0-9-]+ \\[2023-09-01T[0-9:.]+Z\\] \"GET "
                                       "/hello\\?access_token=redacted HTTP/1.1\" 200 - via_upstream - \"-\" 0 0 "));
  EXPECT_THAT(client[0], HasSubstr("\"curl/7.88.1\""));
  EXPECT_THAT(client[0], HasSubstr("\"172.30.2.1:15443\" outbound|5000||helloworld.sample.svc.cluster.local "));
  EXPECT_THAT(client[0], ContainsRegex("\"helloworld.sample:5000\" .* - default$"));
  EXPECT_THAT(server[0], ContainsRegex(" inbound\\|5000\\|\\| 127.0.0.6:[0-9]+ 10[0-9.]+:5000 [0-9.]+:[0-9]+ "
                                       "outbound_.5000_._.helloworld.sample.svc.cluster.local default$"));
  EXPECT_THAT(gateway[0], HasSubstr("\"- - -\" 0 - - - \"-\" - - "));
  EXPECT_THAT(gateway[0], ContainsRegex(" outbound_.5000_._.helloworld.sample.svc.cluster.local .*:15443 .* "
                                        "outbound_.5000_._.helloworld.sample.svc.cluster.local -$"));
  EXPECT_THAT(client[2], HasSubstr("\" 503 UH no_healthy_upstream - \"-\" 0 19 "));
  // No token anywhere, in order of time, and nothing of it is the world's business.
  for (const std::string& line : logged.lines) EXPECT_THAT(line, Not(HasSubstr("eyJ")));
  EXPECT_EQ(RunLogged(text).lines, logged.lines);
  EXPECT_EQ(RunLogged(text, false).digest, logged.digest);
}

TEST(AccessLogs, AreWhatTelemetryAsksFor) {
  const std::string steps = R"(
  - name: nothing is asked for
    then: [{flow: hello, requests: 1}]
  - name: errors at clients, in JSON
    do: [{apply: {cluster: cluster1, objects: [{apiVersion: telemetry.istio.io/v1alpha1, kind: Telemetry, metadata: {name: mesh, namespace: istio-system}, spec: {accessLogging: [{providers: [{name: short}], filter: {expression: "response.code >= 400"}}]}}]}}]
)" + std::string(kTwoRequests);
  const Logged logged = RunLogged(TwoClusters(
      "{extensionProviders: [{name: short, envoyFileAccessLog: {path: /dev/stdout, logFormat: {labels: {code: "
      "\"%RESPONSE_CODE%\", flags: \"%RESPONSE_FLAGS%\", to: \"%UPSTREAM_HOST%\"}}}}]}",
      steps));
  ASSERT_EQ(logged.lines.size(), 1u) << testing::PrintToString(logged.lines);
  EXPECT_THAT(logged.lines[0],
              ContainsRegex("^cluster1/sample/sleep-[a-z0-9-]+ \\{\"code\":503,\"flags\":\"UH\",\"to\":"
                            "null\\}$"));
}

TEST(AccessLogs, OfAMeshThatLogsNothingAreAnEmptyFile) {
  EXPECT_THAT(RunLogged(TwoClusters("{}", kTwoRequests)).lines, IsEmpty());
}

TEST(AccessLogs, ABadPlaceIsSaidBeforeAnythingRuns) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("logs.yaml", TwoClusters("{}", kTwoRequests));
  ASSERT_TRUE(scenario.ok());
  for (const char* path : {"/no/such/folder/file", "/dev/null", "/"}) {
    RunOptions options;
    options.access_log = path;
    EXPECT_THAT(std::string(wavetank::scenario::Run(*scenario, options).status().message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace wavetank::scenario
