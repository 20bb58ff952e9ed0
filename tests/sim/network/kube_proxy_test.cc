#include "sim/network/kube_proxy.h"

#include "core/kube/types.h"
#include "fmt/format.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using nlohmann::literals::json_literals::operator""_json_pointer;

class KubeProxyTest : public fakekube::ClusterTest {
 protected:
  KubeProxyTest() {
    options_.nodes = {{"node1", "r1", "z1", "203.0.113.7"}, {"node2", "r1", "z2", ""}};
    Restart();
    Check({});
    for (const auto& [site, id] : {std::pair{here_, &inside_}, std::pair{there_, &outside_}}) {
      Workload workload;
      workload.site = site;
      workload.network = network_.Network(site == here_ ? "one" : "two");
      workload.ip = IpAddress::V4(10, 99, 0, 1);
      *id = network_.Add(std::move(workload));
    }
  }

  void Check(const HealthChecks& checks) {
    proxy_.reset();
    proxy_ = std::make_unique<KubeProxy>(*cluster_, network_, here_, pods_, 10ms, checks);
  }

  // How many of 400 connections to a load balancer from elsewhere are answered by nobody.
  int Dropped(const std::string& address) {
    int out = 0;
    for (uint64_t flow = 0; flow < 400; ++flow) {
      const envoysim::Route way = Way(outside_, address, 80, flow);
      EXPECT_NE(way.outcome, envoysim::Route::Outcome::kRefused);
      out += way.info.destination.ToString() == address + ":80" ? 1 : 0;
    }
    return out;
  }

  std::string LoadBalancer() { return kube::ParseService(*api().Get("Service", {"sample", "web"})).ingress.at(0).ip; }

  void ExposeAndSettle(const char* type) {
    ApplyText(fakekube::kWeb);
    ASSERT_TRUE(api().Patch("Service", {"sample", "web"}, {{"spec", {{"type", type}}}}).ok());
    Settle();
    kernel_.RunUntil(kernel_.Now() + 1s);
  }

  // Where a connection to a node's port ends.
  std::string Reaches(WorkloadId from, std::string_view address, int port) {
    envoysim::Origin origin;
    origin.workload = from;
    const SocketAddress to{*IpAddress::Parse(address), static_cast<uint16_t>(port)};
    return network_.Resolve(origin, to, 1).info.destination.ToString();
  }

  envoysim::Route Way(WorkloadId from, std::string_view address, int port, uint64_t flow) {
    envoysim::Origin origin;
    origin.workload = from;
    return network_.Resolve(origin, {*IpAddress::Parse(address), static_cast<uint16_t>(port)}, flow);
  }

  std::string AddressOf(const char* node, const char* type) {
    for (const json& a : api().Get("Node", {"", node})->body["status"]["addresses"]) {
      if (a["type"] == type) return a["address"];
    }
    return "";
  }

  Links links_{1, {}, {}};
  MeshNetwork network_{links_};
  SiteId here_ = links_.AddSite("here"), there_ = links_.AddSite("there");
  NetworkIndex pods_ = network_.Network("one");
  WorkloadId inside_{}, outside_{};
  std::unique_ptr<KubeProxy> proxy_;
};

TEST_F(KubeProxyTest, ANodePortLeadsToAReadyPodAtEveryNode) {
  ExposeAndSettle("NodePort");
  std::set<std::string> pods;
  for (const std::string& ip : ReadyAddresses("web")) pods.insert(ip + ":8080");
  ASSERT_EQ(pods.size(), 2u);
  const int port = api().Get("Service", {"sample", "web"})->body.at("/spec/ports/0/nodePort"_json_pointer);
  const std::string internal = AddressOf("node2", "InternalIP");
  EXPECT_EQ(pods.count(Reaches(inside_, internal, port)), 1u);
  EXPECT_EQ(pods.count(Reaches(inside_, "203.0.113.7", port)), 1u);
  // From elsewhere by the external address only, and by no other port.
  EXPECT_EQ(pods.count(Reaches(outside_, "203.0.113.7", port)), 1u);
  EXPECT_EQ(pods.count(Reaches(outside_, internal, port)), 0u);
  EXPECT_EQ(pods.count(Reaches(inside_, internal, 80)), 0u);
  // Until the Service has none any more.
  ASSERT_TRUE(api().Patch("Service", {"sample", "web"}, {{"spec", {{"type", "ClusterIP"}}}}).ok());
  kernel_.RunUntil(kernel_.Now() + 1s);
  EXPECT_EQ(pods.count(Reaches(inside_, internal, port)), 0u);
}

// Kubernetes: pkg/proxy, externalTrafficPolicy.
TEST_F(KubeProxyTest, UnderTheLocalPolicyANodePassesConnectionsToItsOwnPodsAlone) {
  ExposeAndSettle("NodePort");
  ASSERT_TRUE(api().Patch("Service", {"sample", "web"}, {{"spec", {{"externalTrafficPolicy", "Local"}}}}).ok());
  Settle();
  kernel_.RunUntil(kernel_.Now() + 1s);
  const int port = api().Get("Service", {"sample", "web"})->body["spec"]["ports"][0]["nodePort"];
  std::map<std::string, std::string> pod_on;  // node -> "address:port" of its pod
  for (const kube::ObjectRef& pod : api().List("Pod")) {
    const kube::Pod& typed = kube::ParsePod(*pod);
    pod_on[typed.node_name] = typed.ip + ":8080";
  }
  ASSERT_EQ(pod_on.size(), 2u) << "a pod on each node";
  for (uint64_t flow = 0; flow < 20; ++flow) {
    for (const char* node : {"node1", "node2"}) {
      EXPECT_EQ(Way(inside_, AddressOf(node, "InternalIP"), port, flow).info.destination.ToString(), pod_on[node]);
    }
  }
  // The node whose pod goes drops what comes, and says nothing; the other goes on.
  for (const kube::ObjectRef& pod : api().List("Pod")) {
    if (kube::ParsePod(*pod).node_name != "node2") continue;
    ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 1}}}}).ok());
  }
  Settle();
  kernel_.RunUntil(kernel_.Now() + 1s);
  std::string left;
  for (const kube::ObjectRef& pod : api().List("Pod")) left = kube::ParsePod(*pod).node_name;
  const std::string empty = left == "node1" ? "node2" : "node1";
  EXPECT_EQ(Way(inside_, AddressOf(left.c_str(), "InternalIP"), port, 1).info.destination.ToString(), pod_on[left]);
  const envoysim::Route dropped = Way(inside_, AddressOf(empty.c_str(), "InternalIP"), port, 1);
  EXPECT_EQ(dropped.acceptor, nullptr);
  EXPECT_NE(dropped.outcome, envoysim::Route::Outcome::kRefused);
}

TEST_F(KubeProxyTest, ALoadBalancerSendsToALostNodeUntilItsChecksHaveTold) {
  Check({10s, 3, 2});
  ExposeAndSettle("LoadBalancer");
  const std::string address = LoadBalancer();
  EXPECT_EQ(Dropped(address), 0);
  proxy_->SetNodeLost("node2", true);
  kernel_.RunUntil(kernel_.Now() + 15s);
  EXPECT_NEAR(Dropped(address), 200, 60) << "half of what comes, by the node that it goes to";
  kernel_.RunUntil(kernel_.Now() + 16s);
  EXPECT_EQ(Dropped(address), 0);
}

TEST_F(KubeProxyTest, ALoadBalancerOfWhichNoChecksAreToldKnowsAtOnce) {
  ExposeAndSettle("LoadBalancer");
  proxy_->SetNodeLost("node2", true);
  kernel_.RunUntil(kernel_.Now() + 15s);
  EXPECT_EQ(Dropped(LoadBalancer()), 0);
}

TEST_F(KubeProxyTest, ANodeThatIsBackBeforeItsChecksHaveFailedStaysATarget) {
  Check({10s, 3, 2});
  ExposeAndSettle("LoadBalancer");
  const std::string address = LoadBalancer();
  proxy_->SetNodeLost("node2", true);
  kernel_.RunUntil(kernel_.Now() + 5s);
  proxy_->SetNodeLost("node2", false);
  EXPECT_EQ(Dropped(address), 0);
  kernel_.RunUntil(kernel_.Now() + 60s);
  proxy_->SetNodeLost("node2", true);
  EXPECT_NEAR(Dropped(address), 200, 60) << "it is one still";
}

TEST_F(KubeProxyTest, UnderTheLocalPolicyChecksFindTheNodesWithEndpointsLate) {
  Check({10s, 3, 2});
  ExposeAndSettle("LoadBalancer");
  ASSERT_TRUE(api().Patch("Service", {"sample", "web"}, {{"spec", {{"externalTrafficPolicy", "Local"}}}}).ok());
  Settle();
  kernel_.RunUntil(kernel_.Now() + 1s);
  const std::string address = LoadBalancer();
  EXPECT_EQ(Dropped(address), 0) << "a pod on each node";
  ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 1}}}}).ok());
  kernel_.RunUntil(kernel_.Now() + 5s);
  EXPECT_NEAR(Dropped(address), 200, 60) << "the node without one drops what still comes";
  kernel_.RunUntil(kernel_.Now() + 40s);
  EXPECT_EQ(Dropped(address), 0);
}

TEST_F(KubeProxyTest, ALostNodeAnswersAtNoNodePort) {
  ExposeAndSettle("NodePort");
  const int port = api().Get("Service", {"sample", "web"})->body.at("/spec/ports/0/nodePort"_json_pointer);
  proxy_->SetNodeLost("node1", true);
  const envoysim::Route way = Way(outside_, "203.0.113.7", port, 1);
  EXPECT_EQ(way.info.destination.ToString(), fmt::format("203.0.113.7:{}", port));
  EXPECT_NE(way.outcome, envoysim::Route::Outcome::kRefused);
  proxy_->SetNodeLost("node1", false);
  EXPECT_NE(Way(outside_, "203.0.113.7", port, 1).info.destination.ToString(), fmt::format("203.0.113.7:{}", port));
}

// Kubernetes: pkg/proxy, internalTrafficPolicy.
TEST_F(KubeProxyTest, UnderTheInternalLocalPolicyAClientReachesThePodsOfItsOwnNode) {
  ExposeAndSettle("ClusterIP");
  ASSERT_TRUE(api().Patch("Service", {"sample", "web"}, {{"spec", {{"internalTrafficPolicy", "Local"}}}}).ok());
  Settle();
  kernel_.RunUntil(kernel_.Now() + 1s);
  const std::string vip = api().Get("Service", {"sample", "web"})->body["spec"]["clusterIP"];
  for (const kube::ObjectRef& pod : api().List("Pod")) {
    const kube::Pod& typed = kube::ParsePod(*pod);
    network_.at(inside_).node = network_.Node(here_, typed.node_name);
    for (uint64_t flow = 0; flow < 20; ++flow) {
      EXPECT_EQ(Way(inside_, vip, 80, flow).info.destination.ToString(), typed.ip + ":8080");
    }
  }
  network_.at(inside_).node = network_.Node(here_, "elsewhere");
  const envoysim::Route dropped = Way(inside_, vip, 80, 1);
  EXPECT_EQ(dropped.acceptor, nullptr);
  EXPECT_NE(dropped.outcome, envoysim::Route::Outcome::kRefused);
}

}  // namespace
}  // namespace wavetank::sim
