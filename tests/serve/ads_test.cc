#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/x509/x509.h"
#include "replay/event_log.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/pods.h"
#include "tests/await.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

using RealClock = std::chrono::steady_clock;

class Ads : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = StartServer().release(); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(server_, nullptr); }

  static std::shared_ptr<grpc::Channel> Channel() { return PlainChannel(server_->ListenersOf("cluster1")->plaintext); }
  static envoy::config::core::v3::Node Sleep() { return NodeOf(*server_, PodOf(*server_, "cluster1", "sleep")); }
  // Endpoints that the simulated Envoy of the same pod has.
  static std::vector<std::string> SimulatedAddresses() {
    return *server_->loop().Call([](sim::World& world) {
      std::vector<std::string> out;
      for (const envoysim::EndpointStatus& each : world.Pods("cluster1", "", "sleep").front()->envoy()->Endpoints()) {
        if (each.cluster == kHelloworld) out.push_back(each.address.substr(0, each.address.rfind(':')));
      }
      std::sort(out.begin(), out.end());
      return out;
    });
  }
  static void Scale(const std::string& cluster, const std::string& deployment, int replicas) {
    const sim::inputs::PatchObject patch{
        cluster, "Deployment", "sample", deployment, {{"spec", {{"replicas", replicas}}}}};
    ASSERT_TRUE(Do(*server_, patch).ok());
  }

  static Server* server_;
};
Server* Ads::server_ = nullptr;

TEST_F(Ads, ARealClientGetsWhatTheSimulatedEnvoyOfItsPodHas) {
  SotwClient client(Channel());
  client.Send(Ask(Sleep(), kClusterType));
  const auto clusters = client.Read();
  EXPECT_EQ(clusters.type_url(), kClusterType);
  EXPECT_GT(clusters.resources_size(), 5);
  for (const auto& any : clusters.resources()) EXPECT_EQ(any.type_url(), kClusterType);
  client.Send(Ask(kEndpointType, {kHelloworld}));
  const auto endpoints = client.Read();
  ASSERT_EQ(endpoints.resources_size(), 1);
  EXPECT_EQ(Addresses(endpoints), SimulatedAddresses());
  EXPECT_EQ(Addresses(endpoints).size(), 2u);  // the pod here, and the other cluster's gateway
  // An ACK is not answered: what comes next is the answer to the next question.
  client.Send(Ack(clusters));
  client.Send(Ack(endpoints, {kHelloworld}));
  client.Send(Ask(kListenerType));
  EXPECT_EQ(client.Read().type_url(), kListenerType);
}

TEST_F(Ads, AScaledDeploymentIsPushed) {
  SotwClient client(Channel());
  client.Send(Ask(Sleep(), kEndpointType, {kHelloworld}));
  const auto before = client.Read();
  client.Send(Ack(before, {kHelloworld}));
  ASSERT_EQ(Addresses(before).size(), 2u);
  Scale("cluster1", "helloworld-v1", 2);
  // There may be pushes in between, of states on the way.
  const auto await = [&](size_t endpoints) {
    for (size_t have = 0; have != endpoints;) {
      discovery::DiscoveryResponse response;
      ASSERT_TRUE(client.Read(&response));
      have = Addresses(response).size();
      client.Send(Ack(response, {kHelloworld}));
    }
  };
  await(3);
  Scale("cluster1", "helloworld-v1", 1);
  await(2);
}

TEST_F(Ads, ANackEndsNothingAndIsAnsweredByNothing) {
  SotwClient client(Channel());
  client.Send(Ask(Sleep(), kEndpointType, {kHelloworld}));
  auto nack = Ack(client.Read(), {kHelloworld});
  nack.set_version_info("");
  nack.mutable_error_detail()->set_code(13);
  nack.mutable_error_detail()->set_message("no such thing");
  client.Send(nack);
  client.Send(Ask(kListenerType));
  EXPECT_EQ(client.Read().type_url(), kListenerType);
}

TEST_F(Ads, DeltaClientsHearOfWhatChangedAndWhatWent) {
  DeltaClient client(Channel());
  discovery::DeltaDiscoveryRequest request;
  *request.mutable_node() = Sleep();
  request.set_type_url(kClusterType);
  client.Send(request);
  const auto clusters = client.Read();
  std::set<std::string> names;
  for (const auto& resource : clusters.resources()) names.insert(resource.name());
  EXPECT_TRUE(names.contains(kHelloworld));
  const nlohmann::json service = {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", {{"namespace", "sample"}, {"name", "extra"}}},
      {"spec", {{"ports", {{{"name", "http"}, {"port", 81}}}}, {"selector", {{"app", "none"}}}}}};
  ASSERT_TRUE(Do(*server_, sim::inputs::ApplyObject{"cluster1", service}).ok());
  const std::string extra = "outbound|81||extra.sample.svc.cluster.local";
  const auto added = client.Read();
  EXPECT_TRUE(std::any_of(added.resources().begin(), added.resources().end(),
                          [&](const auto& resource) { return resource.name() == extra; }));
  ASSERT_TRUE(Do(*server_, sim::inputs::DeleteObject{"cluster1", "Service", "sample", "extra"}).ok());
  const auto removed = client.Read();
  EXPECT_EQ(std::vector<std::string>(removed.removed_resources().begin(), removed.removed_resources().end()),
            std::vector<std::string>{extra});
}

// grpc.health.v1.HealthCheckResponse{status: SERVING}; no stubs of that service are generated.
TEST_F(Ads, WhoAsksForItsHealthIsToldThatItServes) {
  grpc::GenericStub stub(Channel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 60s);
  grpc::CompletionQueue queue;
  const grpc::Slice nothing(std::string{});
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->StartCall();
  call->Finish(&answer, &status, &queue);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  ASSERT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()), "\x08\x01");
}

TEST_F(Ads, AClientWithoutANodeIsRefusedAsByIstiod) {
  SotwClient client(Channel());
  client.Send(Ask(kClusterType));
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Ads, TheIstiodOfEachPrimaryHasItsOwnListener) {
  ASSERT_EQ(server_->grpc().size(), 2u);
  EXPECT_NE(server_->ListenersOf("cluster1")->plaintext, server_->ListenersOf("cluster2")->plaintext);
  SotwClient client(PlainChannel(server_->ListenersOf("cluster2")->plaintext));
  client.Send(Ask(NodeOf(*server_, PodOf(*server_, "cluster2", "sleep")), kEndpointType, {kHelloworld}));
  const std::string v2 = *server_->loop().Call([](sim::World& world) {
    return world.Pods("cluster2", "", "helloworld").front()->pod()->body["status"]["podIP"].get<std::string>();
  });
  const auto addresses = Addresses(client.Read());
  EXPECT_NE(std::find(addresses.begin(), addresses.end(), v2), addresses.end());
}

TEST_F(Ads, AnIstiodThatDiesBreaksItsStreamsAndTheNextOneServesThemAgain) {
  SotwClient client(PlainChannel(server_->ListenersOf("cluster2")->plaintext));
  const auto node = NodeOf(*server_, PodOf(*server_, "cluster2", "sleep"));
  client.Send(Ask(node, kEndpointType, {kHelloworld}));
  client.Read();
  ASSERT_TRUE(Do(*server_, sim::inputs::KillPods{"cluster2", "istio-system", "istiod"}).ok());
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto served = [&] {
    SotwClient again(PlainChannel(server_->ListenersOf("cluster2")->plaintext));
    again.Send(Ask(node, kEndpointType, {kHelloworld}));
    discovery::DiscoveryResponse response;
    return again.Read(&response) && Addresses(response).size() == 2;
  };
  EXPECT_TRUE(Await(served, 50ms));
}

TEST(AdsServer, AClientThatGoesLeavesNothingBehind) {
  const auto server = StartServer();
  ASSERT_NE(server, nullptr);
  const auto streams = [&] {
    return *server->loop().Call([](sim::World& world) { return world.outside().streams(); });
  };
  const auto all_gone = [&] { return Await([&] { return streams() == 0 && server->frontend().streams() == 0; }); };
  ASSERT_EQ(streams(), 0u);
  {
    SotwClient client(PlainChannel(server->ListenersOf("cluster1")->plaintext));
    client.Send(Ask(NodeOf(*server, PodOf(*server, "cluster1", "sleep")), kClusterType));
    client.Read();
    EXPECT_EQ(streams(), 1u);
  }
  EXPECT_TRUE(all_gone());
}

// How much at most was seen to wait for clients in the server, while `action` ran.
bool AwaitStreams(Server& server, int64_t count) {
  return Await([&] { return server.frontend().streams() == count; });
}

int64_t MostUnread(Server& server, const std::function<void()>& action) {
  std::atomic<bool> over{false};
  int64_t most = 0;
  std::thread looker([&] {
    while (!over) {
      most = std::max(most, server.frontend().unread());
      std::this_thread::yield();
    }
  });
  action();
  over = true;
  looker.join();
  return most;
}

// One who asks on and on and reads nothing is not heard further, so that what waits for him stays within a few answers;
// nobody else notices; and when he reads, he gets all that he asked for.
TEST(AdsLimits, WhoReadsNothingIsNotHeardAndHarmsNobody) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.unread_answers = 4;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  SotwClient deaf(PlainChannel(address));
  constexpr int kQuestions = 500;
  ASSERT_TRUE(deaf.Send(Ask(node, kClusterType)));
  const size_t answer = deaf.Read().ByteSizeLong();
  ASSERT_GT(answer, 1000u);
  const int64_t most = MostUnread(*server, [&] {
    // Each question is answered in full. Writing waits once the server reads no more and what lies between is full.
    std::thread asks([&] {
      for (int i = 0; i < kQuestions; ++i) ASSERT_TRUE(deaf.Send(Ask(kClusterType)));
    });
    SotwClient other(PlainChannel(address));
    other.Send(Ask(node, kEndpointType, {kHelloworld}));
    EXPECT_EQ(Addresses(other.Read()).size(), 2u);
    for (int i = 0; i < kQuestions; ++i) EXPECT_EQ(deaf.Read().type_url(), kClusterType);
    asks.join();
  });
  // The question that is under way when the fourth answer is made waiting may add one more.
  EXPECT_LE(most, static_cast<int64_t>(answer + 100) * 5 + 2000);
}

// A client who says nothing and reads nothing is pushed to all the same; he is hung up on when too much waits.
TEST(AdsLimits, PushesThatNobodyReadsEndTheStreamAndHarmNobody) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.unread_bytes = 256 << 10;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  SotwClient slow(PlainChannel(address));
  ASSERT_TRUE(slow.Send(Ask(node, kClusterType)));
  SotwClient other(PlainChannel(address));
  other.Send(Ask(node, kEndpointType, {kHelloworld}));
  EXPECT_EQ(Addresses(other.Read()).size(), 2u);
  int turn = 0;
  const auto changed_until_it_went = [&] {
    const sim::inputs::ApplyObject extra{"cluster1",
                                         {{"apiVersion", "v1"},
                                          {"kind", "Service"},
                                          {"metadata", {{"namespace", "sample"}, {"name", "extra"}}},
                                          {"spec", {{"ports", {{{"name", "http"}, {"port", 81 + turn++ % 2}}}}}}}};
    EXPECT_TRUE(Do(*server, extra).ok());
    return server->frontend().streams() <= 1;
  };
  EXPECT_TRUE(Await(changed_until_it_went, 20ms));
  EXPECT_EQ(slow.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(server->frontend().streams(), 1);
  other.Send(Ask(kListenerType));
  EXPECT_EQ(other.Read().type_url(), kListenerType);
}

// What waits for all together has a bound of its own, and it is he with more than his share who goes.
TEST(AdsLimits, BeyondTheSharedBoundOnlyWhoTakesMoreThanHisShareGoes) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.unread_bytes_total = 1000;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  Frontend& frontend = server->frontend();
  const auto first = frontend.Enter("ipv4:127.0.0.1:1", [](const absl::Status&) {});
  const auto second = frontend.Enter("ipv4:127.0.0.1:2", [](const absl::Status&) {});
  ASSERT_TRUE(first.ok() && second.ok());
  frontend.CountUnread(900);
  EXPECT_FALSE(frontend.TakesTooMuch(900));
  frontend.CountUnread(200);
  EXPECT_TRUE(frontend.TakesTooMuch(900));
  EXPECT_FALSE(frontend.TakesTooMuch(200));
  frontend.CountUnread(-1100);
}

TEST(AdsLimits, WhatIsTooMuchIsRefusedByName) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.names = 10;
  options.limits.message_bytes = 8192;
  options.limits.streams = 2;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  {
    SotwClient client(PlainChannel(address));
    client.Send(Ask(node, kEndpointType, std::vector<std::string>(11, "x")));
    const grpc::Status status = client.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "a request names 11 resources; at most 10 are allowed");
  }
  {
    SotwClient client(PlainChannel(address));
    client.Send(Ask(node, kEndpointType, {std::string(8192, 'x')}));
    EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  {
    SotwClient client(PlainChannel(address));
    client.Send(Ask(node, "type.googleapis.com/no.such.Thing"));
    EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  ASSERT_TRUE(AwaitStreams(*server, 0));
  SotwClient first(PlainChannel(address)), second(PlainChannel(address));
  for (SotwClient* client : {&first, &second}) {
    client->Send(Ask(node, kEndpointType, {kHelloworld}));
    client->Read();
  }
  SotwClient third(PlainChannel(address));
  third.Send(Ask(node, kEndpointType, {kHelloworld}));
  EXPECT_EQ(third.Finish().error_message(), "too many streams");
}

TEST(AdsLimits, AConnectionsStreamsBeyondItsOwnWaitForOneToEnd) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.streams_per_connection = 1;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::shared_ptr<grpc::Channel> channel = PlainChannel(server->ListenersOf("cluster1")->plaintext);
  auto first = std::make_unique<SotwClient>(channel);
  first->Send(Ask(node, kEndpointType, {kHelloworld}));
  first->Read();
  std::thread second([&] {
    SotwClient waiting(channel);
    waiting.Send(Ask(node, kEndpointType, {kHelloworld}));
    waiting.Read();
    // The first one's end is told to the frontend a moment after its place was free.
    EXPECT_TRUE(AwaitStreams(*server, 1));
  });
  for (const auto end = RealClock::now() + 300ms; RealClock::now() < end;) {
    EXPECT_EQ(server->frontend().streams(), 1);
    LetTimePass(5ms);
  }
  first.reset();
  second.join();
}

TEST(AdsLimits, OneAddressCannotTakeAllPlaces) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("wavetank-peers-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.unix_socket = folder / "xds";
  options.limits.streams_per_peer = 2;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  const auto served = [&](SotwClient& client) {
    client.Send(Ask(node, kEndpointType, {kHelloworld}));
    discovery::DiscoveryResponse response;
    return client.Read(&response);
  };
  SotwClient first(PlainChannel(address));
  EXPECT_TRUE(served(first));
  {
    SotwClient second(PlainChannel(address)), third(PlainChannel(address));
    EXPECT_TRUE(served(second));
    EXPECT_FALSE(served(third));
    const grpc::Status status = third.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "too many streams from ipv4:127.0.0.1");
    SotwClient elsewhere(PlainChannel("unix:" + (folder / "xds").string()));
    EXPECT_TRUE(served(elsewhere));
  }
  EXPECT_TRUE(AwaitStreams(*server, 1));
  SotwClient again(PlainChannel(address));
  EXPECT_TRUE(served(again));
  std::filesystem::remove_all(folder);
}

TEST(AdsLimits, WhoOpensStreamsAndAsksForNothingLosesThemAndHarmsNobody) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.first_request = 2s;
  options.limits.streams = 60;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  SotwClient honest(PlainChannel(address));
  honest.Send(Ask(node, kEndpointType, {kHelloworld}));
  EXPECT_EQ(Addresses(honest.Read()).size(), 2u);
  std::vector<std::unique_ptr<SotwClient>> silent;
  std::shared_ptr<grpc::Channel> channel;
  for (int i = 0; i < 59; ++i) {
    if (i % 20 == 0) channel = PlainChannel(address);
    silent.push_back(std::make_unique<SotwClient>(channel));
  }
  for (auto& client : silent) {
    const grpc::Status status = client->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(status.error_message(), "no request came within 2000 ms");
  }
  EXPECT_TRUE(AwaitStreams(*server, 1));  // he who asked stays, silent as he may be from now on
  honest.Send(Ask(kListenerType));
  EXPECT_EQ(honest.Read().type_url(), kListenerType);
}

TEST(AdsLimits, AStreamThatFallsSilentEndsWhereThatIsWanted) {
  ServerOptions options = OnAnyPort();
  options.secure_listen.clear();
  options.limits.idle = 2s;
  const auto server = StartServer(options);
  ASSERT_NE(server, nullptr);
  const auto node = NodeOf(*server, PodOf(*server, "cluster1", "sleep"));
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  SotwClient silent(PlainChannel(address)), talker(PlainChannel(address));
  silent.Send(Ask(node, kEndpointType, {kHelloworld}));
  talker.Send(Ask(node, kEndpointType, {kHelloworld}));
  EXPECT_EQ(Addresses(silent.Read()).size(), 2u);
  const auto response = talker.Read();
  const auto talked_until_it_went = [&] {
    talker.Send(Ack(response, {kHelloworld}));
    return server->frontend().streams() <= 1;
  };
  EXPECT_TRUE(Await(talked_until_it_went, 20ms));
  EXPECT_EQ(silent.Finish().error_message(), "nothing was said for 2000 ms");
  talker.Send(Ask(kListenerType));
  EXPECT_EQ(talker.Read().type_url(), kListenerType);
}

TEST(AdsServer, UnlessToldOtherwiseItListensOnLoopback) {
  const ServerOptions options;
  EXPECT_TRUE(options.listen.starts_with("127.0.0.1:")) << options.listen;
  EXPECT_TRUE(options.secure_listen.starts_with("127.0.0.1:")) << options.secure_listen;
}

TEST(AdsServer, AnAddressThatIsTakenIsNamed) {
  const auto server = StartServer();
  ASSERT_NE(server, nullptr);
  ServerOptions options = OnAnyPort();
  options.listen = server->ListenersOf("cluster1")->plaintext;
  auto session = Session::Create(TwoClusters());
  ASSERT_TRUE(session.ok());
  const auto second = Server::Start(*std::move(session), options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(second.status().message()).find(options.listen), std::string::npos) << second.status();
}

TEST(AdsServer, StoppingHangsUpOnClients) {
  const auto server = StartServer();
  ASSERT_NE(server, nullptr);
  SotwClient client(PlainChannel(server->ListenersOf("cluster1")->plaintext));
  client.Send(Ask(NodeOf(*server, PodOf(*server, "cluster1", "sleep")), kEndpointType, {kHelloworld}));
  client.Read();
  EXPECT_TRUE(server->Stop().ok());
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// What a recorded live run pushed to its clients, in order: a listener that hears a replay.
class Heard final : public sim::OutsideClients::Listener {
 public:
  void OnResponse(uint64_t client, std::shared_ptr<const pilot::DiscoveryResponse> r) override {
    std::string line = std::to_string(client) + std::string(pilot::ShortTypeName(r->type)) + r->version_info + r->nonce;
    for (const pilot::Resource& resource : r->resources) {
      line += std::string(resource.name) + std::to_string(x509::FingerprintOf(*resource.bytes));
    }
    all.push_back(std::move(line));
  }
  void OnDeltaResponse(uint64_t, std::shared_ptr<const pilot::DeltaDiscoveryResponse>) override {}
  void OnClosed(uint64_t, const absl::Status&) override {}
  void OnCertificate(uint64_t, absl::StatusOr<std::vector<std::string>>) override {}
  std::vector<std::string> all;
};

TEST(AdsReplay, ARecordedLiveRunReplaysWithTheSamePushes) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "wavetank-serve-replay";
  std::filesystem::create_directories(folder);
  const std::string log = folder / "live.wtlog";
  std::vector<std::string> versions;
  {
    SessionOptions session = TwoClusters();
    session.log = log;
    const auto server = StartServer(OnAnyPort(), session);
    ASSERT_NE(server, nullptr);
    SotwClient client(PlainChannel(server->ListenersOf("cluster1")->plaintext));
    client.Send(Ask(NodeOf(*server, PodOf(*server, "cluster1", "sleep")), kEndpointType, {kHelloworld}));
    auto response = client.Read();
    versions.push_back(response.version_info() + response.nonce());
    client.Send(Ack(response, {kHelloworld}));
    const sim::inputs::PatchObject none{
        "cluster2", "Deployment", "sample", "helloworld-v2", {{"spec", {{"replicas", 0}}}}};
    ASSERT_TRUE(Do(*server, none).ok());
    response = client.Read();
    EXPECT_EQ(Addresses(response).size(), 1u);
    versions.push_back(response.version_info() + response.nonce());
    auto nack = Ack(response, {kHelloworld});
    nack.mutable_error_detail()->set_message("refused");
    client.Send(nack);
    client.Send(Ask(kListenerType));
    response = client.Read();
    versions.push_back(response.version_info() + response.nonce());
    ASSERT_TRUE(server->Stop().ok());
  }
  auto reader = replay::LogReader::Open(log);
  ASSERT_TRUE(reader.ok()) << reader.status();
  replay::WorldTarget target;
  const auto result = replay::Replay(**reader, target);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->divergence.has_value()) << replay::Describe(*result->divergence);
  EXPECT_TRUE(result->complete);
  EXPECT_GT(result->events, 100u);

  // And once more, by hand, to hear what the client heard.
  ASSERT_TRUE((*reader)->Rewind().ok());
  replay::WorldTarget again;
  ASSERT_TRUE(again.Start((*reader)->header(), [](const replay::LoggedEvent&) {}).ok());
  Heard heard;
  again.world()->outside().set_listener(&heard);
  int nacks = 0;
  for (auto item = (*reader)->Next(); item.ok() && *item != replay::LogReader::Item::kEnd; item = (*reader)->Next()) {
    if (*item == replay::LogReader::Item::kEvent) {
      nacks += (*reader)->event().kind == TraceKind::kXdsNack && (*reader)->event().detail == "refused";
    }
    if (*item != replay::LogReader::Item::kInput) continue;
    again.AdvanceTo((*reader)->input().at);
    ASSERT_TRUE(again.Do((*reader)->input()).ok());
  }
  again.AdvanceTo(result->end);
  again.world()->outside().set_listener(nullptr);
  EXPECT_EQ(nacks, 1);
  ASSERT_GE(heard.all.size(), versions.size());
  for (const std::string& version : versions) {
    EXPECT_TRUE(std::any_of(heard.all.begin(), heard.all.end(), [&](const std::string& line) {
      return line.find(version) != std::string::npos;
    })) << version;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace wavetank::serve
