// Installations as the documents at the origin describe them, with other names and with mistakes of their readers: what
// a real istiod and pilot-agent would make of them, as a user sees it.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_replace.h"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kSketches = std::string(WAVETANK_SOURCE_DIR) + "/scenarios/manifests/";

// Two primaries whose istiods are told what they are. `namespace_` is where they are installed.
class Variants : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("variants-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // In the first cluster istiod's container says `more` ("env: [...], args: [...]") beside its cluster's name, and
  // sleep has the annotations `sleep`.
  void Make(const std::string& more_env = "", const std::string& args = "[discovery]", const std::string& sleep = "") {
    for (const std::string n : {"1", "2"}) {
      std::filesystem::create_directories(folder_ / ("c" + n));
      for (const std::string& file :
           {"network" + n, "eastwest-network" + n, std::string("expose-services"), std::string("sample"),
            std::string("helloworld-service"), "helloworld-v" + n, std::string("sleep"), std::string("istiod")}) {
        std::ifstream in(kSketches + file + ".yaml");
        std::string text((std::istreambuf_iterator<char>(in)), {});
        const bool first = n == "1";
        const std::string env = "[{name: CLUSTER_ID, value: c" + n + "}, {name: POD_NAMESPACE, value: " + namespace_ +
                                "}" + (first ? more_env : "") + "]";
        text = absl::StrReplaceAll(
            text, {{"istio-system", namespace_},
                   {"image: example/pilot:1.18.2",
                    "image: example/pilot:1.18.2\n          args: " + (first ? args : std::string("[discovery]")) +
                        "\n          env: " + env}});
        if (file == "sleep" && first && !sleep.empty()) {
          constexpr const char* kLabels = "      labels: {app: sleep}\n    spec";
          text = absl::StrReplaceAll(text, {{kLabels, "      annotations: " + sleep + "\n" + kLabels}});
        }
        std::ofstream(folder_ / ("c" + n) / (file + ".yaml")) << text;
      }
    }
  }
  void Write(const std::string& file, const std::string& text) { std::ofstream(folder_ / file) << text; }
  Ran Apply(const std::string& mend = "istiod,rbac,roots,tokens,network,servers") {
    return Call("apply -n sample --requests 8 --mend " + mend + " " + (folder_ / "c1").string() + " " +
                (folder_ / "c2").string());
  }

  std::string namespace_ = "istio-system";
  std::filesystem::path folder_;
};

TEST_F(Variants, AnInstallationIsWhereItsNamespaceIs) {
  namespace_ = "mesh-control";
  Make();
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("172.30.1.1:15443"), HasSubstr("172.30.2.1:15443"),
                                HasSubstr("istiod.mesh-control.svc.cluster.local"), Not(HasSubstr("not ready"))));
}

TEST_F(Variants, ItsRemoteSecretsAreWatchedThere) {
  namespace_ = "mesh-control";
  Make();
  Write("c1/remote.yaml", Call("create-remote-secret --cluster c2 -n mesh-control").output);
  Write("c2/remote.yaml", Call("create-remote-secret --cluster c1 -n istio-system").output);
  const Ran ran = Call("check " + (folder_ / "c1").string() + " " + (folder_ / "c2").string());
  EXPECT_THAT(ran.output, AllOf(HasSubstr("c2/remote.yaml"),
                                HasSubstr("is in namespace istio-system instead of "
                                          "mesh-control"),
                                Not(HasSubstr("instead of istio-system"))));
}

TEST_F(Variants, AnArgumentOfAnotherTypeKeepsIstiodFromStarting) {
  Make("", "[discovery, --shutdownDuration, '5']");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output,
              HasSubstr("does not start: invalid argument \"5\" for \"--shutdownDuration\" flag: time: missing "
                        "unit in duration \"5\""));
}

TEST_F(Variants, AVariableThatCannotBeReadIsNoted) {
  Make(", {name: PILOT_DEBOUNCE_AFTER, value: 5 s}");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output + ran.error,
              HasSubstr("variable PILOT_DEBOUNCE_AFTER=5 s, where istiod expects a duration, has no effect here"));
}

TEST_F(Variants, ACertificateProviderThatKubernetesTookAwayKeepsIstiodFromStarting) {
  Make(", {name: PILOT_CERT_PROVIDER, value: kubernetes}");
  EXPECT_THAT(Apply().output, HasSubstr("does not start: failed generating key and cert by kubernetes: "));
}

TEST_F(Variants, WithACertificateProviderOfNobodysIstiodShowsNoCertificate) {
  Make(", {name: PILOT_CERT_PROVIDER, value: custom}");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("was not admitted: failed calling webhook"));
}

TEST_F(Variants, WithoutInjectionIstiodNeverGetsReady) {
  Make(", {name: INJECT_ENABLED, value: 'false'}");
  EXPECT_THAT(Apply().output, HasSubstr("does not start: sidecar injector is not ready: Skipping sidecar injector"));
}

TEST_F(Variants, WithoutItsInjectorsConfigMapIstiodNeverGetsReady) {
  Make();
  EXPECT_THAT(Apply("rbac,roots,tokens,network,servers").output,
              HasSubstr("template not found: ConfigMap istio-system/istio-sidecar-injector is not there"));
}

TEST_F(Variants, AMeshConfigThatIsRefusedIsTold) {
  Make();
  Write("c1/mesh.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n"
        "data: {mesh: \"connectTimeout: '10'\"}\n");
  const Ran ran = Apply();
  EXPECT_THAT(ran.output + ran.error, HasSubstr("failed to read mesh config from ConfigMap: failed reading MeshConfig "
                                                "config: mesh.connectTimeout: expected a duration"));
}

TEST_F(Variants, WatchingOneNamespaceKeepsIstiodFromGettingReady) {
  Make(", {name: ISTIO_WATCH_NAMESPACE, value: sample}");
  EXPECT_THAT(Apply().output, HasSubstr("with ISTIO_WATCH_NAMESPACE definitions are looked for in that namespace"));
}

TEST_F(Variants, BundlesOfOtherTrustDomainsAreNeededAtTheStart) {
  Make(", {name: SPIFFE_BUNDLE_ENDPOINTS, value: 'other.example|https://spiffe.example/bundle'}");
  EXPECT_THAT(Apply().output,
              HasSubstr("does not start: failed to create discovery service: exhausted retries to fetch the "
                        "SPIFFE bundle other.example from url https://spiffe.example/bundle"));
  Make(", {name: SPIFFE_BUNDLE_ENDPOINTS, value: other.example}");
  EXPECT_THAT(Apply().output, HasSubstr("config is invalid: other.example. Expected <trustdomain>|<url>"));
}

TEST_F(Variants, APodWithoutWhatItMountsDoesNotStart) {
  Make();
  Write("c1/client.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: client, namespace: sample, labels: {app: client}}\n"
        "spec:\n  containers: [{name: c, image: example/c, volumeMounts: [{name: v, mountPath: /v}]}]\n"
        "  volumes: [{name: v, secret: {secretName: nobody}}]\n");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("MountVolume.SetUp failed for volume \"v\" : secret \"nobody\" not found"));
}

TEST_F(Variants, AnAnnotationThatIsNoProxyConfigRefusesThePod) {
  Make("", "[discovery]", "{proxy.istio.io/config: 'concurrency: many'}");
  EXPECT_THAT(Apply().output, HasSubstr("for annotation 'proxy.istio.io/config': ProxyConfig.concurrency: expected an "
                                        "integer"));
}

// Each as pilot-agent 1.18.2 ends or complains (pkg/istio-agent/agent.go, security/pkg/pki/util/generate_csr.go).
TEST_F(Variants, AnAgentThatCannotDoAsItIsToldSaysSo) {
  const std::pair<const char*, const char*> kTold[] = {
      {"XDS_ROOT_CA: /etc/nowhere.pem",
       "failed to start xds proxy: failed to get TLS options to talk to upstream: failed to find root CA cert for XDS: "
       "root CA file for XDS does not exist /etc/nowhere.pem"},
      {"CA_ROOT_CA: SYSTEM", "x509: certificate signed by unknown authority"},
      {"ECC_SIGNATURE_ALGORITHM: ED25519",
       "failed to warm certificate: failed to generate workload certificate: csr cert generation fails due to "
       "unsupported EC signature algorithm"},
      {"WORKLOAD_RSA_KEY_SIZE: \"1024\"", "requested key size does not meet the minimum requied size of 2048"},
      {"JWT_POLICY: first-party-jwt", "code = Unauthenticated"},
      {"SERVICE_ACCOUNT: admin",
       "authorization failed: no identities ([spiffe://cluster.local/ns/sample/sa/sleep]) matched"},
      {"CA_PROVIDER: GoogleCA", "x509: certificate signed by unknown authority"},
      {"SECRET_TTL: 8760h", "requested TTL 8760h0m0s is greater than the max allowed TTL 2160h0m0s"},
  };
  for (const auto& [variable, words] : kTold) {
    Make("", "[discovery]", "{proxy.istio.io/config: 'proxyMetadata: {" + std::string(variable) + "}'}");
    const Ran ran = Apply();
    EXPECT_EQ(ran.code, 1) << variable;
    EXPECT_THAT(ran.output, AllOf(HasSubstr(words), Not(HasSubstr("without a sidecar")))) << variable;
  }
}

TEST_F(Variants, AnEnvoyThatIsToldToLogAtNoLevelEnds) {
  Make("", "[discovery]", "{sidecar.istio.io/logLevel: debugg}");
  EXPECT_THAT(Apply().output, HasSubstr("Envoy exited with error: exit status 1 (error: invalid log level specified "
                                        "'debugg')"));
}

TEST_F(Variants, AnAgentsVariableThatCannotBeReadIsItsDefault) {
  Make("", "[discovery]", "{proxy.istio.io/config: 'proxyMetadata: {SECRET_TTL: 1d}'}");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output + ran.error, HasSubstr("Invalid environment variable value `1d`, expecting a duration, "
                                                "defaulting to 24h0m0s"));
}

// kubernetes: the admission plugins ResourceQuota and LimitRanger; the controller tries again and again.
TEST_F(Variants, APodThatItsNamespaceHasNoRoomForIsToldWithTheApiServersWords) {
  Make();
  Write("c1/quota.yaml",
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few, namespace: sample}\nspec: {hard: {pods: '0'}}\n");
  Ran ran = Apply();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr(" was not stored: pods \"sleep-"), HasSubstr("is forbidden: exceeded quota: few, "),
                    Not(HasSubstr("ResourceQuota (core) is stored here"))));
  Write("c1/quota.yaml",
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: sample}\n"
        "spec: {limits: [{type: Container, max: {cpu: 10m}}]}\n");
  ran = Apply();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("is forbidden: [maximum cpu usage per Container is 10m"));
}

// istiod: manifests/charts/istio-control/istio-discovery/files/injection-template.yaml: istio-iptables is told it.
TEST_F(Variants, AnotherProxyListenPortIsWhereConnectionsAreRedirected) {
  Make();
  Write("c1/mesh.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n"
        "data: {mesh: \"proxyListenPort: 15077\\nproxyInboundListenPort: 15078\"}\n");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output, testing::ContainsRegex("sleep.sample +c1 +helloworld.sample:5000 +c1 [0-9], c2 [0-9] "));
}

// With another pool, or none for the address, the way in is another's, or nobody's.
TEST_F(Variants, PoolsOfMetalLbThatOverlapOrThatNobodyAnnouncesAreTold) {
  Make();
  const auto pool = [](const std::string& more, const std::string& ns) {
    return "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: p, namespace: " + ns +
           "}\nspec: {addresses: [172.18.11.0/24]}\n" + more;
  };
  const std::string announced =
      "---\napiVersion: metallb.io/v1beta1\nkind: L2Advertisement\nmetadata: {name: a, namespace: metallb-system}\n";
  Write("c1/pool.yaml", pool(announced, "metallb-system"));
  Write("c2/pool.yaml", pool(announced, "metallb-system"));
  const std::string mesh = " " + (folder_ / "c1").string() + " " + (folder_ / "c2").string();
  Ran ran = Apply();
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("the ranges of load balancers of c1 and c2 overlap"), HasSubstr("172.18.11.0 "),
                    testing::ContainsRegex("sleep.sample +c1 +helloworld.sample:5000 +c1 8 "),
                    testing::ContainsRegex("sleep.sample +c2 +helloworld.sample:5000 +c2 8 ")));
  EXPECT_THAT(Call("check" + mesh).output, HasSubstr("WT131 LoadBalancerAddressTwice"));

  std::filesystem::remove(folder_ / "c1/pool.yaml");
  Write("c2/pool.yaml", pool("", "metallb-system"));
  ran = Apply();
  EXPECT_THAT(ran.output, AllOf(HasSubstr("172.18.11.0 "),
                                HasSubstr("172.18.11.0:15443: nothing answered within the connect timeout")));
  EXPECT_THAT(Call("check" + mesh).output, HasSubstr("WT132 LoadBalancerUnannounced"));

  Write("c2/pool.yaml", pool(announced, "default"));
  ran = Apply();
  EXPECT_THAT(
      ran.output,
      AllOf(HasSubstr("IPAddressPool p is in namespace default, and MetalLB reads those of metallb-system alone"),
            testing::ContainsRegex("c2 +istio-system +istio-eastwestgateway +LoadBalancer +[0-9.]+ +<pending>")));
}

TEST_F(Variants, EndpointsThatAreNoAddressesAreRefusedAsAnApiServerDoes) {
  Make();
  Write("c2/remote.yaml",
        "apiVersion: v1\nkind: Endpoints\nmetadata: {name: istiod-remote, namespace: istio-system}\n"
        "subsets: [{addresses: [{ip: '192.168.1.1:15010'}], ports: [{port: 15012, name: tcp-istiod}]}]\n");
  const Ran ran = Apply();
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error,
              HasSubstr("subsets[0].addresses[0].ip: Invalid value: \"192.168.1.1:15010\": must be a valid IP "
                        "address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
}

// grpc-go's words for a server that knows no gRPC, and for a name that nobody has.
TEST_F(Variants, AnAgentThatIsLedElsewhereSaysWhatItMet) {
  const std::pair<const char*, const char*> kTold[] = {
      {"discoveryAddress: 'istiod.istio-system.svc:443'",
       "code = Unimplemented desc = unexpected HTTP status code received from server: 404 (Not Found); transport: "
       "received "
       "unexpected content-type"},
      {"discoveryAddress: 'istiod.istio-sytem.svc:15012'",
       "transport: Error while dialing: dial tcp: lookup istiod.istio-sytem.svc: no such host"}};
  for (const auto& [config, words] : kTold) {
    Make();
    Write("c1/mesh.yaml",
          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n"
          "data:\n  mesh: |\n    defaultConfig: {" +
              std::string(config) + "}\n");
    const Ran ran = Apply();
    EXPECT_EQ(ran.code, 1) << config;
    EXPECT_THAT(ran.output, HasSubstr(words)) << config;
  }
}

TEST_F(Variants, AScenarioGivesRemoteSecretsWhereThatIsChosen) {
  Make();
  std::string scenario = "name: chosen\nclusters:\n";
  for (const std::string n : {"1", "2"}) {
    scenario += "  - {name: c" + n + ", network: network" + n + ", manifests: [c" + n + "]}\n";
  }
  Write("scenario.yaml", scenario);
  const std::string run =
      "run " + (folder_ / "scenario.yaml").string() + " --until 20s --mend istiod,rbac,roots,network";
  EXPECT_THAT(Call(run).output, Not(HasSubstr("mended tokens")));
  const Ran ran = Call(run + ",tokens");
  EXPECT_THAT(ran.output,
              HasSubstr("mended tokens (c1, c2): a remote Secret for each other cluster was given to istiod"));
}

// One cluster brings its control plane, the other forgot it: that is no sketch.
TEST_F(Variants, AClusterWithoutTheIstiodThatOthersBringGetsNone) {
  Make();
  std::filesystem::remove(folder_ / "c2/istiod.yaml");
  const Ran ran = Call("check " + (folder_ / "c1").string() + " " + (folder_ / "c2").string());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("no istiod serves c2"));
  EXPECT_THAT(ran.error, Not(HasSubstr("c2): istiod, its Service")));
}

}  // namespace
}  // namespace wavetank
