#include <filesystem>

#include "absl/strings/escaping.h"
#include "core/security/authenticator.h"
#include "core/x509/x509.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "envoy/service/secret/v3/sds.grpc.pb.h"
#include "istio/ca.grpc.pb.h"
#include "replay/event_log.h"
#include "replay/secrets.h"
#include "sim/inputs/kinds/install.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/pods.h"
#include "sim/inputs/kinds/web.h"
#include "tests/await.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

using envoy::service::secret::v3::SecretDiscoveryService;
using istio::v1::auth::IstioCertificateService;
using Secret = envoy::extensions::transport_sockets::tls::v3::Secret;

const char kSecretType[] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

struct Identity {
  std::string version, key, chain, roots;
};

// Both secrets of one response.
Identity Unpack(const discovery::DiscoveryResponse& response) {
  Identity out;
  out.version = response.version_info();
  for (const auto& any : response.resources()) {
    Secret secret;
    EXPECT_TRUE(any.UnpackTo(&secret));
    if (secret.name() == "default") {
      out.key = secret.tls_certificate().private_key().inline_bytes();
      out.chain = secret.tls_certificate().certificate_chain().inline_bytes();
    } else if (secret.name() == "ROOTCA") {
      out.roots = secret.validation_context().trusted_ca().inline_bytes();
    }
  }
  return out;
}

discovery::DiscoveryRequest AskSecrets(const envoy::config::core::v3::Node& node,
                                       const std::vector<std::string>& names) {
  discovery::DiscoveryRequest out;
  out.set_type_url(kSecretType);
  *out.mutable_node() = node;
  for (const std::string& name : names) out.add_resource_names(name);
  return out;
}

grpc::Status FetchFrom(Server& server, const std::shared_ptr<grpc::Channel>& channel, const std::string& app,
                       Identity* out) {
  const auto stub = SecretDiscoveryService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  discovery::DiscoveryResponse response;
  const auto node = NodeOf(server, PodOf(server, "cluster1", app));
  const grpc::Status status = stub->FetchSecrets(&context, AskSecrets(node, {"default", "ROOTCA"}), &response);
  if (status.ok()) *out = Unpack(response);
  return status;
}

std::shared_ptr<grpc::Channel> SecureChannel(Server& server, const Identity& who, bool present = true) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = who.roots;
  if (present) {
    tls.pem_private_key = who.key;
    tls.pem_cert_chain = who.chain;
  }
  grpc::ChannelArguments arguments;
  static int number = 0;
  arguments.SetInt("wavetank.test", ++number);
  arguments.SetSslTargetNameOverride("istiod.istio-system.svc");
  return grpc::CreateCustomChannel(server.ListenersOf("cluster1")->secure, grpc::SslCredentials(tls), arguments);
}

class Secrets : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::path(testing::TempDir()) / ("wavetank-serve-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    SessionOptions session = TwoClusters();
    session.log = folder_ / "live.wtlog";
    ServerOptions options = OnAnyPort();
    options.unix_socket = folder_ / "sds";
    server_ = StartServer(options, session).release();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
    std::filesystem::remove_all(folder_);
  }
  void SetUp() override { ASSERT_NE(server_, nullptr); }

  static envoy::config::core::v3::Node Node(const std::string& app) {
    return NodeOf(*server_, PodOf(*server_, "cluster1", app));
  }
  static grpc::Status Fetch(const std::shared_ptr<grpc::Channel>& channel, const std::string& app, Identity* out) {
    return FetchFrom(*server_, channel, app, out);
  }
  static Identity IdentityOf(const std::string& app) {
    Identity out;
    const grpc::Status status = Fetch(PlainChannel(server_->ListenersOf("cluster1")->plaintext), app, &out);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return out;
  }
  static std::shared_ptr<grpc::Channel> Secure(const Identity& who, bool present = true) {
    return SecureChannel(*server_, who, present);
  }
  static grpc::Status Sign(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
                           std::vector<std::string>* chain) {
    const auto stub = IstioCertificateService::NewStub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    istio::v1::auth::IstioCertificateRequest request;
    // Whatever it asks for.
    request.set_csr(
        x509::CreateCsr(*x509::KeyPair::Derive(7, "test"), {}, {"spiffe://cluster.local/ns/other/sa/other"}));
    request.set_validity_duration(3600);
    istio::v1::auth::IstioCertificateResponse response;
    const grpc::Status status = stub->CreateCertificate(&context, request, &response);
    chain->assign(response.cert_chain().begin(), response.cert_chain().end());
    return status;
  }

  // Ends the server. How many inputs of this kind its log holds; nothing in it may be a secret, or this key.
  static int InputsOfALogWithoutSecrets(const std::string& kind, const std::string& key = "BEGIN PRIVATE KEY") {
    EXPECT_TRUE(server_->Stop().ok());
    auto reader = replay::LogReader::Open(folder_ / "live.wtlog");
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return 0;
    // As it would stand in JSON, in base64, or in the middle of something.
    const std::string line = key.size() > 100 ? key.substr(40, 40) : key;
    int inputs = 0;
    const auto check = [&](const std::string& text) {
      EXPECT_FALSE(replay::HoldsSecret(text));
      EXPECT_EQ(text.find(line), std::string::npos);
      EXPECT_EQ(text.find(absl::Base64Escape(key).substr(0, 80)), std::string::npos);
    };
    for (auto item = (*reader)->Next(); item.ok() && *item != replay::LogReader::Item::kEnd; item = (*reader)->Next()) {
      if (*item == replay::LogReader::Item::kEvent) check((*reader)->event().detail);
      if (*item != replay::LogReader::Item::kInput) continue;
      check((*reader)->input().body.dump());
      inputs += (*reader)->input().kind == kind;
    }
    return inputs;
  }

  static Server* server_;
  static std::filesystem::path folder_;
};
Server* Secrets::server_ = nullptr;
std::filesystem::path Secrets::folder_;

TEST_F(Secrets, AnEnvoyGetsItsPodsCertificateWithKeyAndRoots) {
  const Identity sleep = IdentityOf("sleep");
  const auto key = x509::KeyPair::FromPem(sleep.key, "key");
  const auto chain = x509::ParseCertificates(sleep.chain, "chain");
  const auto roots = x509::TrustBundle::FromPem(sleep.roots, "roots");
  ASSERT_TRUE(key.ok() && chain.ok() && roots.ok());
  EXPECT_TRUE(chain->front()->Matches(**key));
  EXPECT_EQ(chain->front()->sans().uris, std::vector<std::string>{"spiffe://cluster.local/ns/sample/sa/sleep"});
  // Real clients have real calendars.
  EXPECT_TRUE(x509::Verify(*chain, **roots, CalendarTime(), x509::Purpose::kServerAuth).ok());
}

// What CreateCertificate answers (istiod: security/pkg/server/ca/server.go): the leaf, cert-chain.pem of `make -f
// Makefile.selfsigned.mk` (intermediate and root), and root-cert.pem once more.
TEST_F(Secrets, TheChainOfAPluggedIntermediateIsLeafIntermediateAndRootTwice) {
  const Identity sleep = IdentityOf("sleep");
  const auto chain = x509::ParseCertificates(sleep.chain, "chain");
  const auto roots = x509::ParseCertificates(sleep.roots, "roots");
  ASSERT_TRUE(chain.ok() && roots.ok());
  ASSERT_EQ(chain->size(), 4U);
  EXPECT_FALSE((*chain)[0]->is_ca());
  EXPECT_TRUE((*chain)[1]->is_ca());
  EXPECT_NE((*chain)[1]->ToPem(), (*chain)[2]->ToPem());
  EXPECT_EQ((*chain)[2]->ToPem(), roots->front()->ToPem());
  EXPECT_EQ((*chain)[3]->ToPem(), roots->front()->ToPem());
}

TEST_F(Secrets, OneStreamPerSecretAndARotationReachesBoth) {
  const auto stub = SecretDiscoveryService::NewStub(PlainChannel("unix:" + (folder_ / "sds").string()));
  grpc::ClientContext contexts[2];
  std::unique_ptr<grpc::ClientReaderWriter<discovery::DiscoveryRequest, discovery::DiscoveryResponse>> streams[2];
  const char* names[2] = {"default", "ROOTCA"};
  discovery::DiscoveryResponse response;
  std::string versions[2], key;
  for (int i = 0; i < 2; ++i) {
    contexts[i].set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    streams[i] = stub->StreamSecrets(&contexts[i]);
    ASSERT_TRUE(streams[i]->Write(AskSecrets(Node("helloworld"), {names[i]})));
    ASSERT_TRUE(streams[i]->Read(&response));
    ASSERT_EQ(response.resources_size(), 1);
    versions[i] = response.version_info();
    if (i == 0) key = Unpack(response).key;
    discovery::DiscoveryRequest ack;
    ack.set_type_url(kSecretType);
    ack.add_resource_names(names[i]);
    ack.set_version_info(response.version_info());
    ack.set_response_nonce(response.nonce());
    ASSERT_TRUE(streams[i]->Write(ack));
  }
  EXPECT_EQ(versions[0], versions[1]);
  const std::string pod = PodOf(*server_, "cluster1", "helloworld");
  ASSERT_TRUE(server_->loop().Call([&](sim::World& world) { return server_->secrets().Rotate(world, pod); })->ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(streams[i]->Read(&response));
    EXPECT_NE(response.version_info(), versions[i]);
    if (i == 0) {
      EXPECT_NE(Unpack(response).key, key);
    }
    contexts[i].TryCancel();
    streams[i]->Finish();
  }
}

TEST_F(Secrets, DeltaGivesTheSame) {
  const auto stub = SecretDiscoveryService::NewStub(PlainChannel(server_->ListenersOf("cluster1")->plaintext));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const auto stream = stub->DeltaSecrets(&context);
  discovery::DeltaDiscoveryRequest request;
  request.set_type_url(kSecretType);
  *request.mutable_node() = Node("sleep");
  request.add_resource_names_subscribe("default");
  ASSERT_TRUE(stream->Write(request));
  discovery::DeltaDiscoveryResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.resources_size(), 1);
  EXPECT_EQ(response.resources(0).name(), "default");
  discovery::DeltaDiscoveryRequest more;
  more.set_type_url(kSecretType);
  more.set_response_nonce(response.nonce());
  more.add_resource_names_subscribe("ROOTCA");
  ASSERT_TRUE(stream->Write(more));
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.resources_size(), 1);
  EXPECT_EQ(response.resources(0).name(), "ROOTCA");
  context.TryCancel();
  stream->Finish();
}

TEST_F(Secrets, APodThatDoesNotRunHasNone) {
  const auto stub = SecretDiscoveryService::NewStub(PlainChannel(server_->ListenersOf("cluster1")->plaintext));
  grpc::ClientContext context;
  envoy::config::core::v3::Node node;
  node.set_id("sidecar~10.0.0.1~nobody.sample~sample.svc.cluster.local");
  discovery::DiscoveryResponse response;
  const grpc::Status status = stub->FetchSecrets(&context, AskSecrets(node, {"default"}), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no pod 'nobody.sample' runs in this world");
}

TEST_F(Secrets, OverTlsAClientIsWhoItsCertificateSays) {
  const Identity sleep = IdentityOf("sleep");
  std::vector<std::string> chain;
  const grpc::Status status = Sign(Secure(sleep), "", &chain);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_GE(chain.size(), 2u);
  const auto leaf = x509::Certificate::FromPem(chain.front(), "leaf");
  ASSERT_TRUE(leaf.ok());
  EXPECT_EQ((*leaf)->sans().uris, std::vector<std::string>{"spiffe://cluster.local/ns/sample/sa/sleep"});

  SotwClient own(Secure(sleep));
  own.Send(Ask(Node("sleep"), kEndpointType, {kHelloworld}));
  EXPECT_EQ(Addresses(own.Read()).size(), 2u);
  SotwClient foreign(Secure(sleep));
  foreign.Send(Ask(Node("helloworld"), kEndpointType, {kHelloworld}));
  EXPECT_EQ(foreign.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Identity stolen;
  EXPECT_EQ(Fetch(Secure(sleep), "helloworld", &stolen).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Fetch(Secure(sleep), "sleep", &stolen).ok());
  EXPECT_EQ(Fetch(Secure(sleep, false), "sleep", &stolen).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(Secrets, ACertificateOfAnotherCaGetsNowhere) {
  const Identity sleep = IdentityOf("sleep");
  const auto ca = x509::MakeRootCa(99, "foreign", Time{}, 24h * 3650);
  const auto key = x509::KeyPair::Derive(99, "leaf");
  x509::CertificateSpec spec;
  spec.sans = {"spiffe://cluster.local/ns/sample/sa/sleep"};
  spec.not_before = CalendarTime() - 1h;
  spec.not_after = CalendarTime() + 1h;
  const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *ca.certificate, *ca.key);
  ASSERT_TRUE(leaf.ok());
  Identity forged = sleep;
  forged.key = key->ExportPrivateKeyPem();
  forged.chain = (*leaf)->ToPem();
  std::vector<std::string> chain;
  EXPECT_EQ(Sign(Secure(forged), "", &chain).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Secrets, ATokenOfThisWorldSaysWhoCallsAndAnotherDoesNot) {
  const Identity sleep = IdentityOf("sleep");
  const auto token = [&](const std::string& cluster, const std::string& audience) {
    return *server_->loop().Call([&](sim::World& world) {
      const sim::PodProcess* pod = world.Pods("cluster1", "", "sleep").front();
      kube::TokenClaims claims;
      claims.ns = pod->pod()->meta.ns;
      claims.service_account = "sleep";
      claims.pod_name = pod->pod()->meta.name;
      claims.pod_uid = pod->pod()->meta.uid;
      claims.audiences = {audience};
      claims.issued = world.Now();
      claims.expires = world.Now() + 1h;
      return world.tokens(cluster)->Issue(claims);
    });
  };
  std::vector<std::string> chain;
  ASSERT_TRUE(Sign(Secure(sleep, false), token("cluster1", "istio-ca"), &chain).ok());
  EXPECT_EQ((*x509::Certificate::FromPem(chain.front(), "leaf"))->sans().uris,
            std::vector<std::string>{"spiffe://cluster.local/ns/sample/sa/sleep"});
  for (const std::string& bad :
       {std::string("x.y.z"), token("cluster1", "vault"), token("cluster2", "istio-ca"), std::string()}) {
    EXPECT_EQ(Sign(Secure(sleep, false), bad, &chain).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
}

// A credentialName's Secret over ADS, for who may have it: istiod's own rules (core/gen/sds/secret_generator.h), with
// real identities.
class CredentialsOverAds : public Secrets {
 protected:
  static constexpr char kWeb[] = "kubernetes://web";

  static absl::Status Apply(const std::string& api, const std::string& kind, const std::string& name,
                            nlohmann::json fields) {
    nlohmann::json object = {
        {"apiVersion", api}, {"kind", kind}, {"metadata", {{"namespace", "sample"}, {"name", name}}}};
    object.update(fields);
    return Do(*server_, sim::inputs::ApplyObject{"cluster1", std::move(object)});
  }
  // A certificate of its own, whose key it gives back.
  static std::string PutSecret(const std::string& label) {
    const auto ca = x509::MakeRootCa(7, label, CalendarTime() - 24h, 24h * 365);
    const std::string key = ca.key->ExportPrivateKeyPem();
    EXPECT_TRUE(
        Apply("v1", "Secret", "web",
              {{"type", "kubernetes.io/tls"}, {"stringData", {{"tls.crt", ca.certificate->ToPem()}, {"tls.key", key}}}})
            .ok());
    return key;
  }
  static void AllowSleep() {
    const nlohmann::json rule = {{"apiGroups", {""}}, {"resources", {"secrets"}}, {"verbs", {"get", "watch", "list"}}};
    ASSERT_TRUE(
        Apply("rbac.authorization.k8s.io/v1", "Role", "read-secrets", {{"rules", nlohmann::json::array({rule})}}).ok());
    const nlohmann::json subject = {{"kind", "ServiceAccount"}, {"name", "sleep"}, {"namespace", "sample"}};
    const nlohmann::json role = {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "read-secrets"}};
    ASSERT_TRUE(Apply("rbac.authorization.k8s.io/v1", "RoleBinding", "read-secrets",
                      {{"subjects", nlohmann::json::array({subject})}, {"roleRef", role}})
                    .ok());
  }
  static std::string KeyIn(const google::protobuf::Any& any) {
    Secret secret;
    EXPECT_TRUE(any.UnpackTo(&secret));
    EXPECT_EQ(secret.name(), kWeb);
    return secret.tls_certificate().private_key().inline_bytes();
  }
};

TEST_F(CredentialsOverAds, GoToWhoMayReadThemAndFollowTheirSecret) {
  AllowSleep();
  const std::string key = PutSecret("one");
  const Identity sleep = IdentityOf("sleep");
  SotwClient client(Secure(sleep));
  // What istiod does not know by its name is left out without a word: a workload's own secrets are its agent's
  // business.
  client.Send(Ask(Node("sleep"), kSecretType, {kWeb, "kubernetes://none", "default", "ROOTCA"}));
  const auto first = client.Read();
  ASSERT_EQ(first.resources_size(), 1);
  EXPECT_EQ(KeyIn(first.resources(0)), key);
  client.Send(Ack(first, {kWeb, "kubernetes://none", "default", "ROOTCA"}));
  const std::string next = PutSecret("two");
  ASSERT_NE(next, key);
  auto second = client.Read();
  // A push for what came before may still have been under way.
  for (int i = 0; i < 5 && second.resources_size() == 1 && KeyIn(second.resources(0)) == key; ++i) {
    second = client.Read();
  }
  ASSERT_EQ(second.resources_size(), 1);
  EXPECT_EQ(KeyIn(second.resources(0)), next);

  DeltaClient delta(Secure(sleep));
  discovery::DeltaDiscoveryRequest request;
  request.set_type_url(kSecretType);
  *request.mutable_node() = Node("sleep");
  request.add_resource_names_subscribe(kWeb);
  delta.Send(request);
  const auto answer = delta.Read();
  ASSERT_EQ(answer.resources_size(), 1);
  EXPECT_EQ(KeyIn(answer.resources(0).resource()), next);
}

TEST_F(CredentialsOverAds, GoToNobodyElse) {
  PutSecret("three");
  SotwClient other(Secure(IdentityOf("helloworld")));
  other.Send(Ask(Node("helloworld"), kSecretType, {kWeb}));
  EXPECT_EQ(other.Read().resources_size(), 0);
  // In plaintext istiod knows nobody, and does not answer at all.
  SotwClient plain(PlainChannel(server_->ListenersOf("cluster1")->plaintext));
  plain.Send(Ask(Node("sleep"), kSecretType, {kWeb}));
  plain.Send(Ask(kListenerType));
  EXPECT_EQ(plain.Read().type_url(), kListenerType);
}

// A new root, which istiod takes when it starts again: TLS shows a certificate under it soon after.
TEST(SecretsOfANewCa, AreWhatTlsAsksForAndShows) {
  const auto server = StartServer();
  ASSERT_NE(server, nullptr);
  const auto plaintext = PlainChannel(server->ListenersOf("cluster1")->plaintext);
  Identity before, after;
  ASSERT_TRUE(FetchFrom(*server, plaintext, "sleep", &before).ok());
  ASSERT_TRUE(Do(*server, sim::inputs::PlugInCa{"cluster1", "second"}).ok());
  ASSERT_TRUE(Do(*server, sim::inputs::KillPods{"cluster1", "istio-system", "istiod"}).ok());
  const auto served = [&] {
    Identity fetched;
    return FetchFrom(*server, plaintext, "sleep", &after).ok() && after.roots != before.roots &&
           FetchFrom(*server, SecureChannel(*server, after), "sleep", &fetched).ok();
  };
  EXPECT_TRUE(Await(served, 20ms));
  Identity ignored;
  EXPECT_EQ(FetchFrom(*server, SecureChannel(*server, before), "sleep", &ignored).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// istiod: pilot/pkg/bootstrap/server.go, createPeerCertVerifier; pkg/spiffe/spiffe.go, VerifyPeerCert
class SpiffeBundles : public Secrets {
 protected:
  static Identity Shown(const x509::CertificateAuthority& ca, const std::string& san, const std::string& roots) {
    const auto key = x509::KeyPair::Derive(99, "leaf");
    x509::CertificateSpec spec;
    spec.sans = {san};
    spec.not_before = CalendarTime() - 1h;
    spec.not_after = CalendarTime() + 1h;
    const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *ca.certificate, *ca.key);
    EXPECT_TRUE(leaf.ok()) << leaf.status();
    return {"", key->ExportPrivateKeyPem(), (*leaf)->ToPem() + ca.certificate->ToPem(), roots};
  }
};

TEST_F(SpiffeBundles, AClientIsBelievedByTheRootsOfItsOwnTrustDomain) {
  const auto other = x509::MakeRootCa(99, "other", Time{}, 24h * 3650);
  const Identity own = IdentityOf("sleep");
  const std::string& roots = own.roots;
  const Identity theirs = Shown(other, "spiffe://other.example/ns/sample/sa/sleep", roots);
  std::vector<std::string> chain;
  EXPECT_EQ(Sign(Secure(theirs), "", &chain).error_code(), grpc::StatusCode::UNAVAILABLE);

  const nlohmann::json key{{"use", "x509-svid"}, {"x5c", {absl::Base64Escape(other.certificate->der())}}};
  ASSERT_TRUE(Do(*server_, sim::inputs::ServeKeySet{"https://spiffe.example/bundle", {{"keys", {key}}}, ""}).ok());
  nlohmann::json istiod = *server_->loop().Call([](sim::World& world) {
    return world.cluster("cluster1").api().Get("Deployment", {"istio-system", "istiod"})->body;
  });
  istiod["/spec/template/spec/containers/0/env"_json_pointer].push_back(
      {{"name", "SPIFFE_BUNDLE_ENDPOINTS"}, {"value", "other.example|https://spiffe.example/bundle"}});
  ASSERT_TRUE(Do(*server_, sim::inputs::ApplyObject{"cluster1", istiod}).ok());
  ASSERT_TRUE(Await([&] { return Sign(Secure(theirs), "", &chain).ok(); }, 50ms));
  EXPECT_EQ((*x509::Certificate::FromPem(chain.front(), "leaf"))->sans().uris,
            std::vector<std::string>{"spiffe://other.example/ns/sample/sa/sleep"});

  // Their CA has no say in this trust domain.
  const Identity forged = Shown(other, "spiffe://cluster.local/ns/sample/sa/sleep", roots);
  EXPECT_EQ(Sign(Secure(forged), "", &chain).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Sign(Secure(own), "", &chain).ok());
}

// These end their server, so each has one of its own.
class SecretsInTheLog : public Secrets {};

TEST_F(SecretsInTheLog, ThereIsNoKeyOfAnyCertificate) {
  for (const char* app : {"sleep", "helloworld"}) {
    std::vector<std::string> chain;
    const grpc::Status status = Sign(Secure(IdentityOf(app)), "", &chain);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_GE(InputsOfALogWithoutSecrets("certificateRequest"), 2);
}

class CredentialsInTheLog : public CredentialsOverAds {};

TEST_F(CredentialsInTheLog, ThereIsNoKeyThatAClientWasSent) {
  AllowSleep();
  const std::string key = PutSecret("four");
  SotwClient client(Secure(IdentityOf("sleep")));
  client.Send(Ask(Node("sleep"), kSecretType, {kWeb}));
  const auto answer = client.Read();
  ASSERT_EQ(answer.resources_size(), 1);
  EXPECT_EQ(KeyIn(answer.resources(0)), key);
  EXPECT_GT(InputsOfALogWithoutSecrets("apply", key), 0);
}

}  // namespace
}  // namespace wavetank::serve
