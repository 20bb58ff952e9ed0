// RequestAuthentication and AuthorizationPolicies by what tokens say, from manifests over istiod's filters to the
// sidecar that looks at the tokens which a scenario's traffic brings.
#include <gtest/gtest.h>

#include <cstdio>

#include "core/base/json_text.h"
#include "fmt/format.h"
#include "replay/event_log.h"
#include "replay/secrets.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

const std::string kTokenManifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";

// Flows: `none` brings no token, `alice` a good one, `bob` a good one of a group, `forged` one that somebody else has
// signed, `old` one that has expired, `short` one that does so within two minutes.
std::string WithIssuer(const std::string& steps) {
  std::string flows;
  const auto flow = [&](const std::string& name, const std::string& token) {
    flows += fmt::format(
        "  - {{name: {}, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: \"helloworld.sample:5000\", "
        "path: /hello, rate: 100/s{}}}\n",
        name, token.empty() ? "" : ", token: {issuer: https://accounts.example" + token + "}");
  };
  flow("none", "");
  flow("alice", ", subject: alice, audiences: [hello]");
  flow("bob", ", subject: bob, claims: {groups: [staff, admins], scope: \"read write\"}");
  flow("forged", ", subject: alice, signedBy: https://evil.example");
  flow("old", ", subject: alice, expires: -1h");
  flow("early", ", subject: alice, notBefore: 1h");
  flow("short", ", subject: alice, expires: 3s");
  return fmt::format(R"(
name: tokens
clusters:
  - name: cluster1
    network: network1
    manifests: [{0}one-network.yaml, {0}istiod.yaml, {0}sample.yaml, {0}helloworld-service.yaml, {0}helloworld-v1.yaml, {0}sleep.yaml]
issuers:
  - {{name: https://accounts.example, jwksUri: https://accounts.example/keys}}
  - {{name: https://evil.example}}
flows:
{1}steps:
{2})",
                     kTokenManifests, flows, steps);
}

// Applied alone, so that what is expected afterwards holds for every request.
std::string Apply(const std::string& name, const std::string& object) {
  return fmt::format(R"(
  - name: {}
    do: [{{apply: {{cluster: cluster1, objects: [{}]}}}}]
    then: [{{flow: none, requests: 2}}]
)",
                     name, object);
}

// Each flow and the failures expected of it.
std::string Expect(const std::string& name, const std::vector<std::pair<std::string, std::string>>& failed) {
  std::string then, expect;
  for (const auto& [flow, share] : failed) {
    then += fmt::format("{}{{flow: {}, requests: 20}}", then.empty() ? "" : ", ", flow);
    expect += fmt::format("      - requests: {{flow: {}, failed: \"{}\"}}\n", flow, share);
  }
  return fmt::format("  - name: {}\n    then: [{}]\n    expect:\n{}", name, then, expect);
}

const std::string kRequestAuthentication =
    "{apiVersion: security.istio.io/v1beta1, kind: RequestAuthentication, metadata: {name: jwt, namespace: sample}, "
    "spec: {selector: {matchLabels: {app: helloworld}}, jwtRules: [{issuer: \"https://accounts.example\", jwksUri: "
    "\"https://accounts.example/keys\"}]}}";

std::string AllowPolicy(const std::string& rule) {
  return "{apiVersion: security.istio.io/v1beta1, kind: AuthorizationPolicy, metadata: {name: who, namespace: sample}, "
         "spec: {selector: {matchLabels: {app: helloworld}}, action: ALLOW, rules: [" +
         rule + "]}}";
}

const std::string kNone = "0%", kAll = "100%";

RunResult RunAll(const std::string& text, const RunOptions& options = {}) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("tokens.yaml", text);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  absl::StatusOr<RunResult> result = Run(*scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  for (const auto& step : result->steps) {
    for (const auto& expectation : step.expectations) {
      EXPECT_TRUE(expectation.held) << step.name << ": " << expectation.explanation;
    }
  }
  return *std::move(result);
}

TEST(Tokens, BadOnesAreRefusedAndNoneIsWhereNoPolicyAsksForOne) {
  RunAll(WithIssuer(
      Apply("tokens are looked at", kRequestAuthentication) +
      Expect("who comes through",
             {{"none", kNone}, {"alice", kNone}, {"bob", kNone}, {"forged", kAll}, {"old", kAll}, {"early", kAll}})));
}

TEST(Tokens, PoliciesSeeWhoIsMeant) {
  RunAll(WithIssuer(
      Apply("tokens are looked at", kRequestAuthentication) +
      Apply("any principal", AllowPolicy("{from: [{source: {requestPrincipals: [\"*\"]}}]}")) +
      Expect("anybody with a token", {{"none", kAll}, {"alice", kNone}, {"bob", kNone}, {"forged", kAll}}) +
      Apply("one principal",
            AllowPolicy("{from: [{source: {requestPrincipals: [\"https://accounts.example/alice\"]}}]}")) +
      Expect("alice only", {{"none", kAll}, {"alice", kNone}, {"bob", kAll}}) +
      Apply("a group", AllowPolicy("{when: [{key: \"request.auth.claims[groups]\", values: [admins]}]}")) +
      Expect("admins only", {{"none", kAll}, {"alice", kAll}, {"bob", kNone}}) +
      Apply("a word of a text", AllowPolicy("{when: [{key: \"request.auth.claims[scope]\", values: [write]}]}")) +
      Expect("who may write", {{"alice", kAll}, {"bob", kNone}}) +
      Apply("an audience", AllowPolicy("{when: [{key: request.auth.audiences, values: [hello]}]}")) +
      Expect("whose audience it is", {{"alice", kNone}, {"bob", kAll}})));
}

TEST(Tokens, ExpireInVirtualTimeAndAMinuteLater) {
  RunAll(WithIssuer(Apply("tokens are looked at", kRequestAuthentication) + R"(
  - name: until it expires and a minute more
    then: [{flow: short, requests: 60, rate: 1/s}]
    expect: [requests: {flow: short, failed: "0"}]
  - name: and then
    then: [{flow: short, requests: 100, rate: 1/s}]
    expect: [requests: {flow: short, failed: 30..40%}]
)"));
}

TEST(Tokens, NeitherKeysNorTokensAreWritten) {
  const std::string path = ::testing::TempDir() + "/tokens.wtlog";
  RunOptions options;
  options.log = path;
  RunAll(WithIssuer(Apply("tokens are looked at", kRequestAuthentication) + Expect("used", {{"alice", kNone}})),
         options);
  const auto log = replay::LogReader::Open(path);
  ASSERT_TRUE(log.ok()) << log.status();
  bool told = false;  // which token it was
  for (;;) {
    const auto item = (*log)->Next();
    ASSERT_TRUE(item.ok()) << item.status();
    if (*item == replay::LogReader::Item::kEnd) break;
    if (*item == replay::LogReader::Item::kInput) {
      const std::string text = JsonText((*log)->input().body);
      EXPECT_FALSE(replay::HoldsSecret(text)) << (*log)->input().kind;
      told |= (*log)->input().kind == "traffic" && text.find("https://accounts.example") != text.npos;
    } else if (*item == replay::LogReader::Item::kEvent) {
      EXPECT_FALSE(replay::HoldsSecret((*log)->event().detail));
    }
  }
  EXPECT_TRUE(told);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace wavetank::scenario
