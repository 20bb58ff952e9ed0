// What is said of manifests before a world is built of them.
#include "scenarios/mesh/manifest_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/start.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json Policy(json spec) {
  return {{"apiVersion", "security.istio.io/v1beta1"},
          {"kind", "AuthorizationPolicy"},
          {"metadata", {{"name", "deny"}, {"namespace", "sample"}}},
          {"spec", std::move(spec)}};
}

json Web(json ports) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", "web"}, {"namespace", "sample"}}},
          {"spec", {{"ports", std::move(ports)}}}};
}

struct Said {
  std::string refusal;
  std::vector<std::string> notes;
};
Said SaidOf(const json& object) {
  Said out;
  out.refusal = Message(CheckManifest("mesh.yaml", 7, object, &out.notes));
  return out;
}

TEST(ManifestCheck, AMisspeltFieldOfIstioIsNotedAndKept) {
  const Said said = SaidOf(Policy({{"action", "DENY"}, {"ruels", json::array({json::object()})}}));
  EXPECT_EQ(said.refusal, "");
  EXPECT_THAT(said.notes,
              ElementsAre("mesh.yaml:7: AuthorizationPolicy \"deny\": unknown field spec.ruels (did you mean "
                          "'rules'?); kept, "
                          "without effect"));
}

TEST(ManifestCheck, KindsThatNothingActsUponAreNotedOnceEach) {
  std::vector<std::string> notes;
  const auto check = [&](int line, const char* api_version, const char* kind) {
    const json object = {{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", "x"}}}};
    EXPECT_EQ(Message(CheckManifest("mesh.yaml", line, object, &notes)), "");
  };
  check(3, "gateway.networking.k8s.io/v1", "UDPRoute");
  check(5, "gateway.networking.k8s.io/v1", "UDPRoute");
  check(7, "scheduling.k8s.io/v1", "PriorityClass");
  check(9, "networking.istio.io/v1beta1", "Gateway");
  EXPECT_THAT(notes, ElementsAre("mesh.yaml:3: UDPRoute (gateway.networking.k8s.io) is stored here, and has no effect",
                                 "mesh.yaml:7: PriorityClass (scheduling.k8s.io) is stored here, and has no effect"));
}

TEST(ManifestCheck, MisspeltFieldsOfKubernetesAreNotedAndKept) {
  const Said said = SaidOf(Web(json::array({{{"port", 80}, {"prot", 80}, {"target", 80}}})));
  EXPECT_EQ(said.refusal, "");
  EXPECT_THAT(said.notes, ElementsAre("mesh.yaml:7: Service \"web\": unknown fields spec.ports[0].prot (did you mean "
                                      "'port'?), spec.ports[0].target; kept, without effect"));
}

// A level too deep, a level too high, and what has a few fields alone.
TEST(ManifestCheck, AFieldAtTheWrongLevelIsToldWithItsPlace) {
  const auto hint = [](json object) {
    const std::vector<std::string> notes = SaidOf(object).notes;
    if (notes.size() != 1) return std::string("none");
    const size_t from = notes[0].find('('), to = notes[0].find(')');
    return from == std::string::npos ? std::string("no hint") : notes[0].substr(from + 1, to - from - 1);
  };
  EXPECT_EQ(hint(Policy({{"matchLabels", {{"app", "a"}}}})), "it stands within selector");
  json routes = {
      {"apiVersion", "networking.istio.io/v1beta1"},
      {"kind", "VirtualService"},
      {"metadata", {{"name", "v"}, {"namespace", "sample"}}},
      {"spec", json::parse(R"({"hosts": ["a"], "http": [{"route": [{"destination": {"host": "a", "weight": 1}}]}]})")}};
  EXPECT_EQ(hint(routes), "it stands at spec.http[0].route[0]");
  json filter = {{"apiVersion", "networking.istio.io/v1alpha3"},
                 {"kind", "EnvoyFilter"},
                 {"metadata", {{"name", "f"}, {"namespace", "sample"}}},
                 {"spec", {{"workloadSelector", {{"matchLabels", {{"app", "a"}}}}}}}};
  EXPECT_EQ(hint(filter), "there is labels");
}

// metallb: api/v1beta1/ipaddresspool_types.go.
TEST(ManifestCheck, FieldsOfMetalLbAreKnown) {
  json pool = {{"apiVersion", "metallb.io/v1beta1"},
               {"kind", "IPAddressPool"},
               {"metadata", {{"name", "p"}, {"namespace", "metallb-system"}}},
               {"spec", {{"addresses", {"172.30.2.0/24"}}, {"autoAsign", false}}}};
  EXPECT_THAT(SaidOf(pool).notes, ElementsAre("mesh.yaml:7: IPAddressPool \"p\": unknown field spec.autoAsign (did you "
                                              "mean 'autoAssign'?); kept, without effect"));
  pool["spec"] = {{"addreses", {"172.30.2.0/24"}}};
  EXPECT_THAT(SaidOf(pool).refusal, HasSubstr("spec.addresses: Required value"));
  pool["spec"] = {{"addresses", {"172.30.2.0/24"}}, {"autoAssign", "no"}};
  EXPECT_THAT(SaidOf(pool).refusal, HasSubstr("spec.autoAssign"));
}

TEST(ManifestCheck, AVersionThatCameLaterIsHeldAgainstTheSameFields) {
  json policy = Policy({{"ruels", json::array()}});
  policy["apiVersion"] = "security.istio.io/v1";
  EXPECT_THAT(SaidOf(policy).notes, ElementsAre(HasSubstr("spec.ruels")));
}

TEST(ManifestCheck, AFieldThatCameLaterIsSaidToCountWithProfilesThatReadIt) {
  const Said said =
      SaidOf(Policy({{"rules", json::array({{{"from", json::array({{{"source", {{"serviceAccounts", {"a"}}}}}})}}})}}));
  EXPECT_EQ(said.refusal, "");
  EXPECT_THAT(
      said.notes,
      ElementsAre("mesh.yaml:7: AuthorizationPolicy \"deny\": field spec.rules[0].from[0].source.serviceAccounts "
                  "came after Istio 1.18; of effect with profiles of releases that read it"));
}

TEST(ManifestCheck, AnotherTypeThanTheFieldsIsRefused) {
  EXPECT_EQ(SaidOf(Policy({{"rules", {{"from", "x"}}}})).refusal,
            "mesh.yaml:7: AuthorizationPolicy.security.istio.io \"deny\" is invalid: spec.rules: Invalid value: "
            "\"object\": spec.rules in body must be of type array: \"object\"");
  EXPECT_EQ(
      SaidOf(Web(json::array({{{"port", "80"}}}))).refusal,
      "mesh.yaml:7: Service \"web\": json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port "
      "of type int32");
}

TEST(ManifestCheck, AWordThatIsNoneOfItsFieldsIsRefused) {
  EXPECT_THAT(SaidOf(Policy({{"action", "REFUSE"}})).refusal, HasSubstr("spec.action: Unsupported value: \"REFUSE\""));
}

TEST(ManifestCheck, AValueOutOfItsBoundsIsRefused) {
  EXPECT_THAT(
      SaidOf(Web(json::array({{{"port", 0}}}))).refusal,
      HasSubstr("mesh.yaml:7: Service \"web\" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 "
                "and 65535, inclusive"));
}

// kubectl's words, and what was meant.
TEST(ManifestCheck, AKindThatItsGroupDoesNotHaveIsRefused) {
  const auto refusal = [](const char* api_version, const char* kind) {
    return SaidOf({{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", "a"}, {"namespace", "b"}}}})
        .refusal;
  };
  EXPECT_EQ(refusal("v1", "Servce"),
            "mesh.yaml:7: no matches for kind \"Servce\" in version \"v1\": did you mean 'Service'?");
  EXPECT_EQ(refusal("networking.istio.io/v1beta1", "virtualservice"),
            "mesh.yaml:7: no matches for kind \"virtualservice\" in version \"networking.istio.io/v1beta1\": did you "
            "mean 'VirtualService'?");
  EXPECT_EQ(refusal("gateway.networking.k8s.io/v1", "HttpRoute"),
            "mesh.yaml:7: no matches for kind \"HttpRoute\" in version \"gateway.networking.k8s.io/v1\": did you mean "
            "'HTTPRoute'?");
  EXPECT_EQ(refusal("apps/v1", "Service"),
            "mesh.yaml:7: no matches for kind \"Service\" in version \"apps/v1\": Service is of v1");
  EXPECT_EQ(refusal("v1", "Xyzzy"), "mesh.yaml:7: no matches for kind \"Xyzzy\" in version \"v1\"");
}

TEST(ManifestCheck, AVersionThatNothingServesIsRefused) {
  const auto refusal = [](const char* api_version, const char* kind) {
    return SaidOf({{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", "a"}, {"namespace", "b"}}}})
        .refusal;
  };
  EXPECT_EQ(refusal("policy/v1beta1", "PodDisruptionBudget"),
            "mesh.yaml:7: no matches for kind \"PodDisruptionBudget\" in version \"policy/v1beta1\": policy/v1 is "
            "served");
  EXPECT_EQ(refusal("extensions/v1beta1", "Ingress"),
            "mesh.yaml:7: no matches for kind \"Ingress\" in version \"extensions/v1beta1\": Kubernetes no longer "
            "serves that group, since 1.22; Ingress is of networking.k8s.io/v1");
  EXPECT_THAT(refusal("policy/v1beta1", "PodSecurityPolicy"), HasSubstr("since 1.25"));
  EXPECT_THAT(refusal("networking.istio.io/v1beta7", "VirtualService"),
              HasSubstr("networking.istio.io/v1 and networking.istio.io/v1alpha3 and networking.istio.io/v1beta1 are "
                        "served"));
}

TEST(ManifestCheck, KindsThatNothingModelsAreNoMistake) {
  for (const auto& [api_version, kind] : {std::pair{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"},
                                          {"resource.k8s.io/v1beta1", "ResourceClaim"},
                                          {"gateway.networking.k8s.io/v1alpha2", "TCPRoute"},
                                          {"flowcontrol.apiserver.k8s.io/v1", "FlowSchema"},
                                          {"storage.k8s.io/v1", "StorageClass"},
                                          {"example.k8s.io/v1", "Servce"}}) {
    EXPECT_EQ(SaidOf({{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", "a"}}}}).refusal, "") << kind;
  }
}

TEST(ManifestCheck, OfAKindThatNobodyKnowsNothingIsSaid) {
  const Said said = SaidOf({{"apiVersion", "example.org/v1"},
                            {"kind", "Thing"},
                            {"metadata", {{"name", "a"}, {"namespace", "b"}}},
                            {"spec", {{"any", "thing"}}}});
  EXPECT_EQ(said.refusal, "");
  EXPECT_THAT(said.notes, IsEmpty());
}

TEST(ManifestCheck, WhatOnlyIstiodCannotReadIsNoted) {
  json rule = {{"apiVersion", "networking.istio.io/v1beta1"},
               {"kind", "VirtualService"},
               {"metadata", {{"name", "web"}, {"namespace", "sample"}}},
               {"spec", {{"hosts", {"web"}}, {"http", json::array({{{"timeout", "soon"}}})}}}};
  EXPECT_THAT(SaidOf(rule).notes,
              ElementsAre(testing::AllOf(HasSubstr("mesh.yaml:7: VirtualService \"web\": istiod cannot read"),
                                         HasSubstr("timeout"))));
  rule["spec"]["http"][0]["timeout"] = "5s";
  EXPECT_THAT(SaidOf(rule).notes, IsEmpty());
}

TEST(ManifestCheck, AnEnvoyFiltersValueOfNoTypeIsNoted) {
  const json value = {{"name", "lua"}, {"typed_config", {{"@type", "type.googleapis.com/envoy.extensions.Nothing"}}}};
  const json patch = {{"applyTo", "HTTP_FILTER"}, {"patch", {{"operation", "INSERT_FIRST"}, {"value", value}}}};
  const Said said = SaidOf({{"apiVersion", "networking.istio.io/v1alpha3"},
                            {"kind", "EnvoyFilter"},
                            {"metadata", {{"name", "lua"}, {"namespace", "sample"}}},
                            {"spec", {{"configPatches", json::array({patch})}}}});
  EXPECT_EQ(said.refusal, "");
  EXPECT_THAT(said.notes, ElementsAre(testing::AllOf(
                              HasSubstr("EnvoyFilter \"lua\": istiod cannot read spec.configPatches[0].patch.value"),
                              HasSubstr("envoy.extensions.Nothing"))));
}

TEST(ManifestCheck, AWasmPluginsUrlThatIsNoneIsNoted) {
  const Said said = SaidOf({{"apiVersion", "extensions.istio.io/v1alpha1"},
                            {"kind", "WasmPlugin"},
                            {"metadata", {{"name", "tokens"}, {"namespace", "sample"}}},
                            {"spec", {{"url", "10.0.0.1:5000/tokens"}}}});
  EXPECT_EQ(said.refusal, "");
  EXPECT_THAT(said.notes,
              ElementsAre(HasSubstr("WasmPlugin \"tokens\": istiod cannot read spec.url: '10.0.0.1:5000/tokens'")));
}

// A run that fails in its last step has taken all the time of those before it.
TEST(ManifestCheck, AStepsManifestIsLookedAtBeforeTheStart) {
  Scenario scenario;
  scenario.file = "story.yaml";
  Step step;
  Action apply;
  apply.kind = "apply";
  apply.line = 12;
  apply.arguments = {
      {"cluster", "cluster1"},
      {"objects", json::array({Policy({{"ruels", json::array()}}), Web(json::array({{{"port", "80"}}}))})}};
  step.actions.push_back(apply);
  scenario.steps.push_back(step);
  std::vector<std::string> notes;
  EXPECT_THAT(Message(CheckSteps(scenario, &notes)),
              HasSubstr("story.yaml:12: Service \"web\": json: cannot unmarshal"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("story.yaml:12: AuthorizationPolicy \"deny\": unknown field spec.ruels")));
  EXPECT_THAT(Message(MakeStart(scenario).status()), HasSubstr("story.yaml:12: Service \"web\""));
}

TEST(ManifestCheck, ALabelThatSaysAnotherNetworkThanAScenarioThatSaysNoneIsNoted) {
  const auto notes_of = [](const std::string& network) {
    const absl::StatusOr<Scenario> scenario = ParseScenario(
        "story.yaml", "clusters: [{name: east, " + network + R"(manifests: [{objects: [{apiVersion: v1, kind: Namespace,
          metadata: {name: istio-system, labels: {topology.istio.io/network: vpc-7}}}]}]}])");
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    return scenario.ok() ? MakeStart(*scenario)->notes : std::vector<std::string>{};
  };
  EXPECT_THAT(notes_of(""), ElementsAre(HasSubstr("east: its manifests label istio-system with network vpc-7, and the "
                                                  "scenario attaches its pods to network1, as it names none; say "
                                                  "`network: vpc-7`")));
  EXPECT_THAT(notes_of("network: vpc-7, "), IsEmpty());
  EXPECT_THAT(notes_of("network: vpc-8, "), IsEmpty());  // said, and may be the incident
}

}  // namespace
}  // namespace wavetank::scenario
