#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/inject/injection_webhook.h"
#include "core/inject/json_access.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/inject/proxy_config.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/manifest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/left_out.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

json Yaml(std::string_view text) {
  auto parsed = kube::ParseYaml(text, "test");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : json();
}

// A pod as the ReplicaSet controller creates it.
json AppPod() {
  return Yaml(R"(
apiVersion: v1
kind: Pod
metadata:
  name: echo-v1-5d9f7-abcde
  generateName: echo-v1-5d9f7-
  namespace: shop
  labels: {app: echo, version: v1, pod-template-hash: 5d9f7}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: echo-v1-5d9f7, uid: u, controller: true}]
spec:
  serviceAccountName: echo-account
  containers:
  - name: echo
    image: registry/echo
    ports: [{containerPort: 5000, protocol: TCP, name: http}]
    readinessProbe: {httpGet: {path: /ok, port: http, scheme: HTTP}, timeoutSeconds: 2}
    livenessProbe: {tcpSocket: {port: 5000}}
)");
}

json GatewayPod() {
  return Yaml(R"(
apiVersion: v1
kind: Pod
metadata:
  name: ew-7c8d-fghij
  generateName: ew-7c8d-
  namespace: istio-system
  annotations: {inject.istio.io/templates: gateway, sidecar.istio.io/inject: "true"}
  labels: {app: ew, istio: eastwestgateway, topology.istio.io/network: netB, sidecar.istio.io/inject: "true",
           pod-template-hash: 7c8d}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: ew-7c8d, uid: u, controller: true}]
spec:
  serviceAccountName: ew-account
  containers:
  - name: istio-proxy
    image: auto
    env:
    - {name: ISTIO_META_REQUESTED_NETWORK_VIEW, value: netB}
    - {name: ISTIO_META_UNPRIVILEGED_POD, value: "true"}
    ports: [{containerPort: 15443, protocol: TCP}, {containerPort: 15090, name: http-envoy-prom, protocol: TCP}]
    resources: {limits: {cpu: 1500m}}
    volumeMounts: [{mountPath: /etc/certs-of-mine, name: mine, readOnly: true}]
  volumes: [{name: mine, secret: {optional: true, secretName: mine}}]
)");
}

json Injected(const InjectionWebhook& webhook, const json& pod, std::string_view path = "/inject",
              NativeSidecar native = NativeSidecar::kUnknown) {
  const json answer = webhook.Admit(MakeAdmissionReview(pod, "uid-1"), path, native);
  auto out = ApplyAdmissionResponse(pod, answer);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : json();
}

InjectionWebhook Webhook(std::string_view cluster = "c1", std::string_view network = "netA") {
  InjectionWebhook webhook;
  webhook.SetConfig(InjectionConfig::Default(cluster, network, "mesh1"));
  return webhook;
}

ProxyBootstrap Bootstrap(json pod, std::string ip = "10.1.0.7") {
  BootstrapOptions options;
  options.pod_ip = std::move(ip);
  auto out = ReadProxyBootstrap(pod, options);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : ProxyBootstrap();
}

std::string EnvOf(const json& pod, std::string_view name) {
  const json* proxy = FindNamed(pod["spec"]["containers"], "istio-proxy");
  if (proxy == nullptr) return "no proxy";
  const json* variable = FindNamed((*proxy)["env"], name);
  return variable == nullptr ? "absent" : Text(*variable, "value");
}

std::vector<std::string> NamesOf(const json& list) {
  std::vector<std::string> out;
  for (const json& item : list) out.push_back(Text(item, "name"));
  return out;
}

// --- who is asked for, and who is injected

struct Labels {
  kube::Labels ns, pod;
};

std::string Selected(const Labels& labels, const WebhookInstallation& installation = {}) {
  auto target = SelectWebhook(MakeMutatingWebhookConfiguration(installation), labels.ns, labels.pod);
  EXPECT_TRUE(target.ok()) << target.status();
  if (!target.ok() || !target->has_value()) return "none";
  return (*target)->webhook.substr(0, (*target)->webhook.find(".sidecar-injector"));
}

TEST(WebhookConfigurationTest, SelectsByNamespaceAndPodLabelsAsInstalled) {
  EXPECT_EQ(Selected({{{"istio-injection", "enabled"}}, {}}), "namespace");
  EXPECT_EQ(Selected({{{"istio-injection", "enabled"}}, {{"sidecar.istio.io/inject", "false"}}}), "none");
  EXPECT_EQ(Selected({{{"istio-injection", "disabled"}}, {{"sidecar.istio.io/inject", "true"}}}), "none");
  EXPECT_EQ(Selected({{}, {}}), "none");
  EXPECT_EQ(Selected({{}, {{"sidecar.istio.io/inject", "true"}}}), "object");
  EXPECT_EQ(Selected({{{"istio.io/rev", "default"}}, {}}), "rev.namespace");
  EXPECT_EQ(Selected({{{"istio.io/rev", "other"}}, {}}), "none");
  EXPECT_EQ(Selected({{}, {{"istio.io/rev", "default"}}}), "rev.object");
  // The older label wins over the revision's.
  EXPECT_EQ(Selected({{{"istio-injection", "enabled"}, {"istio.io/rev", "other"}}, {}}), "namespace");
}

TEST(WebhookConfigurationTest, ANamedRevisionTakesOnlyItsOwn) {
  WebhookInstallation canary;
  canary.revision = "canary";
  EXPECT_EQ(Selected({{{"istio.io/rev", "canary"}}, {}}, canary), "rev.namespace");
  EXPECT_EQ(Selected({{{"istio-injection", "enabled"}}, {}}, canary), "none");
  EXPECT_EQ(Selected({{{"istio-injection", "enabled"}}, {{"istio.io/rev", "canary"}}}, canary), "none");
}

TEST(WebhookConfigurationTest, NamespacesByDefaultLeavesKubernetesOwnAlone) {
  WebhookInstallation all;
  all.enable_namespaces_by_default = true;
  EXPECT_EQ(Selected({{{"kubernetes.io/metadata.name", "shop"}}, {}}, all), "auto");
  EXPECT_EQ(Selected({{{"kubernetes.io/metadata.name", "kube-system"}}, {}}, all), "none");
  EXPECT_EQ(Selected({{{"kubernetes.io/metadata.name", "shop"}}, {{"sidecar.istio.io/inject", "false"}}}, all), "none");
}

// kubernetes: k8s.io/apiserver, pkg/admission/plugin/webhook/predicates/rules.
TEST(WebhookConfigurationTest, AWebhookIsAskedAboutWhatItsRulesName) {
  json configuration = MakeMutatingWebhookConfiguration({});
  const auto selected = [&](const char* field, json value) {
    json changed = configuration;
    for (json& webhook : changed["webhooks"]) webhook["rules"][0][field] = value;
    return SelectWebhook(changed, {{"istio-injection", "enabled"}}, {})->has_value();
  };
  EXPECT_TRUE(selected("operations", {"CREATE", "UPDATE"}));
  EXPECT_TRUE(selected("operations", {"*"}));
  EXPECT_FALSE(selected("operations", {"UPDATE"}));
  EXPECT_TRUE(selected("resources", {"*"}));
  EXPECT_FALSE(selected("resources", {"pod"}));
  EXPECT_FALSE(selected("resources", {"pods/exec"}));
  EXPECT_FALSE(selected("apiGroups", {"core"}));
  EXPECT_FALSE(selected("apiVersions", {"v1beta1"}));
  EXPECT_FALSE(selected("scope", "Cluster"));
  for (json& webhook : configuration["webhooks"]) webhook.erase("rules");
  EXPECT_FALSE(SelectWebhook(configuration, {{"istio-injection", "enabled"}}, {})->has_value());
  EXPECT_TRUE(SelectWebhook(configuration, {{"istio-injection", "enabled"}}, {}, false)->has_value());
}

TEST(WebhookConfigurationTest, TargetNamesServicePathAndPort) {
  WebhookInstallation remote;
  remote.injection_path = "/inject/cluster/c2/net/n2";
  auto target = SelectWebhook(MakeMutatingWebhookConfiguration(remote), {{"istio-injection", "enabled"}}, {});
  ASSERT_TRUE(target.ok() && target->has_value());
  EXPECT_EQ((*target)->service_name, "istiod");
  EXPECT_EQ((*target)->service_namespace, "istio-system");
  EXPECT_EQ((*target)->path, "/inject/cluster/c2/net/n2");
  EXPECT_EQ((*target)->port, 443);
  EXPECT_TRUE((*target)->fail_if_absent);
}

bool Required(json pod, const InjectionConfig& config = InjectionConfig::Default()) {
  return InjectionRequired(config, pod);
}

TEST(InjectionPolicyTest, LabelWinsOverAnnotationAndBothOverPolicy) {
  json pod = AppPod();
  EXPECT_TRUE(Required(pod));
  pod["metadata"]["annotations"]["sidecar.istio.io/inject"] = "false";
  EXPECT_FALSE(Required(pod));
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "Yes";
  EXPECT_TRUE(Required(pod));
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "maybe";
  EXPECT_FALSE(Required(pod));
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "";
  EXPECT_TRUE(Required(pod));
}

TEST(InjectionPolicyTest, HostNetworkAndKubernetesNamespacesAreNeverInjected) {
  json pod = AppPod();
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "true";
  pod["spec"]["hostNetwork"] = true;
  EXPECT_FALSE(Required(pod));
  pod["spec"]["hostNetwork"] = false;
  EXPECT_TRUE(Required(pod));
  pod["metadata"]["namespace"] = "kube-system";
  EXPECT_FALSE(Required(pod));
}

kube::ObjectRef ConfigMap(std::string_view config, std::string_view values) {
  auto out = kube::Object::FromJson({{"apiVersion", "v1"},
                                     {"kind", "ConfigMap"},
                                     {"metadata", {{"name", kInjectorConfigMap}, {"namespace", "istio-system"}}},
                                     {"data", {{"config", config}, {"values", values}}}});
  EXPECT_TRUE(out.ok()) << out.status();
  return *out;
}

TEST(InjectionPolicyTest, SelectorsOfTheConfigMapDecideWhereNobodyElseDoes) {
  auto config = InjectionConfig::FromConfigMap(*ConfigMap(R"(
policy: disabled
alwaysInjectSelector: [{matchLabels: {app: echo}}, {}]
neverInjectSelector: [{matchExpressions: [{key: batch, operator: Exists}]}]
)",
                                                          "{}"));
  ASSERT_TRUE(config.ok()) << config.status();
  json pod = AppPod();
  EXPECT_TRUE(Required(pod, *config));
  pod["metadata"]["labels"]["batch"] = "x";
  EXPECT_FALSE(Required(pod, *config));
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "true";
  EXPECT_TRUE(Required(pod, *config));
  json other = AppPod();
  other["metadata"]["labels"]["app"] = "else";
  EXPECT_FALSE(Required(other, *config)) << "an empty selector selects nobody";
}

TEST(InjectionPolicyTest, AnUnknownPolicyInjectsNobody) {
  auto config = InjectionConfig::FromConfigMap(*ConfigMap("policy: perhaps", "{}"));
  ASSERT_TRUE(config.ok());
  json pod = AppPod();
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "true";
  EXPECT_FALSE(Required(pod, *config));
}

TEST(InjectionConfigTest, MissingKeysAndBrokenTextsAreNamed) {
  auto map = kube::Object::FromJson({{"apiVersion", "v1"},
                                     {"kind", "ConfigMap"},
                                     {"metadata", {{"name", "m"}, {"namespace", "n"}}},
                                     {"data", {{"config", "policy: enabled"}}}});
  EXPECT_THAT(std::string(InjectionConfig::FromConfigMap(**map).status().message()), HasSubstr("values is missing"));
  EXPECT_THAT(std::string(InjectionConfig::FromConfigMap(*ConfigMap("policy: [", "{}")).status().message()),
              HasSubstr("ConfigMap/istio-system/istio-sidecar-injector: config:1"));
  EXPECT_THAT(std::string(InjectionConfig::FromConfigMap(
                              *ConfigMap("neverInjectSelector: [{matchExpressions: [{key: a, operator: Like}]}]", "{}"))
                              .status()
                              .message()),
              HasSubstr("neverInjectSelector[0]"));
}

// --- what is added

TEST(SidecarInjectionTest, AddsTheProxyLastAndTheRulesInitContainer) {
  const json pod = Injected(Webhook(), AppPod());
  EXPECT_THAT(NamesOf(pod["spec"]["containers"]), ElementsAre("echo", "istio-proxy"));
  EXPECT_THAT(NamesOf(pod["spec"]["initContainers"]), ElementsAre("istio-init"));
  EXPECT_EQ(pod["metadata"]["labels"], json({{"app", "echo"},
                                             {"version", "v1"},
                                             {"pod-template-hash", "5d9f7"},
                                             {"security.istio.io/tlsMode", "istio"},
                                             {"service.istio.io/canonical-name", "echo"},
                                             {"service.istio.io/canonical-revision", "v1"},
                                             {"topology.istio.io/network", "netA"}}));
  const json& annotations = pod["metadata"]["annotations"];
  EXPECT_EQ(annotations["istio.io/rev"], "default");
  EXPECT_EQ(annotations["prometheus.io/port"], "15020");
  EXPECT_EQ(annotations["prometheus.io/scrape"], "true");
  EXPECT_EQ(annotations["kubectl.kubernetes.io/default-container"], "echo");
  EXPECT_EQ(annotations["sidecar.istio.io/status"],
            R"({"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket",)"
            R"("credential-socket","workload-certs","istio-envoy","istio-data","istio-podinfo","istio-token",)"
            R"("istiod-ca-cert"],"imagePullSecrets":null,"revision":"default"})");
  const json& proxy = *FindNamed(pod["spec"]["containers"], "istio-proxy");
  EXPECT_EQ(proxy["image"], "docker.io/istio/proxyv2:1.18.2");
  EXPECT_EQ(proxy["args"][1], "sidecar");
  EXPECT_EQ(proxy["securityContext"]["capabilities"]["drop"], json::array({"ALL"}));
  EXPECT_EQ(proxy["ports"],
            json::array({{{"containerPort", 15090}, {"protocol", "TCP"}, {"name", "http-envoy-prom"}}}));
}

TEST(SidecarInjectionTest, EnvironmentSaysWhoTheProxyIs) {
  const json pod = Injected(Webhook(), AppPod());
  EXPECT_EQ(EnvOf(pod, "CA_ADDR"), "istiod.istio-system.svc:15012");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_CLUSTER_ID"), "c1");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_NETWORK"), "netA");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_MESH_ID"), "mesh1");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_WORKLOAD_NAME"), "echo-v1");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_OWNER"), "kubernetes://apis/apps/v1/namespaces/shop/deployments/echo-v1");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_APP_CONTAINERS"), "echo");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_POD_PORTS"),
            "[\n    {\"name\":\"http\",\"containerPort\":5000,\"protocol\":\"TCP\"}\n]");
  EXPECT_EQ(EnvOf(pod, "PROXY_CONFIG"), "{}\n");
}

TEST(SidecarInjectionTest, PathOfTheRequestWinsOverValuesAndThePodsLabelOverBoth) {
  json pod = AppPod();
  const json remote = Injected(Webhook(), pod, "/inject/cluster/c2/net/netB");
  EXPECT_EQ(EnvOf(remote, "ISTIO_META_CLUSTER_ID"), "c2");
  EXPECT_EQ(EnvOf(remote, "ISTIO_META_NETWORK"), "netB");
  EXPECT_EQ(remote["metadata"]["labels"]["topology.istio.io/network"], "netB");
  pod["metadata"]["labels"]["topology.istio.io/network"] = "netC";
  EXPECT_EQ(EnvOf(Injected(Webhook(), pod, "/inject/cluster/c2/net/netB"), "ISTIO_META_NETWORK"), "netC");
}

TEST(SidecarInjectionTest, WithoutAnyNetworkNoneIsNamed) {
  const json pod = Injected(Webhook("", ""), AppPod());
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_CLUSTER_ID"), "Kubernetes");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_NETWORK"), "absent");
  EXPECT_FALSE(pod["metadata"]["labels"].contains("topology.istio.io/network"));
}

TEST(SidecarInjectionTest, ProbesGoToTheAgentWhichKnowsWhereTheyWentBefore) {
  const json pod = Injected(Webhook(), AppPod());
  const json& app = *FindNamed(pod["spec"]["containers"], "echo");
  EXPECT_EQ(app["readinessProbe"]["httpGet"],
            json({{"path", "/app-health/echo/readyz"}, {"port", 15020}, {"scheme", "HTTP"}}));
  EXPECT_EQ(app["livenessProbe"]["httpGet"], json({{"path", "/app-health/echo/livez"}, {"port", 15020}}));
  EXPECT_FALSE(app["livenessProbe"].contains("tcpSocket"));
  const json probers = json::parse(EnvOf(pod, "ISTIO_KUBE_APP_PROBERS"));
  EXPECT_EQ(probers["/app-health/echo/readyz"]["httpGet"]["port"], 5000) << "the named port is resolved";
  EXPECT_EQ(probers["/app-health/echo/readyz"]["timeoutSeconds"], 2);
  EXPECT_EQ(probers["/app-health/echo/livez"]["tcpSocket"]["port"], 5000);

  json own = AppPod();
  own["metadata"]["annotations"]["sidecar.istio.io/rewriteAppHTTPProbers"] = "false";
  EXPECT_EQ(EnvOf(Injected(Webhook(), own), "ISTIO_KUBE_APP_PROBERS"), "absent");
}

TEST(SidecarInjectionTest, ScrapeAnnotationsOfTheApplicationMoveToTheAgent) {
  json pod = AppPod();
  pod["metadata"]["annotations"] = {{"prometheus.io/port", "9000"}, {"prometheus-io/path", "/m"}};
  const json merged = Injected(Webhook(), pod);
  EXPECT_EQ(EnvOf(merged, "ISTIO_PROMETHEUS_ANNOTATIONS"), R"({"scrape":"","path":"/m","port":"9000"})");
  EXPECT_EQ(merged["metadata"]["annotations"]["prometheus.io/port"], "15020");
  EXPECT_FALSE(merged["metadata"]["annotations"].contains("prometheus-io/path"));
  pod["metadata"]["annotations"]["prometheus.io/scrape"] = "false";
  EXPECT_EQ(Injected(Webhook(), pod)["metadata"]["annotations"]["prometheus.io/port"], "9000");
}

TEST(SidecarInjectionTest, ReplicasGetWhatTheFirstGotUntilSomethingIsSet) {
  InjectionWebhook webhook = Webhook();
  json pod = AppPod(), sibling = AppPod();
  sibling["metadata"]["name"] = "echo-v1-5d9f7-fghij";
  const json first = Injected(webhook, pod);
  json expected = first;
  expected["metadata"]["name"] = "echo-v1-5d9f7-fghij";
  EXPECT_EQ(Injected(webhook, sibling), expected);
  EXPECT_EQ(Injected(Webhook(), sibling), expected);
  // Another path, another pod, another configuration.
  EXPECT_EQ(EnvOf(Injected(webhook, sibling, "/inject/net/n2"), "ISTIO_META_NETWORK"), "n2");
  json other = sibling;
  other["metadata"]["labels"]["topology.istio.io/network"] = "n3";
  EXPECT_EQ(EnvOf(Injected(webhook, other), "ISTIO_META_NETWORK"), "n3");
  webhook.SetConfig(InjectionConfig::Default("c1", "n4", "mesh1"));
  EXPECT_EQ(EnvOf(Injected(webhook, sibling), "ISTIO_META_NETWORK"), "n4");
}

TEST(SidecarInjectionTest, PodsOfTheirOwnAreNamedApart) {
  const InjectionWebhook webhook = Webhook();
  for (const char* name : {"one", "two"}) {
    json pod = AppPod();
    for (const char* field : {"ownerReferences", "generateName"}) pod["metadata"].erase(field);
    pod["metadata"]["name"] = name;
    EXPECT_EQ(EnvOf(Injected(webhook, pod), "ISTIO_META_WORKLOAD_NAME"), name);
  }
}

TEST(SidecarInjectionTest, ASecondInjectionChangesNothing) {
  const InjectionWebhook webhook = Webhook();
  for (const json& pod : {AppPod(), GatewayPod()}) {
    json once = Injected(webhook, pod);
    json twice = Injected(webhook, once);
    for (json* injected : {&once, &twice}) {  // variables may change places, as istiod's do
      json& env = FindNamed((*injected)["spec"]["containers"], "istio-proxy")->at("env");
      std::sort(env.begin(), env.end());
    }
    EXPECT_EQ(json::diff(once, twice), json::array());
  }
}

TEST(SidecarInjectionTest, ApplicationsThatWaitStandBehindTheProxy) {
  json pod = AppPod();
  pod["metadata"]["annotations"][std::string(kProxyConfigAnnotation)] =
      "holdApplicationUntilProxyStarts: true\nproxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}\nconcurrency: 3";
  const json held = Injected(Webhook(), pod);
  EXPECT_THAT(NamesOf(held["spec"]["containers"]), ElementsAre("istio-proxy", "echo"));
  EXPECT_EQ(EnvOf(held, "ISTIO_META_DNS_CAPTURE"), "true");
  const ProxyBootstrap proxy = Bootstrap(held);
  EXPECT_TRUE(proxy.hold_application_until_ready);
  EXPECT_EQ(proxy.concurrency, 3);
  EXPECT_EQ(proxy.metadata["DNS_CAPTURE"], "true");
}

TEST(SidecarInjectionTest, WrongAnnotationsAndUnknownTemplatesRefuseThePod) {
  const auto refusal = [](const char* name, const char* value) {
    json pod = AppPod();
    pod["metadata"]["annotations"][name] = value;
    const json answer = Webhook().Admit(MakeAdmissionReview(pod, "u"));
    EXPECT_EQ(answer["response"]["allowed"], false);
    EXPECT_EQ(answer["response"]["uid"], "u");
    return Text(At(answer["response"], "status"), "message");
  };
  EXPECT_THAT(refusal("sidecar.istio.io/interceptionMode", "MAGIC"), HasSubstr("REDIRECT, TPROXY or NONE"));
  EXPECT_THAT(refusal("traffic.sidecar.istio.io/excludeOutboundIPRanges", "10.0.0.0"), HasSubstr("prefixes"));
  EXPECT_THAT(refusal("proxy.istio.io/config", "{"), HasSubstr("proxy.istio.io/config"));
  EXPECT_THAT(refusal("inject.istio.io/templates", "sidecar, lasagne"), HasSubstr("\"lasagne\" not found"));
}

TEST(SidecarInjectionTest, APodThatIsNotForInjectionIsAllowedUnchanged) {
  json pod = AppPod();
  pod["metadata"]["labels"]["sidecar.istio.io/inject"] = "false";
  const json answer = Webhook().Admit(MakeAdmissionReview(pod, "u"));
  EXPECT_EQ(answer["response"], json({{"uid", "u"}, {"allowed", true}}));
}

TEST(SidecarInjectionTest, NonsenseIsRefusedNotObeyed) {
  for (const char* text : {"null", "[]", "{\"request\":7}", "{\"request\":{\"object\":[]}}"}) {
    EXPECT_EQ(Webhook().Admit(json::parse(text))["response"]["allowed"], false) << text;
  }
}

TEST(SidecarInjectionTest, ConfigMapsValuesAndExtraTemplatesApply) {
  auto config = InjectionConfig::FromConfigMap(
      *ConfigMap(R"(
policy: enabled
defaultTemplates: [sidecar, extra]
injectedAnnotations: {team: mesh}
templates:
  extra: |
    spec:
      containers:
      - name: istio-proxy
        env: [{name: ADDED, value: "1"}]
  clever: |
    metadata:
      labels:
        {{- range $index, $container := .Spec.Containers }}
        container-{{ $index }}: {{ $container.Name | quote }}
        {{- end }}
        account: {{ annotation .ObjectMeta `example.test/account` .Spec.ServiceAccountName }}
)",
                 R"({"global":{"hub":"example.test/istio","tag":"1.18.2-distroless","multiCluster":{"clusterName":"c9"},
        "network":"n9","proxy":{"logLevel":"debug"}}})"));
  ASSERT_TRUE(config.ok()) << config.status();
  InjectionWebhook webhook;
  webhook.SetConfig(*config);
  const json pod = Injected(webhook, AppPod());
  EXPECT_EQ(EnvOf(pod, "ADDED"), "1");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_CLUSTER_ID"), "c9");
  EXPECT_EQ(pod["metadata"]["annotations"]["team"], "mesh");
  const json& proxy = *FindNamed(pod["spec"]["containers"], "istio-proxy");
  EXPECT_EQ(proxy["image"], "example.test/istio/proxyv2:1.18.2-distroless");
  EXPECT_THAT(proxy["args"], Contains("--proxyLogLevel=debug"));
  json asks = AppPod();
  asks["metadata"]["annotations"]["inject.istio.io/templates"] = "clever";
  const json clever = Injected(webhook, asks);
  EXPECT_EQ(clever["metadata"]["labels"]["container-0"], "echo");
  EXPECT_EQ(clever["metadata"]["labels"]["account"], "echo-account");
  EXPECT_EQ(FindNamed(clever["spec"]["containers"], "istio-proxy"), nullptr);
}

TEST(SidecarInjectionTest, ATemplateThatCannotBeParsedLeavesTheConfigurationUnread) {
  const auto config = InjectionConfig::FromConfigMap(
      *ConfigMap("policy: enabled\ntemplates: {sidecar: '{{ lasagne }}'}", R"({"global":{}})"));
  EXPECT_THAT(std::string(config.status().message()),
              HasSubstr("templates.sidecar: template: inject:1: function \"lasagne\" not defined"));
}

TEST(SidecarInjectionTest, ATemplateOfAStockNameTakesTheStockOnesPlace) {
  const auto config = InjectionConfig::FromConfigMap(
      *ConfigMap("policy: enabled\ntemplates: {sidecar: 'metadata: {labels: {rev: {{ .Revision | quote }}}}'}",
                 R"({"global":{}})"));
  ASSERT_TRUE(config.ok()) << config.status();
  InjectionWebhook webhook("canary");
  webhook.SetConfig(*config);
  const json pod = Injected(webhook, AppPod());
  EXPECT_EQ(pod["metadata"]["labels"]["rev"], "canary");
  EXPECT_EQ(pod["spec"]["containers"].size(), 1u);
}

// As the charts of 1.19 to 1.24 ask for native sidecars (istio-discovery/files/injection-template.yaml).
TEST(SidecarInjectionTest, TemplatesReadIstiodsEnvironment) {
  const auto label = [](const std::map<std::string, std::string>& environment) {
    const auto config = InjectionConfig::FromConfigMap(
        *ConfigMap("policy: enabled\ntemplates: {sidecar: 'metadata: {labels: {native: "
                   "{{ eq (env \"ENABLE_NATIVE_SIDECARS\" \"false\") \"true\" | quote }}}}'}",
                   R"({"global":{}})"),
        {}, environment);
    EXPECT_TRUE(config.ok()) << config.status();
    InjectionWebhook webhook;
    webhook.SetConfig(*config);
    return Text(Injected(webhook, AppPod())["metadata"]["labels"], "native");
  };
  EXPECT_EQ(label({}), "false");
  EXPECT_EQ(label({{"ENABLE_NATIVE_SIDECARS", ""}}), "false");
  EXPECT_EQ(label({{"ENABLE_NATIVE_SIDECARS", "true"}}), "true");
}

TEST(SidecarInjectionTest, ATemplateThatFailsRefusesThePod) {
  const auto config = InjectionConfig::FromConfigMap(
      *ConfigMap("policy: enabled\ntemplates: {sidecar: '{{ .Values.no.such.value }}'}", R"({"global":{}})"));
  ASSERT_TRUE(config.ok()) << config.status();
  InjectionWebhook webhook;
  webhook.SetConfig(*config);
  EXPECT_THAT(webhook.Admit(MakeAdmissionReview(AppPod(), "u")).dump(), HasSubstr("nil pointer evaluating interface"));
}

TEST(SidecarInjectionTest, ProxyConfigResourcesOverrideByNearness) {
  const auto resource = [](const char* ns, const char* name, json spec, int64_t born) {
    auto object = kube::Object::FromJson({{"apiVersion", "networking.istio.io/v1beta1"},
                                          {"kind", "ProxyConfig"},
                                          {"metadata", {{"name", name}, {"namespace", ns}}},
                                          {"spec", spec}});
    auto copy = std::make_shared<kube::Object>(**object);
    copy->meta.creation_unix_seconds = born;
    return kube::ObjectRef(copy);
  };
  InjectionWebhook webhook = Webhook();
  webhook.SetProxyConfigs(
      {resource("istio-system", "all", {{"concurrency", 1}, {"environmentVariables", {{"A", "mesh"}, {"B", "mesh"}}}},
                1),
       resource("shop", "later", {{"environmentVariables", {{"B", "later"}}}}, 9),
       resource("shop", "first", {{"environmentVariables", {{"B", "shop"}, {"C", "shop"}}}}, 2),
       resource("shop", "echo", {{"selector", {{"matchLabels", {{"app", "echo"}}}}}, {"concurrency", 7}}, 3)});
  const json pod = Injected(webhook, AppPod());
  EXPECT_EQ(EnvOf(pod, "A"), "mesh");
  EXPECT_EQ(EnvOf(pod, "B"), "shop") << "of two for a namespace the older counts";
  EXPECT_EQ(EnvOf(pod, "C"), "shop");
  EXPECT_EQ(Bootstrap(pod).concurrency, 7);
}

// --- gateways

TEST(GrpcInjectionTest, TheAgentTemplateAddsAnAgentWithoutEnvoyAndABootstrapForTheApplication) {
  json pod = AppPod();
  pod["metadata"]["annotations"]["inject.istio.io/templates"] = "grpc-agent";
  const json out = Injected(Webhook(), pod);
  EXPECT_THAT(NamesOf(out["spec"]["containers"]), ElementsAre("echo", "istio-proxy"));
  EXPECT_EQ(EnvOf(out, "DISABLE_ENVOY"), "true");
  EXPECT_EQ(EnvOf(out, "ISTIO_META_GENERATOR"), "grpc");
  EXPECT_EQ(EnvOf(out, "ISTIO_META_INTERCEPTION_MODE"), "absent");
  const json* agent = FindNamed(out["spec"]["containers"], "istio-proxy");
  ASSERT_NE(agent, nullptr);
  EXPECT_EQ((*agent)["readinessProbe"]["httpGet"]["port"], 15020);
  EXPECT_FALSE(agent->contains("securityContext"));
  EXPECT_THAT(NamesOf((*agent)["volumeMounts"]), Contains("istio-xds"));
  EXPECT_EQ((*FindNamed(out["spec"]["containers"][0]["env"], "GRPC_XDS_BOOTSTRAP"))["value"],
            "/etc/istio/proxy/grpc-bootstrap.json");
  EXPECT_THAT(NamesOf(out["spec"]["volumes"]), Contains("istio-xds"));
  EXPECT_THAT(NamesOf(out["spec"]["volumes"]), Not(Contains("istio-envoy")));
  EXPECT_TRUE(out["spec"].value("initContainers", json::array()).empty()) << "nothing is intercepted";
  EXPECT_EQ(Text(out["metadata"]["labels"], "security.istio.io/tlsMode"), "") << "users say so, if they do mTLS";
  EXPECT_EQ(out["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"], "/ok");
  EXPECT_FALSE(HasProxy(out)) << "no Envoy runs there";
}

TEST(GrpcInjectionTest, TheSimpleTemplateAddsABootstrapOnly) {
  json pod = AppPod();
  pod["metadata"]["annotations"]["inject.istio.io/templates"] = "grpc-simple";
  const json out = Injected(Webhook(), pod);
  EXPECT_THAT(NamesOf(out["spec"]["containers"]), ElementsAre("echo"));
  EXPECT_THAT(NamesOf(out["spec"]["initContainers"]), ElementsAre("grpc-bootstrap-init"));
  EXPECT_THAT(out["spec"]["initContainers"][0]["command"][2].get<std::string>(),
              HasSubstr("SERVER_URI=\"dns:///istiod.${ISTIO_NAMESPACE}.svc:15010\""));
  EXPECT_EQ((*FindNamed(out["spec"]["containers"][0]["env"], "GRPC_XDS_BOOTSTRAP"))["value"],
            "/var/lib/grpc/data/bootstrap.json");
  EXPECT_FALSE(HasProxy(out));
}

TEST(GatewayInjectionTest, FillsTheContainerThatStandsThereAndKeepsItsWishes) {
  const json pod = Injected(Webhook("c2", "netX"), GatewayPod());
  ASSERT_THAT(NamesOf(pod["spec"]["containers"]), ElementsAre("istio-proxy"));
  const json& proxy = pod["spec"]["containers"][0];
  EXPECT_EQ(proxy["image"], "docker.io/istio/proxyv2:1.18.2");
  EXPECT_EQ(proxy["args"][1], "router");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_REQUESTED_NETWORK_VIEW"), "netB");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_UNPRIVILEGED_POD"), "true");
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_NETWORK"), "netB") << "the pod's label, not the installation's network";
  EXPECT_EQ(EnvOf(pod, "ISTIO_META_APP_CONTAINERS"), "");
  EXPECT_FALSE(pod["spec"].contains("initContainers"));
  EXPECT_FALSE(pod["metadata"]["labels"].contains("security.istio.io/tlsMode"));
  EXPECT_THAT(NamesOf(proxy["volumeMounts"]), Contains("mine"));
  EXPECT_THAT(NamesOf(proxy["volumeMounts"]), Contains("istio-token"));
  EXPECT_THAT(Text(pod["metadata"]["annotations"], "proxy.istio.io/overrides"), Not(HasSubstr("auto")));
}

TEST(GatewayInjectionTest, ReadsBackAsRouter) {
  const ProxyBootstrap proxy = Bootstrap(Injected(Webhook("c2", "netX"), GatewayPod()), "10.2.0.4");
  EXPECT_EQ(proxy.role, ProxyBootstrap::Role::kRouter);
  EXPECT_EQ(proxy.node_id, "router~10.2.0.4~ew-7c8d-fghij.istio-system~istio-system.svc.cluster.local");
  EXPECT_EQ(proxy.metadata["REQUESTED_NETWORK_VIEW"], "netB");
  EXPECT_EQ(proxy.metadata["NETWORK"], "netB");
  EXPECT_EQ(proxy.metadata["CLUSTER_ID"], "c2");
  EXPECT_EQ(proxy.metadata["UNPRIVILEGED_POD"], "true");
  EXPECT_EQ(proxy.service_account, "ew-account");
  EXPECT_FALSE(proxy.interception.has_value());
  EXPECT_EQ(proxy.concurrency, 2) << "1500m, rounded up";
  EXPECT_EQ(proxy.readiness_port, 15021);
}

// --- reading back

TEST(ProxyBootstrapTest, ReadsEverythingThatAgentAndEnvoyNeed) {
  const ProxyBootstrap proxy = Bootstrap(Injected(Webhook(), AppPod()));
  EXPECT_EQ(proxy.role, ProxyBootstrap::Role::kSidecar);
  EXPECT_EQ(proxy.node_id, "sidecar~10.1.0.7~echo-v1-5d9f7-abcde.shop~shop.svc.cluster.local");
  EXPECT_EQ(proxy.node_cluster, "echo.shop");
  EXPECT_EQ(proxy.discovery_address, "istiod.istio-system.svc:15012");
  EXPECT_EQ(proxy.discovery_san, "istiod.istio-system.svc");
  EXPECT_EQ(proxy.ca_address, "istiod.istio-system.svc:15012");
  EXPECT_EQ(proxy.service_account, "echo-account");
  EXPECT_EQ(proxy.trust_domain, "cluster.local");
  EXPECT_EQ(proxy.token_audience, "istio-ca");
  EXPECT_EQ(proxy.token_expiration_seconds, 43200);
  EXPECT_EQ(proxy.root_cert_config_map, "istio-ca-root-cert");
  EXPECT_EQ(proxy.status_port, 15020);
  EXPECT_EQ(proxy.readiness_port, 15021);
  EXPECT_EQ(proxy.readiness_initial_delay, 1s);
  EXPECT_EQ(proxy.readiness_period, 2s);
  EXPECT_EQ(proxy.readiness_failure_threshold, 30);
  EXPECT_EQ(proxy.concurrency, 2);
  EXPECT_EQ(proxy.drain, 45s);
  const json& meta = proxy.metadata;
  EXPECT_EQ(meta["CLUSTER_ID"], "c1");
  EXPECT_EQ(meta["NETWORK"], "netA");
  EXPECT_EQ(meta["NAMESPACE"], "shop");
  EXPECT_EQ(meta["NAME"], "echo-v1-5d9f7-abcde");
  EXPECT_EQ(meta["SERVICE_ACCOUNT"], "echo-account");
  EXPECT_EQ(meta["WORKLOAD_NAME"], "echo-v1");
  EXPECT_EQ(meta["INTERCEPTION_MODE"], "REDIRECT");
  EXPECT_EQ(meta["ISTIO_VERSION"], "1.18.2");
  EXPECT_EQ(meta["INSTANCE_IPS"], "10.1.0.7");
  EXPECT_EQ(meta["LABELS"]["app"], "echo");
  EXPECT_FALSE(meta["LABELS"].contains("pod-template-hash"));
  EXPECT_EQ(meta["POD_PORTS"], R"([{"name":"http","containerPort":5000,"protocol":"TCP"}])");
}

TEST(ProxyBootstrapTest, InterceptsWhatTheAnnotationsSay) {
  json pod = AppPod();
  pod["metadata"]["annotations"] = {{"traffic.sidecar.istio.io/excludeOutboundPorts", "3306"},
                                    {"traffic.sidecar.istio.io/includeOutboundPorts", "8443"},
                                    {"traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/8,fd00::/8"},
                                    {"traffic.sidecar.istio.io/excludeOutboundIPRanges", "10.9.0.0/16"},
                                    {"traffic.sidecar.istio.io/excludeInboundPorts", "9999"}};
  const ProxyBootstrap proxy = Bootstrap(Injected(Webhook(), pod));
  ASSERT_TRUE(proxy.interception.has_value());
  const Interception& rules = *proxy.interception;
  const auto takes = [&](const char* address) { return rules.TakesOutbound(*SocketAddress::Parse(address)); };
  EXPECT_TRUE(takes("10.1.2.3:80"));
  EXPECT_FALSE(takes("10.1.2.3:3306"));
  EXPECT_FALSE(takes("10.9.2.3:80"));
  EXPECT_FALSE(takes("93.184.216.34:80"));
  EXPECT_TRUE(takes("93.184.216.34:8443"));
  EXPECT_FALSE(takes("[fd00::5]:80")) << "ip6tables has no rules for a pod whose first address is of IPv4";
  EXPECT_FALSE(takes("127.0.0.1:80"));
  EXPECT_TRUE(rules.TakesInbound({IpAddress::V4(10, 1, 0, 5), 5000}));
  for (uint16_t port : {9999, 15020, 15021, 15090, 15008})
    EXPECT_FALSE(rules.TakesInbound({IpAddress::V4(10, 1, 0, 5), port})) << port;
}

// istiod: tools/istio-iptables/pkg/cmd/root.go, getLocalIP; before 1.19 ISTIO_AGENT_DUAL_STACK.
TEST(ProxyBootstrapTest, WithDualStackItInterceptsIpv6AndTellsBothAddresses) {
  json pod = Injected(Webhook(), AppPod());
  pod["status"]["podIPs"] = {{{"ip", "10.1.0.7"}}, {{"ip", "fd00:1::7"}}};
  const SocketAddress there = *SocketAddress::Parse("[fd00::5]:80"), own = *SocketAddress::Parse("[fd00:1::7]:5000");
  EXPECT_EQ(Bootstrap(pod).metadata["INSTANCE_IPS"], "10.1.0.7,fd00:1::7");
  EXPECT_FALSE(Bootstrap(pod).interception->TakesOutbound(there));
  EXPECT_FALSE(Bootstrap(pod).interception->TakesInbound(own));
  json& init = pod["spec"]["initContainers"][0];
  for (const auto& [image, variable, other] :
       {std::tuple("x/proxyv2:1.18.2", "ISTIO_AGENT_DUAL_STACK", "ISTIO_DUAL_STACK"),
        std::tuple("x/proxyv2:1.30.3", "ISTIO_DUAL_STACK", "ISTIO_AGENT_DUAL_STACK")}) {
    init["image"] = image;
    init["env"] = {{{"name", other}, {"value", "true"}}};
    EXPECT_FALSE(Bootstrap(pod).interception->TakesOutbound(there)) << image;
    init["env"] = {{{"name", variable}, {"value", "true"}}};
    EXPECT_TRUE(Bootstrap(pod).interception->TakesOutbound(there)) << image;
    EXPECT_TRUE(Bootstrap(pod).interception->TakesInbound(own)) << image;
  }
}

TEST(ProxyBootstrapTest, ModeNoneInterceptsNothing) {
  json pod = AppPod();
  pod["metadata"]["annotations"]["sidecar.istio.io/interceptionMode"] = "NONE";
  const json injected = Injected(Webhook(), pod);
  const ProxyBootstrap proxy = Bootstrap(injected);
  EXPECT_FALSE(proxy.interception.has_value());
  EXPECT_EQ(proxy.metadata["INTERCEPTION_MODE"], "NONE");
}

TEST(ProxyBootstrapTest, AStatusPortOfZeroIsAProxyWithoutProbes) {
  json pod = AppPod();
  pod["metadata"]["annotations"]["status.sidecar.istio.io/port"] = "0";
  const ProxyBootstrap proxy = Bootstrap(Injected(Webhook(), pod));
  EXPECT_EQ(proxy.status_port, 0);
  EXPECT_EQ(proxy.readiness_port, 0);
}

TEST(ProxyBootstrapTest, WithTheCniPluginTheRulesStandInTheValidationContainer) {
  InjectionConfig config = InjectionConfig::Default("c1", "netA");
  config.values["istio_cni"]["enabled"] = true;
  InjectionWebhook webhook;
  webhook.SetConfig(config);
  const json pod = Injected(webhook, AppPod());
  EXPECT_THAT(NamesOf(pod["spec"]["initContainers"]), ElementsAre("istio-validation"));
  EXPECT_EQ(pod["metadata"]["annotations"]["traffic.sidecar.istio.io/excludeInboundPorts"], "15020");
  ASSERT_TRUE(Bootstrap(pod).interception.has_value());
  EXPECT_FALSE(Bootstrap(pod).interception->TakesInbound({IpAddress::V4(10, 1, 0, 5), 15021}));
}

TEST(ProxyBootstrapTest, LocalityLabelAndAnnotationsOfThePodCount) {
  json pod = AppPod();
  pod["metadata"]["labels"]["istio-locality"] = "eu.west.a";
  pod["metadata"]["annotations"] = {{"sidecar.istio.io/discoveryAddress", "other.mesh:15010"},
                                    {"status.sidecar.istio.io/port", "15999"}};
  const ProxyBootstrap proxy = Bootstrap(Injected(Webhook(), pod));
  EXPECT_EQ(proxy.region, "eu");
  EXPECT_EQ(proxy.zone, "west");
  EXPECT_EQ(proxy.sub_zone, "a");
  EXPECT_EQ(proxy.discovery_address, "other.mesh:15010");
  EXPECT_EQ(proxy.discovery_san, "other.mesh");
  EXPECT_EQ(proxy.ca_address, "istiod.istio-system.svc:15012");
  EXPECT_EQ(proxy.status_port, 15999);
  EXPECT_FALSE(proxy.interception->TakesInbound({IpAddress::V4(10, 1, 0, 5), 15999}));
}

TEST(ProxyBootstrapTest, SaysWhatIsMissing) {
  EXPECT_EQ(ReadProxyBootstrap(AppPod()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(HasProxy(AppPod()));
  const json pod = Injected(Webhook(), AppPod());
  EXPECT_TRUE(HasProxy(pod));
  EXPECT_EQ(ReadProxyBootstrap(pod).status().code(), absl::StatusCode::kFailedPrecondition);
}

// values.global.sts.servicePort where there is no Google project to be read.
TEST(ProxyBootstrapTest, AnAgentThatIsToExchangeTokensWantsAGoogleProject) {
  json pod = Injected(Webhook(), AppPod());
  BootstrapOptions options;
  options.pod_ip = "10.0.0.1";
  json& container = *FindNamed(pod["spec"]["containers"], "istio-proxy");
  container["args"].push_back("--stsPort=15463");
  EXPECT_EQ(ReadProxyBootstrap(pod, options).status().message(),
            "GoogleTokenExchange token manager specified but failed to ready GCP project information");
  json known = pod;
  FindNamed(known["spec"]["containers"], "istio-proxy")
      ->at("env")
      .push_back({{"name", "GCP_METADATA"}, {"value", "p|4711|c|z"}});
  EXPECT_TRUE(ReadProxyBootstrap(known, options).ok());
  container["args"].push_back("--tokenManagerPlugin=none");
  EXPECT_TRUE(ReadProxyBootstrap(pod, options).ok());
  container["args"].push_back("--stsPort=many");
  EXPECT_EQ(ReadProxyBootstrap(pod, options).status().message(),
            "invalid argument \"many\" for \"--stsPort\" flag: strconv.ParseInt: parsing \"many\": invalid syntax");
}

TEST(InjectionWebhookTest, AnAnnotationThatIsNoQuantityRefusesThePod) {
  json pod = AppPod();
  pod["metadata"]["annotations"]["sidecar.istio.io/proxyCPU"] = "lots";
  const json answer = Webhook().Admit(MakeAdmissionReview(pod, "uid-1"), "/inject");
  EXPECT_FALSE(answer["response"]["allowed"].get<bool>());
  EXPECT_THAT(Text(answer["response"]["status"], "message"), HasSubstr("quantities must match the regular expression"));
  pod["metadata"]["annotations"]["sidecar.istio.io/proxyCPU"] = "150m";
  EXPECT_TRUE(Webhook().Admit(MakeAdmissionReview(pod, "uid-1"), "/inject")["response"]["allowed"].get<bool>());
}

// Gateways that charts of 1.18 render are not injected: the mesh config that is mounted tells them their istiod.
TEST(ProxyBootstrapTest, AMeshConfigThatIsMountedIsBelowWhatThePodItselfSays) {
  json pod = Injected(Webhook(), AppPod());
  json& env = FindNamed(pod["spec"]["containers"], "istio-proxy")->at("env");
  const auto own = std::find_if(env.begin(), env.end(), [](const json& v) { return v["name"] == "PROXY_CONFIG"; });
  ASSERT_NE(own, env.end());
  (*own)["value"] = "{terminationDrainDuration: 7s}";
  BootstrapOptions options;
  options.pod_ip = "10.0.0.1";
  options.read_file = [](const std::string& path) -> std::string {
    if (path != "./etc/istio/config/mesh") return "";
    return "defaultConfig: {discoveryAddress: 'istiod-canary.istio-system.svc:15012', terminationDrainDuration: 9s}\n";
  };
  const absl::StatusOr<ProxyBootstrap> out = ReadProxyBootstrap(pod, options);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->discovery_address, "istiod-canary.istio-system.svc:15012");
  EXPECT_EQ(out->termination_drain, 7s);
  options.read_file = [](const std::string&) -> std::string { return "defaultConfig: ["; };
  EXPECT_THAT(std::string(ReadProxyBootstrap(pod, options).status().message()),
              HasSubstr("failed to get proxy config: "));
}

TEST(ProxyBootstrapTest, WithoutACpuLimitTheNodesCoresCount) {
  json pod = Injected(Webhook(), AppPod());
  FindNamed(pod["spec"]["containers"], "istio-proxy")->at("resources").erase("limits");
  EXPECT_EQ(Bootstrap(pod).concurrency, 0);
  BootstrapOptions options;
  options.pod_ip = "10.0.0.1";
  options.node_cpus = 8;
  EXPECT_EQ(ReadProxyBootstrap(pod, options)->concurrency, 8);
}

TEST(ProxyBootstrapTest, ANodeGivesItsAllocatableCoresRoundedUp) {
  EXPECT_EQ(NodeCpus({{"status", {{"capacity", {{"cpu", "8"}}}, {"allocatable", {{"cpu", "3920m"}}}}}}), 4);
  EXPECT_EQ(NodeCpus({{"status", {{"capacity", {{"cpu", 8}}}}}}), 8);
  EXPECT_EQ(NodeCpus({{"status", {{"capacity", {{"cpu", "many"}}}}}}), 0);
  EXPECT_EQ(NodeCpus(json::object()), 0);
}

// The manifests that Istio's users apply.
TEST(ProxyBootstrapTest, IstiosOwnManifestsInjectAndReadBack) {
  const char* const named = std::getenv("WAVETANK_ISTIO_SAMPLES");
  NEEDS_BROUGHT(named != nullptr, "istio-samples", kIstioSamples);
  const std::filesystem::path folder = named;
  int sidecars = 0, routers = 0;
  for (const char* file : {"eastwest-cluster1.yaml", "eastwest-cluster2.yaml", "helloworld.yaml", "sleep.yaml"}) {
    const auto manifests = fakekube::LoadManifests((folder / file).string());
    ASSERT_TRUE(manifests.ok()) << manifests.status();
    for (const fakekube::Manifest& document : *manifests) {
      const json& manifest = document.object;
      if (Text(manifest, "kind") != "Deployment") continue;
      json pod = manifest["spec"]["template"];
      pod["apiVersion"] = "v1";
      pod["kind"] = "Pod";
      const std::string name = Text(manifest["metadata"], "name");
      pod["metadata"]["name"] = name + "-1-a";
      pod["metadata"]["generateName"] = name + "-1-";
      const std::string ns = Text(manifest["metadata"], "namespace");
      pod["metadata"]["namespace"] = ns.empty() ? "sample" : ns;
      const ProxyBootstrap proxy = Bootstrap(Injected(Webhook("cluster1", "network1"), pod));
      (proxy.role == ProxyBootstrap::Role::kRouter ? routers : sidecars)++;
      EXPECT_EQ(proxy.discovery_address, "istiod.istio-system.svc:15012");
      EXPECT_EQ(proxy.interception.has_value(), proxy.role == ProxyBootstrap::Role::kSidecar) << name;
      EXPECT_EQ(proxy.metadata["NETWORK"], std::string(file) == "eastwest-cluster2.yaml" ? "network2" : "network1");
    }
  }
  EXPECT_EQ(routers, 2);
  EXPECT_EQ(sidecars, 3);
}

TEST(InjectPathTest, NamesEnvironmentVariables) {
  EXPECT_TRUE(ParseInjectPath("/inject").empty());
  EXPECT_TRUE(ParseInjectPath("/inject/").empty());
  const auto env = ParseInjectPath("/inject/cluster/a--slash--b/net/n/extra/x/odd");
  EXPECT_EQ(env, (std::map<std::string, std::string>{
                     {"ISTIO_META_CLUSTER_ID", "a/b"}, {"ISTIO_META_NETWORK", "n"}, {"EXTRA", "x"}}));
  EXPECT_EQ(ParseInjectPath("/inject/:ENV:net=n1:ENV:cluster=c1:ENV:bad"),
            (std::map<std::string, std::string>{{"ISTIO_META_CLUSTER_ID", "c1"}, {"ISTIO_META_NETWORK", "n1"}}));
}

// istiod: pkg/kube/inject/testdata/inject/native-sidecar*.yaml say what comes of it.
TEST(NativeSidecars, TheProxyIsAnInitContainerBeforeTheApplicationsOwn) {
  json pod = AppPod();
  pod["spec"]["initContainers"] = json::array({{{"name", "migrate"}, {"image", "registry/migrate"}}});
  const json injected = Injected(Webhook(), pod, "/inject", NativeSidecar::kYes);
  EXPECT_THAT(NamesOf(injected["spec"]["containers"]), ElementsAre("echo"));
  EXPECT_THAT(NamesOf(injected["spec"]["initContainers"]), ElementsAre("istio-init", "istio-proxy", "migrate"));
  const json& proxy = injected["spec"]["initContainers"][1];
  EXPECT_EQ(proxy["restartPolicy"], "Always");
  EXPECT_EQ(proxy["startupProbe"]["httpGet"]["port"], 15021);
  EXPECT_THAT(proxy["lifecycle"]["preStop"]["exec"]["command"], Contains("drain"));
  EXPECT_FALSE(FindNamed(proxy["env"], "ISTIO_KUBE_APP_PROBERS") == nullptr) << "what is said to it reaches it there";
  EXPECT_TRUE(HasProxy(injected));
  EXPECT_EQ(Bootstrap(injected).pod, "echo-v1-5d9f7-abcde");
}

TEST(NativeSidecars, APodsAnnotationHasTheLastWordInAReleaseThatKnowsThem) {
  json asks = AppPod(), declines = AppPod();
  asks["metadata"]["annotations"]["sidecar.istio.io/nativeSidecar"] = "true";
  declines["metadata"]["annotations"]["sidecar.istio.io/nativeSidecar"] = "false";
  const auto native = [](const json& pod, NativeSidecar told) {
    return FindNamed(At(Injected(Webhook(), pod, "/inject", told)["spec"], "initContainers"), "istio-proxy") != nullptr;
  };
  EXPECT_TRUE(native(asks, NativeSidecar::kNo));
  EXPECT_FALSE(native(declines, NativeSidecar::kYes));
  EXPECT_FALSE(native(asks, NativeSidecar::kUnknown));
}

TEST(NativeSidecars, WhatAPodWishesOfItsProxyIsHeardThere) {
  json pod = AppPod();
  pod["spec"]["containers"].push_back(
      {{"name", "istio-proxy"}, {"image", "auto"}, {"resources", {{"limits", {{"cpu", "3"}}}}}});
  const json injected = Injected(Webhook(), pod, "/inject", NativeSidecar::kYes);
  EXPECT_THAT(NamesOf(injected["spec"]["containers"]), ElementsAre("echo"));
  const json* proxy = FindNamed(injected["spec"]["initContainers"], "istio-proxy");
  ASSERT_NE(proxy, nullptr);
  EXPECT_EQ((*proxy)["resources"]["limits"]["cpu"], "3");
  EXPECT_NE((*proxy)["image"], "auto");
}

TEST(NativeSidecars, AGatewaysProxyIsItsApplication) {
  const json injected = Injected(Webhook(), GatewayPod(), "/inject", NativeSidecar::kYes);
  EXPECT_THAT(NamesOf(injected["spec"]["containers"]), ElementsAre("istio-proxy"));
}

}  // namespace
}  // namespace wavetank::pilot
