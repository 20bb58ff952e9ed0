// Istio's own injection templates, interpreted, make the same pods as those that are built in.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/json_text.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/json_access.h"
#include "core/kube/yaml.h"
#include "gtest/gtest.h"
#include "tests/left_out.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// `istio-control/istio-discovery/files` of Istio 1.18.2's charts.
std::filesystem::path TemplateFiles() {
  const char* const charts = std::getenv("WAVETANK_ISTIO_CHARTS");
  return charts == nullptr ? std::filesystem::path()
                           : std::filesystem::path(charts) / "istio-control" / "istio-discovery" / "files";
}

json YamlOf(std::string_view text) { return kube::ParseYaml(text, "test").value(); }

std::string FileText(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A webhook with the charts' templates, and the values that `values` says over the default ones.
InjectionWebhook Interpreting(const json& values) {
  json templates;
  for (const auto& [name, file] :
       {std::pair("sidecar", "injection-template.yaml"), std::pair("gateway", "gateway-injection-template.yaml"),
        std::pair("grpc-agent", "grpc-agent.yaml"), std::pair("grpc-simple", "grpc-simple.yaml")}) {
    templates[name] = FileText(TemplateFiles() / file);
  }
  const json config = {{"policy", "enabled"}, {"templates", templates}};
  const auto object =
      kube::Object::FromJson({{"apiVersion", "v1"},
                              {"kind", "ConfigMap"},
                              {"metadata", {{"name", kInjectorConfigMap}, {"namespace", "istio-system"}}},
                              {"data", {{"config", JsonText(config)}, {"values", JsonText(values)}}}});
  auto read = InjectionConfig::FromConfigMap(**object);
  EXPECT_TRUE(read.ok()) << read.status();
  InjectionWebhook webhook;
  if (read.ok()) webhook.SetConfig(*std::move(read));
  return webhook;
}

InjectionWebhook BuiltIn(const json& values) {
  InjectionConfig config = InjectionConfig::Default();
  config.values.merge_patch(values);
  InjectionWebhook webhook;
  webhook.SetConfig(std::move(config));
  return webhook;
}

struct Case {
  const char* name;
  const char* pod;
  const char* values = "{}";
};

constexpr const char* kHead = R"(
apiVersion: v1
kind: Pod
metadata:
  name: echo-v1-5d9f7-abcde
  generateName: echo-v1-5d9f7-
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: echo-v1-5d9f7, uid: u, controller: true}]
)";
constexpr const char* kPlainSpec = R"(
spec:
  serviceAccountName: echo-account
  containers:
  - {name: echo, image: registry/echo, ports: [{containerPort: 5000, protocol: TCP, name: http}, {containerPort: 53, protocol: UDP}]}
)";

const Case kCases[] = {
    {"Plain", "  labels: {app: echo, version: v1, pod-template-hash: 5d9f7}"},
    {"WithoutLabels", "  labels: {pod-template-hash: 5d9f7}"},
    {"Resources", "  annotations: {sidecar.istio.io/proxyCPU: 50m, sidecar.istio.io/proxyMemoryLimit: 1Gi}"},
    {"Ranges",
     "  annotations: {traffic.sidecar.istio.io/excludeOutboundIPRanges: 10.9.0.0/16, "
     "traffic.sidecar.istio.io/includeInboundPorts: '8080,9090', traffic.sidecar.istio.io/excludeInboundPorts: '22', "
     "traffic.sidecar.istio.io/excludeOutboundPorts: '3306'}"},
    {"Tproxy", "  annotations: {sidecar.istio.io/interceptionMode: TPROXY}"},
    {"NoInterception", "  annotations: {sidecar.istio.io/interceptionMode: NONE}"},
    {"StatusPort", "  annotations: {status.sidecar.istio.io/port: '0'}"},
    {"ProxyConfig",
     "  annotations: {proxy.istio.io/config: '{\"holdApplicationUntilProxyStarts\": true, \"concurrency\": 3, "
     "\"proxyMetadata\": {\"ISTIO_META_DNS_CAPTURE\": \"true\"}}'}"},
    {"UserVolumes",
     "  annotations: {sidecar.istio.io/userVolume: '{\"mine\": {\"emptyDir\": {}}}', "
     "sidecar.istio.io/userVolumeMount: '{\"mine\": {\"mountPath\": \"/mine\"}}'}"},
    {"Image", "  annotations: {sidecar.istio.io/proxyImage: registry/other:1}"},
    {"Bootstrap", "  annotations: {sidecar.istio.io/bootstrapOverride: my-bootstrap}"},
    {"Network", "  labels: {app: echo}",
     R"({"global": {"network": "n1", "meshID": "m1", "multiCluster": {"clusterName": "c1"}, "caAddress": "ca.example:15012"}})"},
    {"Cni", "  labels: {app: echo}", R"({"istio_cni": {"enabled": true, "chained": true}})"},
    {"CniUnchained", "  labels: {app: echo}", R"({"istio_cni": {"enabled": true, "chained": false}})"},
    {"PullSecrets", "  labels: {app: echo}",
     R"({"global": {"imagePullSecrets": ["mine"], "imagePullPolicy": "Always"}})"},
    {"FirstParty", "  labels: {app: echo}", R"({"global": {"jwtPolicy": "first-party-jwt", "logAsJson": true}})"},
    {"CoreDump", "  annotations: {sidecar.istio.io/enableCoreDump: 'true'}"},
    {"Privileged", "  labels: {app: echo}", R"({"global": {"proxy": {"privileged": true, "tracer": "lightstep"}}})"},
    {"KubernetesCa", "  labels: {app: echo}",
     R"({"global": {"pilotCertProvider": "kubernetes", "mountMtlsCerts": true}})"},
    {"GrpcAgent", "  annotations: {inject.istio.io/templates: grpc-agent}"},
    {"GrpcSimple", "  annotations: {inject.istio.io/templates: grpc-simple}"},
    {"Gateway", "  labels: {app: gw, istio: eastwestgateway}\n  annotations: {inject.istio.io/templates: gateway}"},
};

class StockTemplates : public ::testing::TestWithParam<Case> {};

TEST_P(StockTemplates, InterpretedTheyMakeThePodsThatTheBuiltInOnesMake) {
  NEEDS_BROUGHT(!TemplateFiles().empty(), "istio-charts",
                "set WAVETANK_ISTIO_CHARTS to Istio 1.18.2's manifests/charts");
  const Case& c = GetParam();
  const json pod = YamlOf(std::string(kHead) + c.pod + kPlainSpec), values = YamlOf(c.values);
  const auto injected = [&](const InjectionWebhook& webhook) {
    const json answer = webhook.Admit(MakeAdmissionReview(pod, "uid-1"), "/inject");
    EXPECT_EQ(answer["response"]["allowed"], true) << answer.dump();
    auto out = ApplyAdmissionResponse(pod, answer);
    return out.ok() ? *out : json(std::string(out.status().message()));
  };
  const json ours = injected(BuiltIn(values)), theirs = injected(Interpreting(values));
  EXPECT_EQ(ours, theirs) << json::diff(ours, theirs).dump(1);
}

INSTANTIATE_TEST_SUITE_P(Pods, StockTemplates, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace wavetank::pilot
