// Rules of Jobs, CronJobs, budgets, Ingresses, LimitRanges, quotas and probes, in kube-apiserver's words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fakes/kube/validation/defaults.h"
#include "fakes/kube/validation/validation.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string Refusal(const std::string& api_version, const std::string& kind, json spec) {
  json body = {{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", "a"}, {"namespace", "default"}}}};
  body["spec"] = std::move(spec);
  SetDefaults(body);
  const absl::Status status = Validate(body, nullptr);
  return std::string(status.message());
}

json Template(const std::string& restart, const json& more = json::object()) {
  json container = {{"name", "c"}, {"image", "x"}};
  container.update(more);
  return {{"metadata", {{"labels", {{"app", "a"}}}}},
          {"spec", {{"restartPolicy", restart}, {"containers", json::array({container})}}}};
}

TEST(BatchRulesTest, AJobsPodsEnd) {
  EXPECT_EQ(Refusal("batch/v1", "Job", {{"template", Template("Never")}}), "");
  EXPECT_THAT(Refusal("batch/v1", "Job", {{"template", Template("Always")}}),
              HasSubstr("spec.template.spec.restartPolicy: Unsupported value: \"Always\": supported values: "
                        "\"OnFailure\", \"Never\""));
  EXPECT_THAT(Refusal("batch/v1", "Job", {{"parallelism", -1}, {"template", Template("Never")}}),
              HasSubstr("spec.parallelism: Invalid value: -1: must be greater than or equal to 0"));
  EXPECT_THAT(Refusal("batch/v1", "Job", {{"parallelism", 2'147'483'647}, {"template", Template("Never")}}),
              HasSubstr("a simulated workload has at most 20000 replicas"));
}

TEST(BatchRulesTest, ACronJobHasASchedule) {
  const json job = {{"spec", {{"template", Template("Never")}}}};
  EXPECT_EQ(Refusal("batch/v1", "CronJob", {{"schedule", "*/5 * * * *"}, {"jobTemplate", job}}), "");
  EXPECT_THAT(Refusal("batch/v1", "CronJob", {{"schedule", "often"}, {"jobTemplate", job}}),
              HasSubstr("spec.schedule: Invalid value: \"often\": expected exactly 5 fields, found 1: [often]"));
  EXPECT_THAT(
      Refusal("batch/v1", "CronJob", {{"schedule", "@daily"}, {"concurrencyPolicy", "Maybe"}, {"jobTemplate", job}}),
      HasSubstr("spec.concurrencyPolicy: Unsupported value: \"Maybe\""));
}

json Affine(const json& affinity) {
  return {{"affinity", affinity}, {"containers", json::array({{{"name", "c"}, {"image", "x"}}})}};
}

TEST(PodRulesTest, NodesAreComparedByOneNumberAndPodsByNone) {
  const auto nodes = [](const json& expression) {
    return Affine({{"nodeAffinity",
                    {{"requiredDuringSchedulingIgnoredDuringExecution",
                      {{"nodeSelectorTerms", json::array({{{"matchExpressions", json::array({expression})}}})}}}}}});
  };
  const std::string at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  EXPECT_EQ(Refusal("v1", "Pod", nodes({{"key", "cores"}, {"operator", "Gt"}, {"values", {"8"}}})), "");
  EXPECT_THAT(Refusal("v1", "Pod", nodes({{"key", "cores"}, {"operator", "Lt"}, {"values", {"8", "9"}}})),
              HasSubstr(at + "[0].matchExpressions[0].values: Required value: must be specified single value when "
                             "`operator` is 'Lt' or 'Gt'"));
  EXPECT_THAT(Refusal("v1", "Pod", nodes({{"key", "cores"}, {"operator", "Near"}})),
              HasSubstr("matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator"));
  EXPECT_THAT(Refusal("v1", "Pod",
                      Affine({{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", json::object()}}}})),
              HasSubstr(at + ": Required value: must have at least one node selector term"));
  const json pods = {{"matchExpressions", {{{"key", "app"}, {"operator", "Gt"}, {"values", {"1"}}}}}};
  EXPECT_THAT(Refusal("v1", "Pod",
                      Affine({{"podAntiAffinity",
                               {{"requiredDuringSchedulingIgnoredDuringExecution",
                                 json::array({{{"topologyKey", "zone"}, {"labelSelector", pods}}})}}}})),
              HasSubstr("[0].labelSelector.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector "
                        "operator"));
  EXPECT_THAT(Refusal("apps/v1", "Deployment", {{"selector", pods}, {"template", Template("Always")}}),
              HasSubstr("spec.selector.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector "
                        "operator"));
}

// What could never be run would be asked for again and again, or silently cut.
TEST(BatchRulesTest, NobodyAsksForMoreReplicasThanAWorkloadMayHave) {
  const auto autoscaler = [](int64_t least) {
    return Refusal("autoscaling/v2", "HorizontalPodAutoscaler",
                   {{"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "a"}}},
                    {"minReplicas", least},
                    {"maxReplicas", 1'000'000'000}});
  };
  EXPECT_EQ(autoscaler(20'000), "");
  EXPECT_THAT(autoscaler(20'001),
              HasSubstr("spec.minReplicas: Invalid value: 20001: a simulated workload has at most"));
  const json selects = {{"matchLabels", {{"app", "a"}}}};
  EXPECT_EQ(
      Refusal("apps/v1", "ReplicaSet", {{"replicas", 20'000}, {"selector", selects}, {"template", Template("Always")}}),
      "");
  EXPECT_THAT(
      Refusal("apps/v1", "ReplicaSet", {{"replicas", 20'001}, {"selector", selects}, {"template", Template("Always")}}),
      HasSubstr("spec.replicas: Invalid value: 20001"));
}

TEST(BatchRulesTest, AHistoryOfReplicaSetsIsNotNegative) {
  const auto of = [](const std::string& kind, int64_t limit) {
    return Refusal("apps/v1", kind,
                   {{"revisionHistoryLimit", limit},
                    {"selector", {{"matchLabels", {{"app", "a"}}}}},
                    {"template", Template("Always")}});
  };
  for (const char* kind : {"Deployment", "DaemonSet"}) {
    EXPECT_EQ(of(kind, 0), "") << kind;
    EXPECT_THAT(of(kind, -5), HasSubstr("spec.revisionHistoryLimit: Invalid value: -5: must be greater than or equal"))
        << kind;
  }
}

TEST(PolicyRulesTest, AnAutoscalersBoundsAreInOrder) {
  const auto refusal = [](const json& bounds) {
    json spec = {{"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "a"}}}};
    spec.update(bounds);
    return Refusal("autoscaling/v2", "HorizontalPodAutoscaler", spec);
  };
  EXPECT_EQ(refusal({{"minReplicas", 3}, {"maxReplicas", 3}}), "");
  EXPECT_THAT(refusal({{"minReplicas", 3}, {"maxReplicas", 1}}),
              HasSubstr("spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`"));
  EXPECT_THAT(refusal({{"minReplicas", 0}, {"maxReplicas", 1}}),
              HasSubstr("spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"));
  EXPECT_THAT(refusal(json::object()), HasSubstr("spec.maxReplicas: Invalid value: 0: must be greater than 0"));
}

TEST(PolicyRulesTest, ANetworkPolicysPeersAndPortsCanBeRead) {
  const auto refusal = [](const json& rule, const json& more = json::object()) {
    json spec = {{"podSelector", json::object()}, {"ingress", json::array({rule})}};
    spec.update(more);
    return Refusal("networking.k8s.io/v1", "NetworkPolicy", spec);
  };
  const auto from = [](const json& peer) { return json{{"from", json::array({peer})}}; };
  const auto port = [](const json& each) { return json{{"ports", json::array({each})}}; };
  const json range = {{"cidr", "10.1.0.0/16"}, {"except", {"10.1.2.0/24"}}};
  EXPECT_EQ(refusal(from({{"ipBlock", range}})), "");
  EXPECT_EQ(refusal(port({{"port", 80}, {"endPort", 90}})), "");
  EXPECT_EQ(refusal(json::object()), "");
  EXPECT_THAT(refusal(from(json::object())), HasSubstr("spec.ingress[0].from[0]: Required value: must specify a peer"));
  EXPECT_THAT(refusal(from({{"ipBlock", range}, {"podSelector", json::object()}})),
              HasSubstr("may not specify both ipBlock and another peer"));
  EXPECT_THAT(refusal(from({{"ipBlock", {{"cidr", "10.1.0.0"}}}})),
              HasSubstr("spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"10.1.0.0\": not a valid CIDR"));
  EXPECT_THAT(refusal(from({{"ipBlock", {{"cidr", "10.1.0.0/16"}, {"except", {"10.2.0.0/24"}}}}})),
              HasSubstr("except[0]: Invalid value: \"10.2.0.0/24\": must be a strict subset of `cidr`"));
  EXPECT_THAT(
      refusal(port({{"port", 80}, {"endPort", 70}})),
      HasSubstr("spec.ingress[0].ports[0].endPort: Invalid value: 70: must be greater than or equal to `port`"));
  EXPECT_THAT(refusal(port({{"port", "http"}, {"endPort", 70}})), HasSubstr("when `port` is non-numeric"));
  EXPECT_THAT(refusal(port({{"port", 80}, {"protocol", "tcp"}})), HasSubstr("Unsupported value: \"tcp\""));
  EXPECT_THAT(refusal(json::object(), {{"policyTypes", {"ingress"}}}),
              HasSubstr("spec.policyTypes[0]: Unsupported value: \"ingress\""));
}

TEST(PolicyRulesTest, ABudgetHasOneBound) {
  EXPECT_EQ(Refusal("policy/v1", "PodDisruptionBudget", {{"minAvailable", "50%"}}), "");
  EXPECT_THAT(Refusal("policy/v1", "PodDisruptionBudget", {{"minAvailable", 1}, {"maxUnavailable", 1}}),
              HasSubstr("minAvailable and maxUnavailable cannot be both set"));
  EXPECT_THAT(Refusal("policy/v1", "PodDisruptionBudget", {{"minAvailable", "150%"}}),
              HasSubstr("must not be greater than 100%"));
}

TEST(PolicyRulesTest, AnIngressLeadsSomewhere) {
  const json service = {{"service", {{"name", "web"}, {"port", {{"number", 80}}}}}};
  EXPECT_EQ(Refusal("networking.k8s.io/v1", "Ingress", {{"defaultBackend", service}}), "");
  EXPECT_THAT(Refusal("networking.k8s.io/v1", "Ingress", json::object()),
              HasSubstr("either `defaultBackend` or `rules` must be specified"));
  const json path = {{"path", "web"}, {"pathType", "Prefix"}, {"backend", service}};
  EXPECT_THAT(Refusal("networking.k8s.io/v1", "Ingress",
                      {{"rules", json::array({{{"http", {{"paths", json::array({path})}}}}})}}),
              HasSubstr("spec.rules[0].http.paths[0].path: Invalid value: \"web\": must be an absolute path"));
}

TEST(PolicyRulesTest, AMaximumOfContainersIsTheirLimitUnlessOneIsSaid) {
  json body = {{"apiVersion", "v1"}, {"kind", "LimitRange"}, {"metadata", {{"name", "a"}, {"namespace", "default"}}}};
  body["spec"]["limits"] = json::array({{{"type", "Container"}, {"max", {{"cpu", "2"}}}, {"min", {{"memory", "1Mi"}}}},
                                        {{"type", "Pod"}, {"max", {{"cpu", "4"}}}}});
  SetDefaults(body);
  const json& limits = body["spec"]["limits"];
  EXPECT_EQ(limits[0]["default"], json({{"cpu", "2"}}));
  EXPECT_EQ(limits[0]["defaultRequest"], json({{"cpu", "2"}, {"memory", "1Mi"}}));
  EXPECT_FALSE(limits[1].contains("default"));
}

TEST(PolicyRulesTest, ALimitRangeIsInOrder) {
  const json limit = {{"type", "Container"}, {"min", {{"cpu", "2"}}}, {"max", {{"cpu", "1"}}}};
  EXPECT_THAT(Refusal("v1", "LimitRange", {{"limits", json::array({limit})}}),
              HasSubstr("spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"));
}

TEST(PolicyRulesTest, AQuotaIsNotBelowZero) {
  EXPECT_THAT(Refusal("v1", "ResourceQuota", {{"hard", {{"pods", "-1"}}}}),
              HasSubstr("spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0"));
}

TEST(PolicyRulesTest, AProbeHasOneHandler) {
  const auto refusal = [](const json& probe) {
    return Refusal("batch/v1", "Job", {{"template", Template("Never", {{"livenessProbe", probe}})}});
  };
  EXPECT_EQ(refusal({{"tcpSocket", {{"port", 80}}}}), "");
  EXPECT_THAT(refusal({{"periodSeconds", 3}}), HasSubstr("livenessProbe: Required value: must specify a handler type"));
  EXPECT_THAT(refusal({{"tcpSocket", {{"port", 80}}}, {"exec", {{"command", {"a"}}}}}),
              HasSubstr("may not specify more than 1 handler type"));
}

}  // namespace
}  // namespace wavetank::fakekube
