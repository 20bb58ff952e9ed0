#include "core/istiod/istiod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/base/status.h"
#include "core/debug/clients.h"
#include "core/debug/pages.h"
#include "core/debug/registry.h"
#include "core/debug/status.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/registry/crd_client.h"
#include "core/security/istio_ca.h"
#include "core/security/remote_secret.h"
#include "core/x509/x509.h"
#include "core/xds/discovery_server.h"
#include "fakes/kube/client/client.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "sim/kernel/kernel.h"
#include "sim/timing.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHelloworld[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: sample}
---
apiVersion: v1
kind: Service
metadata: {name: helloworld, namespace: sample, labels: {app: helloworld}}
spec:
  selector: {app: helloworld}
  ports: [{name: http, port: 5000, targetPort: 5000}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: helloworld, namespace: sample}
spec:
  replicas: 2
  selector: {matchLabels: {app: helloworld}}
  template:
    metadata: {labels: {app: helloworld}}
    spec:
      containers: [{name: app, image: x, ports: [{containerPort: 5000}]}]
)";
constexpr char kHelloworldCluster[] = "outbound|5000||helloworld.sample.svc.cluster.local";

class Costs final : public sim::CostModel {
 public:
  Duration Cost(const Work& work) const override { return timing_.Cost(work); }

 private:
  sim::Timing timing_;
};

// A proxy that asks for clusters and endpoints and ACKs.
class Client final : public AdsStream {
 public:
  void Send(std::shared_ptr<const DiscoveryResponse> response) override {
    last[response->type] = response;
    ++count[response->type];
    Request(response->type, response->nonce);
  }
  void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse>) override {}
  void Close(const absl::Status& status) override { closed = status; }

  void Request(XdsType type, std::string nonce = {}) {
    DiscoveryRequest request;
    request.type = type;
    if (type == XdsType::kEds) request.resource_names = std::vector<std::string>{kHelloworldCluster};
    request.response_nonce = std::move(nonce);
    request.node = node;
    connection->OnRequest(std::move(request));
  }

  std::shared_ptr<const Node> node;
  std::map<XdsType, std::shared_ptr<const DiscoveryResponse>> last;
  std::map<XdsType, int> count;
  std::optional<absl::Status> closed;
  std::unique_ptr<AdsConnection> connection;
};

class Reviewer final : public kube::TokenReviewer {
 public:
  Reviewer(Host& host, const kube::TokenAuthority& authority) : host_(host), authority_(authority) {}
  void Review(const std::string& token, const std::vector<std::string>& audiences,
              absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override {
    host_.RunAfter(1ms, [this, token, audiences, done = std::move(done)]() mutable {
      done(authority_.Verify(token, audiences, host_.Now()));
    });
  }

 private:
  Host& host_;
  const kube::TokenAuthority& authority_;
};

class IstiodTest : public ::testing::Test, public kube::ClientFactory {
 protected:
  IstiodTest() {
    for (const char* name : {"cluster1", "cluster2"}) {
      Host& host = kernel_.NewHost(name, 0, nullptr);
      fakekube::ClusterOptions options;
      options.name = name;
      options.pod_cidr = std::string(name) == "cluster1" ? "10.1.0.0/16" : "10.2.0.0/16";
      options.nodes = {{"node", "r", "z", ""}};
      clusters_[name] = std::make_unique<fakekube::Cluster>(host, options, nullptr, nullptr);
      Apply(name, kHelloworld);
      authorities_.emplace(name, kube::TokenAuthority(1, name));
      reviewers_[name] = std::make_unique<Reviewer>(host, authorities_.at(name));
    }
    client_ = fakekube::MakeClient(clusters_["cluster1"]->api(), host_, "istiod", 1, {});
    Run(5s);
  }

  absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const std::string&, const std::string& kubeconfig) override {
    const auto parsed = kube::ParseKubeConfig(kubeconfig, "kubeconfig");
    if (!parsed.ok()) return parsed.status();
    for (const auto& [name, cluster] : clusters_) {
      if (parsed->server == "https://" + name) {
        return fakekube::MakeClient(cluster->api(), host_, "istiod to " + name, 1, {});
      }
    }
    return absl::UnavailableError("no such server");
  }

  void Apply(const std::string& cluster, const std::string& text) {
    const auto manifests = fakekube::ParseManifests("test.yaml", text);
    ASSERT_TRUE(manifests.ok()) << manifests.status();
    for (const auto& manifest : *manifests) {
      const auto applied = clusters_[cluster]->api().Apply(manifest.object);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
  }
  void ApplyRemoteSecret() {
    const kube::ObjectRef secret = security::MakeRemoteSecret(
        {.cluster = "cluster2",
         .server = "https://cluster2",
         .ca_pem = security::MakeSelfSignedCa(1, "cluster2", "cluster.local", Time{}, 24h).roots,
         .token = "t"});
    ASSERT_TRUE(clusters_["cluster1"]->api().Apply(secret->body).ok());
  }
  void MakeIstiod(IstiodOptions options = {}) {
    options.cluster_id = ClusterId("cluster1");
    options.seed = 1;
    IstiodSurroundings around;
    around.host = &host_;
    around.config_cluster = client_.get();
    around.remote_clusters = this;
    around.token_reviewer = [this](std::string_view cluster) -> kube::TokenReviewer* {
      const auto it = reviewers_.find(std::string(cluster));
      return it == reviewers_.end() ? nullptr : it->second.get();
    };
    istiod_ = std::make_unique<Istiod>(std::move(around), std::move(options));
    istiod_->Start([this](absl::Status status) { started_ = status; });
  }
  void Run(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }

  std::string Token(const std::string& cluster) {
    return authorities_.at(cluster).Issue({.ns = "sample",
                                           .service_account = "sleep",
                                           .audiences = {"istio-ca"},
                                           .issued = kernel_.Now(),
                                           .expires = kernel_.Now() + 12h});
  }
  std::unique_ptr<Client> OpenAds(security::PeerCredentials peer, const std::string& account = "sleep") {
    auto client = std::make_unique<Client>();
    client->node = std::make_shared<Node>(
        Node{"sidecar~10.1.9.9~sleep-1.sample~sample.svc.cluster.local",
             "",
             {},
             {{"CLUSTER_ID", "cluster1"}, {"NAMESPACE", "sample"}, {"SERVICE_ACCOUNT", account}}});
    client->connection = istiod_->OpenAds(std::move(peer), "10.1.9.9", *client);
    client->Request(XdsType::kCds);
    client->Request(XdsType::kEds);
    return client;
  }
  // Endpoints that istiod holds for the service.
  size_t EndpointCount() {
    const auto services = debug::EndpointShardz(*istiod_);
    size_t count = 0;
    for (const auto& shard : services.at("helloworld.sample.svc.cluster.local").at("sample").at("Shards")) {
      count += shard.size();
    }
    return count;
  }

  sim::Kernel kernel_{1};
  Costs costs_;
  Host& host_ = kernel_.NewHost("istiod", 2, &costs_);
  std::map<std::string, std::unique_ptr<fakekube::Cluster>> clusters_;
  std::map<std::string, kube::TokenAuthority> authorities_;
  std::map<std::string, std::unique_ptr<Reviewer>> reviewers_;
  std::unique_ptr<kube::Client> client_;
  std::optional<absl::Status> started_;
  std::unique_ptr<Istiod> istiod_;
};

TEST_F(IstiodTest, IsReadyWhenItKnowsEverythingThatWasThere) {
  ApplyRemoteSecret();
  MakeIstiod();
  EXPECT_FALSE(istiod_->Ready());
  while (!istiod_->Ready() && kernel_.Now() < Time(1min)) Run(1ms);
  ASSERT_TRUE(started_);
  EXPECT_TRUE(started_->ok()) << *started_;
  EXPECT_EQ(EndpointCount(), 4u);  // two pods in each cluster
  EXPECT_NE(istiod_->discovery().push_context()->version(), "");
}

TEST_F(IstiodTest, AProxyGetsEndpointsOfARemoteClusterAsLongAsItsSecretIsThere) {
  MakeIstiod();
  Run(2s);
  const auto client = OpenAds({.tls = false});
  Run(1s);
  ASSERT_EQ(client->count[XdsType::kEds], 1);
  const int64_t before = client->last[XdsType::kEds]->bytes;
  ApplyRemoteSecret();
  Run(2s);
  EXPECT_GE(client->count[XdsType::kEds], 2);
  EXPECT_GT(client->last[XdsType::kEds]->bytes, before);
  EXPECT_EQ(EndpointCount(), 4u);
  ASSERT_TRUE(clusters_["cluster1"]->api().Delete("Secret", {"istio-system", "istio-remote-secret-cluster2"}).ok());
  Run(2s);
  EXPECT_EQ(client->last[XdsType::kEds]->bytes, before);
  EXPECT_TRUE(istiod_->Idle());
}

TEST_F(IstiodTest, AProxyOnTlsNeedsTheTokenOfItsAccountFromAClusterThatIstiodKnows) {
  MakeIstiod();
  Run(2s);
  const auto good = OpenAds({.bearer_token = Token("cluster1")});
  const auto other = OpenAds({.bearer_token = Token("cluster1")}, "someone-else");
  const auto none = OpenAds({});
  const auto stranger = OpenAds({.bearer_token = Token("cluster2"), .cluster_id = "cluster2"});
  Run(2s);
  EXPECT_EQ(good->count[XdsType::kCds], 1);
  ASSERT_TRUE(other->closed);
  EXPECT_EQ(other->closed->code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(none->closed);
  EXPECT_EQ(none->closed->code(), absl::StatusCode::kUnauthenticated);
  ASSERT_TRUE(stranger->closed);
  EXPECT_EQ(stranger->closed->code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(IstiodTest, SignsForTokensOfClustersWhoseSecretItHas) {
  ApplyRemoteSecret();
  MakeIstiod();
  Run(3s);
  absl::StatusOr<std::vector<std::string>> chain = absl::UnknownError("no answer");
  istiod_->CreateCertificate({.bearer_token = Token("cluster2"), .cluster_id = "cluster2"},
                             {.csr = x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {})},
                             [&](auto answer) { chain = std::move(answer); });
  Run(1s);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(*chain, SizeIs(Ge(2u)));
}

TEST_F(IstiodTest, SpreadsItsRootToNamespacesAndWebhooksOfItsOwnClusterAlone) {
  ASSERT_TRUE(clusters_["cluster1"]->api().Apply(MakeMutatingWebhookConfiguration({})).ok());
  ApplyRemoteSecret();
  MakeIstiod();
  Run(5s);
  const auto map = clusters_["cluster1"]->api().Get("ConfigMap", {"sample", "istio-ca-root-cert"});
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->body["data"]["root-cert.pem"], istiod_->ca_bundle_pem());
  EXPECT_EQ(clusters_["cluster2"]->api().Get("ConfigMap", {"sample", "istio-ca-root-cert"}), nullptr);
  const auto configurations = clusters_["cluster1"]->api().List("MutatingWebhookConfiguration");
  ASSERT_THAT(configurations, SizeIs(1));
  for (const json& webhook : configurations[0]->body["webhooks"]) {
    EXPECT_EQ(webhook["clientConfig"].value("caBundle", ""), absl::Base64Escape(istiod_->ca_bundle_pem()));
  }
}

TEST_F(IstiodTest, AnExternalIstiodServesTheClustersThatNameIt) {
  ASSERT_TRUE(clusters_["cluster2"]
                  ->api()
                  .Patch("Namespace", {"", "istio-system"},
                         {{"metadata", {{"annotations", {{"topology.istio.io/controlPlaneClusters", "cluster1"}}}}}})
                  .ok());
  ASSERT_TRUE(clusters_["cluster2"]->api().Apply(MakeMutatingWebhookConfiguration({})).ok());
  ApplyRemoteSecret();
  MakeIstiod({.external = true});
  Run(5s);
  const auto map = clusters_["cluster2"]->api().Get("ConfigMap", {"sample", "istio-ca-root-cert"});
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->body["data"]["root-cert.pem"], istiod_->ca_bundle_pem());
  const auto configurations = clusters_["cluster2"]->api().List("MutatingWebhookConfiguration");
  EXPECT_EQ(configurations[0]->body["webhooks"][0]["clientConfig"].value("caBundle", ""),
            absl::Base64Escape(istiod_->ca_bundle_pem()));
}

TEST_F(IstiodTest, InjectsPodsAndSaysSoInTheTrace) {
  MakeIstiod();
  Run(2s);
  std::vector<std::string> results;
  kernel_.AddObserver([&](const sim::TraceEvent& event) {
    if (event.record.kind == TraceKind::kPodInjected) results.emplace_back(event.record.detail);
  });
  const json container = {{"name", "app"}, {"image", "x"}};
  const json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", "p"}, {"namespace", "sample"}}},
                    {"spec", {{"containers", json::array({container})}}}};
  json answer;
  istiod_->Admit("/inject", MakeAdmissionReview(pod, "1"), [&](json a) { answer = std::move(a); });
  Run(1s);
  const auto injected = ApplyAdmissionResponse(pod, answer);
  ASSERT_TRUE(injected.ok()) << injected.status();
  EXPECT_THAT((*injected)["spec"]["containers"].dump(), HasSubstr("istio-proxy"));
  EXPECT_THAT(results, ElementsAre("injected"));
}

TEST_F(IstiodTest, ABrokenCaSecretKeepsItFromStarting) {
  Apply("cluster1", R"(
apiVersion: v1
kind: Secret
metadata: {name: cacerts, namespace: istio-system}
stringData: {ca-cert.pem: nonsense, ca-key.pem: nonsense, root-cert.pem: nonsense, cert-chain.pem: nonsense}
)");
  MakeIstiod();
  Run(5s);
  ASSERT_TRUE(started_);
  EXPECT_FALSE(started_->ok());
  EXPECT_FALSE(istiod_->Ready());
}

TEST_F(IstiodTest, WithoutARemoteClusterTimeoutItReadsRemoteClustersAllTheSame) {
  ApplyRemoteSecret();
  for (const Duration timeout : {Duration::zero(), Duration(-1s)}) {
    IstiodOptions options;
    options.remote_cluster_timeout = timeout;
    MakeIstiod(std::move(options));
    Run(5s);
    EXPECT_TRUE(istiod_->Ready()) << timeout.count();
    EXPECT_EQ(EndpointCount(), 4u) << timeout.count();
    istiod_.reset();
  }
}

TEST_F(IstiodTest, PanicsAtANegativePushThrottle) {
  IstiodOptions options;
  options.push_throttle = -1;
  MakeIstiod(std::move(options));
  Run(5s);
  ASSERT_TRUE(started_);
  EXPECT_THAT(std::string(Message(*started_)), HasSubstr("panic: makechan: size out of range"));
}

TEST_F(IstiodTest, PanicsAtAGracePeriodThatGoesTickerRefuses) {
  for (const Duration grace : {Duration::zero(), Duration(-1s)}) {
    IstiodOptions options;
    options.entry_grace = grace;
    MakeIstiod(std::move(options));
    Run(5s);
    ASSERT_TRUE(started_) << grace.count();
    EXPECT_THAT(std::string(Message(*started_)), HasSubstr("panic: non-positive interval for NewTicker"));
    istiod_.reset();
    started_.reset();
  }
}

TEST_F(IstiodTest, StartsWithAGracePeriodOfANanosecond) {
  IstiodOptions options;
  options.entry_grace = Duration(1);
  MakeIstiod(std::move(options));
  Run(5s);
  ASSERT_TRUE(started_);
  EXPECT_TRUE(started_->ok()) << *started_;
}

TEST_F(IstiodTest, DiesAtAnyMomentWithoutAWord) {
  ApplyRemoteSecret();
  // At each of these instants something else is under way.
  for (Duration life : {0ms, 1ms, 3ms, 10ms, 50ms, 105ms, 150ms, 1000ms}) {
    MakeIstiod();
    const auto client = OpenAds({.bearer_token = Token("cluster1")});
    istiod_->CreateCertificate({.bearer_token = Token("cluster1")},
                               {.csr = x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {})}, [](auto) {});
    Run(life);
    client->closed.reset();
    istiod_.reset();
    Run(5s);
    EXPECT_FALSE(client->closed) << ToMillis(life) << " ms";
  }
}

TEST_F(IstiodTest, DebugPagesShowWhatAProxyHas) {
  ApplyRemoteSecret();
  MakeIstiod();
  Run(3s);
  const auto client = OpenAds({.tls = false});
  Run(1s);
  const auto page = [&](const char* target) {
    const debug::Reply reply = debug::Page(*istiod_, target);
    EXPECT_EQ(reply.status, 200) << target << ": " << reply.body;
    return nlohmann::json::parse(reply.body, nullptr, false);
  };
  const auto sync = page("/debug/syncz");
  ASSERT_THAT(sync, SizeIs(1));
  EXPECT_EQ(sync[0].at("proxy"), "sleep-1.sample");
  EXPECT_EQ(sync[0].at("endpoint_acked"), sync[0].at("endpoint_sent"));
  EXPECT_FALSE(sync[0].contains("listener_sent"));
  const auto ads = page("/debug/adsz?proxyID=sleep-1");
  EXPECT_EQ(ads.at("totalClients"), 1);
  EXPECT_THAT(
      ads.at("clients")[0].at("watches").at("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"),
      Contains(kHelloworldCluster));
  EXPECT_THAT(page("/debug/registryz").dump(), HasSubstr("helloworld.sample.svc.cluster.local"));
  const auto shards = page("/debug/endpointShardz").at("helloworld.sample.svc.cluster.local").at("sample");
  EXPECT_TRUE(shards.at("Shards").contains("Kubernetes/cluster2")) << shards;
  EXPECT_EQ(page("/debug/clusterz")[0], nlohmann::json({{"id", "cluster2"},
                                                        {"secretName", "istio-system/istio-remote-secret-cluster2"},
                                                        {"syncStatus", "synced"}}));
  EXPECT_TRUE(page("/debug/networkz").is_null());
  EXPECT_EQ(page("/debug/mesh").at("trustDomain"), "cluster.local");
  const auto dump = page("/debug/config_dump?proxyID=sleep-1&include_eds=true").at("configs");
  EXPECT_THAT(dump[1].at("dynamicActiveClusters").dump(), HasSubstr(kHelloworldCluster));
  EXPECT_THAT(dump[2].at("dynamicEndpointConfigs").dump(), HasSubstr(kHelloworldCluster));
  EXPECT_THAT(page("/debug/list"), Contains("syncz"));
}

TEST_F(IstiodTest, EveryDebugPageOfItsListAnswersAndChangesNothing) {
  ApplyRemoteSecret();
  MakeIstiod();
  Run(3s);
  const auto client = OpenAds({.tls = false});
  Run(1s);
  const auto entries = istiod_->discovery().cache().size();
  const std::string digest = kernel_.digest().Hex();
  for (const debug::PageName& name : debug::Pages({})) {
    const std::string path(name.path);
    const std::string query = path.find('?') == std::string::npos ? "?proxyID=sleep-1" : "";
    const debug::Reply reply = debug::Page(*istiod_, path + query);
    // Without extension configurations istiod finds none, too, but says nothing of pages.
    EXPECT_EQ(reply.status == 404, path == "/debug/ecdsz") << path;
    EXPECT_THAT(reply.body, testing::Not(HasSubstr("page not found"))) << path;
    if (reply.content_type == "application/json") {
      EXPECT_FALSE(nlohmann::json::parse(reply.body, nullptr, false).is_discarded()) << path;
    }
  }
  EXPECT_EQ(debug::Page(*istiod_, "//version?a=b").location, "/version?a=b");
  EXPECT_EQ(debug::Page(*istiod_, "/debug/nosuchz").status, 404);
  EXPECT_EQ(debug::Page(*istiod_, "/debug/config_dump").status, 400);
  EXPECT_EQ(debug::Page(*istiod_, "/debug/config_dump?proxyID=nosuch").status, 404);
  EXPECT_EQ(debug::Page(*istiod_, "/debug/cachez?clear=true").status, 501);
  Run(0s);
  EXPECT_EQ(istiod_->discovery().cache().size(), entries);
  EXPECT_EQ(kernel_.digest().Hex(), digest);
}

// What a real 1.30.3 answered, with and without meshNetworks and a remote cluster.
TEST_F(IstiodTest, CollectionsCannotBePrintedWithoutMeshNetworksOrWithARemoteCluster) {
  const auto krtz = [&](bool remote, bool networks, const char* profile) {
    istiod_.reset();
    if (remote) ApplyRemoteSecret();
    if (networks) {
      EXPECT_TRUE(clusters_["cluster1"]
                      ->api()
                      .Apply({{"apiVersion", "v1"},
                              {"kind", "ConfigMap"},
                              {"metadata", {{"name", "istio"}, {"namespace", "istio-system"}}},
                              {"data", {{"mesh", "{}"}, {"meshNetworks", "networks: {}"}}}})
                      .ok());
    }
    IstiodOptions options;
    options.profile = *ParseProfile(profile);
    MakeIstiod(std::move(options));
    Run(3s);
    const debug::Reply reply = debug::Page(*istiod_, "/debug/krtz");
    EXPECT_EQ(reply.content_type == "application/json", reply.status == 500);
    return fmt::format("{} {}", reply.status, reply.body.substr(reply.body.rfind("json: ") + 6));
  };
  EXPECT_EQ(krtz(false, false, "istio-1.30"),
            "500 error calling MarshalJSON for type meshwatcher.MeshNetworksResource: Marshal called with nil");
  EXPECT_THAT(krtz(false, true, "istio-1.30"), testing::StartsWith("501 ")) << "it would be printed";
  EXPECT_EQ(krtz(true, true, "istio-1.30"), "500 unsupported type: chan struct {}");
  EXPECT_THAT(krtz(true, true, "istio-1.30-graceful-secret-update"), testing::StartsWith("501 "))
      << "the channel came with the swap";
}

// istiod: pilot/pkg/model/telemetry.go, applicableTelemetries()
TEST_F(IstiodTest, TelemetryOfAProxyIsShownFrom119On) {
  const auto telemetry = [&](const char* ns, const char* name, nlohmann::json spec) {
    EXPECT_TRUE(clusters_["cluster1"]
                    ->api()
                    .Apply({{"apiVersion", "telemetry.istio.io/v1alpha1"},
                            {"kind", "Telemetry"},
                            {"metadata", {{"name", name}, {"namespace", ns}}},
                            {"spec", std::move(spec)}})
                    .ok());
  };
  telemetry("istio-system", "mesh", {{"accessLogging", {{{"disabled", true}}}}});
  telemetry("sample", "others",
            {{"selector", {{"matchLabels", {{"app", "other"}}}}}, {"tracing", {{{"disableSpanReporting", true}}}}});
  telemetry("sample", "all", {{"metrics", {{{"reportingInterval", "7s"}}}}});
  const auto shown = [&](const char* profile) {
    IstiodOptions options;
    options.profile = *ParseProfile(profile);
    MakeIstiod(std::move(options));
    Run(3s);
    const auto client = OpenAds({.tls = false});
    Run(1s);
    EXPECT_EQ(debug::Page(*istiod_, "/debug/telemetryz?proxyID=nosuch").status,
              std::string_view(profile) == "istio-1.18" ? 200 : 404);
    return nlohmann::json::parse(debug::Page(*istiod_, "/debug/telemetryz?proxyID=sleep-1").body, nullptr, false);
  };
  EXPECT_TRUE(shown("istio-1.18").contains("telemetries"));
  const nlohmann::json none{{"Namespace", ""}, {"Name", ""}}, mesh{{"Namespace", "istio-system"}, {"Name", "mesh"}},
      all{{"Namespace", "sample"}, {"Name", "all"}};
  EXPECT_EQ(shown("istio-1.24"),
            nlohmann::json(
                {{"Root", mesh},
                 {"Namespace", all},
                 {"Workload", none},
                 {"Metrics", {{{"reportingInterval", "7s"}}}},
                 {"Logging",
                  {{{"Root", mesh}, {"Namespace", none}, {"Workload", none}, {"Logging", {{{"disabled", true}}}}}}},
                 {"Tracing", nlohmann::json::array()}}));
  EXPECT_EQ(shown("istio-1.30.1").at("Namespace"), all);
  EXPECT_EQ(shown("istio-1.30").at("Proxy"), all);
}

// istiod: pkg/kube/namespace/filter.go
TEST_F(IstiodTest, WhatNoDiscoverySelectorReadsIsNoConfigurationFrom122On) {
  const auto select = [&](const char* read) {
    Apply("cluster1",
          fmt::format("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: istio, namespace: istio-system}}\n"
                      "data: {{mesh: 'discoverySelectors: [{{matchLabels: {{read: \"{}\"}}}}]'}}\n",
                      read));
  };
  const auto label = [&](const char* read) {
    Apply("cluster1",
          fmt::format("apiVersion: v1\nkind: Namespace\nmetadata: {{name: sample, labels: {{read: \"{}\"}}}}\n", read));
    Run(1s);
  };
  Apply("cluster1",
        "apiVersion: networking.istio.io/v1beta1\nkind: Sidecar\nmetadata: {name: own, namespace: sample}\n"
        "spec: {egress: [{hosts: ['./*']}]}\n");
  const auto sidecars = [&] {
    std::vector<std::string> names;
    for (const kube::ObjectRef& object : istiod_->config_objects().Objects()) {
      if (object->kind == "Sidecar") names.push_back(object->meta.name);
    }
    return names;
  };
  const auto start = [&](const char* profile) {
    label("no");
    select("yes");
    IstiodOptions options;
    options.profile = *ParseProfile(profile);
    MakeIstiod(std::move(options));
    Run(3s);
    ASSERT_TRUE(istiod_->Ready());
  };
  start("istio-1.18");
  EXPECT_THAT(sidecars(), SizeIs(1));
  start("istio-1.18+selectors-scope-configuration");
  EXPECT_THAT(sidecars(), IsEmpty());
  start("istio-1.30");
  EXPECT_THAT(sidecars(), IsEmpty());
  const std::string version = istiod_->discovery().push_context()->version();
  label("yes");
  EXPECT_THAT(sidecars(), SizeIs(1));
  EXPECT_NE(istiod_->discovery().push_context()->version(), version) << "it is pushed";
  label("no");
  EXPECT_THAT(sidecars(), IsEmpty());
  select("no");
  Run(1s);
  EXPECT_THAT(sidecars(), SizeIs(1)) << "by a change of the mesh's configuration";
}

TEST_F(IstiodTest, DiscoverySelectorsThatComeLaterScopeConfigurationToo) {
  Apply("cluster1",
        "apiVersion: networking.istio.io/v1beta1\nkind: Sidecar\nmetadata: {name: own, namespace: sample}\n"
        "spec: {egress: [{hosts: ['./*']}]}\n");
  IstiodOptions options;
  options.profile = *ParseProfile("istio-1.30");
  MakeIstiod(std::move(options));
  Run(3s);
  EXPECT_THAT(istiod_->config_objects().Objects(), SizeIs(1));
  Apply("cluster1",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n"
        "data: {mesh: 'discoverySelectors: [{matchLabels: {read: \"yes\"}}]'}\n");
  Run(1s);
  EXPECT_THAT(istiod_->config_objects().Objects(), IsEmpty());
}

TEST_F(IstiodTest, DebugOverAdsIsForCallersOfTheSystemNamespace) {
  MakeIstiod();
  Run(3s);
  const auto ask = [&](const char* type, std::vector<std::string> names, const char* identity) {
    return debug::StatusResources(*istiod_, type, names, identity).status().code();
  };
  const char* const admin = "spiffe://cluster.local/ns/istio-system/sa/default";
  const char* const other = "spiffe://cluster.local/ns/sample/sa/sleep";
  EXPECT_EQ(ask("istio.io/debug", {"syncz"}, ""), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(ask("istio.io/debug", {}, admin), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ask("istio.io/debug", {"syncz"}, other), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ask("istio.io/debug", {"config_dump?proxyID=x"}, other), absl::StatusCode::kOk);
  EXPECT_EQ(ask("istio.io/debug", {"syncz"}, admin), absl::StatusCode::kOk);
  EXPECT_EQ(ask("istio.io/debug/syncz", {}, ""), absl::StatusCode::kOk);
  EXPECT_THAT(debug::ControlPlaneIdentifier(*istiod_), HasSubstr("\"Component\":\"istiod\""));
}

}  // namespace
}  // namespace wavetank::pilot
