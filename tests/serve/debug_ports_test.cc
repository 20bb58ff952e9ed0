// istiod's debug interface of a live mesh: over HTTP at its monitoring port, and over ADS.
#include "serve/debug/debug_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_text.h"
#include "fakes/kube/http/transport/fetch.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

ServerOptions WithDebugPorts() {
  ServerOptions out = OnAnyPort();
  out.debug_listen = "127.0.0.1:0";
  return out;
}

class DebugPortsTest : public ::testing::Test {
 protected:
  fakekube::http::Answer Get(const std::string& path, size_t primary = 0) {
    const absl::StatusOr<fakekube::http::Answer> answer = fakekube::http::Send(
        {.server = "http://" + server_->debug()->where()[primary].address, .path = path}, std::chrono::seconds(30));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : fakekube::http::Answer{};
  }
  nlohmann::json Json(const std::string& path, size_t primary = 0) { return ParseJson(Get(path, primary).body); }

  std::unique_ptr<Server> server_ = StartServer(WithDebugPorts());
};

TEST_F(DebugPortsTest, EachPrimarysIstiodShowsItsOwnState) {
  ASSERT_THAT(server_->debug()->where(), SizeIs(2));
  EXPECT_EQ(Get("/ready").status, 200);
  for (size_t primary = 0; primary < 2; ++primary) {
    const std::string own = server_->debug()->where()[primary].cluster;
    const nlohmann::json sync = Json("/debug/syncz", primary);
    ASSERT_FALSE(sync.empty());
    for (const nlohmann::json& proxy : sync) EXPECT_EQ(proxy.at("cluster_id"), own);
    EXPECT_EQ(sync[0].at("cluster_sent"), sync[0].at("cluster_acked"));
    EXPECT_THAT(Json("/debug/networkz", primary), SizeIs(2));
  }
  EXPECT_EQ(Get("/debug/nosuch").status, 404);
}

TEST_F(DebugPortsTest, ADumpHoldsWhatTheProxyOfThePodHas) {
  const std::string pod = PodOf(*server_, "cluster1", "sleep");
  const std::string id = pod.substr(0, pod.find('@'));
  const nlohmann::json dump = Json("/debug/config_dump?include_eds=true&proxyID=" + id);
  std::vector<std::string> sections;
  for (const nlohmann::json& section : dump.at("configs")) {
    const std::string type = section.at("@type");
    sections.push_back(type.substr(type.rfind('.') + 1));
  }
  EXPECT_THAT(sections, ::testing::ElementsAre("BootstrapConfigDump", "ClustersConfigDump", "EndpointsConfigDump",
                                               "ListenersConfigDump", "ScopedRoutesConfigDump", "RoutesConfigDump",
                                               "SecretsConfigDump", "EcdsConfigDump"));
  EXPECT_THAT(dump.at("configs")[1].dump(), HasSubstr(kHelloworld));
  EXPECT_THAT(dump.at("configs")[3].dump(), HasSubstr("envoy.extensions.filters.network.http_connection_manager"));
  EXPECT_EQ(Get("/debug/config_dump?proxyID=nosuch").status, 404);
}

// istio: istioctl, `proxy-status POD` compares it with the Envoy's.
TEST_F(DebugPortsTest, ADumpOverAdsHoldsWhatIstiodGeneratesForTheProxy) {
  const std::string pod = PodOf(*server_, "cluster1", "sleep");
  SotwClient client(PlainChannel(server_->grpc()[0]->where().plaintext));
  ASSERT_TRUE(client.Send(Ask("istio.io/debug/config_dump", {pod.substr(0, pod.find('@'))})));
  std::vector<std::string> sections;
  std::string clusters;
  const discovery::DiscoveryResponse response = client.Read();
  for (const google::protobuf::Any& section : response.resources()) {
    sections.push_back(section.type_url().substr(section.type_url().rfind('.') + 1));
    if (sections.back() == "ClustersConfigDump") clusters = section.value();
  }
  EXPECT_THAT(sections, ::testing::ElementsAre("BootstrapConfigDump", "ClustersConfigDump", "ListenersConfigDump",
                                               "ScopedRoutesConfigDump", "RoutesConfigDump", "SecretsConfigDump",
                                               "EcdsConfigDump"));
  EXPECT_THAT(clusters, HasSubstr(kHelloworld));
}

TEST_F(DebugPortsTest, APathThatIsNotCleanLeadsToTheOneThatIs) {
  EXPECT_EQ(Get("//version").status, 301);
  EXPECT_EQ(Get("/version").body, "1.18.2-simulated-Clean");
}

TEST_F(DebugPortsTest, StatusOverAdsNamesProxiesAndControlPlane) {
  SotwClient client(PlainChannel(server_->grpc()[0]->where().plaintext));
  ASSERT_TRUE(client.Send(Ask("istio.io/debug/syncz")));
  const discovery::DiscoveryResponse response = client.Read();
  EXPECT_EQ(response.type_url(), "istio.io/debug/syncz");
  EXPECT_FALSE(response.version_info().empty());  // istioctl waits for one
  ASSERT_GT(response.resources_size(), 0);
  EXPECT_EQ(response.resources(0).type_url(), "type.googleapis.com/envoy.service.status.v3.ClientConfig");
  EXPECT_THAT(response.control_plane().identifier(), AllOf(HasSubstr("istiod"), HasSubstr("1.18.2")));
}

// istio: pkg/adsc, Send puts the time into the nonce of every request; it answers nothing that was sent.
TEST_F(DebugPortsTest, AQuestionWithANonceThatNobodyGaveIsAnswered) {
  SotwClient client(PlainChannel(server_->grpc()[0]->where().plaintext));
  discovery::DiscoveryRequest question = Ask("istio.io/debug/syncz");
  question.set_response_nonce("2026-11-23 10:00:00 +0000 UTC");
  ASSERT_TRUE(client.Send(question));
  EXPECT_EQ(client.Read().type_url(), "istio.io/debug/syncz");
}

TEST_F(DebugPortsTest, WhoAsksForConnectionsIsToldOfNewOnesOfTheirRefusalsAndOfTheirEnd) {
  const std::string target = server_->grpc()[0]->where().plaintext;
  SotwClient watcher(PlainChannel(target));
  for (const char* type : {"istio.io/connect", "istio.io/disconnect", "istio.io/nack"}) {
    ASSERT_TRUE(watcher.Send(Ask(type)));
    const discovery::DiscoveryResponse now = watcher.Read();
    EXPECT_EQ(now.type_url(), type);
    EXPECT_EQ(now.resources_size() > 0, std::string(type) == "istio.io/connect") << "proxies that are there";
  }
  envoy::config::core::v3::Node node;
  node.set_id("sidecar~10.1.99.9~watched.sample~sample.svc.cluster.local");
  {
    SotwClient proxy(PlainChannel(target));
    ASSERT_TRUE(proxy.Send(Ask(node, kClusterType)));
    discovery::DiscoveryRequest nack = Ack(proxy.Read());
    nack.mutable_error_detail()->set_message("no such thing");
    ASSERT_TRUE(proxy.Send(nack));
    envoy::config::core::v3::Node connected;
    const discovery::DiscoveryResponse event = watcher.Read();
    EXPECT_EQ(event.type_url(), "istio.io/connect");
    ASSERT_EQ(event.resources_size(), 1);
    ASSERT_TRUE(event.resources(0).UnpackTo(&connected));
    EXPECT_EQ(connected.id(), node.id());
    discovery::DiscoveryRequest refused;
    const discovery::DiscoveryResponse refusal = watcher.Read();
    EXPECT_EQ(refusal.type_url(), "istio.io/nack");
    ASSERT_EQ(refusal.resources_size(), 1);
    ASSERT_TRUE(refusal.resources(0).UnpackTo(&refused));
    EXPECT_EQ(refused.error_detail().message(), "no such thing");
    EXPECT_EQ(refused.type_url(), kClusterType);
  }
  const discovery::DiscoveryResponse end = watcher.Read();
  EXPECT_EQ(end.type_url(), "istio.io/disconnect");
  EXPECT_EQ(end.resources_size(), 1);
}

TEST_F(DebugPortsTest, DebugOverPlaintextAdsIsRefusedAsByIstiod) {
  SotwClient client(PlainChannel(server_->grpc()[0]->where().plaintext));
  ASSERT_TRUE(client.Send(Ask("istio.io/debug", {"syncz"})));
  const grpc::Status status = client.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status.error_message(), "authentication required");
}

}  // namespace
}  // namespace wavetank::serve
