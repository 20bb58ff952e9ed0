#include "core/security/istiod_ca.h"

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/security/namespace_controller.h"
#include "core/security/remote_secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/security/year.h"

namespace wavetank::security {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IstiodCaTest : public ::testing::Test {
 protected:
  void PutCacerts(const std::map<std::string, std::string>& data) {
    client.Put(kube::MakeSecret("istio-system", "cacerts", {data.begin(), data.end()})->body);
  }
  absl::Status Start(Duration wait = 1s) {
    const auto out = std::make_shared<absl::Status>(absl::UnknownError("no answer"));
    istiod.Start([out](absl::Status status) { *out = std::move(status); });  // it may answer later than we wait
    kernel.RunUntil(kernel.Now() + wait);
    return *out;
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  IstiodCa istiod{host, client, {.seed = 1, .cluster = "cluster1"}};
  x509::CertificateAuthority root = x509::MakeRootCa(1, "Root CA", Time{}, 10 * kYear);
  x509::CertificateAuthority plugged = x509::MakeIntermediateCa(1, "a", root, Time{}, kYear);
};

TEST_F(IstiodCaTest, CacertsArePluggedIn) {
  PutCacerts(x509::CaCertsSecretData(plugged));
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(istiod.plugged_in());
  EXPECT_EQ(istiod.ca_bundle_pem(), root.root->ToPem());
  EXPECT_TRUE(x509::Verify(istiod.serving_certificate().chain, *x509::TrustBundle::Of({root.root}), kernel.Now()).ok());
  EXPECT_THAT(istiod.serving_certificate().chain[0]->sans().dns_names, ElementsAre("istiod.istio-system.svc"));
  EXPECT_EQ(client.Find(kube::kinds::kSecret, "istio-system", "istio-ca-secret"), nullptr);
}

TEST_F(IstiodCaTest, ALookAtItsOwnRootMayLieBeyondTheEndOfTime) {
  IstiodCa patient{host, client, {.seed = 1, .cluster = "cluster1", .root_check_interval = Duration::max()}};
  absl::Status started = absl::UnknownError("no answer");
  patient.Start([&started](absl::Status status) { started = std::move(status); });
  Run(10s);
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_FALSE(patient.plugged_in());
}

TEST_F(IstiodCaTest, TlsSecretIsPluggedInToo) {
  PutCacerts({{"tls.crt", plugged.certificate->ToPem()},
              {"tls.key", plugged.key->ExportPrivateKeyPem()},
              {"ca.crt", root.root->ToPem()}});
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(istiod.plugged_in());
  EXPECT_EQ(istiod.serving_certificate().chain.size(), 3u);
}

TEST_F(IstiodCaTest, BadCacertsStopIstiodWithOneClearError) {
  auto data = x509::CaCertsSecretData(plugged);
  data["ca-cert.pem"] = "no certificate";
  PutCacerts(data);
  EXPECT_THAT(std::string(Message(Start())),
              HasSubstr("Secret istio-system/cacerts, key ca-cert.pem, is not a certificate"));
  EXPECT_EQ(istiod.ca(), nullptr);
}

TEST_F(IstiodCaTest, WithoutCacertsItSignsItselfAndRemembers) {
  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(istiod.plugged_in());
  const auto secret = client.Find(kube::kinds::kSecret, "istio-system", "istio-ca-secret");
  ASSERT_NE(secret, nullptr);
  EXPECT_EQ(secret->body["type"], "istio.io/ca-root");
  IstiodCa again(host, client, {.seed = 99, .cluster = "another seed must not matter"});
  absl::Status status = absl::UnknownError("");
  again.Start([&](absl::Status s) { status = s; });
  Run(1s);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(again.ca_bundle_pem(), istiod.ca_bundle_pem());
}

TEST_F(IstiodCaTest, RootsAloneInCacertsAreAddedToASelfSignedRoot) {
  PutCacerts({{"root-cert.pem", root.root->ToPem()}});
  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(istiod.plugged_in());
  EXPECT_EQ(istiod.ca()->bundle()->roots()->roots().size(), 2u);
}

TEST_F(IstiodCaTest, WaitsForTheApiServer) {
  client.refusing = true;
  EXPECT_FALSE(Start(5s).ok());
  client.refusing = false;
  Run(10s);
  EXPECT_NE(istiod.ca(), nullptr);
}

TEST_F(IstiodCaTest, GivesUpAfterTwentyMinutes) {
  client.refusing = true;
  EXPECT_THAT(std::string(Message(Start(22min))), HasSubstr("deadline exceeded with last error: connection refused"));
}

TEST_F(IstiodCaTest, NewIntermediateIsTakenOverAfterTheMountRefreshed) {
  PutCacerts(x509::CaCertsSecretData(plugged));
  ASSERT_TRUE(Start().ok());
  Run(2min);
  int changes = 0;
  istiod.AddBundleHandler([&] { ++changes; });
  const auto next = x509::MakeIntermediateCa(1, "b", root, kernel.Now(), kYear);
  PutCacerts(x509::CaCertsSecretData(next));
  Run(29s);
  EXPECT_EQ(istiod.ca()->bundle()->certificate().der(), plugged.certificate->der());
  Run(2s);
  EXPECT_EQ(istiod.ca()->bundle()->certificate().der(), next.certificate->der());
  EXPECT_EQ(istiod.serving_certificate().chain[1]->der(), next.certificate->der());
  EXPECT_EQ(changes, 1);
}

TEST_F(IstiodCaTest, NewRootIsNotTakenOver) {
  PutCacerts(x509::CaCertsSecretData(plugged));
  ASSERT_TRUE(Start().ok());
  const auto other = x509::MakeRootCa(2, "Other", Time{}, kYear);
  PutCacerts(x509::CaCertsSecretData(x509::MakeIntermediateCa(2, "b", other, Time{}, kYear)));
  Run(2min);
  EXPECT_EQ(istiod.ca_bundle_pem(), root.root->ToPem());
  EXPECT_THAT(std::string(Message(istiod.last_reload())), HasSubstr("roots differ"));
}

TEST_F(IstiodCaTest, DamagedCacertsLeaveTheOldOnesInForce) {
  PutCacerts(x509::CaCertsSecretData(plugged));
  ASSERT_TRUE(Start().ok());
  auto data = x509::CaCertsSecretData(plugged);
  data["ca-cert.pem"] = "no certificate";
  PutCacerts(data);
  Run(2min);
  EXPECT_EQ(istiod.ca()->bundle()->certificate().der(), plugged.certificate->der());
  EXPECT_THAT(std::string(Message(istiod.last_reload())), HasSubstr("is not a certificate"));
}

TEST_F(IstiodCaTest, CacertsThatAppearLaterAreIgnoredByASelfSignedIstiod) {
  ASSERT_TRUE(Start().ok());
  const std::string before = istiod.ca_bundle_pem();
  PutCacerts(x509::CaCertsSecretData(plugged));
  Run(2h);
  EXPECT_EQ(istiod.ca_bundle_pem(), before);
}

TEST_F(IstiodCaTest, SelfSignedRootIsRenewedInItsLastFifth) {
  IstiodCa short_lived(host, client, {.seed = 1, .cluster = "c", .ca = {.self_signed_ttl = 100h}});
  short_lived.Start([](absl::Status s) { ASSERT_TRUE(s.ok()) << s; });
  Run(1s);
  const std::string before = short_lived.ca_bundle_pem();
  Run(79h);
  EXPECT_EQ(short_lived.ca_bundle_pem(), before);
  Run(3h);
  EXPECT_NE(short_lived.ca_bundle_pem(), before);
  EXPECT_EQ(short_lived.ca()->bundle()->certificate().not_after() > Time{} + 175h, true);
}

TEST(IstiodDnsNames, AreThoseOfNewServer) {
  EXPECT_THAT(IstiodDnsNames("istiod.istio-system.svc", "istio-system", "canary", {"istiod.example.com"}),
              ElementsAre("istiod.istio-system.svc", "istiod.example.com", "istiod-remote.istio-system.svc",
                          "istio-pilot.istio-system.svc", "istiod-canary.istio-system.svc"));
  // The host of the mesh's discoveryAddress comes first, and does not keep the known names away.
  EXPECT_THAT(IstiodDnsNames("istiod-1-11-4.istio-system.svc", "istio-system", "1-11-4", {}),
              ElementsAre("istiod-1-11-4.istio-system.svc", "istiod.istio-system.svc", "istiod-remote.istio-system.svc",
                          "istio-pilot.istio-system.svc"));
}

nlohmann::json Namespace(const std::string& name, const nlohmann::json& annotations = nlohmann::json::object()) {
  return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}, {"annotations", annotations}}}};
}

class NamespaceControllerTest : public ::testing::Test {
 protected:
  std::string Root(const std::string& ns) {
    const auto map = client.Find(kube::kinds::kConfigMap, ns, "istio-ca-root-cert");
    return map == nullptr ? "none" : map->body["data"]["root-cert.pem"].get<std::string>();
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  std::string bundle = "root 1";
  NamespaceController controller{host, client, "cluster1", 1, [this] { return bundle; }};
};

TEST_F(NamespaceControllerTest, EveryNamespaceButKubernetesOwnGetsTheRoot) {
  client.Put(Namespace("sample"));
  client.Put(Namespace("kube-system"));
  controller.Start();
  Run(1s);
  client.Put(Namespace("later"));
  Run(1s);
  EXPECT_EQ(Root("sample"), "root 1");
  EXPECT_EQ(Root("later"), "root 1");
  EXPECT_EQ(Root("kube-system"), "none");
  EXPECT_EQ(controller.writes(), 2);
  const auto map = client.Find(kube::kinds::kConfigMap, "sample", "istio-ca-root-cert");
  EXPECT_EQ(map->meta.labels.at("istio.io/config"), "true");
}

TEST_F(NamespaceControllerTest, ChangedAndDeletedConfigMapsAreMended) {
  client.Put(Namespace("sample"));
  controller.Start();
  Run(1s);
  auto body = client.Find(kube::kinds::kConfigMap, "sample", "istio-ca-root-cert")->body;
  body["data"] = {{"root-cert.pem", "forged"}, {"mine", "stays"}};
  client.Put(body);
  Run(1s);
  EXPECT_EQ(Root("sample"), "root 1");
  EXPECT_EQ(client.Find(kube::kinds::kConfigMap, "sample", "istio-ca-root-cert")->body["data"]["mine"], "stays");
  client.Remove(kube::kinds::kConfigMap, "sample", "istio-ca-root-cert");
  Run(1s);
  EXPECT_EQ(Root("sample"), "root 1");
}

TEST_F(NamespaceControllerTest, BundleThatChangesDuringAWriteReachesTheNamespace) {
  client.Put(Namespace("sample"));
  controller.Start();
  Run(2ms);  // lists are in, the write is on its way
  bundle = "root 2";
  controller.OnBundleChanged();
  Run(1s);
  EXPECT_EQ(Root("sample"), "root 2");
}

TEST_F(NamespaceControllerTest, RefusedWritesAreRetriedAFewTimes) {
  client.Put(Namespace("sample"));
  controller.Start();
  Run(1ms);
  client.refusing = true;
  Run(1s);
  EXPECT_EQ(client.applies, 6);
  client.refusing = false;
  controller.OnBundleChanged();
  Run(1s);
  EXPECT_EQ(Root("sample"), "root 1");
}

TEST_F(NamespaceControllerTest, TerminatingNamespacesAreLeftAlone) {
  auto ns = Namespace("sample");
  ns["status"] = {{"phase", "Terminating"}};
  client.Put(ns);
  controller.Start();
  Run(1s);
  EXPECT_EQ(Root("sample"), "none");
}

TEST(ShouldLead, RemoteClustersAreLedOnlyByAnExternalIstiodThatTheyName) {
  const auto object = [](nlohmann::json body) { return kube::Object::FromJson(std::move(body)).value(); };
  const auto plain = object(Namespace("istio-system"));
  const auto named =
      object(Namespace("istio-system", {{"topology.istio.io/controlPlaneClusters", "cluster7,cluster1"}}));
  const auto any = object(Namespace("istio-system", {{"topology.istio.io/controlPlaneClusters", "*"}}));
  EXPECT_TRUE(ShouldLead("cluster1", "cluster1", false, nullptr));
  EXPECT_TRUE(ShouldLead("cluster1", "cluster2", true, named.get()));
  EXPECT_TRUE(ShouldLead("cluster1", "cluster2", true, any.get()));
  EXPECT_FALSE(ShouldLead("cluster1", "cluster2", false, named.get()));
  EXPECT_FALSE(ShouldLead("cluster1", "cluster2", true, plain.get()));
  EXPECT_FALSE(ShouldLead("cluster", "cluster2", true, named.get()));
  EXPECT_FALSE(ShouldLead("cluster1", "cluster2", true, nullptr));
}

TEST(RemoteSecret, CarriesAKubeconfigThatIstiodAccepts) {
  const auto ca = x509::MakeRootCa(1, "api", Time{}, kYear);
  const auto secret = MakeRemoteSecret(
      {.cluster = "cluster2", .server = "https://10.2.0.1:6443", .ca_pem = ca.root->ToPem(), .token = "a.b.c"});
  EXPECT_EQ(secret->meta.name, "istio-remote-secret-cluster2");
  EXPECT_EQ(secret->meta.labels.at("istio/multiCluster"), "true");
  EXPECT_EQ(secret->meta.annotations.at("networking.istio.io/cluster"), "cluster2");
  const auto config = kube::ParseKubeConfig(kube::ReadSecretData(*secret)->at("cluster2"), "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://10.2.0.1:6443");
  EXPECT_EQ(config->token, "a.b.c");
}

}  // namespace
}  // namespace wavetank::security
