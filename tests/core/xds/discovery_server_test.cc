#include "core/xds/discovery_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/store/store.h"
#include "core/profile/changes.h"
#include "core/profile/profile.h"
#include "core/registry/network_manager.h"
#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ShardKey kShard{ClusterId("cluster1"), Provider::kKubernetes};

class ServiceList final : public ServiceDiscovery {
 public:
  std::vector<ServiceRef> services;
  std::map<std::string, std::vector<ServiceInstance>> of_proxy;  // by address
  std::map<std::string, Labels> labels;

  std::vector<ServiceRef> Services() const override { return services; }
  ServiceRef GetService(std::string_view hostname) const override {
    for (const ServiceRef& service : services) {
      if (service->hostname == hostname) return service;
    }
    return nullptr;
  }
  std::vector<ServiceInstance> InstancesByPort(const Service&, int) const override { return {}; }
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy& proxy) const override {
    const auto it = of_proxy.find(proxy.ip_addresses.front());
    return it == of_proxy.end() ? std::vector<ServiceInstance>() : it->second;
  }
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy& proxy) const override {
    const auto it = labels.find(proxy.ip_addresses.front());
    return it == labels.end() ? std::nullopt : std::optional(it->second);
  }
};

// Answers with what was asked for: one resource per name, or the named ones if nothing was named. Endpoints are sent
// in pushes only for services that changed.
class ToyGenerator final : public Generator {
 public:
  explicit ToyGenerator(std::vector<std::string> names = {}) : wildcard(std::move(names)) {}

  GeneratedResources Generate(const Proxy&, const WatchedResource& watched, const PushRequest& request) override {
    GeneratedResources out;
    const bool all = watched.type == XdsType::kCds || watched.type == XdsType::kLds;
    for (const std::string& name : all ? wildcard : watched.resource_names.list()) {
      if (watched.type == XdsType::kEds && !request.IsRequest() && !request.configs_updated.empty()) {
        bool concerned = false;
        for (const ConfigKey& key : request.configs_updated) concerned = concerned || name.ends_with(key.name);
        if (!concerned) continue;
      }
      out.resources.push_back({name, name});
    }
    out.send = (!out.resources.empty() || all) && (request.full || watched.type == XdsType::kEds);
    return out;
  }

  std::vector<std::string> wildcard;
};

// A client that keeps what it got and ACKs when told to.
class Client final : public AdsStream {
 public:
  struct Got {
    XdsType type;
    std::vector<std::string> names, removed;
    std::string nonce, version;
    Time at;
  };

  explicit Client(Host& host) : host_(host) {}

  void Send(std::shared_ptr<const DiscoveryResponse> r) override {
    got.push_back({r->type, Names(r->resources), {}, r->nonce, r->version_info, host_.Now()});
    nonces[r->type] = r->nonce;
    if (ack) Request(r->type, subscribed[r->type], r->nonce);
  }
  void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse> r) override {
    got.push_back({r->type, Names(r->resources), r->removed_resources, r->nonce, r->system_version_info, host_.Now()});
    nonces[r->type] = r->nonce;
  }
  void Close(const absl::Status& status) override { closed = status; }

  void Request(XdsType type, std::vector<std::string> names = {}, std::string nonce = {},
               std::optional<ErrorDetail> error = std::nullopt) {
    subscribed[type] = names;
    DiscoveryRequest request;
    request.type = type;
    request.resource_names = std::move(names);
    request.response_nonce = std::move(nonce);
    request.error_detail = std::move(error);
    request.node = node;
    connection->OnRequest(std::move(request));
  }
  void RequestDelta(XdsType type, std::vector<std::string> subscribe = {}, std::vector<std::string> unsubscribe = {},
                    std::string nonce = {}) {
    DeltaDiscoveryRequest request;
    request.type = type;
    request.resource_names_subscribe = std::move(subscribe);
    request.resource_names_unsubscribe = std::move(unsubscribe);
    request.response_nonce = std::move(nonce);
    request.node = node;
    connection->OnDeltaRequest(std::move(request));
  }
  std::vector<XdsType> Types() const {
    std::vector<XdsType> out;
    for (const Got& g : got) out.push_back(g.type);
    return out;
  }

  std::unique_ptr<AdsConnection> connection;
  std::shared_ptr<const Node> node;
  std::vector<Got> got;
  std::map<XdsType, std::string> nonces;
  std::map<XdsType, std::vector<std::string>> subscribed;
  std::optional<absl::Status> closed;
  bool ack = false;

 private:
  static std::vector<std::string> Names(const std::vector<Resource>& resources) {
    std::vector<std::string> out;
    for (const Resource& r : resources) out.emplace_back(r.name);
    return out;
  }
  Host& host_;
};

class PerByteCosts final : public sim::CostModel {
 public:
  Duration Cost(const Work& work) const override {
    if (work.kind == WorkKind::kPushStart) return work.extra * trigger;
    return work.kind == WorkKind::kSendResponse ? send : work.kind == WorkKind::kPushContextInit ? 5ms : 0ms;
  }
  Duration send = 10ms, trigger = 0ms;
};

struct SeenPush final : PushObserver {
  void OnPush(const PushRequest& request) override { pushes.push_back(request); }
  void OnPushEvent(const Proxy& proxy, const PushRequest& request, bool skipped) override {
    events.push_back({proxy.id, request, skipped});
  }
  struct Event {
    std::string proxy;
    PushRequest request;
    bool skipped;
  };
  std::vector<PushRequest> pushes;
  std::vector<Event> events;
};

class DiscoveryServerTest : public ::testing::Test {
 protected:
  DiscoveryServerTest() {
    AddService("web");
    AddService("api");
    Make({});
  }
  ~DiscoveryServerTest() override { clients_.clear(); }

  void Make(DiscoveryServer::Options options) {
    server_ = std::make_unique<DiscoveryServer>(
        host_,
        [this] {
          Environment environment;
          environment.discovery = &services_;
          environment.configs = &configs_;
          environment.mesh = config::DefaultMeshConfig();
          environment.gateways = MakeNetworkGateways({}, false);
          environment.profile = &profile_;
          environment.cluster_id = ClusterId("cluster1");
          return environment;
        },
        std::move(options));
    server_->SetGenerator(XdsType::kCds, &cds_);
    server_->SetGenerator(XdsType::kEds, &eds_);
    server_->SetGenerator(XdsType::kLds, &lds_);
    server_->SetGenerator(XdsType::kRds, &rds_);
    server_->SetObserver(&seen_);
    server_->SetReady();
  }

  void AddService(const std::string& name) {
    auto service = std::make_shared<Service>();
    service->hostname = name + ".shop.svc.cluster.local";
    service->ports = {{"http", 80, Protocol::kHttp}};
    service->attributes.name = name;
    service->attributes.ns = "shop";
    services_.services.push_back(service);
  }
  static EndpointList Endpoints(int count, const std::string& account = "spiffe://cluster.local/ns/shop/sa/web") {
    auto profile = std::make_shared<EndpointProfile>();
    profile->service_port_name = "http";
    profile->service_account = account;
    EndpointList out;
    for (int i = 0; i < count; ++i) out.push_back({"10.0.1." + std::to_string(i), 8080, 0, {}, profile});
    return out;
  }
  void Update(const std::string& name, EndpointList endpoints) {
    server_->EdsUpdate(kShard, name + ".shop.svc.cluster.local", "shop", std::move(endpoints));
  }

  Client& Connect(const std::string& ip = "10.0.0.1", Peer peer = {}) {
    clients_.push_back(std::make_unique<Client>(host_));
    Client& client = *clients_.back();
    client.node = std::make_shared<Node>(
        Node{"sidecar~" + ip + "~client-" + ip + ".shop~shop.svc.cluster.local",
             "",
             {},
             {{"CLUSTER_ID", "cluster1"}, {"NAMESPACE", "shop"}, {"SERVICE_ACCOUNT", "client"}}});
    client.connection = server_->Connect(std::move(peer), client);
    return client;
  }
  void Run(Duration time = 1s) { kernel_.RunUntil(kernel_.Now() + time); }

  static std::string Cluster(const std::string& name) { return "outbound|80||" + name + ".shop.svc.cluster.local"; }

  sim::Kernel kernel_{1};
  PerByteCosts costs_;
  Host& host_ = kernel_.NewHost("istiod", 2, &costs_);
  Profile profile_;
  config::ConfigStore configs_;
  ServiceList services_;
  ToyGenerator cds_{{"one", "two"}}, eds_, lds_{{"listener"}}, rds_;
  SeenPush seen_;
  std::unique_ptr<DiscoveryServer> server_;
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(DiscoveryServerTest, AFirstRequestIsAnsweredAndAnAckIsNot) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  Run();
  ASSERT_THAT(client.got, SizeIs(1));
  EXPECT_THAT(client.got[0].names, ElementsAre("one", "two"));
  client.Request(XdsType::kCds, {}, client.got[0].nonce);
  Run();
  EXPECT_THAT(client.got, SizeIs(1));
  const Proxy& proxy = server_->Clients()[0]->proxy();
  EXPECT_EQ(proxy.watched_resources.at(XdsType::kCds).nonce_acked, client.got[0].nonce);
}

TEST_F(DiscoveryServerTest, MergedChangesAreCountedForAProxyBeforeTheNextOneLeavesTheQueue) {
  for (int i = 0; i < 3; ++i) {
    Client& client = Connect(fmt::format("10.0.0.{}", i + 1));
    client.Request(XdsType::kCds);
    client.Request(XdsType::kEds, {Cluster("web")});
  }
  Update("web", Endpoints(9));
  Run();
  for (const auto& client : clients_) client->got.clear();
  costs_.trigger = 20ms;
  for (int i = 1; i <= 3; ++i) Update("web", Endpoints(i));
  const Time written = host_.Now();
  Run();
  std::vector<int64_t> at;
  for (const auto& client : clients_) {
    ASSERT_THAT(client->got, SizeIs(1));
    at.push_back((client->got[0].at - written) / 1ms);
  }
  const int64_t debounce = 105, sending = 10;  // and the look at the push context
  EXPECT_THAT(at, ElementsAre(debounce + 60 + sending, debounce + 120 + sending, debounce + 180 + sending));
}

// Who gets what in which order, as "2C": the second client its clusters.
TEST_F(DiscoveryServerTest, APushIsDoneBeforeTheNextBeginsUnlessItsResponseFillsTheStream) {
  costs_.send = 1ms;
  for (int i = 0; i < 4; ++i) {
    Client& client = Connect(fmt::format("10.0.0.{}", i + 1));
    client.Request(XdsType::kCds);
    client.Request(XdsType::kLds);
  }
  Run();
  const auto order = [this] {
    for (const auto& client : clients_) client->got.clear();
    PushRequest request;
    request.full = true;
    server_->ConfigUpdate(std::move(request));
    Run();
    std::vector<std::tuple<Time, size_t, std::string>> all;
    for (size_t i = 0; i < clients_.size(); ++i) {
      for (const Client::Got& got : clients_[i]->got) {
        all.emplace_back(got.at, i, fmt::format("{}{}", i + 1, got.type == XdsType::kCds ? "C" : "L"));
      }
    }
    std::sort(all.begin(), all.end());
    std::string out;
    for (const auto& [at, i, what] : all) out += what + " ";
    return out;
  };
  // Two processors. The last to leave the queue goes on where the queue was emptied, as Go runs a goroutine's newest
  // child next.
  EXPECT_EQ(order(), "1C 4C 1L 4L 2C 3C 2L 3L ");
  cds_.wildcard = {std::string(70'000, 'x')};
  EXPECT_EQ(order(), "1C 4C 2C 3C 1L 4L 2L 3L ");
}

TEST_F(DiscoveryServerTest, ANackIsRemembered) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  Run();
  client.Request(XdsType::kCds, {}, client.got[0].nonce, ErrorDetail{3, "no"});
  Run();
  EXPECT_THAT(client.got, SizeIs(1));
  const WatchedResource& watched = server_->Clients()[0]->proxy().watched_resources.at(XdsType::kCds);
  EXPECT_EQ(watched.nonce_nacked, client.got[0].nonce);
  EXPECT_EQ(watched.nonce_acked, "");
}

TEST_F(DiscoveryServerTest, AGeneratorNamedInTheMetadataIsAskedWhereThereIsOne) {
  ToyGenerator own{{"own"}};
  server_->SetGenerator("grpc", XdsType::kLds, &own);
  Client& envoy = Connect();
  Client& grpc = Connect("10.0.0.2");
  Client& stranger = Connect("10.0.0.3");
  const auto name = [](Client& client, const char* generator) {
    Node node = *client.node;
    node.metadata["GENERATOR"] = generator;
    client.node = std::make_shared<Node>(std::move(node));
  };
  name(grpc, "grpc");
  name(stranger, "no such");
  for (Client* client : {&envoy, &grpc, &stranger}) {
    client->Request(XdsType::kLds);
    client->Request(XdsType::kCds);
  }
  Run();
  ASSERT_THAT(grpc.got, SizeIs(2));
  EXPECT_THAT(grpc.got[0].names, ElementsAre("own"));
  EXPECT_THAT(grpc.got[1].names, ElementsAre("one", "two"));
  EXPECT_THAT(envoy.got[0].names, ElementsAre("listener"));
  EXPECT_THAT(stranger.got[0].names, ElementsAre("listener"));
}

TEST_F(DiscoveryServerTest, ProxylessGrpcIsAnsweredInWholeWhenItAsksForMore) {
  Client& client = Connect();
  Node node = *client.node;
  node.metadata["GENERATOR"] = "grpc";
  client.node = std::make_shared<Node>(std::move(node));
  client.Request(XdsType::kEds, {Cluster("web")});
  Run();
  client.Request(XdsType::kEds, {Cluster("api"), Cluster("web")}, client.nonces[XdsType::kEds]);
  Run();
  ASSERT_THAT(client.got, SizeIs(2));
  EXPECT_THAT(client.got[1].names, ElementsAre(Cluster("api"), Cluster("web")));
}

TEST_F(DiscoveryServerTest, NewNamesAreAnsweredWithThoseNamesAlone) {
  Client& client = Connect();
  client.Request(XdsType::kEds, {Cluster("web")});
  Run();
  client.Request(XdsType::kEds, {Cluster("web"), Cluster("api")}, client.nonces[XdsType::kEds]);
  Run();
  ASSERT_THAT(client.got, SizeIs(2));
  EXPECT_THAT(client.got[1].names, ElementsAre(Cluster("api")));
}

TEST_F(DiscoveryServerTest, ARequestWithAnOldNonceIsIgnored) {
  Client& client = Connect();
  client.Request(XdsType::kEds, {Cluster("web")});
  Run();
  client.Request(XdsType::kEds, {Cluster("web"), Cluster("api")}, "some-other-nonce");
  Run();
  EXPECT_THAT(client.got, SizeIs(1));
}

TEST_F(DiscoveryServerTest, ARequestWithoutNamesUnsubscribes) {
  Client& client = Connect();
  client.Request(XdsType::kEds, {Cluster("web")});
  Run();
  client.Request(XdsType::kEds, {}, client.nonces[XdsType::kEds]);
  Update("web", Endpoints(1));
  Run();
  EXPECT_THAT(client.got, SizeIs(1));
  EXPECT_FALSE(server_->Clients()[0]->proxy().watched_resources.contains(XdsType::kEds));
}

TEST_F(DiscoveryServerTest, EndpointsAreAnsweredAgainAfterNewClustersThoughNothingChanged) {
  Client& client = Connect();
  client.Request(XdsType::kEds, {Cluster("web")});
  Run();
  client.Request(XdsType::kCds);
  Run();
  client.got.clear();
  client.Request(XdsType::kEds, {Cluster("web")}, client.nonces[XdsType::kEds]);
  Run();
  EXPECT_THAT(client.Types(), ElementsAre(XdsType::kEds));
}

TEST_F(DiscoveryServerTest, TheFirstEndpointsOfAServiceAreAFullPushInOrderOfTypes) {
  Client& client = Connect();
  client.Request(XdsType::kRds, {"80"});
  client.Request(XdsType::kLds);
  client.Request(XdsType::kEds, {Cluster("web"), Cluster("api")});
  client.Request(XdsType::kCds);
  Run();
  client.got.clear();
  Update("web", Endpoints(1));
  Run();
  ASSERT_THAT(seen_.pushes, SizeIs(1));
  EXPECT_TRUE(seen_.pushes[0].full);
  EXPECT_THAT(client.Types(), ElementsAre(XdsType::kCds, XdsType::kEds, XdsType::kLds, XdsType::kRds));
  EXPECT_THAT(client.got[1].names, ElementsAre(Cluster("web")));
  EXPECT_THAT(client.got[0].version, HasSubstr("2023-09-01T00:00:"));
}

TEST_F(DiscoveryServerTest, MoreEndpointsAreAnIncrementalPushOfThatServiceAlone) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  client.Request(XdsType::kEds, {Cluster("web"), Cluster("api")});
  Update("web", Endpoints(1));
  Run();
  client.got.clear();
  Update("web", Endpoints(2));
  Run();
  EXPECT_FALSE(seen_.pushes.back().full);
  ASSERT_THAT(client.Types(), ElementsAre(XdsType::kEds));
  EXPECT_THAT(client.got[0].names, ElementsAre(Cluster("web")));
}

TEST_F(DiscoveryServerTest, AnotherServiceAccountMakesAFullPush) {
  Update("web", Endpoints(1));
  Run();
  Update("web", Endpoints(1, "spiffe://cluster.local/ns/shop/sa/other"));
  Run();
  EXPECT_TRUE(seen_.pushes.back().full);
  Update("web", {});
  Run();
  EXPECT_FALSE(seen_.pushes.back().full);
}

TEST_F(DiscoveryServerTest, APushThatConcernsNoServiceOfTheProxyIsSkipped) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  Run();
  client.got.clear();
  PushRequest request;
  request.configs_updated = {{ConfigKind::kServiceEntry, "elsewhere.example.com", "other"}};
  server_->ConfigUpdate(std::move(request));
  Run();
  ASSERT_THAT(seen_.events, SizeIs(1));
  EXPECT_TRUE(seen_.events[0].skipped);
  EXPECT_THAT(client.got, IsEmpty());
  EXPECT_TRUE(server_->Idle());
}

TEST_F(DiscoveryServerTest, WhatAProxyServesIsAskedAgainWhenAServiceOfItsNamespaceChangesByProfile) {
  for (const bool seldom : {false, true}) {
    profile_.Set(Change::kTargetsOnServiceUpdates, seldom);
    profile_.Set(Change::kTargetsOfOwnNamespace, seldom);
    Make({});
    services_.of_proxy.clear();
    Client& client = Connect();
    client.Request(XdsType::kCds);
    Run();
    services_.of_proxy["10.0.0.1"] = {{services_.services[0], services_.services[0]->ports[0], {}}};
    const auto after = [&](const ConfigKey& key) {
      PushRequest request;
      request.full = true;
      request.configs_updated = {key};
      server_->ConfigUpdate(std::move(request));
      Run();
      return server_->Clients()[0]->proxy().service_instances.size();
    };
    EXPECT_EQ(after({ConfigKind::kDestinationRule, "rule", "shop"}), seldom ? 0u : 1u);
    EXPECT_EQ(after({ConfigKind::kServiceEntry, "web.other.svc.cluster.local", "other"}), seldom ? 0u : 1u);
    EXPECT_EQ(after({ConfigKind::kServiceEntry, "web.shop.svc.cluster.local", "shop"}), 1u);
    clients_.clear();
  }
}

// A Sidecar of the namespace that imports nothing of it: what is pushed all the same is what the proxy serves.
TEST_F(DiscoveryServerTest, AServiceThatAProxyServesIsItsPushWhateverItImportsTheFirstAloneByProfile) {
  auto sidecar = std::make_shared<config::TypedConfig<config::Sidecar>>();
  sidecar->meta.kind = config::Kind::kSidecar;
  sidecar->meta.name = "default";
  sidecar->meta.ns = "shop";
  sidecar->spec.egress.emplace_back().hosts = {"other/*"};
  configs_.Put(config::SidecarRef(sidecar));
  for (const ServiceRef& service : services_.services) {
    services_.of_proxy["10.0.0.1"].push_back({service, service->ports[0], Endpoints(1)[0]});
  }
  for (const bool all : {false, true}) {
    profile_.Set(Change::kOwnServicesPush, all);
    Make({});
    seen_.events.clear();
    Client& client = Connect();
    client.Request(XdsType::kCds);
    Run();
    const auto skipped = [&](const std::string& name) {
      PushRequest request;
      request.full = true;
      request.configs_updated = {{ConfigKind::kServiceEntry, name + ".shop.svc.cluster.local", "shop"}};
      server_->ConfigUpdate(std::move(request));
      Run();
      return seen_.events.back().skipped;
    };
    std::vector<std::string> names;
    for (const ServiceInstance& instance : server_->Clients()[0]->proxy().service_instances) {
      names.push_back(instance.service->attributes.name);
    }
    ASSERT_THAT(names, SizeIs(2));
    EXPECT_FALSE(skipped(names[0]));
    EXPECT_EQ(skipped(names[1]), !all);
    clients_.clear();
  }
}

TEST_F(DiscoveryServerTest, OfWhatChangedAPushIsAboutWhatConcernsTheProxyByProfile) {
  for (const bool filtered : {false, true}) {
    profile_.Set(Change::kRelevantUpdatesAlone, filtered);
    Make({});
    Client& client = Connect();
    client.Request(XdsType::kEds, {Cluster("web"), "outbound|80||elsewhere.example.com"});
    Run();
    client.got.clear();
    PushRequest request;
    request.configs_updated = {{ConfigKind::kServiceEntry, "elsewhere.example.com", "other"},
                               {ConfigKind::kServiceEntry, "web.shop.svc.cluster.local", "shop"}};
    server_->ConfigUpdate(std::move(request));
    Run();
    ASSERT_THAT(client.got, SizeIs(1));
    EXPECT_THAT(client.got[0].names, SizeIs(filtered ? 1 : 2));
    EXPECT_THAT(client.got[0].names, Contains(Cluster("web")));
    clients_.clear();
  }
}

TEST_F(DiscoveryServerTest, WhatComesDuringAPushToAProxyIsMerged) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  client.Request(XdsType::kLds);
  Run();
  // Each response takes 10 ms to send; three changes of the proxy come while the first push is under way.
  for (int i = 0; i < 4; ++i) {
    host_.RunAfter(i * 4ms, [this] { server_->ProxyUpdate(ClusterId("cluster1"), "10.0.0.1"); });
  }
  Run();
  EXPECT_THAT(seen_.events, SizeIs(2));
  EXPECT_THAT(client.got, SizeIs(2 + 4));
}

TEST_F(DiscoveryServerTest, AProxyUpdateIsNotDebouncedAndReachesThatProxyAlone) {
  Client& first = Connect("10.0.0.1");
  Client& second = Connect("10.0.0.2");
  for (Client* client : {&first, &second}) client->Request(XdsType::kCds);
  Run();
  services_.labels["10.0.0.2"] = {{"version", "v2"}};
  const Time before = kernel_.Now();
  server_->ProxyUpdate(ClusterId("cluster1"), "10.0.0.2");
  Run();
  EXPECT_THAT(first.got, SizeIs(1));
  ASSERT_THAT(second.got, SizeIs(2));
  EXPECT_EQ(second.got[1].at - before, 10ms);
  EXPECT_EQ(server_->Clients()[1]->proxy().labels.at("version"), "v2");
  EXPECT_EQ(server_->Clients()[1]->proxy().labels.at("topology.istio.io/cluster"), "cluster1");
}

TEST_F(DiscoveryServerTest, NoMoreThanThePushThrottleAreUnderWay) {
  Make({.push_throttle = 1, .requests_per_second = 0});
  std::vector<Client*> clients;
  for (int i = 1; i <= 3; ++i) {
    clients.push_back(&Connect("10.0.0." + std::to_string(i)));
    clients.back()->Request(XdsType::kCds);
  }
  Run();
  const Time before = kernel_.Now();
  server_->ConfigUpdate({.full = true});
  Run();
  std::vector<int64_t> at;
  for (Client* client : clients) at.push_back((client->got.back().at - before) / 1ms);
  // 100 ms of debounce, 5 of the push context; two processors could do two at a time.
  EXPECT_THAT(at, ElementsAre(115, 125, 135));
}

TEST_F(DiscoveryServerTest, ASeedChoosesTheOrderInWhichProxiesAreServed) {
  const auto order = [this](std::optional<RandomStream> stream) {
    clients_.clear();
    Make({.push_throttle = 1, .requests_per_second = 0, .push_order = stream});
    for (int i = 0; i < 8; ++i) Connect("10.0.0." + std::to_string(i)).Request(XdsType::kCds);
    Run();
    seen_.events.clear();
    server_->ConfigUpdate({.full = true});
    Run();
    std::vector<std::string> out;
    for (const SeenPush::Event& event : seen_.events) out.push_back(event.proxy);
    return out;
  };
  const std::vector<std::string> plain = order(std::nullopt);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
  const std::vector<std::string> one = order(RandomStream(1, "order"));
  EXPECT_THAT(one, testing::UnorderedElementsAreArray(plain));
  EXPECT_NE(one, plain);
  EXPECT_EQ(one, order(RandomStream(1, "order")));
  EXPECT_NE(one, order(RandomStream(2, "order")));
}

TEST_F(DiscoveryServerTest, NewStreamsWaitForTheirTurnAndAreRefusedAfterASecond) {
  for (int i = 0; i < 40; ++i) Connect("10.0.0." + std::to_string(i)).Request(XdsType::kCds);
  Run(2s);
  int answered = 0, refused = 0;
  for (const auto& client : clients_) {
    answered += client->got.empty() ? 0 : 1;
    if (client->closed) {
      ++refused;
      EXPECT_EQ(client->closed->code(), absl::StatusCode::kResourceExhausted);
    }
  }
  EXPECT_EQ(answered, 26);  // one at once, 25 in the second that follows
  EXPECT_EQ(refused, 14);
}

TEST_F(DiscoveryServerTest, RefusesStreamsUntilItIsReady) {
  Client& early = Connect();
  server_->Shutdown(absl::UnavailableError("closing"));
  Run();
  EXPECT_EQ(early.closed->code(), absl::StatusCode::kUnavailable);
  Client& late = Connect();
  Run();
  EXPECT_EQ(late.closed->code(), absl::StatusCode::kUnavailable);
}

TEST_F(DiscoveryServerTest, AnIdentityMustBeThatOfTheProxysNamespaceAndAccount) {
  Client& right = Connect("10.0.0.1", {"", true, {"spiffe://cluster.local/ns/shop/sa/client"}});
  Client& wrong = Connect("10.0.0.2", {"", true, {"spiffe://cluster.local/ns/shop/sa/other"}});
  Client& nobody = Connect("10.0.0.3", {"", true, {}});
  for (const auto& client : clients_) client->Request(XdsType::kCds);
  Run();
  EXPECT_THAT(right.got, SizeIs(1));
  EXPECT_EQ(server_->Clients()[0]->proxy().verified_identity, "spiffe://cluster.local/ns/shop/sa/client");
  ASSERT_TRUE(wrong.closed);
  EXPECT_EQ(wrong.closed->code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(nobody.closed);
  EXPECT_EQ(nobody.closed->code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(DiscoveryServerTest, ANodeThatCannotBeReadEndsTheStream) {
  Client& client = Connect();
  client.node = std::make_shared<Node>(Node{"nonsense", "", {}, {}});
  client.Request(XdsType::kCds);
  Run();
  ASSERT_TRUE(client.closed);
  EXPECT_EQ(client.closed->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(server_->Clients(), IsEmpty());
}

TEST_F(DiscoveryServerTest, AClientThatHangsUpInTheMiddleOfAPushHoldsNobodyUp) {
  Make({.push_throttle = 1});
  Client& first = Connect("10.0.0.1");
  Client& second = Connect("10.0.0.2");
  for (Client* client : {&first, &second}) {
    client->Request(XdsType::kCds);
    client->Request(XdsType::kLds);
  }
  Run();
  server_->ConfigUpdate({.full = true});
  Run(110ms);
  first.connection.reset();
  Run();
  EXPECT_THAT(first.got, SizeIs(2));
  EXPECT_THAT(second.got, SizeIs(4));
  EXPECT_THAT(server_->Clients(), SizeIs(1));
  EXPECT_TRUE(server_->Idle());
}

TEST_F(DiscoveryServerTest, HandlesOutliveTheServer) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  server_.reset();
  client.Request(XdsType::kLds);
  Run();
  EXPECT_THAT(client.got, IsEmpty());
  client.connection.reset();
}

TEST_F(DiscoveryServerTest, AStreamThatEndsWithinAPushAsksNothingOfAServerThatWentMeanwhile) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  Run();
  server_->ConfigUpdate({.full = true});
  Run(110ms);  // debounced; its response is being sent
  ASSERT_FALSE(server_->Idle());
  client.connection.reset();
  server_.reset();
  Run();
  EXPECT_THAT(client.got, SizeIs(1));
}

TEST_F(DiscoveryServerTest, ResponsesCarryTheCausesOfTheEventsThatLedToThem) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  Run();
  std::vector<std::vector<uint64_t>> sent;
  kernel_.AddObserver([&](const sim::TraceEvent& event) {
    if (event.record.kind == TraceKind::kXdsSent) sent.push_back(kernel_.causes().Inputs(event.cause));
  });
  for (uint64_t input : {7u, 9u}) {
    kernel_.set_cause(kernel_.causes().Of(input));
    host_.Post([this] { server_->ConfigUpdate({.full = true}); });
  }
  kernel_.set_cause(kNoCause);
  Run();
  EXPECT_THAT(sent, ElementsAre(ElementsAre(7u, 9u)));
}

// Delta.

TEST_F(DiscoveryServerTest, ADeltaSubscriptionIsAnsweredWithWhatIsNew) {
  Client& client = Connect();
  client.RequestDelta(XdsType::kEds, {Cluster("web")});
  Run();
  client.RequestDelta(XdsType::kEds, {}, {}, client.nonces[XdsType::kEds]);  // ACK
  client.RequestDelta(XdsType::kEds, {Cluster("api")});
  Run();
  ASSERT_THAT(client.got, SizeIs(2));
  EXPECT_THAT(client.got[1].names, ElementsAre(Cluster("api")));
  EXPECT_THAT(server_->Clients()[0]->proxy().watched_resources.at(XdsType::kEds).resource_names,
              ElementsAre(Cluster("api"), Cluster("web")));
}

TEST_F(DiscoveryServerTest, DeltaPushesRemoveOnlyWhatTheLastPushHeld) {
  Client& client = Connect();
  client.RequestDelta(XdsType::kCds);
  Run();
  ASSERT_THAT(client.got, SizeIs(1));
  EXPECT_THAT(client.got[0].names, ElementsAre("one", "two"));
  cds_.wildcard = {"one"};
  server_->ConfigUpdate({.full = true});
  Run();
  // istiod does not remember answers to requests, so "two" stays with the client.
  EXPECT_THAT(client.got[1].removed, IsEmpty());
  cds_.wildcard = {"three"};
  server_->ConfigUpdate({.full = true});
  Run();
  EXPECT_THAT(client.got[2].names, ElementsAre("three"));
  EXPECT_THAT(client.got[2].removed, ElementsAre("one"));
}

TEST_F(DiscoveryServerTest, DeltaPushesRemoveAllThatWentByProfile) {
  profile_.Set(Change::kDeltaRemembersAll);
  Client& client = Connect();
  client.RequestDelta(XdsType::kCds);
  Run();
  cds_.wildcard = {"one"};
  server_->ConfigUpdate({.full = true});
  Run();
  EXPECT_THAT(client.got[1].removed, ElementsAre("two")) << "which an answer to a request had brought";
}

TEST_F(DiscoveryServerTest, AStreamCannotChangeItsProtocol) {
  Client& client = Connect();
  client.Request(XdsType::kCds);
  client.RequestDelta(XdsType::kEds, {Cluster("web")});
  Run();
  ASSERT_TRUE(client.closed);
  EXPECT_EQ(client.closed->code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wavetank::pilot
