// What istiod reads of files that are mounted into its pod, in a whole cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/config/mesh/mesh_config.h"
#include "core/registry/multicluster/registries.h"
#include "core/security/istiod_ca.h"
#include "core/x509/x509.h"
#include "core/xds/discovery_server.h"
#include "sim/istiod_process.h"
#include "sim/mending/installation.h"
#include "sim/world_site.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LocalFilesWorld : public TwoClusterWorld {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(TwoClusters(false));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    world_->on_istiod_log = [this](const std::string&, Time, const LogLine& line) { said.push_back(line.text); };
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
  }
  void Map(const std::string& name, const json& data) {
    Do("apply", {{"cluster", "cluster1"},
                 {"object",
                  {{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", name}, {"namespace", kSystemNamespace}}},
                   {"data", data}}}});
  }
  // istiod of cluster1, with that volume at that place.
  void Install(json volume, const std::string& path, json args = json::array({"discovery"})) {
    Do("install", {{"cluster", "cluster1"}});
    json patch = world_->cluster("cluster1").api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
    json& spec = patch["spec"]["template"]["spec"];
    volume["name"] = "files";
    spec["volumes"] = json::array({volume});
    spec["containers"][0]["volumeMounts"] = json::array({{{"name", "files"}, {"mountPath", path}}});
    spec["containers"][0]["args"] = std::move(args);
    Do("apply", {{"cluster", "cluster1"}, {"object", patch}});
    world_->RunUntilSettled(world_->Now() + 3min);
  }
  void Run(Duration duration) { world_->RunUntil(world_->Now() + duration); }
  const pilot::Istiod& Istiod() { return world_->IstiodOf("cluster1")->istiod(); }

  std::vector<std::string> said;
};

json ConfigMapVolume(const std::string& name) { return {{"configMap", {{"name", name}}}}; }

TEST_F(LocalFilesWorld, AMeshConfigThatIsMountedHoldsInsteadOfTheConfigMap) {
  Map("istio", {{"mesh", "trustDomain: of.the.map\n"}});
  Map("mounted", {{"mesh", "trustDomain: of.the.file\n"}});
  Install(ConfigMapVolume("mounted"), "/etc/istio/config");
  EXPECT_EQ(Istiod().mesh_config().trust_domain, "of.the.file");
  EXPECT_THAT(said, Contains("Using local mesh config file ./etc/istio/config/mesh, in cluster configs ignored"));
}

TEST_F(LocalFilesWorld, AChangedMeshConfigIsReadOnceTheKubeletHasBroughtIt) {
  Map("mounted", {{"mesh", "outboundTrafficPolicy: {mode: ALLOW_ANY}\n"}});
  Install(ConfigMapVolume("mounted"), "/etc/istio/config");
  const int64_t pushes = Istiod().discovery().inbound_updates();
  Map("mounted", {{"mesh", "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n"}});
  Run(2s);
  EXPECT_EQ(Istiod().discovery().inbound_updates(), pushes);
  Run(40s);
  EXPECT_GT(Istiod().discovery().inbound_updates(), pushes);
}

TEST_F(LocalFilesWorld, MeshConfigSaysWhereTheFileIs) {
  Map("mounted", {{"mesh.yaml", "trustDomain: elsewhere\n"}});
  Install(ConfigMapVolume("mounted"), "/other", json::array({"discovery", "--meshConfig=/other/mesh.yaml"}));
  EXPECT_EQ(Istiod().mesh_config().trust_domain, "elsewhere");
}

TEST_F(LocalFilesWorld, AFileThatIsNoMeshConfigIsAsIfItWereNotThere) {
  Map("istio", {{"mesh", "trustDomain: of.the.map\n"}});
  Map("mounted", {{"mesh", "trustDomain: [no\n"}});
  Install(ConfigMapVolume("mounted"), "/etc/istio/config");
  EXPECT_EQ(Istiod().mesh_config().trust_domain, "of.the.map");
}

TEST_F(LocalFilesWorld, NetworksComeFromTheFileBesideTheMeshConfig) {
  Map("mounted", {{"mesh", "trustDomain: cluster.local\n"},
                  {"meshNetworks",
                   "networks:\n  far:\n    endpoints: [{fromRegistry: other}]\n"
                   "    gateways: [{address: 1.2.3.4, port: 15443}]\n"}});
  Install(ConfigMapVolume("mounted"), "/etc/istio/config");
  EXPECT_THAT(Istiod().registries().networks().Gateways()->ForNetwork(pilot::NetworkId("far")), testing::SizeIs(1));
}

TEST_F(LocalFilesWorld, InjectionFollowsTheFilesThatAreMounted) {
  Do("install", {{"cluster", "cluster1"}});
  const kube::ObjectRef injector =
      world_->cluster("cluster1").api().Get("ConfigMap", {kSystemNamespace, "istio-sidecar-injector"});
  ASSERT_NE(injector, nullptr);
  json data = injector->body["data"];
  json values = json::parse(data["values"].get<std::string>());
  values["global"]["proxy"]["logLevel"] = "trace";
  data["values"] = values.dump();
  Map("mounted", data);
  Install(ConfigMapVolume("mounted"), "/var/lib/istio/inject");
  for (const char* file : {"sample", "sleep"}) Apply("cluster1", file);
  world_->RunUntilSettled(world_->Now() + 1min);
  const auto pods = world_->Pods("cluster1", "sample", "sleep");
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_THAT(pods.front()->pod()->body.dump(), HasSubstr("--proxyLogLevel=trace"));
}

TEST_F(LocalFilesWorld, InjectionWithoutItsValuesKeepsIstiodFromStarting) {
  Map("mounted", {{"config", "policy: enabled\n"}});
  Install(ConfigMapVolume("mounted"), "/var/lib/istio/inject");
  EXPECT_THAT(world_->Complaints(),
              Contains(HasSubstr("open ./var/lib/istio/inject/values: no such file or directory")));
}

TEST_F(LocalFilesWorld, ACertificateThatIsMountedIsShownInsteadOfOneOfItsCa) {
  const x509::CertificateAuthority root = x509::MakeRootCa(99, "somebody", Time{}, 24h * 365);
  const x509::KeyPairRef key = x509::KeyPair::Derive(99, "istiod");
  x509::CertificateSpec spec;
  spec.subject.common_name = "istiod";
  spec.sans = {"istiod.istio-system.svc"};
  spec.not_before = Time{};
  spec.not_after = Time{} + 24h * 90;
  const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *root.certificate, *root.key);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  const auto secret = [&](const std::string& text) { return absl::Base64Escape(text); };
  ASSERT_TRUE(world_->cluster("cluster1")
                  .api()
                  .Apply({{"apiVersion", "v1"},
                          {"kind", "Secret"},
                          {"type", "kubernetes.io/tls"},
                          {"metadata", {{"name", "istiod-tls"}, {"namespace", kSystemNamespace}}},
                          {"data",
                           {{"tls.crt", secret((*leaf)->ToPem())},
                            {"tls.key", secret(key->ExportPrivateKeyPem())},
                            {"ca.crt", secret(root.certificate->ToPem())}}}})
                  .ok());
  Install({{"secret", {{"secretName", "istiod-tls"}}}}, "/var/run/secrets/istiod/tls");
  ASSERT_NE(Istiod().serving_certificate(), nullptr);
  EXPECT_EQ(Istiod().serving_certificate()->chain.front()->serial(), (*leaf)->serial());
  EXPECT_EQ(Istiod().ca_bundle_pem(), root.certificate->ToPem());
}

// Without a right host it is refused.
std::string VirtualServiceFile(const std::string& name, bool with_hosts = true) {
  return "apiVersion: networking.istio.io/v1beta1\nkind: VirtualService\nmetadata: {name: " + name +
         ", namespace: sample}\nspec: {hosts: [" + (with_hosts ? name + ".example" : "no good") +
         "], http: [{route: [{destination: {host: " + name + ".example}}]}]}\n";
}

class ConfigurationsInFiles : public LocalFilesWorld {
 protected:
  void SetUp() override {
    LocalFilesWorld::SetUp();
    Do("apply",
       {{"cluster", "cluster1"},
        {"object",
         {{"apiVersion", "networking.istio.io/v1beta1"},
          {"kind", "VirtualService"},
          {"metadata", {{"name", "of-the-cluster"}, {"namespace", "default"}}},
          {"spec",
           {{"hosts", {"c.example"}}, {"http", {{{"route", {{{"destination", {{"host", "c.example"}}}}}}}}}}}}}});
  }
  std::vector<std::string> VirtualServices() {
    std::vector<std::string> out;
    for (const kube::ObjectRef& object : Istiod().config_objects().Objects()) {
      if (object->kind == "VirtualService") out.push_back(object->meta.name);
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

TEST_F(ConfigurationsInFiles, OfConfigDirHoldInsteadOfTheClusters) {
  Map("files", {{"a.yaml", VirtualServiceFile("a") + "---\n" + VirtualServiceFile("b")},
                {"notes.txt", "no: [yaml"},
                {"pod.yml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"}});
  Install(ConfigMapVolume("files"), "/etc/files", json::array({"discovery", "--configDir=/etc/files"}));
  EXPECT_THAT(VirtualServices(), testing::ElementsAre("a", "b"));
}

TEST_F(ConfigurationsInFiles, FollowTheirFolderUnlessAFileIsRefused) {
  Map("files", {{"a.yaml", VirtualServiceFile("a")}});
  Install(ConfigMapVolume("files"), "/etc/files", json::array({"discovery", "--configDir=/etc/files"}));
  const int64_t pushes = Istiod().discovery().inbound_updates();
  Map("files", {{"b.yaml", VirtualServiceFile("b")}});
  Run(40s);
  EXPECT_THAT(VirtualServices(), testing::ElementsAre("b"));
  EXPECT_GT(Istiod().discovery().inbound_updates(), pushes);
  Map("files", {{"b.yaml", VirtualServiceFile("b", false)}, {"c.yaml", VirtualServiceFile("c")}});
  Run(40s);
  EXPECT_THAT(VirtualServices(), testing::ElementsAre("b"));
  EXPECT_THAT(said, Contains(HasSubstr("checkAndUpdate Error Caught file-monitor: Failed to parse /etc/files/b.yaml")));
  Map("files", {{"c.yaml", VirtualServiceFile("c")}});
  Run(40s);
  EXPECT_THAT(VirtualServices(), testing::ElementsAre("c"));
}

TEST_F(ConfigurationsInFiles, StandBesideTheClustersWhereTheMeshNamesBoth) {
  Map("istio", {{"mesh", "configSources: [{address: 'fs:///etc/files'}, {address: 'k8s://'}]\n"}});
  Map("files", {{"a.yaml", VirtualServiceFile("a")}});
  Install(ConfigMapVolume("files"), "/etc/files");
  EXPECT_THAT(VirtualServices(), testing::ElementsAre("a", "of-the-cluster"));
  EXPECT_THAT(said, Contains("Started File configSource fs:///etc/files"));
}

TEST_F(ConfigurationsInFiles, OfAServerThatNobodyRunsKeepIstiodFromStarting) {
  Map("istio", {{"mesh", "configSources: [{address: 'xds://mcp.example:15010'}]\n"}});
  Install(ConfigMapVolume("none"), "/none");
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("MCP: failed running")));
}

TEST_F(LocalFilesWorld, ARegistryThat1182DoesNotHaveKeepsIstiodFromStarting) {
  Install(ConfigMapVolume("none"), "/none", json::array({"discovery", "--registries=Kubernetes,Mock"}));
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("service registry Mock is not supported")));
}

}  // namespace
}  // namespace wavetank::sim
