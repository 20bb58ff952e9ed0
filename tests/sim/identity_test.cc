// Who signs, who is healthy and how fast tokens are reviewed, in a whole mesh.
#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "core/agent/secret_manager.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/x509/x509.h"
#include "sim/mending/installation.h"
#include "sim/remote/client_bucket.h"
#include "sim/world_site.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class IdentityWorld : public TwoClusterWorld {
 protected:
  void Begin() {
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(TwoClusters(false));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    Do("install", {{"cluster", "cluster1"}});
  }
  void Put(const json& object) { Do("apply", {{"cluster", "cluster1"}, {"object", object}}); }
  void MeshConfig(const json& mesh) {
    Put({{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata", {{"name", "istio"}, {"namespace", kSystemNamespace}}},
         {"data", {{"mesh", JsonText(mesh)}}}});
  }
  void Istiod(json env) {
    env.push_back({{"name", "CLUSTER_ID"}, {"value", "cluster1"}});
    json patch = api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
    patch["spec"]["template"]["spec"]["containers"][0]["env"] = std::move(env);
    Put(patch);
    Settle();
  }
  void Sleep() {
    for (const char* file : {"sample", "sleep"}) Apply("cluster1", file);
    Settle();
  }
  void Settle() { world_->RunUntilSettled(world_->Now() + 3min); }
  const fakekube::ApiServer& api() { return world_->cluster("cluster1").api(); }
  const PodProcess* SleepPod() {
    for (const PodProcess* pod : world_->Pods()) {
      if (pod->app() == "sleep") return pod;
    }
    return nullptr;
  }
  // An authority of cert-manager's, as its guides set one up: self-signed, then signing. Its root.
  std::string ClusterIssuer() {
    const auto issuer = [](const char* name, json spec) {
      return json{{"apiVersion", "cert-manager.io/v1"},
                  {"kind", "ClusterIssuer"},
                  {"metadata", {{"name", name}}},
                  {"spec", std::move(spec)}};
    };
    Put({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "cert-manager"}}}});
    Put(issuer("self", {{"selfSigned", json::object()}}));
    Put({{"apiVersion", "cert-manager.io/v1"},
         {"kind", "Certificate"},
         {"metadata", {{"name", "mesh-ca"}, {"namespace", "cert-manager"}}},
         {"spec",
          {{"isCA", true},
           {"commonName", "mesh-ca"},
           {"secretName", "mesh-ca"},
           {"issuerRef", {{"name", "self"}, {"kind", "ClusterIssuer"}}}}}});
    Put(issuer("mesh", {{"ca", {{"secretName", "mesh-ca"}}}}));
    world_->RunUntil(world_->Now() + 1s);
    const kube::ObjectRef secret = api().Get("Secret", {"cert-manager", "mesh-ca"});
    std::string pem;
    if (secret != nullptr) absl::Base64Unescape(Text(At(secret->body, "data"), "tls.crt"), &pem);
    EXPECT_NE(pem, "");
    return pem;
  }
};

constexpr const char* kSigners = "clusterissuers.cert-manager.io";

json MeshOfSigner(const std::string& root) {
  return {{"caCertificates",
           json::array({{{"pem", root}, {"certSigners", json::array({std::string(kSigners) + "/mesh"})}}})},
          {"defaultConfig", {{"proxyMetadata", {{"ISTIO_META_CERT_SIGNER", "mesh"}}}}}};
}

TEST_F(IdentityWorld, ASignerOfTheClusterSignsForWorkloadsThatNameIt) {
  Begin();
  MeshConfig(MeshOfSigner(ClusterIssuer()));
  Istiod(json::array({{{"name", "EXTERNAL_CA"}, {"value", "ISTIOD_RA_KUBERNETES_API"}},
                      {{"name", "CERT_SIGNER_DOMAIN"}, {"value", kSigners}}}));
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
  ASSERT_NE(SleepPod(), nullptr);
  ASSERT_NE(SleepPod()->agent()->certificate(), nullptr);
  EXPECT_EQ(SleepPod()->agent()->certificate()->issuer(), "CN=mesh-ca");
  EXPECT_THAT(api().List("CertificateSigningRequest"), IsEmpty());
}

TEST_F(IdentityWorld, ASignerThatNobodyIsLeavesWorkloadsWithoutCertificates) {
  Begin();
  json mesh = MeshOfSigner(ClusterIssuer());
  mesh["defaultConfig"]["proxyMetadata"]["ISTIO_META_CERT_SIGNER"] = "nobody";
  MeshConfig(mesh);
  Istiod(json::array({{{"name", "EXTERNAL_CA"}, {"value", "ISTIOD_RA_KUBERNETES_API"}},
                      {{"name", "CERT_SIGNER_DOMAIN"}, {"value", kSigners}}}));
  Sleep();
  EXPECT_THAT(
      world_->Unready(),
      testing::ElementsAre(HasSubstr("CSR signing error (no certificate returned for the CSR: \"csr-workload-")));
}

TEST_F(IdentityWorld, AnExternalCaThat1182CannotSpeakToKeepsIstiodDown) {
  Begin();
  Istiod(json::array({{{"name", "EXTERNAL_CA"}, {"value", "ISTIOD_RA_ISTIO_API"}}}));
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("invalid CA Name ISTIOD_RA_ISTIO_API")));
}

TEST_F(IdentityWorld, AMachineWhoseApplicationFailsIsNoEndpointUntilItIsWellAgain) {
  Begin();
  MeshConfig({{"defaultConfig",
               {{"proxyMetadata", {{"ISTIO_META_AUTO_REGISTER_GROUP", "machines"}}},
                {"readinessProbe", {{"periodSeconds", 5}, {"exec", {{"command", json::array({"true"})}}}}}}}});
  Istiod(json::array());
  Apply("cluster1", "sample");
  Put({{"apiVersion", "networking.istio.io/v1alpha3"},
       {"kind", "WorkloadGroup"},
       {"metadata", {{"name", "machines"}, {"namespace", "sample"}}},
       {"spec", {{"template", {{"serviceAccount", "sleep"}}}}}});
  Put({{"apiVersion", "networking.istio.io/v1beta1"},
       {"kind", "ServiceEntry"},
       {"metadata", {{"name", "machines"}, {"namespace", "sample"}}},
       {"spec",
        {{"hosts", json::array({"machines.example"})},
         {"location", "MESH_INTERNAL"},
         {"resolution", "STATIC"},
         {"ports", json::array({{{"number", 80}, {"name", "http"}, {"protocol", "HTTP"}}})},
         {"workloadSelector", {{"labels", {{"app", "sleep"}}}}}}}});
  Sleep();
  const auto healthy = [&]() -> std::string {
    const auto entries = api().List("WorkloadEntry", "sample");
    if (entries.size() != 1) return "no entry";
    for (const json& condition : Items(At(entries.front()->body, {"status", "conditions"}))) {
      if (Text(condition, "type") == "Healthy") return Text(condition, "status");
    }
    return "unknown";
  };
  world_->RunUntil(world_->Now() + 20s);  // the first probe may come before the application answers
  EXPECT_EQ(healthy(), "True");
  Do("behaviour", {{"app", "sleep"}, {"ready", false}});
  world_->RunUntil(world_->Now() + 20s);
  EXPECT_EQ(healthy(), "False");
  Do("behaviour", {{"app", "sleep"}, {"ready", true}});
  world_->RunUntil(world_->Now() + 20s);
  EXPECT_EQ(healthy(), "True");
}

TEST(ClientBucketTest, TenRequestsAtOnceThenFiveASecond) {
  ClientBucket bucket;
  const Time now = Time{} + 1h;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(bucket.Take(now), Duration::zero()) << i;
  EXPECT_EQ(bucket.Take(now), 200ms);
  EXPECT_EQ(bucket.Take(now), 400ms);
  EXPECT_EQ(bucket.Take(now + 10s), Duration::zero());
}

// PROV_CERT: what somebody else has given the machine, before istiod does (istiod: pkg/istio-agent/agent.go,
// GetKeyCertsForXDS).
class ProvisionedIdentity : public IdentityWorld {
 protected:
  // A pod whose agent has a certificate of `authority` at PROV_CERT, and no token.
  void SleepWith(const std::string& authority) {
    MeshConfig({{"defaultConfig", {{"proxyMetadata", {{"PROV_CERT", "/etc/provisioned"}, {"JWT_POLICY", "none"}}}}}});
    Settle();
    const x509::CertificateAuthority ca =
        x509::MakeRootCa(world_->options().seed, authority, Time{}, std::chrono::hours(24 * 3650));
    const x509::KeyPairRef key = x509::KeyPair::Derive(7, "machine");
    x509::CertificateSpec spec;
    spec.sans = {"spiffe://cluster.local/ns/sample/sa/default"};
    spec.not_after = Time{} + std::chrono::hours(24 * 365);
    const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *ca.certificate, *ca.key);
    ASSERT_TRUE(leaf.ok()) << leaf.status();
    Put({{"apiVersion", "v1"},
         {"kind", "Namespace"},
         {"metadata", {{"name", "sample"}, {"labels", {{"istio-injection", "enabled"}}}}}});
    Put({{"apiVersion", "v1"},
         {"kind", "Secret"},
         {"metadata", {{"name", "provisioned"}, {"namespace", "sample"}}},
         {"stringData",
          {{"cert-chain.pem", (*leaf)->ToPem()},
           {"key.pem", key->ExportPrivateKeyPem()},
           {"root-cert.pem", world_->IstiodOf("cluster1")->istiod().ca_bundle_pem()}}}});
    const json annotations = {
        {"sidecar.istio.io/userVolume", R"({"provisioned": {"secret": {"secretName": "provisioned"}}})"},
        {"sidecar.istio.io/userVolumeMount", R"({"provisioned": {"mountPath": "/etc/provisioned"}})"}};
    const json labels = {{"app", "sleep"}};
    Put({{"apiVersion", "apps/v1"},
         {"kind", "Deployment"},
         {"metadata", {{"name", "sleep"}, {"namespace", "sample"}}},
         {"spec",
          {{"selector", {{"matchLabels", labels}}},
           {"template",
            {{"metadata", {{"labels", labels}, {"annotations", annotations}}},
             {"spec", {{"containers", json::array({{{"name", "sleep"}, {"image", "curl"}}})}}}}}}}});
    Settle();
  }
  std::string Trouble() { return SleepPod() == nullptr ? "no pod" : SleepPod()->Trouble(); }
};

TEST_F(ProvisionedIdentity, ACertificateOfTheMeshTakesTheTokensPlace) {
  Begin();
  Istiod(json::array());
  SleepWith("root/root");
  EXPECT_EQ(Trouble(), "");
}

TEST_F(ProvisionedIdentity, ACertificateOfStrangersIsRefusedInTheHandshake) {
  Begin();
  Istiod(json::array());
  SleepWith("strangers");
  EXPECT_THAT(Trouble(), HasSubstr("remote error: tls: bad certificate"));
}

// cert-manager's istio-csr, as its chart installs it, and an istiod without an authority whose certificate is a Secret.
class SignedByIstioCsr : public IdentityWorld {
 protected:
  static constexpr const char* kNs = "cert-manager";
  static constexpr const char* kApp = "cert-manager-istio-csr";

  // `arguments` come after the chart's, and so in their place. `certificate`: the chart makes istiod's.
  void Csr(const json& arguments, bool certificate = true) {
    Put({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kNs}}}});
    const json issuer = {{"name", "mesh"}, {"kind", "ClusterIssuer"}, {"group", "cert-manager.io"}};
    if (certificate) {
      Put({{"apiVersion", "cert-manager.io/v1"},
           {"kind", "Certificate"},
           {"metadata", {{"name", "istiod"}, {"namespace", kSystemNamespace}}},
           {"spec",
            {{"commonName", "istiod.istio-system.svc"},
             {"dnsNames", json::array({"istiod.istio-system.svc"})},
             {"secretName", "istiod-tls"},
             {"duration", "1h"},
             {"renewBefore", "30m"},
             {"issuerRef", issuer}}}});
    }
    Put({{"apiVersion", "v1"},
         {"kind", "Service"},
         {"metadata", {{"name", kApp}, {"namespace", kNs}}},
         {"spec", {{"selector", {{"app", kApp}}}, {"ports", json::array({{{"port", 443}, {"targetPort", 6443}}})}}}});
    json args = json::array({"--issuer-name=mesh", "--issuer-kind=ClusterIssuer", "--cluster-id=cluster1"});
    for (const json& argument : arguments) args.push_back(argument);
    const json container = {{"name", kApp},
                            {"image", "quay.io/jetstack/cert-manager-istio-csr:v0.7.0"},
                            {"args", args},
                            {"ports", json::array({{{"containerPort", 6443}}})}};
    Put({{"apiVersion", "apps/v1"},
         {"kind", "Deployment"},
         {"metadata", {{"name", kApp}, {"namespace", kNs}}},
         {"spec",
          {{"selector", {{"matchLabels", {{"app", kApp}}}}},
           {"template",
            {{"metadata", {{"labels", {{"app", kApp}}}}}, {"spec", {{"containers", json::array({container})}}}}}}}});
  }
  void IstiodWithoutCa() {
    MeshConfig({{"defaultConfig", {{"proxyMetadata", {{"CA_ADDR", "cert-manager-istio-csr.cert-manager.svc:443"}}}}}});
    json patch = api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
    json& spec = patch["spec"]["template"]["spec"];
    spec["containers"][0]["env"] = json::array(
        {{{"name", "ENABLE_CA_SERVER"}, {"value", "false"}}, {{"name", "CLUSTER_ID"}, {"value", "cluster1"}}});
    spec["containers"][0]["volumeMounts"] =
        json::array({{{"name", "own"}, {"mountPath", "/var/run/secrets/istiod/tls"}}});
    spec["volumes"] = json::array({{{"name", "own"}, {"secret", {{"secretName", "istiod-tls"}, {"optional", true}}}}});
    Put(patch);
    Settle();
  }
  std::string Trouble() { return SleepPod() == nullptr ? "no pod" : SleepPod()->Trouble(); }
};

TEST_F(SignedByIstioCsr, WorkloadsHaveItsIssuersCertificatesForAnHour) {
  Begin();
  const std::string root = ClusterIssuer();
  Csr(json::array());
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
  EXPECT_THAT(world_->Complaints(), IsEmpty());
  ASSERT_NE(SleepPod(), nullptr);
  const x509::CertificateRef leaf = SleepPod()->agent()->certificate();
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(leaf->issuer(), "CN=mesh-ca");
  EXPECT_EQ(leaf->not_after() - leaf->not_before(), std::chrono::hours(1));
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().ca_bundle_pem(), root);
  EXPECT_THAT(api().List("CertificateRequest.cert-manager.io"), IsEmpty());  // each goes when it is answered
}

TEST_F(SignedByIstioCsr, CertificatesAreRenewedBeforeTheHourIsOverIstiodsToo) {
  Begin();
  ClusterIssuer();
  Csr(json::array());
  IstiodWithoutCa();
  Sleep();
  world_->RunUntil(world_->Now() + std::chrono::hours(3));
  ASSERT_NE(SleepPod(), nullptr);
  ASSERT_NE(SleepPod()->agent()->certificate(), nullptr);
  EXPECT_GT(SleepPod()->agent()->certificate()->not_after(), world_->Now());
  EXPECT_GT(world_->IstiodOf("cluster1")->istiod().serving_certificate()->chain.front()->not_after(), world_->Now());
}

TEST_F(SignedByIstioCsr, AnIstiodThatStartsWithItWaitsForTheCertificateThatItMakes) {
  Begin();
  const std::string root = ClusterIssuer();
  Csr(json::array({"--istiod-cert-enabled=true", "--istiod-cert-istio-revisions=default"}), false);
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
  EXPECT_NE(api().Get("Certificate.cert-manager.io", {kSystemNamespace, "istiod-dynamic"}), nullptr);
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().ca_bundle_pem(), root);
}

// istio-csr#27.
TEST_F(SignedByIstioCsr, CallersOfAClusterThatItIsNotToldOfAreSentAway) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--cluster-id=Kubernetes"}));
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(Trouble(), HasSubstr("code = Unauthenticated desc = request authenticate failure"));
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("could not get cluster cluster1's kube client")));
}

TEST_F(SignedByIstioCsr, IdentitiesOfAnotherTrustDomainAreNotSigned) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--trust-domain=example.org"}));
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("failed to match URIs with identities")));
}

TEST_F(SignedByIstioCsr, ItIsReadyWhenItsIssuerHasCome) {
  Begin();
  Csr(json::array());
  Settle();
  EXPECT_THAT(world_->Complaints(),
              testing::Contains(HasSubstr("Referenced \"ClusterIssuer\" not found: clusterissuer.cert-manager.io "
                                          "\"mesh\" not found")));
  ClusterIssuer();
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
}

TEST_F(SignedByIstioCsr, AnIssuerThatSignsItselfSignsForNobody) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--issuer-name=self"}));
  Settle();
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("cert-manager.io/private-key-secret-name")));
}

TEST_F(SignedByIstioCsr, AgentsDoNotBelieveAServerOfAnotherName) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--serving-certificate-dns-names=cert-manager-istio-csr.istio-system.svc"}));
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(Trouble(), HasSubstr("x509: certificate is valid for"));
}

// What its chart binds to its account, but for one resource.
json RoleWithout(const char* kind, const char* left_out) {
  json rules = json::array();
  const auto may = [&](const char* group, const char* resource) {
    if (std::string_view(resource) == left_out) return;
    rules.push_back({{"apiGroups", json::array({group})},
                     {"resources", json::array({resource})},
                     {"verbs", json::array({"get", "list", "watch", "create", "update", "delete"})}});
  };
  may("", "configmaps");
  may("", "namespaces");
  may("authentication.k8s.io", "tokenreviews");
  may("cert-manager.io", "certificaterequests");
  may("coordination.k8s.io", "leases");
  return {{"apiVersion", "rbac.authorization.k8s.io/v1"},
          {"kind", kind},
          {"metadata", {{"name", "signer"}}},
          {"rules", std::move(rules)}};
}

class RightsOfIstioCsr : public SignedByIstioCsr {
 protected:
  void Bind(const char* left_out) {
    Begin();
    ClusterIssuer();
    Put(RoleWithout("ClusterRole", left_out));
    Put({{"apiVersion", "rbac.authorization.k8s.io/v1"},
         {"kind", "ClusterRoleBinding"},
         {"metadata", {{"name", "signer"}}},
         {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "signer"}}},
         {"subjects", json::array({{{"kind", "ServiceAccount"}, {"name", "default"}, {"namespace", kNs}}})}});
    Csr(json::array());
    IstiodWithoutCa();
    Sleep();
  }
};

TEST_F(RightsOfIstioCsr, ThatItsChartGivesAreEnough) {
  Bind("");
  EXPECT_THAT(world_->Unready(), IsEmpty());
  EXPECT_THAT(world_->Complaints(), IsEmpty());
}

TEST_F(RightsOfIstioCsr, WithoutTokenReviewsItBelievesNobody) {
  Bind("tokenreviews");
  EXPECT_THAT(Trouble(), HasSubstr("code = Unauthenticated desc = request authenticate failure"));
  EXPECT_THAT(world_->Complaints(),
              testing::Contains(HasSubstr("could not get a token review: tokenreviews.authentication.k8s.io is "
                                          "forbidden: User \"system:serviceaccount:cert-manager:default\"")));
}

TEST_F(RightsOfIstioCsr, WithoutCertificateRequestsItNeverServes) {
  Bind("certificaterequests");
  EXPECT_THAT(world_->Complaints(),
              testing::Contains(HasSubstr("failed to sign serving certificate: failed to create CertificateRequest: "
                                          "certificaterequests.cert-manager.io is forbidden")));
}

TEST_F(RightsOfIstioCsr, WithoutTheLeaseItWritesNoRoots) {
  Bind("leases");
  EXPECT_THAT(Trouble(), HasSubstr("configmap \"istio-ca-root-cert\" not found"));
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("leases.coordination.k8s.io is forbidden")));
}

TEST_F(SignedByIstioCsr, AnArgumentThatCannotBeEndsIt) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--max-client-certificate-duration=1d"}));
  Settle();
  EXPECT_THAT(world_->Complaints(),
              testing::Contains(HasSubstr("ends: \"error running cert-manager-istio-csr\" err=\"invalid argument")));
}

TEST_F(SignedByIstioCsr, AnAddressThatCannotBeEndsItWhenItWouldServe) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--serving-address=0.0.0.0:99999999"}));
  Settle();
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("listen tcp: address 99999999: invalid port")));
}

// It signs for less than no time, as it is told, and believes no such certificate itself.
TEST_F(SignedByIstioCsr, ANegativeLifetimeIsOverBeforeItBegins) {
  Begin();
  ClusterIssuer();
  Csr(json::array({"--max-client-certificate-duration=-5m"}));
  IstiodWithoutCa();
  Sleep();
  EXPECT_THAT(Trouble(), HasSubstr("failed to parse and verify signed certificate from issuer"));
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("against the current mesh roots")));
}

}  // namespace
}  // namespace wavetank::sim
