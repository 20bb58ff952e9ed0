#include "scenarios/mesh/unheeded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::scenario {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unheeded, KindsThatNothingActsUpon) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "scheduling.k8s.io/v1"}, {"kind", "PriorityClass"}}),
              ElementsAre("PriorityClass (scheduling.k8s.io) is stored here, and has no effect"));
  EXPECT_THAT(UnheededIn({{"apiVersion", "networking.k8s.io/v1"}, {"kind", "NetworkPolicy"}}), IsEmpty());
}

TEST(Unheeded, CustomKindsWhosePodsSomebodyElseRuns) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "argoproj.io/v1alpha1"},
                          {"kind", "Rollout"},
                          {"spec", {{"template", {{"spec", {{"containers", {{{"name", "c"}}}}}}}}}}}),
              ElementsAre("Rollout (argoproj.io) is stored here, and has no effect"));
  EXPECT_THAT(UnheededIn({{"apiVersion", "flagger.app/v1beta1"}, {"kind", "Canary"}}),
              ElementsAre("Canary (flagger.app) is stored here, and has no effect"));
  EXPECT_THAT(UnheededIn({{"apiVersion", "monitoring.coreos.com/v1"}, {"kind", "ServiceMonitor"}}), IsEmpty());
  EXPECT_THAT(UnheededIn({{"apiVersion", "cert-manager.io/v1"}, {"kind", "Certificate"}}), IsEmpty());
}

TEST(Unheeded, WhatWebhooksOfOthersWouldChangeOfPods) {
  const auto webhook = [](const char* name, const char* resource) {
    return json{{"apiVersion", "admissionregistration.k8s.io/v1"},
                {"kind", "MutatingWebhookConfiguration"},
                {"metadata", {{"name", "guard"}}},
                {"webhooks",
                 {{{"name", name},
                   {"rules",
                    {{{"operations", {"CREATE"}},
                      {"apiGroups", {""}},
                      {"apiVersions", {"v1"}},
                      {"resources", {resource}}}}}}}}};
  };
  EXPECT_THAT(
      UnheededIn(webhook("pods.example.com", "pods")),
      ElementsAre("MutatingWebhookConfiguration guard: what webhook pods.example.com would change of pods has no "
                  "effect here"));
  EXPECT_THAT(UnheededIn(webhook("pods.example.com", "services")), IsEmpty());
  EXPECT_THAT(UnheededIn(webhook("namespace.sidecar-injector.istio.io", "pods")), IsEmpty());
}

TEST(Unheeded, ArgumentsOfIstioCsrThatDoNothingHere) {
  const json container = {{"name", "csr"},
                          {"image", "quay.io/jetstack/cert-manager-istio-csr:v0.7.0"},
                          {"readinessProbe", {{"httpGet", {{"port", 6060}}}}},
                          {"args", {"--configmap-namespace-selector=mesh=on", "--trust-domain=cluster.local"}}};
  EXPECT_THAT(UnheededIn({{"apiVersion", "v1"},
                          {"kind", "Pod"},
                          {"metadata", {{"name", "csr"}, {"namespace", "cert-manager"}}},
                          {"spec", {{"containers", json::array({container})}}}}),
              ElementsAre("Pod cert-manager/csr: --configmap-namespace-selector has no effect here"));
}

TEST(Unheeded, WordsThatAreNoFieldsOfMeshConfigAreToldWithTheNearest) {
  EXPECT_THAT(
      UnheededIn({{"apiVersion", "v1"},
                  {"kind", "ConfigMap"},
                  {"metadata", {{"name", "istio-canary"}, {"namespace", "istio-system"}}},
                  {"data", {{"mesh", "enableAutoMtls: false\naccessLogFil: /dev/stdout\n"}}}}),
      ElementsAre("ConfigMap istio-system/istio-canary: mesh: accessLogFil: MeshConfig has no such field, and istiod "
                  "reads on without it; did you mean 'accessLogFile'?"));
}

TEST(Unheeded, WordsThatAreNoFieldsOfAPodsProxyConfigAreToldToo) {
  const json pod = {{"metadata", {{"annotations", {{"proxy.istio.io/config", "concurency: 2\ndrainDuration: 5s\n"}}}}}};
  EXPECT_THAT(
      UnheededIn({{"apiVersion", "apps/v1"},
                  {"kind", "Deployment"},
                  {"metadata", {{"name", "sleep"}, {"namespace", "sample"}}},
                  {"spec", {{"template", {{"metadata", pod["metadata"]}, {"spec", json::object()}}}}}}),
      ElementsAre("Deployment sample/sleep: annotation proxy.istio.io/config: concurency: ProxyConfig has no such "
                  "field, and istiod reads on without it; did you mean 'concurrency'?"));
}

TEST(Unheeded, AnInjectorThatCannotBeReadIsToldWithItsPlace) {
  const auto injector = [](const char* sidecar) {
    return UnheededIn(
        {{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata", {{"name", "istio-sidecar-injector"}, {"namespace", "istio-system"}}},
         {"data",
          {{"values", "{}"}, {"config", std::string("policy: enabled\ntemplates:\n  sidecar: '") + sidecar + "'\n"}}}});
  };
  EXPECT_THAT(injector("metadata: {}"), IsEmpty());
  EXPECT_THAT(injector("{{ lasagne }}"),
              ElementsAre(::testing::AllOf(::testing::HasSubstr("templates.sidecar"),
                                           ::testing::HasSubstr("function \"lasagne\" not defined"),
                                           ::testing::HasSubstr("has no effect here"))));
}

TEST(Unheeded, OfAnAutoscalerItsMetrics) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "autoscaling/v2"},
                          {"kind", "HorizontalPodAutoscaler"},
                          {"spec", {{"minReplicas", 2}, {"metrics", {{{"type", "Resource"}}}}}}}),
              ElementsAre("HorizontalPodAutoscaler: spec.metrics has no effect here"));
}

TEST(Unheeded, GatewaysOfAmbientsClassesAreNamed) {
  const auto of_class = [](const char* name) {
    return UnheededIn({{"apiVersion", "gateway.networking.k8s.io/v1"},
                       {"kind", "Gateway"},
                       {"metadata", {{"name", "w"}, {"namespace", "web"}}},
                       {"spec", {{"gatewayClassName", name}}}});
  };
  EXPECT_THAT(of_class("istio"), IsEmpty());
  EXPECT_THAT(of_class("istio-waypoint"),
              ElementsAre("Gateway web/w: class istio-waypoint is of ambient mode, and has no effect here"));
}

TEST(Unheeded, NamespacesOfAmbientModeAreNamed) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "v1"},
                          {"kind", "Namespace"},
                          {"metadata", {{"name", "web"}, {"labels", {{"istio.io/dataplane-mode", "ambient"}}}}}}),
              ElementsAre("Namespace web: its pods are in no mesh without a sidecar: label "
                          "istio.io/dataplane-mode=ambient has no effect here"));
}

TEST(Unheeded, FieldsOfRoutesThatNobodyReads) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "gateway.networking.k8s.io/v1"},
                          {"kind", "HTTPRoute"},
                          {"metadata", {{"name", "shop"}, {"namespace", "web"}}},
                          {"spec", {{"rules", json::array({{{"retry", {{"backoff", "1s"}}}}})}}}}),
              ElementsAre("HTTPRoute web/shop: retry.backoff has no effect here"));
}

TEST(Unheeded, CertificatesOfConfigMapsThatABackendTlsPolicyNames) {
  const auto of = [](json validation) {
    return UnheededIn({{"apiVersion", "gateway.networking.k8s.io/v1"},
                       {"kind", "BackendTLSPolicy"},
                       {"metadata", {{"name", "tls"}, {"namespace", "web"}}},
                       {"spec", {{"validation", std::move(validation)}}}});
  };
  EXPECT_THAT(of({{"hostname", "a.example"}, {"wellKnownCACertificates", "System"}}), IsEmpty());
  EXPECT_THAT(
      of({{"caCertificateRefs", json::array({{{"kind", "ConfigMap"}, {"name", "ca"}}})}}),
      ElementsAre("BackendTLSPolicy web/tls: certificates of ConfigMap ca are served to no simulated proxy here: "
                  "clusters that take them stay warming"));
}

TEST(Unheeded, FieldsOfServicesUnlessTheySayWhatIsSoAnyway) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "v1"}, {"kind", "Service"}, {"spec", {{"sessionAffinity", "None"}}}}),
              IsEmpty());
  EXPECT_THAT(UnheededIn({{"apiVersion", "v1"}, {"kind", "Service"}, {"spec", {{"sessionAffinity", "ClientIP"}}}}),
              ElementsAre("Service: spec.sessionAffinity has no effect here"));
}

TEST(Unheeded, FieldsOfPodsAndTemplates) {
  const json spec = {{"dnsPolicy", "None"},
                     {"containers", json::array({{{"name", "web"}, {"livenessProbe", {{"a", 1}}}}})}};
  EXPECT_THAT(
      UnheededIn({{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"spec", {{"template", {{"spec", spec}}}}}}),
      ElementsAre("Deployment: spec.template.spec.dnsPolicy has no effect here",
                  "Deployment: spec.template.spec.containers[].livenessProbe has no effect here"));
}

TEST(Unheeded, VariablesOfIstiod) {
  const json pod = {
      {"metadata", {{"labels", {{"app", "istiod"}}}}},
      {"spec",
       {{"containers",
         json::array({{{"name", "discovery"},
                       {"readinessProbe", {{"a", 1}}},
                       {"env", json::array({{{"name", "PILOT_ENABLE_REDIS_FILTER"}, {"value", "true"}}})}}})}}}};
  EXPECT_THAT(
      UnheededIn({{"apiVersion", "apps/v1"},
                  {"kind", "Deployment"},
                  {"metadata", {{"name", "istiod"}, {"namespace", "istio-system"}}},
                  {"spec", {{"template", pod}}}}),
      ElementsAre("Deployment istio-system/istiod: variable PILOT_ENABLE_REDIS_FILTER=true has no effect here"));
}

TEST(Unheeded, AResolutionOfLaterReleasesIsNoted) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "networking.istio.io/v1"},
                          {"kind", "ServiceEntry"},
                          {"spec", {{"hosts", {"*.a.example"}}, {"resolution", "DYNAMIC_DNS"}}}}),
              testing::ElementsAre(testing::HasSubstr("of effect with profiles of releases that read it")));
}

}  // namespace
}  // namespace wavetank::scenario
