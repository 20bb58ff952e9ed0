#include "core/gen/sds/secret_generator.h"

#include <memory>
#include <string>

#include "core/kube/secret.h"
#include "core/model/gateway.h"
#include "core/x509/x509.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/gen/gen_world.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/security/secret_bench_case.h"

namespace wavetank::security {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Reviewer final : public kube::AccessReviewer {
 public:
  bool Allowed(const kube::AccessRequest& request) const override {
    ++asked;
    return request.user == allowed_user && request.verb == "list" && request.resource == "secrets" &&
           request.group.empty() && request.ns == "gw";
  }
  std::string allowed_user = "system:serviceaccount:gw:edge";
  mutable int asked = 0;
};

class SecretGeneratorTest : public ::testing::Test {
 protected:
  SecretGeneratorTest() {
    credentials.OnSecret([this](const kube::NamespacedName& name) { events.push_back(name.ns + "/" + name.name); });
    for (const auto& [cluster, client] : {std::pair("c1", &config_client), std::pair("c2", &remote_client)}) {
      credentials.AddCluster(cluster, std::make_unique<CredentialsController>(host, *client, &reviewer, cluster, 1))
          .Start();
    }
    proxy.verified_identity = "spiffe://cluster.local/ns/gw/sa/edge";
    proxy.metadata.cluster_id = pilot::ClusterId("c2");
    proxy.type = pilot::NodeType::kRouter;
    Run();
  }
  void Run(Duration d = 100ms) { kernel.RunUntil(kernel.Now() + d); }

  std::string Pem(const std::string& name, Duration validity = 24h) {
    return x509::MakeIntermediateCa(1, name, root, Time{}, validity).certificate->ToPem();
  }
  void PutTls(kube::MemoryClient& client, const std::string& name, const std::string& cert_name = "cert",
              Duration validity = 24h) {
    client.Put(
        kube::MakeSecret(
            "gw", name,
            {{"tls.crt", Pem(cert_name, validity)}, {"tls.key", "KEY-" + cert_name}, {"ca.crt", root.root->ToPem()}},
            {}, {}, "kubernetes.io/tls")
            ->body);
    Run();
  }

  std::vector<std::string> Names(const pilot::GeneratedResources& out) {
    std::vector<std::string> names;
    for (const pilot::Resource& r : out.resources) names.emplace_back(r.name);
    return names;
  }
  pilot::GeneratedResources Generate(std::vector<std::string> names) { return Generate(std::move(names), Full()); }
  pilot::GeneratedResources Generate(std::vector<std::string> names, const pilot::PushRequest& request) {
    pilot::WatchedResource watched{.type = pilot::XdsType::kSds, .resource_names = std::move(names)};
    return generator.Generate(proxy, watched, request);
  }
  pilot::PushRequest Full() {
    pilot::PushRequest request;
    request.full = true;
    request.start = kernel.Now();
    return request;
  }
  pilot::PushRequest Changed(std::string ns, std::string name) {
    pilot::PushRequest request;
    request.configs_updated = {{pilot::ConfigKind::kSecret, std::move(name), std::move(ns)}};
    request.start = kernel.Now();
    return request;
  }
  // What a Secret update does to the cache.
  void Invalidate(const std::string& name) { cache.Clear({{pilot::ConfigKind::kSecret, name, "gw"}}, kernel.Now()); }
  envoy::extensions::transport_sockets::tls::v3::Secret Decode(const pilot::Resource& resource) {
    envoy::extensions::transport_sockets::tls::v3::Secret out;
    EXPECT_TRUE(out.ParseFromString(std::string(*resource.bytes)));
    return out;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient config_client{host}, remote_client{host};
  x509::CertificateAuthority root = x509::MakeRootCa(1, "Root CA", Time{}, 24h * 365);
  Reviewer reviewer;
  Credentials credentials{"c1"};
  pilot::XdsCache cache;
  std::vector<std::string> warnings;
  LogSink log{[this](const LogLine& line) { warnings.push_back(line.text); }};
  SecretGenerator generator{host, credentials, cache, &log};
  pilot::Proxy proxy;
  std::vector<std::string> events;
};

TEST_F(SecretGeneratorTest, AKeyGoesToTheProviderThatTheProxyConfigNames) {
  PutTls(remote_client, "web");
  pilot::GenWorld world;
  const auto certificate = [&] {
    pilot::PushRequest request = Full();
    request.push = world.Push();
    const auto out = Generate({"kubernetes://web"}, request);
    return Decode(out.resources.list().at(0)).tls_certificate();
  };
  EXPECT_EQ(certificate().private_key().inline_bytes(), "KEY-cert");
  proxy.metadata.raw =
      nlohmann::json::object({{"PROXY_CONFIG", {{"privateKeyProvider", {{"cryptomb", {{"pollDelay", "1.25s"}}}}}}}});
  const auto accelerated = certificate();
  EXPECT_FALSE(accelerated.has_private_key());
  EXPECT_EQ(accelerated.private_key_provider().provider_name(), "cryptomb");
  const std::string& config = accelerated.private_key_provider().typed_config().value();
  EXPECT_THAT(config, HasSubstr("KEY-cert"));
  EXPECT_THAT(config, HasSubstr(std::string("\x12\x05\x10\x80\xe5\x9a\x77")))
      << "a quarter of a second: 1.18.2 drops whole ones";
  proxy.metadata.raw =
      nlohmann::json::object({{"PROXY_CONFIG", {{"privateKeyProvider", {{"qat", {{"pollDelay", "0.25s"}}}}}}}});
  EXPECT_EQ(certificate().private_key_provider().provider_name(), "qat");
}

TEST_F(SecretGeneratorTest, ADockerCredentialIsOfItsTypeAndOfTheProxysClusterFirst) {
  const auto put = [&](kube::MemoryClient& client, const std::string& text, const std::string& type) {
    client.Put(kube::MakeSecret("gw", "pull", {{".dockerconfigjson", text}}, {}, {}, type)->body);
    Run();
    return credentials.DockerCredential("c2", "gw", "pull");
  };
  EXPECT_EQ(put(config_client, "config's", "Opaque"), std::nullopt);
  EXPECT_EQ(put(config_client, "config's", "kubernetes.io/dockerconfigjson"), "config's");
  EXPECT_EQ(put(remote_client, "its own", "kubernetes.io/dockerconfigjson"), "its own");
  EXPECT_EQ(credentials.DockerCredential("c2", "gw", "other"), std::nullopt);
}

TEST_F(SecretGeneratorTest, ARouterGetsCertificateAndKeyOfItsNamespacesSecret) {
  PutTls(remote_client, "web");
  const auto out = Generate({"kubernetes://web", "kubernetes://web-cacert"});
  ASSERT_THAT(Names(out), ElementsAre("kubernetes://web", "kubernetes://web-cacert"));
  const auto pair = Decode(out.resources[0]);
  EXPECT_EQ(pair.name(), "kubernetes://web");
  EXPECT_EQ(pair.tls_certificate().certificate_chain().inline_bytes(), Pem("cert"));
  EXPECT_EQ(pair.tls_certificate().private_key().inline_bytes(), "KEY-cert");
  EXPECT_EQ(Decode(out.resources[1]).validation_context().trusted_ca().inline_bytes(), root.root->ToPem());
  EXPECT_EQ(Decode(out.resources[1]).tls_certificate().ByteSizeLong(), 0u) << "no key goes with the roots";
}

TEST_F(SecretGeneratorTest, GenericKeysComeBeforeTlsOnes) {
  remote_client.Put(
      kube::MakeSecret("gw", "web", {{"cert", Pem("generic")}, {"key", "K"}, {"tls.crt", Pem("tls")}, {"tls.key", "T"}})
          ->body);
  Run();
  EXPECT_EQ(Decode(Generate({"kubernetes://web"}).resources[0]).tls_certificate().certificate_chain().inline_bytes(),
            Pem("generic"));
}

TEST_F(SecretGeneratorTest, TheProxysClusterComesBeforeTheConfigCluster) {
  PutTls(config_client, "web", "of-config");
  EXPECT_EQ(Decode(Generate({"kubernetes://web"}).resources[0]).tls_certificate().certificate_chain().inline_bytes(),
            Pem("of-config"));
  PutTls(remote_client, "web", "of-remote");
  Invalidate("web");
  EXPECT_EQ(Decode(Generate({"kubernetes://web"}).resources[0]).tls_certificate().certificate_chain().inline_bytes(),
            Pem("of-remote"));
}

TEST_F(SecretGeneratorTest, WhoMayNotListSecretsOrAsksForAnotherNamespaceGetsNothing) {
  PutTls(remote_client, "web");
  EXPECT_THAT(Names(Generate({"kubernetes://other/web"})), IsEmpty());
  EXPECT_THAT(Names(Generate({"kubernetes://gw/web"})), ElementsAre("kubernetes://gw/web"));
  proxy.verified_identity = "spiffe://cluster.local/ns/gw/sa/stranger";
  const auto out = Generate({"kubernetes://web"});
  EXPECT_TRUE(out.send);
  EXPECT_THAT(Names(out), IsEmpty());
  EXPECT_EQ(generator.certificate_errors(), 2) << "one for each answer";
}

TEST_F(SecretGeneratorTest, WithoutAVerifiedIdentityNothingIsSent) {
  PutTls(remote_client, "web");
  proxy.verified_identity.clear();
  EXPECT_FALSE(Generate({"kubernetes://web"}).send);
}

TEST_F(SecretGeneratorTest, AnUnknownClusterGetsNothing) {
  proxy.metadata.cluster_id = pilot::ClusterId("c9");
  EXPECT_FALSE(Generate({"kubernetes://web"}).send);
}

TEST_F(SecretGeneratorTest, PermissionIsBelievedForFiveMinutesAndRefusalForOne) {
  PutTls(remote_client, "web");
  Generate({"kubernetes://web"});
  Generate({"kubernetes://web"});
  EXPECT_EQ(reviewer.asked, 1);
  reviewer.allowed_user = "nobody";
  Run(4min);
  EXPECT_THAT(Names(Generate({"kubernetes://web"})), ElementsAre("kubernetes://web"));
  Run(2min);
  EXPECT_THAT(Names(Generate({"kubernetes://web"})), IsEmpty());
  reviewer.allowed_user = "system:serviceaccount:gw:edge";
  Run(30s);
  EXPECT_THAT(Names(Generate({"kubernetes://web"})), IsEmpty());
  Run(31s);
  EXPECT_THAT(Names(Generate({"kubernetes://web"})), ElementsAre("kubernetes://web"));
}

TEST_F(SecretGeneratorTest, AChangedSecretIsPushedWithItsTwinAndNothingElse) {
  PutTls(remote_client, "web");
  PutTls(remote_client, "shop");
  const std::vector<std::string> watched = {"kubernetes://shop", "kubernetes://web", "kubernetes://web-cacert"};
  EXPECT_THAT(Names(Generate(watched, Changed("gw", "web"))),
              ElementsAre("kubernetes://web", "kubernetes://web-cacert"));
  EXPECT_THAT(Names(Generate(watched, Changed("gw", "web-cacert"))),
              ElementsAre("kubernetes://web", "kubernetes://web-cacert"));
  EXPECT_TRUE(Generate(watched, Changed("gw", "else")).send) << "an empty answer, as istiod's";
  EXPECT_THAT(Names(Generate(watched, Changed("gw", "else"))), IsEmpty());
  pilot::PushRequest endpoints;
  endpoints.configs_updated = {{pilot::ConfigKind::kServiceEntry, "x", "gw"}};
  EXPECT_FALSE(Generate(watched, endpoints).send);
}

TEST_F(SecretGeneratorTest, EveryChangeOfASecretIsToldButNotHelmsAndTokens) {
  PutTls(remote_client, "web");
  PutTls(remote_client, "web", "renewed");
  config_client.Put(kube::MakeSecret("gw", "release", {{"x", "y"}}, {}, {}, "helm.sh/release.v1")->body);
  config_client.Put(kube::MakeSecret("gw", "token", {{"x", "y"}}, {}, {}, "kubernetes.io/service-account-token")->body);
  remote_client.Remove(kube::kinds::kSecret, "gw", "web");
  Run();
  EXPECT_THAT(events, ElementsAre("gw/web", "gw/web", "gw/web"));
}

TEST_F(SecretGeneratorTest, AnExpiredCertificateIsNotHandedOutAndDoesNotTakeOthersAlong) {
  PutTls(remote_client, "old", "old", 1h);
  PutTls(remote_client, "web");
  Run(2h);
  EXPECT_THAT(Names(Generate({"kubernetes://absent", "kubernetes://old", "kubernetes://web", "nonsense"})),
              ElementsAre("kubernetes://web"));
  EXPECT_EQ(generator.certificate_errors(), 3);
}

TEST_F(SecretGeneratorTest, GatewayReferencesNeedVerificationAndComeFromTheConfigCluster) {
  PutTls(config_client, "web", "of-config");
  PutTls(remote_client, "web", "of-remote");
  EXPECT_THAT(Names(Generate({"kubernetes-gateway://gw/web"})), IsEmpty());
  auto merged = std::make_shared<pilot::MergedGateway>();
  merged->verified_certificate_references = {"kubernetes-gateway://gw/web"};
  proxy.merged_gateway = merged;
  const auto out = Generate({"kubernetes-gateway://gw/web", "kubernetes-gateway://web"});
  ASSERT_THAT(Names(out), ElementsAre("kubernetes-gateway://gw/web"));
  EXPECT_EQ(Decode(out.resources[0]).tls_certificate().certificate_chain().inline_bytes(), Pem("of-config"));
}

TEST_F(SecretGeneratorTest, TheCacheServesAllRoutersUntilTheSecretChanges) {
  PutTls(remote_client, "web");
  EXPECT_EQ(Generate({"kubernetes://web"}).cached, 0);
  EXPECT_EQ(Generate({"kubernetes://web"}).cached, 1);
  PutTls(remote_client, "web", "renewed");
  Invalidate("web");
  const auto out = Generate({"kubernetes://web"}, Changed("gw", "web"));
  EXPECT_EQ(out.cached, 0);
  EXPECT_EQ(Decode(out.resources[0]).tls_certificate().private_key().inline_bytes(), "KEY-renewed");
}

TEST_F(SecretGeneratorTest, WhatASecretHeldIsForgottenWithIt) {
  const auto chain = [&] {
    const auto out = Generate({"kubernetes://web"});
    return out.resources.empty() ? "" : Decode(out.resources[0]).tls_certificate().certificate_chain().inline_bytes();
  };
  PutTls(remote_client, "web", "old");
  EXPECT_EQ(chain(), Pem("old"));
  PutTls(remote_client, "web", "new");
  Invalidate("web");
  EXPECT_EQ(chain(), Pem("new"));
  remote_client.Remove(kube::kinds::kSecret, "gw", "web");
  Run();
  Invalidate("web");
  EXPECT_EQ(chain(), "");
}

TEST(ExtractCertInfoTest, MessagesNameKeysAndNeverValues) {
  const auto message = [](const kube::SecretData& data) {
    return std::string(ExtractCertInfo(*kube::MakeSecret("n", "s", data)).status().message());
  };
  EXPECT_THAT(message({{"a", "SECRET1"}, {"b", "SECRET2"}, {"c", "SECRET3"}, {"d", "SECRET4"}}),
              HasSubstr("found: a, b, c, and 1 more..."));
  EXPECT_THAT(message({{"key", "SECRET1"}}), Not(HasSubstr("SECRET")));
  EXPECT_THAT(message({{"tls.crt", ""}, {"tls.key", "SECRET"}}), HasSubstr("but they were empty"));
}

TEST(SecretBenchCase, AsManySecretsAsIstiodGenerates) {
  for (const int secrets : {10, 1000}) {
    const pilot::GeneratedResources out = SecretBenchCase(secrets).Generate();
    ASSERT_EQ(out.resources.size(), static_cast<size_t>(secrets));
    envoy::extensions::transport_sockets::tls::v3::Secret last;
    ASSERT_TRUE(last.ParseFromString(std::string(*out.resources.back().bytes)));
    EXPECT_EQ(last.name(), "kubernetes://default/sds-credential-" + std::to_string(secrets - 1));
    EXPECT_GT(last.tls_certificate().private_key().inline_bytes().size(), 1600u);
  }
}

TEST_F(SecretGeneratorTest, IstiodsLogTellsWhatIsNotHandedOut) {
  PutTls(remote_client, "old", "old", 1h);
  remote_client.Put(
      kube::MakeSecret("gw", "text", {{"tls.crt", "a"}, {"tls.key", "b"}}, {}, {}, "kubernetes.io/tls")->body);
  Run(2h);
  proxy.id = "edge.gw";
  Generate({"nonsense", "kubernetes://absent", "kubernetes://old", "kubernetes://text", "kubernetes://other/a",
            "kubernetes://other/b", "kubernetes://other/c"});
  EXPECT_THAT(warnings,
              ElementsAre("error parsing resource name: unknown resource type: nonsense",
                          HasSubstr("failed to fetch key and certificate for kubernetes://absent: "),
                          "invalid certificates: \"kubernetes://old\": certificate is expired or not yet valid",
                          "invalid certificates: \"kubernetes://text\": pem decode failed",
                          "proxy edge.gw attempted to access unauthorized certificates a, b, and 1 others: "
                          "cross namespace secret reference requires ReferencePolicy"));
}

TEST_F(SecretGeneratorTest, WithoutVerificationEveryPairIsHandedOut) {
  PutTls(remote_client, "old", "old", 1h);
  Run(2h);
  pilot::GenWorld world;
  pilot::Environment env = world.Env();
  env.features.verifies_sds_certificates = false;
  pilot::PushRequest request = Full();
  request.push = pilot::PushContext::Create(env, nullptr, request, "1");
  EXPECT_THAT(Names(Generate({"kubernetes://old"}, request)), ElementsAre("kubernetes://old"));
}

}  // namespace
}  // namespace wavetank::security
