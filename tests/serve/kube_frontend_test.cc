// The Kubernetes APIs of a live mesh: what a client writes moves the mesh, and replays.
#include "serve/kube/kube_frontend.h"
#include "scenarios/reader/read_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/escaping.h"
#include "core/kube/secret.h"
#include "core/kube/yaml.h"
#include "core/x509/x509.h"
#include "fakes/kube/http/message/watch_stream.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/http/transport/fetch.h"
#include "replay/event_log.h"
#include "replay/kept_secrets.h"
#include "replay/replayer.h"
#include "replay/secrets.h"
#include "replay/world_target.h"
#include "scenarios/runner/start.h"
#include "serve/server.h"
#include "sim/inputs/kinds/kube_request.h"
#include "tests/await.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class KubeFrontendTest : public ::testing::Test {
 protected:
  void Start(const std::string& token = "", bool keep_secrets = false) {
    SessionOptions session;
    session.keep_secrets = keep_secrets;
    session.scenario =
        *scenario::LoadScenario(std::string(WAVETANK_SOURCE_DIR) + "/scenarios/multi-primary-multi-network");
    session.start = *scenario::MakeStart(session.scenario);
    // What a scenario waits for in virtual time passes in real time here.
    session.timing = {{"kube.container_start", "50ms"},
                      {"kube.readiness", "20ms"},
                      {"kube.readiness_jitter", "1ms"},
                      {"istiod.debounce_after", "10ms"},
                      {"istiod.connections_per_second", "0"}};
    session.log = log_.string();
    absl::StatusOr<std::unique_ptr<Session>> made = Session::Create(std::move(session));
    ASSERT_TRUE(made.ok()) << made.status();
    ServerOptions options;
    options.listen = options.secure_listen = "127.0.0.1:0";
    options.kube.listen = "127.0.0.1:0";
    options.kube.token = token;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(*std::move(made), options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~KubeFrontendTest() override {
    server_ = nullptr;
    std::error_code ignored;
    std::filesystem::remove(log_, ignored);
  }

  std::pair<int, json> Send(const std::string& cluster, const std::string& method, const std::string& path,
                            const json& body = nullptr, const std::string& type = "application/json") {
    return *server_->loop().Call([&](sim::World& world) -> std::pair<int, json> {
      http::Request request;
      request.method = method;
      request.path = path.substr(0, path.find('?'));
      if (path.find('?') != std::string::npos) request.query = path.substr(path.find('?') + 1);
      request.content_type = type;
      if (!body.is_null()) request.body = body.dump();
      http::Response response = sim::AskKube(world, cluster, request);
      return {response.code, json::parse(response.Text(), nullptr, false)};
    });
  }
  template <class Fn>
  bool Eventually(Fn fn) {
    return Await([&] { return *server_->loop().Call([&](sim::World& world) { return fn(world); }); });
  }

  const std::filesystem::path log_ =
      std::filesystem::temp_directory_path() / ("wavetank-kube-frontend-" + std::to_string(::getpid()) + ".log");
  std::unique_ptr<Server> server_;
};

TEST_F(KubeFrontendTest, WhatAClientScalesComesUpAndReplaysToTheSameDigest) {
  Start();
  ASSERT_EQ(server_->kube()->where().size(), 2u);
  const std::string cluster1 = server_->kube()->where()[0].server;
  const absl::StatusOr<std::string> vs = http::Fetch(cluster1, "/apis/networking.istio.io/v1beta1", 60s);
  ASSERT_TRUE(vs.ok()) << vs.status();
  EXPECT_THAT(*vs, HasSubstr("virtualservices"));
  const std::string scale = "/apis/apps/v1/namespaces/sample/deployments/helloworld-v2/scale";
  EXPECT_EQ(Send("cluster2", "PATCH", scale, {{"spec", {{"replicas", 3}}}}, "application/merge-patch+json").first, 200);
  EXPECT_TRUE(Eventually(
      [](sim::World& world) { return world.Pods("cluster2", "sample", "helloworld").size() == 3 && world.Settled(); }));
  // Refused ones count as well: they are inputs that change nothing.
  EXPECT_EQ(Send("cluster1", "POST", "/api/v1/namespaces/nowhere/configmaps", {{"metadata", {{"name", "a"}}}}).first,
            404);
  EXPECT_EQ(Send("cluster1", "POST", "/api/v1/namespaces/sample/configmaps",
                 {{"metadata", {{"generateName", "a-"}}}, {"data", {{"k", "v"}}}})
                .first,
            201);
  EXPECT_EQ(Send("cluster1", "POST", "/apis/networking.istio.io/v1beta1/namespaces/sample/virtualservices",
                 {{"metadata", {{"name", "helloworld"}}},
                  {"spec",
                   {{"hosts", json::array({"helloworld"})},
                    {"http", json::array({{{"timeout", "5s"},
                                           {"route", json::array({{{"destination", {{"host", "helloworld"}}}}})}}})}}}})
                .first,
            201);
  const kube::TokenClaims claims{.ns = "istio-system", .service_account = "reader"};
  const std::string token = kube::TokenAuthority(1, "x").Issue(claims);
  EXPECT_EQ(Send("cluster1", "POST", "/api/v1/namespaces/sample/secrets",
                 {{"metadata", {{"name", "s"}}}, {"stringData", {{"token", token}}}})
                .first,
            201);
  ASSERT_TRUE(Eventually([](sim::World& world) { return world.Settled(); }));
  ASSERT_TRUE(server_->Stop().ok());
  const std::string digest = server_->loop().world().kernel().digest().Hex();

  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(log_.string());
  ASSERT_TRUE(log.ok()) << log.status();
  replay::WorldTarget target;
  const absl::StatusOr<replay::ReplayResult> replayed = replay::Replay(**log, target);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->divergence.has_value()) << replay::Describe(*replayed->divergence);
  EXPECT_EQ(replayed->trace_digest, digest);
}

TEST_F(KubeFrontendTest, WhatIstiosSchemasDoNotKnowIsRefusedOrWarnedOf) {
  Start();
  const std::string path = "/apis/networking.istio.io/v1beta1/namespaces/sample/virtualservices";
  const json misspelt = {{"metadata", {{"name", "misspelt"}}},
                         {"spec", json::parse(R"({"hosts": ["helloworld"], "htp": [],
                                               "http": [{"route": [{"destination": {"host": "helloworld"}}]}]})")}};
  const auto [strict, refusal] = Send("cluster1", "POST", path + "?fieldValidation=Strict", misspelt);
  EXPECT_EQ(strict, 400);
  EXPECT_THAT(refusal["message"].get<std::string>(), HasSubstr("unknown field \"spec.htp\""));
  const auto [code, stored] = Send("cluster1", "POST", path, misspelt);
  EXPECT_EQ(code, 201) << stored;
  EXPECT_FALSE(stored["spec"].contains("htp")) << stored;
  const auto [wrong, invalid] =
      Send("cluster1", "POST", path, {{"metadata", {{"name", "wrong"}}}, {"spec", {{"hosts", "helloworld"}}}});
  EXPECT_EQ(wrong, 422);
  EXPECT_THAT(invalid["message"].get<std::string>(), HasSubstr("spec.hosts in body must be of type array"));
  const auto [found, document] = Send("cluster1", "GET", "/openapi/v3/apis/networking.istio.io/v1beta1");
  EXPECT_EQ(found, 200);
  EXPECT_TRUE(document["components"]["schemas"]["io.istio.networking.v1beta1.VirtualService"]["properties"]["spec"]
                      ["properties"]
                          .contains("http"));
}

json BarePod(const std::string& name, const json& labels) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "sample"}, {"labels", labels}}},
          {"spec", {{"containers", json::array({{{"name", "app"}, {"image", "example/app:1"}}})}}}};
}

std::vector<std::string> Containers(const json& pod) {
  std::vector<std::string> out;
  for (const json& container : pod["spec"]["containers"]) out.push_back(container["name"]);
  return out;
}

TEST_F(KubeFrontendTest, APodThatAClientCreatesPassesTheInjector) {
  Start();
  const std::string server = server_->kube()->where()[0].server, pods = "/api/v1/namespaces/sample/pods";
  const auto send = [&](const std::string& method, const std::string& path, const json& body,
                        const std::string& type = "application/json") -> std::pair<int, json> {
    const auto answer = http::Send({server, method, path, type, body.dump(), ""}, 60s);
    if (!answer.ok()) return {0, std::string(answer.status().message())};
    return {answer->status, json::parse(answer->body, nullptr, false)};
  };
  auto [code, pod] = send("POST", pods, BarePod("bare", {{"app", "bare"}}));
  ASSERT_EQ(code, 201) << pod;
  EXPECT_THAT(Containers(pod), testing::Contains("istio-proxy"));
  EXPECT_TRUE(Eventually([](sim::World& world) {
    const auto found = world.Pods("cluster1", "sample", "bare");
    return found.size() == 1 && found[0]->envoy() != nullptr && found[0]->envoy()->ads_connected();
  })) << "and its Envoy runs";
  EXPECT_EQ(send("POST", pods, BarePod("bare", {})).first, 409);
  std::tie(code, pod) = send("POST", pods, BarePod("wrong", {{"app", {{"a", "b"}}}}));
  EXPECT_EQ(code, 400) << "which the API server says before it asks the injector";
  EXPECT_EQ(pod.value("message", ""),
            "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field "
            "ObjectMeta.metadata.labels of type string");
  std::tie(code, pod) = send("POST", pods, BarePod("plain", {{"sidecar.istio.io/inject", "false"}}));
  EXPECT_EQ(code, 201) << pod;
  EXPECT_THAT(Containers(pod), ElementsAre("app"));
  std::tie(code, pod) = send("POST", pods + "?dryRun=All", BarePod("dry", {}));
  EXPECT_EQ(code, 201) << pod;

  const std::string how = "?fieldManager=me&force=true", type = "application/apply-patch+yaml";
  std::tie(code, pod) = send("PATCH", pods + "/applied" + how, BarePod("applied", {{"app", "applied"}}), type);
  ASSERT_EQ(code, 201) << pod;
  EXPECT_THAT(Containers(pod), testing::Contains("istio-proxy"));
  ASSERT_EQ(pod["metadata"]["managedFields"].size(), 1u) << pod["metadata"];
  EXPECT_EQ(pod["metadata"]["managedFields"][0]["manager"], "me");
  EXPECT_THAT(pod["metadata"]["managedFields"].dump(), Not(HasSubstr("istio-proxy")));
  std::tie(code, pod) =
      send("PATCH", pods + "/applied" + how, BarePod("applied", {{"app", "applied"}, {"more", "yes"}}), type);
  EXPECT_EQ(code, 200) << pod;
  EXPECT_THAT(Containers(pod), testing::Contains("istio-proxy")) << "which is not his to take away";

  // Nobody injects: pods are refused, as failurePolicy Fail says.
  EXPECT_EQ(Send("cluster1", "PATCH", "/apis/apps/v1/namespaces/istio-system/deployments/istiod/scale",
                 {{"spec", {{"replicas", 0}}}}, "application/merge-patch+json")
                .first,
            200);
  EXPECT_TRUE(Eventually([](sim::World& world) { return world.Pods("cluster1", "istio-system", "istiod").empty(); }));
  std::tie(code, pod) = send("POST", pods, BarePod("late", {{"app", "late"}}));
  EXPECT_EQ(code, 500);
  EXPECT_EQ(pod["reason"], "InternalError") << pod;
  EXPECT_THAT(pod["message"].get<std::string>(), HasSubstr("Internal error occurred: failed calling webhook"));

  ASSERT_TRUE(server_->Stop().ok());
  const std::string digest = server_->loop().world().kernel().digest().Hex();
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(log_.string());
  ASSERT_TRUE(log.ok()) << log.status();
  replay::WorldTarget target;
  const absl::StatusOr<replay::ReplayResult> replayed = replay::Replay(**log, target);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->divergence.has_value()) << replay::Describe(*replayed->divergence);
  EXPECT_EQ(replayed->trace_digest, digest);
}

// Without --keep-secrets such a log does not replay: what holds a private key is replaced whole.
TEST_F(KubeFrontendTest, ALogThatKeepsSecretsSaysSoIsItsOwnersAloneAndReplaysPrivateKeys) {
  Start("", true);
  const std::string key = x509::KeyPair::Derive(7, "kept")->ExportPrivateKeyPem();
  const json secret = {{"metadata", {{"name", "web"}}},
                       {"type", "Opaque"},
                       {"stringData", {{"tls.key", key}, {"password", "hunter22"}}}};
  EXPECT_EQ(Send("cluster1", "POST", "/api/v1/namespaces/sample/secrets", secret).first, 201);
  ASSERT_TRUE(Eventually([](sim::World& world) { return world.Settled(); }));
  ASSERT_TRUE(server_->Stop().ok());
  const std::string digest = server_->loop().world().kernel().digest().Hex();

  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(log_.string());
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE(replay::KeepsSecrets((*log)->header()));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(log_).permissions(), perms::owner_read | perms::owner_write);
  replay::WorldTarget target;
  const absl::StatusOr<replay::ReplayResult> replayed = replay::Replay(**log, target);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_EQ(replayed->trace_digest, digest);
  const kube::ObjectRef kept = target.world()->KubeApi("cluster1")->server().Get("Secret", {"sample", "web"});
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kube::ReadSecretData(*kept)->at("tls.key"), key);
}

TEST_F(KubeFrontendTest, NoCredentialReachesTheLog) {
  Start("open sesame");
  const std::string server = server_->kube()->where()[0].server;
  EXPECT_EQ(http::Fetch(server, "/api/v1/pods", 60s).status().code(), absl::StatusCode::kFailedPrecondition);
  const json remote = {{"metadata", {{"name", "s"}}}, {"data", {{"k", "dg=="}}}};
  http::Request request;
  request.method = "POST";
  request.path = "/api/v1/namespaces/sample/secrets";
  request.body = remote.dump();
  request.authorization = "Bearer open sesame";
  EXPECT_EQ(*server_->loop().Call([&](sim::World& world) { return sim::AskKube(world, "cluster1", request).code; }),
            201);
  ASSERT_TRUE(server_->Stop().ok());
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(log_.string());
  ASSERT_TRUE(log.ok());
  int requests = 0;
  for (;;) {
    const absl::StatusOr<replay::LogReader::Item> item = (*log)->Next();
    ASSERT_TRUE(item.ok());
    if (*item == replay::LogReader::Item::kEnd) break;
    if (*item != replay::LogReader::Item::kInput) continue;
    EXPECT_THAT((*log)->input().body.dump(), Not(HasSubstr("sesame")));
    requests += (*log)->input().kind == "kubeRequest" ? 1 : 0;
  }
  EXPECT_EQ(requests, 1);
}

TEST(RenderKubeconfig, NamesOneContextPerCluster) {
  const absl::StatusOr<json> config = kube::ParseYaml(
      RenderKubeconfig({{"cluster1", "http://127.0.0.1:8901"}, {"cluster2", "http://127.0.0.1:8902"}}, "t"),
      "kubeconfig");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ((*config)["current-context"], "cluster1");
  EXPECT_EQ((*config)["contexts"][1]["name"], "cluster2");
  EXPECT_EQ((*config)["clusters"][1]["cluster"]["server"], "http://127.0.0.1:8902");
  EXPECT_EQ((*config)["users"][0]["user"]["token"], "t");
}

TEST(RedactedWithin, LeavesAKubeconfigAKubeconfig) {
  const std::string token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl";
  std::string config = RenderKubeconfig({{"cluster2", "http://127.0.0.1:8902"}}, token);
  std::string base64;
  absl::Base64Escape(config, &base64);
  const json body = {{"data", {{"cluster2", base64}, {"plain", config}, {"other", "text"}}}};
  const json redacted = replay::RedactedWithin(body);
  EXPECT_FALSE(replay::HoldsSecret(redacted.dump()));
  EXPECT_EQ(redacted["data"]["other"], "text");
  std::string decoded;
  ASSERT_TRUE(absl::Base64Unescape(redacted["data"]["cluster2"].get<std::string>(), &decoded));
  EXPECT_EQ(decoded, redacted["data"]["plain"]);
  EXPECT_THAT(decoded, HasSubstr("server: \"http://127.0.0.1:8902\""));
  EXPECT_THAT(decoded, HasSubstr("redacted-token-"));
  // A key is not told apart from what is around it.
  const json key = {{"k", "-----BEGIN RSA PRIVATE " + std::string("KEY-----\nMIIEpAIBAAKCAQEA\n")}};
  EXPECT_THAT(replay::RedactedWithin(key)["k"].get<std::string>(), HasSubstr("redacted sha256:"));
}

}  // namespace
}  // namespace wavetank::serve
