#include "scenarios/actions/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/base/status.h"
#include "scenarios/reader/read_scenario.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

absl::StatusOr<Scenario> WithAction(std::string_view name, std::string_view value) {
  return ParseScenario("s.yaml", fmt::format("name: n\nclusters: [{{name: c1}}, {{name: c2, network: network2}}]\n"
                                             "steps: [{{name: s, do: [{{{}: {}}}]}}]\n",
                                             name, value));
}

std::string ErrorOf(std::string_view name, std::string_view value) {
  const absl::StatusOr<Scenario> scenario = WithAction(name, value);
  return scenario.ok() ? "accepted" : std::string(Message(scenario.status()));
}

// What the table of README.md shows works as it stands there.
TEST(Actions, EveryExampleIsReadDescribedAndMadeInputsOf) {
  ASSERT_GE(Actions().size(), 11u);
  for (const ActionKind& kind : Actions()) {
    const absl::StatusOr<Scenario> scenario = WithAction(kind.row.name, kind.example);
    ASSERT_TRUE(scenario.ok()) << kind.row.name << ": " << scenario.status();
    const Action& action = scenario->steps[0].actions[0];
    EXPECT_EQ(action.kind, kind.row.name);
    EXPECT_FALSE(Describe(action).empty()) << kind.row.name;
    if (action.arguments.contains("manifest")) continue;  // a file that is not there
    const Inputs inputs = MakeInputs(*scenario, action, nullptr);
    ASSERT_TRUE(inputs.ok()) << kind.row.name << ": " << inputs.status();
    EXPECT_FALSE(inputs->empty()) << kind.row.name;
    // And a log holds it.
    for (const sim::Input& input : *inputs) {
      const absl::StatusOr<sim::Input> again = sim::Input::Parse(input.kind(), input.Print());
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->Print(), input.Print());
    }
  }
}

TEST(Actions, EveryRequiredFieldIsAskedFor) {
  for (const ActionKind& kind : Actions()) {
    const bool any =
        std::any_of(kind.row.fields.begin(), kind.row.fields.end(), [](const auto& f) { return f.required; });
    EXPECT_EQ(ErrorOf(kind.row.name, "{}") == "accepted", !any && kind.row.one_of.empty() && kind.check == nullptr)
        << kind.row.name << ": " << ErrorOf(kind.row.name, "{}");
    EXPECT_THAT(ErrorOf(kind.row.name, "{colour: red}"), HasSubstr("s.yaml:3:")) << kind.row.name;
  }
}

TEST(Actions, MistakesNameTheirPlaceAndTheRemedy) {
  EXPECT_THAT(ErrorOf("scale", "{cluster: c3, deployment: a/b, replicas: 1}"), HasSubstr("no cluster is named 'c3'"));
  EXPECT_THAT(ErrorOf("scale", "{cluster: c1, deployment: b, replicas: 1}"), HasSubstr("is not namespace/name"));
  EXPECT_THAT(ErrorOf("scale", "{cluster: c1, deployment: a/b}"), HasSubstr("replicas: is required but missing"));
  EXPECT_THAT(ErrorOf("scale", "{cluster: c1, replicas: 1}"), HasSubstr("give one of deployment, statefulSet"));
  EXPECT_THAT(ErrorOf("apply", "{cluster: c1}"), HasSubstr("give one of manifest, objects"));
  EXPECT_THAT(ErrorOf("label", "{cluster: c1, kind: Pod, name: p}"), HasSubstr("changes no label"));
  EXPECT_THAT(ErrorOf("label", "{cluster: c1, kind: Pod, name: p, set: {a: [b]}}"), HasSubstr("expected text"));
  EXPECT_THAT(ErrorOf("link", "{between: [c1], state: cut}"), HasSubstr("give 2"));
  EXPECT_THAT(ErrorOf("link", "{between: [c1, c2], loss: 150%}"), HasSubstr("is no share"));
  EXPECT_THAT(ErrorOf("apiServer", "{cluster: c1, fault: slow, skew: 3s}"), HasSubstr("says nothing of the fault"));
  EXPECT_THAT(ErrorOf("apiServer", "{cluster: c1, fault: tired}"), HasSubstr("is not one of unreachable"));
  EXPECT_THAT(ErrorOf("remoteSecret", "{of: c1, in: c2}"), HasSubstr("write one of deleted"));
}

TEST(Actions, WhatStandsUnderNetworksAndGatewaysIsAskedForInFull) {
  EXPECT_THAT(ErrorOf("firewall", "{state: removed}"), HasSubstr("which rule is removed?"));
  EXPECT_THAT(ErrorOf("firewall", "{state: removed, name: a, to: [c1]}"), HasSubstr("by its name alone"));
  EXPECT_THAT(ErrorOf("firewall", "{state: allow, reject: true}"), HasSubstr("is of rules that deny"));
  EXPECT_THAT(ErrorOf("route", "{from: network1, state: lost}"), HasSubstr("a route has two ends"));
  EXPECT_THAT(ErrorOf("route", "{from: a, to: b, between: [a, b], state: lost}"), HasSubstr("a route has two ends"));
  EXPECT_THAT(ErrorOf("dns", "{name: a, failing: [MX]}"), HasSubstr("write A or AAAA"));
  EXPECT_THAT(ErrorOf("dns", "{name: a, alias: b, addresses: [10.0.0.1]}"), HasSubstr("a name is an alias"));
  EXPECT_THAT(ErrorOf("dns", "{name: a, alias: a}"), HasSubstr("is the name itself"));
  EXPECT_THAT(ErrorOf("dns", "{name: '', addresses: [10.0.0.1]}"), HasSubstr("is no host name"));
  EXPECT_THAT(ErrorOf("dns", "{name: 'https://a.example'}"), HasSubstr("is no host name"));
  EXPECT_THAT(ErrorOf("gateway", "{cluster: c1, state: moved}"), HasSubstr("where to?"));
  EXPECT_THAT(ErrorOf("gateway", "{cluster: c1, state: added}"), HasSubstr("what is added?"));
  EXPECT_THAT(ErrorOf("gateway", "{cluster: c1, state: moved, address: lb.example}"), HasSubstr("is no address"));
  EXPECT_THAT(ErrorOf("behaviour", "{app: a, calls: [{to: 'b:x'}]}"), HasSubstr("is no host:port"));
  EXPECT_THAT(ErrorOf("behaviour", "{app: a, calls: [{to: b, retries: {attempts: 2, on: [x]}}]}"),
              HasSubstr("'x' is nothing that is tried again"));
  EXPECT_THAT(ErrorOf("behaviour", "{app: a, parallel: true}"), HasSubstr("calls nobody"));
}

TEST(Actions, SitesOfAScenarioAreLookedAtBeforeAnythingRuns) {
  const auto error = [](std::string_view name, std::string_view value) {
    const absl::StatusOr<Scenario> scenario = WithAction(name, value);
    if (!scenario.ok()) return std::string("not read");
    const Inputs inputs = MakeInputs(*scenario, scenario->steps[0].actions[0], nullptr);
    return inputs.ok() ? std::string("accepted") : std::string(Message(inputs.status()));
  };
  EXPECT_EQ(error("route", "{between: [network1, network2], state: lost}"), "accepted");
  EXPECT_EQ(error("route", "{from: network1, to: south, state: lost}"),
            "s.yaml:3: no site is named 'south'; there are network1, network2");
  EXPECT_THAT(error("firewall", "{state: deny, to: [c3]}"), HasSubstr("s.yaml:3: firewall: 'c3' is no range"));
  EXPECT_THAT(error("firewall", "{state: deny, ports: [http]}"), HasSubstr("'http' is no port"));
}

TEST(Actions, AGatewayGoesWithItsServiceAndMovesByItsOwnObjects) {
  const auto kinds = [](std::string_view value) {
    const absl::StatusOr<Scenario> scenario = WithAction("gateway", value);
    std::string out;
    if (!scenario.ok()) return std::string(Message(scenario.status()));
    const Inputs inputs = MakeInputs(*scenario, scenario->steps[0].actions[0], nullptr);
    if (!inputs.ok()) return std::string(Message(inputs.status()));
    for (const sim::Input& input : *inputs) out += std::string(input.kind()) + " ";
    return out;
  };
  EXPECT_EQ(kinds("{cluster: c1, state: removed}"), "delete delete ");
  EXPECT_EQ(kinds("{cluster: c1, state: moved, address: new, network: network2, node: n}"),
            "loadBalancer patch patch patch ");
}

TEST(Actions, ALossMayBeAFraction) {
  const absl::StatusOr<Scenario> scenario = WithAction("link", "{between: [c1, c2], loss: 0.5, latency: 1m30s}");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Inputs inputs = MakeInputs(*scenario, scenario->steps[0].actions[0], nullptr);
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ(inputs->front().Print()["lossPpm"], 500'000);
  EXPECT_EQ(inputs->front().Print()["latencyNs"], 90'000'000'000);
}

TEST(Actions, InlineObjectsKeepTheirNumbersAndAreCheckedAsManifestsAre) {
  const auto inputs = [](std::string_view objects) -> Inputs {
    const absl::StatusOr<Scenario> scenario =
        WithAction("apply", fmt::format("{{cluster: c1, namespace: shop, objects: [{}]}}", objects));
    if (!scenario.ok()) return scenario.status();
    return MakeInputs(*scenario, scenario->steps[0].actions[0], nullptr);
  };
  const Inputs good = inputs("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, share: 10.5}");
  ASSERT_TRUE(good.ok()) << good.status();
  const nlohmann::json object = good->front().Print()["object"];
  EXPECT_EQ(object["share"], 10.5);
  EXPECT_EQ(object["metadata"]["namespace"], "shop");
  EXPECT_FALSE(inputs("{kind: 5, metadata: {name: m}}").ok());
  EXPECT_FALSE(inputs("{kind: Pod, metadata: x}").ok());
  EXPECT_FALSE(inputs("{kind: Pod, metadata: {name: [a]}}").ok());
}

}  // namespace
}  // namespace wavetank::scenario
