// Clients and servers that speak TLS themselves: `tls` of a flow and of `behaviour`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kube/secret.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

constexpr Duration kValidity = std::chrono::hours(24 * 365);

x509::CertificateAuthority Authority(const std::string& name) { return x509::MakeRootCa(1, name, Time{}, kValidity); }

std::string Leaf(const x509::CertificateAuthority& by, const std::string& common_name,
                 const std::vector<std::string>& sans) {
  x509::CertificateSpec spec;
  spec.subject.common_name = common_name;
  spec.sans = sans;
  spec.not_before = Time{};
  spec.not_after = Time{} + kValidity;
  const auto leaf =
      x509::Certificate::Issue(spec, x509::KeyPair::Derive(1, common_name)->public_key(), *by.certificate, *by.key);
  return leaf.ok() ? (*leaf)->ToPem() : "";
}

std::string SecretText(const std::string& name, const kube::SecretData& data) {
  return "          - " + kube::MakeSecret("sample", name, data)->body.dump() + "\n";
}

std::string DeploymentText(const std::string& app) {
  return fmt::format(
      "          - {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: sample}}, spec: "
      "{{selector: "
      "{{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: {{app: {0}}}}}, spec: {{containers: [{{name: "
      "{0}, image: {0}, ports: [{{containerPort: 443}}]}}]}}}}}}}}\n",
      app);
}

// sleep asks hello, which speaks TLS at its port 443 as `server` says ("" for plain text), in a namespace with sidecars
// or without.
absl::StatusOr<RunResult> Send(const std::string& server, const std::string& flow, bool sidecars,
                               const std::string& more = "") {
  const x509::CertificateAuthority ours = Authority("ours"), theirs = Authority("theirs");
  const std::string text =
      "name: n\nclusters:\n  - name: c1\n    manifests:\n      - objects:\n" +
      fmt::format(
          "          - {{apiVersion: v1, kind: Namespace, metadata: {{name: sample, labels: {{istio-injection: "
          "{}}}}}}}\n"
          "          - {{apiVersion: v1, kind: Service, metadata: {{name: hello, namespace: sample}}, spec: "
          "{{selector: "
          "{{app: hello}}, ports: [{{name: https, port: 443}}]}}}}\n",
          sidecars ? "enabled" : "disabled") +
      SecretText("hello", {{"tls.crt", Leaf(ours, "hello", {"hello.sample"})}}) +
      SecretText("old-style", {{"tls.crt", Leaf(ours, "hello.sample", {})}}) +
      SecretText("client", {{"tls.crt", Leaf(ours, "client", {"client.example"})}}) +
      SecretText("stranger", {{"tls.crt", Leaf(theirs, "stranger", {"stranger.example"})}}) +
      SecretText("ours", {{"ca.crt", ours.root->ToPem()}}) +
      SecretText("theirs", {{"some.crt", theirs.root->ToPem()}}) + DeploymentText("hello") + DeploymentText("sleep") +
      more +
      "flows:\n  - {name: f, from: {cluster: c1, namespace: sample, app: sleep}, to: 'hello.sample:443', rate: "
      "100/s, " +
      flow + "}\nsteps:\n  - {name: s, do: [" +
      (server.empty() ? "" : "{behaviour: {app: hello, tls: " + server + "}}") + "], then: [{flow: f, requests: 5}]}\n";
  absl::StatusOr<Scenario> scenario = ParseScenario("tls.yaml", text);
  if (!scenario.ok()) return scenario.status();
  return Run(*scenario, {});
}

// How many of five requests failed, and with which words.
std::pair<int64_t, std::string> Failed(const std::string& server, const std::string& flow, bool sidecars = false,
                                       const std::string& more = "") {
  const auto result = Send(server, flow, sidecars, more);
  if (!result.ok()) return {-1, std::string(result.status().message())};
  const TrafficResult& traffic = result->steps.back().traffic.at(0);
  std::string words;
  for (const TrafficResult::Failure& failure : traffic.failures) words += failure.cause;
  return {traffic.failed, words};
}

TEST(TlsClients, BelieveAServerOutsideByThePublicAuthority) {
  for (const bool sidecars : {false, true})
    EXPECT_EQ(Failed("{ports: [443]}", "tls: {}", sidecars).first, 0) << sidecars;
  EXPECT_EQ(Failed("{}", "protocol: http2, tls: {}").first, 0);
  EXPECT_EQ(Failed("{}", "protocol: tcp, tls: {}").first, 0);
}

TEST(TlsClients, BelieveTheAuthoritiesOfASecretAlone) {
  EXPECT_EQ(Failed("{certificate: hello}", "tls: {trusts: sample/ours}").first, 0);
  EXPECT_EQ(Failed("{certificate: hello}", "tls: {trusts: sample/theirs}").first, 5);
  EXPECT_EQ(Failed("{certificate: hello}", "tls: {}").first, 5);
  EXPECT_EQ(Failed("{certificate: hello}", "tls: {insecure: true}").first, 0);
}

TEST(TlsClients, WantTheNameThatTheyAskFor) {
  EXPECT_EQ(Failed("{certificate: hello}", "tls: {serverName: other.sample, trusts: sample/ours}").first, 5);
  // Without DNS names the common name counts.
  EXPECT_EQ(Failed("{certificate: old-style}", "tls: {trusts: sample/ours}").first, 0);
  EXPECT_EQ(Failed("{certificate: old-style}", "tls: {serverName: other.sample, trusts: sample/ours}").first, 5);
}

TEST(TlsClients, ShowACertificateWhereTheServerWantsOne) {
  const std::string server = "{certificate: hello, clients: ours}";
  EXPECT_EQ(Failed(server, "tls: {trusts: sample/ours, certificate: sample/client}").first, 0);
  EXPECT_EQ(Failed(server, "tls: {trusts: sample/ours, certificate: sample/stranger}").first, 5);
  EXPECT_EQ(Failed(server, "tls: {trusts: sample/ours}").first, 5);
}

TEST(TlsClients, MeetNothingAtAPortOfPlainTextAndAreRefusedTheOtherWayRound) {
  EXPECT_EQ(Failed("", "tls: {insecure: true}").first, 5);
  const auto plain = Send("{}", "path: /", false);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->steps.back().traffic.at(0).by_code.at(400), 5);
}

TEST(TlsClients, SpeakWithinTheMeshesOwnTls) {
  EXPECT_EQ(Failed("{ports: [443]}", "tls: {}, connections: keep-alive", true).first, 0);
  // A proxy that begins TLS for a client who does so himself: the server reads a ClientHello as a request.
  const auto [failed, words] = Failed(
      "{}", "tls: {}", true,
      R"(          - {apiVersion: networking.istio.io/v1beta1, kind: DestinationRule, metadata: {name: hello, namespace: sample}, spec: {host: hello, trafficPolicy: {tls: {mode: SIMPLE}}}}
)");
  EXPECT_EQ(failed, 5);
  EXPECT_THAT(words, HasSubstr("WRONG_VERSION_NUMBER"));
}

TEST(TlsClients, OfASecretThatIsNotThereAreToldAtOnce) {
  EXPECT_THAT(Failed("{}", "tls: {trusts: sample/nobody}").second, HasSubstr("there is no Secret sample/nobody"));
  EXPECT_THAT(Failed("{certificate: nobody}", "tls: {}").second, HasSubstr("there is no Secret sample/nobody"));
  EXPECT_THAT(Failed("{certificate: ours}", "tls: {}").second, HasSubstr("has no certificate under tls.crt"));
}

TEST(TlsClients, OfAnAddressSayWhomTheyMean) {
  const auto scenario = ParseScenario("tls.yaml",
                                      "name: n\nclusters: [{name: c1}]\nflows:\n  - {name: f, from: {cluster: c1, app: "
                                      "a}, to: '10.0.0.1:443', tls: {}}\nsteps: []\n");
  EXPECT_THAT(std::string(scenario.status().message()), HasSubstr("is no name that a certificate could be for"));
}

}  // namespace
}  // namespace wavetank::scenario
