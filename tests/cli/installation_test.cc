// What installs a mesh, what is filled in for it, and what its processes log: as a user types it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kInstalledManifests = std::string(WAVETANK_SOURCE_DIR) + "/scenarios/manifests/";
const std::string kMainStory = std::string(WAVETANK_SOURCE_DIR) + "/scenarios/multi-primary-multi-network";

class InstallationTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("installation-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "with");
    for (const std::string n : {"1", "2"}) {
      std::filesystem::create_directories(folder_ / ("c" + n));
      for (const std::string& file :
           {"network" + n, "eastwest-network" + n, std::string("expose-services"), std::string("sample"),
            std::string("helloworld-service"), "helloworld-v" + n, std::string("sleep")})
        std::filesystem::copy(kInstalledManifests + file + ".yaml", folder_ / ("c" + n));
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& file, const std::string& text) { std::ofstream(folder_ / file) << text; }
  Ran Apply(const std::string& options) {
    return Call("apply --requests 8 " + options + " " + (folder_ / "c1").string() + " " + (folder_ / "c2").string());
  }

  std::filesystem::path folder_;
};

TEST_F(InstallationTest, WhatWasFilledInIsSaid) {
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("mended istiod (c1, c2): "), HasSubstr("mended roots (c1, c2): "),
                                HasSubstr("mended clusterID (c1, c2): ")));
}

// Nor does a scenario get the cacerts that its own control planes lack, or is it said of those that are there.
TEST_F(InstallationTest, AScenariosOwnControlPlanesGetNoRoots) {
  const std::string istiod = kInstalledManifests + "istiod.yaml";
  std::ifstream in(istiod);
  std::string own((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  own.replace(own.find("          ports:"), 16, "          env: [{name: CLUSTER_ID, value: c1}]\n          ports:");
  Write("c1/istiod.yaml", own);
  const std::string clusters = "name: roots\nclusters:\n- name: c1\n  manifests: [c1]\n";
  Write("scenario.yaml", clusters);
  EXPECT_THAT(Call("run " + folder_.string() + " --until 1s").output, Not(HasSubstr("mended roots")));
  Write("scenario.yaml", clusters + "mend: roots\n");
  EXPECT_THAT(Call("run " + folder_.string() + " --until 1s").output, HasSubstr("mended roots (c1)"));
  std::filesystem::remove(folder_ / "c1/istiod.yaml");
  Write("c1/cacerts.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: cacerts, namespace: istio-system}\nstringData: {ca-cert.pem: "
        "none}\n");
  Write("scenario.yaml", clusters);
  EXPECT_THAT(Call("run " + folder_.string() + " --until 1s").output, Not(HasSubstr("mended roots")));
}

// As Helm's own scaffold writes them: recommended labels, and a target port by name.
TEST_F(InstallationTest, ApplicationsOfChartsSendAndAnswerToo) {
  constexpr char kChart[] = R"(apiVersion: v1
kind: Service
metadata: {name: shop-web, namespace: sample}
spec: {ports: [{port: 80, targetPort: http, name: http}], selector: {app.kubernetes.io/name: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-web, namespace: sample}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: web}}
  template:
    metadata: {labels: {app.kubernetes.io/name: web, app.kubernetes.io/version: 1.16.0}}
    spec: {containers: [{name: web, image: nginx, ports: [{name: http, containerPort: 8080}]}]}
)";
  for (const char* file : {"c1/web.yaml", "c2/web.yaml"}) Write(file, kChart);
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(testing::ContainsRegex("web.sample +c1 +helloworld.sample:5000 "),
                                testing::ContainsRegex("sleep.sample +c2 +shop-web.sample:80 ")));
}

// A gateway as `istioctl manifest generate` renders it, of what its proxy needs.
constexpr char kRenderedGateway[] = R"(apiVersion: v1
kind: ServiceAccount
metadata: {name: gateway, namespace: istio-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, namespace: istio-system}
spec:
  selector: {matchLabels: {istio: ingressgateway}}
  template:
    metadata: {labels: {istio: ingressgateway, sidecar.istio.io/inject: "false"}}
    spec:
      serviceAccountName: gateway
      containers:
      - name: istio-proxy
        image: docker.io/istio/proxyv2:1.18.2
        args: [proxy, router, --domain, $(POD_NAMESPACE).svc.cluster.local]
        env:
        - {name: CA_ADDR, value: "istiod.istio-system.svc:15012"}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: INSTANCE_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: SERVICE_ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
        - {name: ISTIO_META_CLUSTER_ID, value: prod}
        volumeMounts:
        - {name: istiod-ca-cert, mountPath: /var/run/secrets/istio}
        - {name: istio-token, mountPath: /var/run/secrets/tokens, readOnly: true}
      volumes:
      - {name: istiod-ca-cert, configMap: {name: istio-ca-root-cert}}
      - name: istio-token
        projected: {sources: [{serviceAccountToken: {path: istio-token, audience: istio-ca}}]}
)";

TEST_F(InstallationTest, AnIstiodThatIsPutThereCallsTheClusterAsItsGatewaysDo) {
  Write("gateway.yaml", kRenderedGateway);
  const std::string file = (folder_ / "gateway.yaml").string();
  const Ran ran = Call("apply --requests 0 --cluster c1=" + file);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("note: c1: its proxies' manifests say cluster ID prod, and an istiod"),
                                Not(HasSubstr("not ready: "))));
  // Of two clusters with one ID none is called so: one of them is wrong.
  const Ran two = Call("apply --requests 0 --cluster c1=" + file + " --cluster c2=" + file);
  EXPECT_EQ(two.code, 1) << two.error;
  EXPECT_THAT(two.output, AllOf(Not(HasSubstr("say cluster ID prod")), HasSubstr("not ready: gateway-"),
                                HasSubstr("authentication failure")));
}

TEST_F(InstallationTest, ClustersThatFoldersNameAreCalledAsTheirIstiodsDo) {
  const auto istiod = [](const std::string& id) {
    return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: istiod, namespace: istio-system}\nspec:\n"
           "  selector: {matchLabels: {app: istiod}}\n  template:\n    metadata: {labels: {app: istiod}}\n"
           "    spec: {containers: [{name: discovery, image: docker.io/istio/pilot:1.18.2, env: [{name: CLUSTER_ID, "
           "value: " +
           id + "}]}]}\n";
  };
  Write("c1/istiod.yaml", istiod("east"));
  Write("c2/istiod.yaml", istiod("west"));
  EXPECT_THAT(Apply("").output, AllOf(HasSubstr("note: c1: is cluster east here, as its istiod's CLUSTER_ID says"),
                                      testing::ContainsRegex("\nwest +sample +helloworld ")));
  const std::string folders = (folder_ / "c1").string() + " " + (folder_ / "c2").string();
  EXPECT_THAT(Call("check " + folders).output, Not(HasSubstr("WT202")));
  // One ID for two is nobody's.
  Write("c2/istiod.yaml", istiod("east"));
  EXPECT_THAT(Call("check " + folders).output,
              AllOf(HasSubstr("WT202"), HasSubstr("istiod runs with CLUSTER_ID east, as that of c1 does")));
}

TEST_F(InstallationTest, NothingIsFilledInIfThatIsChosen) {
  const Ran ran = Apply("--mend none");
  EXPECT_THAT(ran.output, AllOf(Not(HasSubstr("mended ")), HasSubstr("the manifests bring no remote Secrets")));
}

TEST_F(InstallationTest, AnUnknownMendingIsBadInput) {
  const Ran ran = Apply("--mend rootz");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, HasSubstr("--mend: nothing is mended that is called 'rootz'; there are: all, none, istiod"));
}

TEST_F(InstallationTest, WhatHasNoEffectIsAnErrorIfStrict) {
  Write("c1/hpa.yaml",
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: sample}\n"
        "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: helloworld-v1}, "
        "metrics: [{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 10}}}]}\n");
  const Ran ran = Apply("--strict");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("--strict: what is said here has no effect:"), HasSubstr("hpa.yaml:1: "),
                               HasSubstr("HorizontalPodAutoscaler: spec.metrics has no effect here")));
}

TEST_F(InstallationTest, TheSecretThatIsPrintedIsRead) {
  for (const std::string n : {"1", "2"}) {
    const Ran secret = Call("create-remote-secret --cluster c" + n);
    ASSERT_EQ(secret.code, 0) << secret.error;
    EXPECT_THAT(
        secret.output,
        AllOf(StartsWith("# This file is autogenerated, do not edit.\napiVersion: v1\nkind: Secret\n"),
              HasSubstr("  name: istio-remote-secret-c" + n + "\n"), HasSubstr("    current-context: c" + n + "\n")));
    Write("c" + std::string(n == "1" ? "2" : "1") + "/remote.yaml", secret.output);
  }
  const Ran ran = Apply("--mend istiod,clusterID,rbac,roots,network");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("172.30.2.1:15443"), HasSubstr("172.30.1.1:15443"),
                                Not(HasSubstr("cannot read cluster"))));
}

// Each istiod signs under a root of its own. Every request is answered all the same, by a retry at home: the tries show
// it.
TEST_F(InstallationTest, RootsOfTheirOwnLeaveTheOtherClusterUnreachable) {
  const Ran ran = Apply("--mend istiod,clusterID,rbac,tokens,network --json");
  EXPECT_EQ(ran.code, 1) << ran.error;
  const nlohmann::json mesh = nlohmann::json::parse(ran.output);
  std::map<std::string, std::set<std::string>> dead;  // by the client's cluster: the ways that nothing came over
  for (const nlohmann::json& path : mesh["deadPaths"]) {
    if (path["service"] != "helloworld.sample:5000") continue;
    EXPECT_THAT(path["reason"].get<std::string>(),
                AllOf(StartsWith("TLS_error:"),
                      testing::AnyOf(HasSubstr("CERTIFICATE_VERIFY_FAILED"), HasSubstr("TLSV1_ALERT_UNKNOWN_CA"))));
    dead[path["cluster"]].insert(path["upstream"].get<std::string>());
  }
  EXPECT_THAT(dead["c1"], testing::ElementsAre(HasSubstr("172.30.2.1:15443")));
  EXPECT_THAT(dead["c2"], testing::ElementsAre(HasSubstr("172.30.1.1:15443")));
  for (const nlohmann::json& row : mesh["reachability"]) {
    for (const auto& [cluster, count] : row["answeredBy"].items()) EXPECT_EQ(cluster, row["cluster"]);
  }
}

TEST_F(InstallationTest, UnderOneRootNoWayIsDead) {
  const Ran ran = Apply("--mend istiod,clusterID,rbac,tokens,network,roots --json");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_TRUE(nlohmann::json::parse(ran.output)["deadPaths"].empty());
}

TEST_F(InstallationTest, ASecretOfAnotherMeshIsRefused) {
  Write("c1/remote.yaml", Call("create-remote-secret --cluster c2 --seed 7").output);
  const Ran ran = Apply("--mend istiod,clusterID,rbac,roots,network");
  EXPECT_THAT(ran.output,
              HasSubstr("cannot read cluster c2: Get \"https://c2.kubernetes.example:6443/api\": tls: failed to "
                        "verify certificate: x509: certificate signed by unknown authority"));
}

TEST_F(InstallationTest, AKindFileSaysWhichAddressesThereAre) {
  Write("c1/kind.yaml",
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {podSubnet: 10.77.0.0/16, serviceSubnet: "
        "10.177.0.0/16, apiServerPort: 6441}\n");
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(testing::ContainsRegex("10\\.77\\.[0-9.]+:5000"), HasSubstr("10.177.")));
}

TEST_F(InstallationTest, APoolOfMetalLbIsWhatLoadBalancersAreGiven) {
  Write("c2/pool.yaml",
        "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: first, namespace: metallb-system}\n"
        "spec: {addresses: [172.18.9.200-172.18.9.203]}\n---\napiVersion: metallb.io/v1beta1\nkind: L2Advertisement\n"
        "metadata: {name: all, namespace: metallb-system}\n");
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("172.18.9.200:15443"), Not(HasSubstr("IPAddressPool"))));
}

constexpr const char* kClosedToGateways =
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: closed, namespace: sample}\n"
    "spec: {podSelector: {matchLabels: {app: helloworld}}, ingress: [{from: [{podSelector: {}}]}]}\n";

TEST_F(InstallationTest, ANetworkPolicyDropsWhatItDoesNotLetIn) {
  Write("c2/policy.yaml", kClosedToGateways);
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;  // other endpoints answer
  EXPECT_THAT(ran.output, AllOf(HasSubstr("(behind it: NetworkPolicy sample/closed of c2 (ingress) does not let "),
                                testing::ContainsRegex("sleep.sample +c2 +helloworld.sample:5000 +c1 [0-9]+, c2 ")));
}

TEST_F(InstallationTest, WhereNobodyAnswersApplyNamesThePolicyAndCheckBlamesNothingElse) {
  Write("c2/policy.yaml",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: shut, namespace: sample}\n"
        "spec: {podSelector: {matchLabels: {app: helloworld}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: "
        "{matchLabels: {app: nobody}}}]}]}\n");
  const std::string alone = "--cluster c2=" + (folder_ / "c2").string();
  EXPECT_THAT(Call("apply --requests 8 " + alone).output,
              testing::ContainsRegex("DEAD PATH  sleep.sample in c2 to helloworld.sample:5000, .*"
                                     "NetworkPolicy sample/shut of c2 \\(ingress\\) does not let"));
  EXPECT_THAT(Call("check " + alone).output, AllOf(HasSubstr("WT134"), HasSubstr("WT135"), Not(HasSubstr("WT801"))));
}

TEST_F(InstallationTest, AnAgentThatGetsNoDnsIsToldWithThePolicy) {
  Write(
      "c2/policy.yaml",
      "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: no-dns, namespace: sample}\n"
      "spec: {podSelector: {matchLabels: {app: sleep}}, policyTypes: [Egress], egress: [{ports: [{port: 15012}, {port: "
      "5000}]}]}\n");
  EXPECT_THAT(Apply("").output,
              testing::ContainsRegex("not ready: sleep-[^ ]*sample@c2: .*i/o timeout.* \\(DNS does not answer: "
                                     "NetworkPolicy sample/no-dns of c2 lets no query through"));
}

TEST_F(InstallationTest, KindsOwnPluginEnforcesNoNetworkPolicy) {
  Write("c2/policy.yaml", kClosedToGateways);
  Write("c2/kind.yaml", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n");
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("c2: kind's own network plugin acts upon no NetworkPolicy"),
                                Not(HasSubstr("NetworkPolicy sample/closed"))));
}

// One of the two networks' own Services alone, so that what is cut is not asked elsewhere.
std::string PolicyArrives(const std::string& policies) {
  return "name: policy\nclusters:\n- name: c1\n  networkPolicies: " + policies + "\n  manifests: [" +
         kInstalledManifests + "istiod.yaml, " + kInstalledManifests + "sample.yaml, " + kInstalledManifests +
         "helloworld-service.yaml, " + kInstalledManifests + "helloworld-v1.yaml, " + kInstalledManifests +
         "sleep.yaml]\nflows: [{name: f, from: {cluster: c1, namespace: sample, app: sleep}, to: "
         "helloworld.sample:5000, "
         "path: /hello, rate: 20/s}]\nsteps:\n- name: before\n  then: [{flow: f, requests: 100}]\n  expect: "
         "[{requests: "
         "{failed: 0}}]\n- name: shut\n  do: [{apply: {cluster: c1, objects: [{apiVersion: networking.k8s.io/v1, kind: "
         "NetworkPolicy, metadata: {name: shut, namespace: sample}, spec: {podSelector: {matchLabels: {app: "
         "helloworld}}, "
         "policyTypes: [Ingress]}}]}}]\n  then: [{flow: f, requests: 100}]\n  expect: [{requests: {of: then, failed: ";
}

TEST_F(InstallationTest, AConnectionThatStandsOutlivesANetworkPolicyUnlessItsPluginLooksAtThoseToo) {
  Write("scenario.yaml", PolicyArrives("enforced") + "0}}]\n");
  const Ran kept = Call("run " + folder_.string());
  EXPECT_EQ(kept.code, 0) << kept.output << kept.error;
  Write("scenario.yaml", PolicyArrives("strict") + "'>= 1'}}]\n");
  const Ran cut = Call("run " + folder_.string());
  EXPECT_EQ(cut.code, 0) << cut.output << cut.error;
  Write("scenario.yaml", PolicyArrives("sometimes") + "0}}]\n");
  EXPECT_THAT(Call("run " + folder_.string()).error, HasSubstr("is neither enforced nor strict nor ignored"));
}

// The policy stays, and the senders are no longer those whom it lets in.
TEST_F(InstallationTest, AStrictPluginLooksAgainOnceLabelsChange) {
  std::string story = PolicyArrives("strict");
  const std::string_view type = "policyTypes: [Ingress]}}]}}]";
  const size_t at = story.find(type);
  ASSERT_NE(at, std::string::npos);
  story.replace(
      at, type.size(),
      "policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "
      "sample, closed: \"no\"}}}]}]}}]}}]");
  const std::string_view before = "- name: before\n";
  story.replace(
      story.find(before), before.size(),
      "- name: before\n  do: [{label: {cluster: c1, kind: Namespace, name: sample, set: {closed: \"no\"}}}]\n");
  Write("scenario.yaml", story + "0}}]\n");
  const Ran open = Call("run " + folder_.string());
  EXPECT_EQ(open.code, 0) << open.output << open.error;
  Write("scenario.yaml",
        story +
            "0}}]\n- name: closed\n  do: [{label: {cluster: c1, kind: Namespace, name: sample, set: {closed: "
            "\"yes\"}}}]\n  then: [{flow: f, requests: 100}]\n  expect: [{requests: {of: then, failed: "
            "'>= 1'}}]\n");
  const Ran closed = Call("run " + folder_.string());
  EXPECT_EQ(closed.code, 0) << closed.output << closed.error;
}

TEST_F(InstallationTest, ABoundThatNothingKeepsIsBadInput) {
  for (const auto& [bound, why] : {std::pair("'< 0'", "nothing is less than 0"), {"'> 100%'", "is more than 100%"}}) {
    Write("scenario.yaml", PolicyArrives("enforced") + bound + "}}]\n");
    const Ran ran = Call("run " + folder_.string());
    EXPECT_EQ(ran.code, 2) << bound;
    EXPECT_THAT(ran.error, HasSubstr(why));
  }
}

TEST_F(InstallationTest, ARemoteSecretThatIsLaidOverIsTakenAsItStands) {
  Write("with/cluster1.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: istio-remote-secret-cluster2, namespace: istio-system, labels: "
        "{istio/multiCluster: \"true\"}, annotations: {networking.istio.io/cluster: cluster2}}\nstringData: {cluster2: "
        "none}\n");
  const Ran ran = Call("check " + kMainStory + " --with " + (folder_ / "with").string());
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("WT203"), HasSubstr("istio-remote-secret-cluster2"), Not(HasSubstr("IST0133"))));
  EXPECT_THAT(ran.error,
              testing::ContainsRegex("note: .*cluster1.yaml:1: Secret istio-remote-secret-cluster2 is taken as "
                                     "it stands, and the scenario's remoteSecrets of cluster2 in cluster1"));
}

TEST_F(InstallationTest, WhatKindRefusesIsBadInput) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"networking: {podSubet: 10.1.0.0/16}", "unable to decode config: field podSubet not found in networking"},
      {"networking: {kubeProxyMode: nonee}", "invalid kubeProxyMode: nonee"},
      {"networking: {apiServerPort: 65536}", "invalid apiServerPort: 65536"},
      {"networking: {apiServerPort: '6441'}", "invalid apiServerPort: \"6441\""},
      {"nodes: [{role: wroker}]", "\"wroker\" is not a valid node role"},
      {"nodes: [{role: worker}]", "must have at least one control-plane node"}};
  for (const auto& [text, why] : kRefused) {
    Write("c1/kind.yaml", std::string("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n") + text + "\n");
    const Ran ran = Apply("");
    EXPECT_EQ(ran.code, 2) << text;
    EXPECT_THAT(ran.error, AllOf(HasSubstr("kind.yaml:1: a kind file: "), HasSubstr(why)));
  }
}

TEST_F(InstallationTest, RangesThatMeetAreSaid) {
  Write("c1/kind.yaml",
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {podSubnet: 10.96.0.0/12, serviceSubnet: "
        "10.98.0.0/16}\n");
  EXPECT_THAT(Apply("").output,
              HasSubstr("the ranges of pods and Services of c1 overlap (10.96.0.0/12, 10.98.0.0/16)"));
}

TEST_F(InstallationTest, ARangeThatIsNoneIsBadInput) {
  Write("c1/kind.yaml", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {podSubnet: 10.77.0.0/77}\n");
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, HasSubstr("c1/kind.yaml:1: '10.77.0.0/77' is no range of IPv4 addresses"));
}

// As on a virtual machine: nobody wrote an entry for it, and a ServiceEntry of names finds it.
TEST_F(InstallationTest, AMachineThatRegistersItselfIsAnEndpointOfItsGroupsServices) {
  Write("c1/machines.yaml", R"(
apiVersion: networking.istio.io/v1alpha3
kind: WorkloadGroup
metadata: {name: machines, namespace: sample}
spec: {metadata: {labels: {group: machines}}, template: {serviceAccount: legacy}}
---
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: legacy, namespace: sample}
spec:
  hosts: [legacy.example.com]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 7000}]
  resolution: STATIC
  workloadSelector: {labels: {group: machines}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: legacy, namespace: sample}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: legacy, namespace: sample}
spec:
  selector: {matchLabels: {app: legacy}}
  template:
    metadata:
      labels: {app: legacy}
      annotations: {proxy.istio.io/config: '{"proxyMetadata": {"ISTIO_META_AUTO_REGISTER_GROUP": "machines"}}'}
    spec:
      serviceAccountName: legacy
      containers: [{name: app, image: example/app:1, ports: [{containerPort: 7000}]}]
)");
  const Ran ran = Apply("");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, testing::ContainsRegex(":7000 +HEALTHY +OK +outbound\\|80\\|\\|legacy.example.com"));
}

// kind's own defaults are the same for every cluster.
TEST_F(InstallationTest, OnOneNetworkARangeOfPodsBelongsToOneCluster) {
  for (const std::string n : {"1", "2"}) {
    for (const std::string& file : {"/network" + n, "/eastwest-network" + n, std::string("/expose-services")})
      std::filesystem::remove(folder_ / ("c" + n + file + ".yaml"));
    Write("c" + n + "/kind.yaml", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n");
  }
  const Ran ran = Apply("--json");
  EXPECT_EQ(ran.code, 0) << ran.error;
  const nlohmann::json mesh = nlohmann::json::parse(ran.output);
  EXPECT_THAT(mesh["notes"].dump(), HasSubstr("c1 and c2 are on one network, and their pods' ranges overlap "
                                              "(10.244.0.0/16, 10.244.0.0/16)"));
  for (const nlohmann::json& row : mesh["reachability"]) {
    for (const auto& [cluster, count] : row["answeredBy"].items()) EXPECT_EQ(cluster, row["cluster"]) << row;
  }
}

const std::string kOperator =
    "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: empty\n  values: {global: "
    "{meshID: m}}\n";

TEST_F(InstallationTest, AnIstioOperatorWithoutIstioctlSaysWhatToDo) {
  Write("c1/operator.yaml", kOperator);
  setenv("ISTIOCTL", "/no/such/istioctl", 1);
  const Ran ran = Apply("");
  unsetenv("ISTIOCTL");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("c1/operator.yaml:1: an IstioOperator: it is rendered by istioctl"),
                               HasSubstr("install istioctl 1.18.2")));
}

TEST_F(InstallationTest, AnIstioOperatorIsWhatIstioctlMakesOfIt) {
  Write("c1/operator.yaml", kOperator);
  // Stands for a real one: checks how it is called and with what, and prints an object.
  Write(
      "istioctl",
      "#!/bin/sh\n[ \"$1 $2 $3\" = \"manifest generate -f\" ] || exit 9\ngrep -q '\"meshID\"' \"$4\" || exit 8\n"
      "echo 'apiVersion: v1\nkind: Service\nmetadata: {name: rendered, namespace: sample}\nspec: {ports: [{name: http, "
      "port: 7}], selector: {app: helloworld}}'\n");
  std::filesystem::permissions(folder_ / "istioctl", std::filesystem::perms::owner_all);
  setenv("ISTIOCTL", (folder_ / "istioctl").c_str(), 1);
  const Ran ran = Apply("");
  Write("istioctl", "#!/bin/sh\necho 'Error: unknown field \"profil\"' >&2\nexit 1\n");
  const Ran refused = Apply("");
  unsetenv("ISTIOCTL");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("rendered"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.error,
              HasSubstr("operator.yaml:1: an IstioOperator: istioctl manifest generate: Error: unknown field"));
}

// Prints what it is called with, as an object's annotation.
constexpr char kIstioctlThatRepeats[] =
    "#!/bin/sh\nprintf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: called, namespace: sample}\\ndata:\\n  "
    "with: |-\\n    %s\\n' \"$*\"\n";

class IstioctlSet : public InstallationTest {
 protected:
  void SetUp() override {
    InstallationTest::SetUp();
    Write("istioctl", kIstioctlThatRepeats);
    std::filesystem::permissions(folder_ / "istioctl", std::filesystem::perms::owner_all);
    setenv("ISTIOCTL", (folder_ / "istioctl").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("ISTIOCTL");
    InstallationTest::TearDown();
  }
};

TEST_F(IstioctlSet, ManifestGenerateTakesWhatIstioctlTakes) {
  EXPECT_THAT(Call("manifest generate --set profile=minimal -f a.yaml -r canary --set 'values.a\\.b[0]=c'").output,
              HasSubstr("manifest generate -f a.yaml --set profile=minimal --set values.a\\.b[0]=c -r canary\n"));
}

TEST_F(IstioctlSet, ASettingIsLaidOverTheOneIstioOperatorOfItsCluster) {
  Write("c1/operator.yaml", kOperator);
  Write("c2/operator.yaml", kOperator);
  const Ran both = Apply("--set profile=demo --set c2:values.global.network=network2 --json");
  EXPECT_EQ(both.code, 0) << both.error;
  // Which object stands for what was called is seen by `check`, which reads the same.
  Write("c1/more.yaml", kOperator);
  const Ran two = Apply("--set c1:profile=demo");
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.error, AllOf(HasSubstr("--set profile=demo: c1 has 2 IstioOperators"), HasSubstr("more.yaml:1"),
                               HasSubstr("--set FILE:profile=demo")));
  EXPECT_EQ(Apply("--set c1:more:profile=demo").code, 0);
  const Ran nowhere = Apply("--set c3:profile=demo");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.error, HasSubstr("neither a cluster nor a file of manifests is called c3"));
  EXPECT_THAT(Apply("--set profile").error, HasSubstr("'profile' is not PATH=VALUE"));
}

TEST_F(IstioctlSet, WithoutAnIstioOperatorItIsAnInstallation) {
  Write("istioctl",
        "#!/bin/sh\ncase \"$*\" in *'--set profile=minimal') ;; *) echo \"called as $*\" >&2; exit 1;; esac\n"
        "echo 'apiVersion: v1\nkind: Service\nmetadata: {name: rendered, namespace: sample}\nspec: {ports: "
        "[{name: http, port: 7}], selector: {app: helloworld}}'\n");
  const Ran ran = Apply("--set c1:profile=minimal");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, testing::ContainsRegex("c1 +sample +rendered"));
  EXPECT_THAT(ran.output, Not(testing::ContainsRegex("c2 +sample +rendered +ClusterIP")));
  EXPECT_THAT(Apply("--set c1:profile=huge").error,
              HasSubstr("--set: an IstioOperator: istioctl manifest generate: called"));
}

TEST_F(IstioctlSet, AScenariosManifestSaysItTheSameWay) {
  Write("operator.yaml", kOperator);
  Write("scenario.yaml",
        "name: set\nclusters:\n- name: c1\n  manifests:\n  - {path: operator.yaml, set: [profile=demo]}\n"
        "  - {install: [profile=remote]}\n");
  EXPECT_EQ(Call("run " + folder_.string()).code, 0);
  Write("scenario.yaml",
        "name: set\nclusters:\n- name: c1\n  manifests:\n  - {path: c1/sample.yaml, set: [profile=demo]}\n");
  const Ran none = Call("run " + folder_.string());
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.error, HasSubstr("scenario.yaml:5: `set` profile=demo is for an IstioOperator"));
}

TEST_F(IstioctlSet, ARunLaysSettingsOverAScenariosIstioOperatorsToo) {
  Write("istioctl",
        "#!/bin/sh\ncase \"$*\" in *'--set values.global.network=x') ;; *) echo \"called as $*\" >&2; exit 1;; esac\n");
  Write("operator.yaml", kOperator);
  Write("scenario.yaml", "name: set\nclusters:\n- name: c1\n  manifests: [operator.yaml]\n- name: c2\n");
  const auto run = [&](const std::string& set) { return Call("run " + folder_.string() + " --set " + set); };
  for (const std::string prefix : {"", "c1:", "operator:", "c1:operator.yaml:"})
    EXPECT_EQ(run(prefix + "values.global.network=x").code, 0) << prefix;
  EXPECT_THAT(run("values.global.network=y").error, HasSubstr("operator.yaml:1: an IstioOperator: istioctl manifest"));
  const Ran nowhere = run("c3:values.global.network=x");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.error, HasSubstr("neither a cluster of the scenario nor a file of its manifests is called c3"));
  const Ran none = Call("run " + kMainStory + " --set values.global.network=x --until 1s");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.error, HasSubstr("values is an IstioOperator's, and no cluster's manifests hold one"));
}

TEST_F(IstioctlSet, ATagOfAnotherReleaseIsToldWhereTheIstioOperatorSaysIt) {
  const std::string head = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n";
  const auto finds = [&](const std::string& spec) {
    Write("c1/operator.yaml", head + spec);
    return Call("check --cluster c1=" + (folder_ / "c1").string()).output;
  };
  EXPECT_THAT(finds("  profile: empty\n  tag: \"1.18\"\n"),
              AllOf(HasSubstr("c1/operator.yaml:5: warning WT741"), HasSubstr("spec.tag 1.18 is no release")));
  EXPECT_THAT(finds("  tag: 1.17.3\n"), HasSubstr("spec.tag 1.17.3 is of Istio 1.17, and charts"));
  EXPECT_THAT(
      finds("  values:\n    global:\n      tag: 1.18.9\n"),
      AllOf(HasSubstr("c1/operator.yaml:6: "), HasSubstr("spec.values.global.tag 1.18.9: Istio has no release")));
  EXPECT_THAT(finds("  hub: docker.io/isto\n"), HasSubstr("spec.hub docker.io/isto is almost docker.io/istio"));
  EXPECT_THAT(finds("  revision: 1-17-2\n"), HasSubstr("revision 1-17-2 is called after Istio 1.17"));
  EXPECT_THAT(finds("  tag: 1.18.2\n  revision: 1-18-2\n  hub: mirror.example/istio\n"), Not(HasSubstr("WT741")));
}

TEST_F(InstallationTest, RemoteSecretsAreCheckedInIstioctlsWords) {
  EXPECT_THAT(Call("create-remote-secret --cluster Bad_Name").error,
              HasSubstr("Bad_Name is not a valid DNS 1123 label"));
  EXPECT_THAT(Call("create-remote-secret --cluster c1 --type other").error, HasSubstr("unsupported type: other"));
  EXPECT_THAT(Call("create-remote-secret --cluster c1 --auth-type other").error,
              HasSubstr("unsupported authentication type: other"));
}

TEST_F(InstallationTest, OfTypeConfigItHasTheNamesOfOne) {
  EXPECT_THAT(Call("create-remote-secret --cluster c1 --type config").output,
              AllOf(HasSubstr("  name: istio-kubeconfig\n"), HasSubstr("\n  config: |\n")));
}

TEST_F(InstallationTest, APluginTakesTheTokensPlace) {
  EXPECT_THAT(Call("create-remote-secret --cluster c1 --auth-type plugin --auth-plugin-name gcp --auth-plugin-config "
                   "b=2,a=x")
                  .output,
              AllOf(HasSubstr("        auth-provider:\n          config:\n            a: x\n            b: \"2\"\n"
                              "          name: gcp\n"),
                    Not(HasSubstr("token:"))));
}

TEST_F(InstallationTest, TheDateIsChecked) {
  EXPECT_EQ(Apply("--date soon").code, 2);
  EXPECT_EQ(Apply("--date 1999-01-01").code, 2);
  EXPECT_EQ(Apply("--date 2026-11-23").code, 0);
}

TEST_F(InstallationTest, ThePageOfVariablesIsWhatIsPrinted) {
  std::ifstream file(std::string(WAVETANK_SOURCE_DIR) + "/" + "docs/istiod-environment.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(Call("istiod-variables --page").output, page.str());
}

// It would be of another mesh, which never comes up.
TEST_F(InstallationTest, ALogWhoseSecretsAreNotThereIsRunAgainByNoVerb) {
  Write("c1/remote.yaml", Call("create-remote-secret --cluster c2").output);
  Write("scenario.yaml",
        "name: secrets\nclusters:\n- name: c1\n  manifests: [c1]\n"
        "- name: c2\n  network: network2\n  manifests: [c2]\n");
  const std::string log = (folder_ / "run.wtlog").string();
  ASSERT_EQ(Call("run " + folder_.string() + " -o " + log).code, 0);
  for (const std::string verb : {"state ", "why --failed ", "ps ", "check ", "run --from "}) {
    const Ran without = Call(verb + log);
    EXPECT_EQ(without.code, 2) << verb;
    EXPECT_THAT(without.error, AllOf(HasSubstr("Secret istio-system/istio-remote-secret-c2"),
                                     HasSubstr("WAVETANK_SECRETS=FILE or FOLDER")))
        << verb;
  }
  setenv("WAVETANK_SECRETS", (folder_ / "c1").c_str(), 1);
  for (const std::string verb : {"state ", "why --failed ", "ps ", "check ", "run --from "})
    EXPECT_EQ(Call(verb + log).code, 0) << verb;
  unsetenv("WAVETANK_SECRETS");
}

TEST_F(InstallationTest, ProcessesOfALogHaveLogs) {
  const std::string log = (folder_ / "run.wtlog").string();
  ASSERT_EQ(Call("run " + kMainStory + " --until 20s -o " + log).code, 0);
  const Ran istiod = Call("logs " + log + " istiod@cluster1");
  EXPECT_EQ(istiod.code, 0) << istiod.error;
  EXPECT_THAT(istiod.output, AllOf(HasSubstr("\tinfo\tads\tADS: new connection for node:sleep-"),
                                   HasSubstr("\tinfo\tads\tCDS: PUSH request for node:sleep-"),
                                   HasSubstr("\tinfo\tads\tPush debounce stable[1] ")));
  // From the start of the process on.
  EXPECT_THAT(istiod.output, AllOf(HasSubstr("\tinfo\tinitializing Istiod admin server\n"),
                                   HasSubstr("\tinfo\tStarting Istiod Server with primary cluster cluster1\n"),
                                   HasSubstr("\tinfo\tkube\tshould join leader-election for cluster cluster2: false\n"),
                                   HasSubstr("\tinfo\tleader election lock obtained: istio-leader\n"),
                                   HasSubstr("\tinfo\tAdding cluster\tcluster=cluster2 secret=istio-system/"),
                                   HasSubstr(", marking server ready\n")));
  EXPECT_THAT(Call("logs " + log + " sleep@cluster1").output,
              HasSubstr("\tinfo\txdsproxy\tconnected to upstream XDS server\n"));
  // What its agent says itself, too.
  EXPECT_THAT(Call("logs " + log + " sleep@cluster1").output,
              HasSubstr("\tinfo\tcache\tgenerated new workload certificate"));
  EXPECT_LT(Call("logs " + log + " istiod@cluster1 --since 1s").output.size(), istiod.output.size());
  EXPECT_EQ(Call("logs " + log + " nobody").code, 2);
  const Ran several = Call("logs " + log + " istiod");
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.error, HasSubstr("'istiod' may be istiod-"));
}

}  // namespace
}  // namespace wavetank
