// Real istiods beside a world: how they are started and seen to, and what they see. A stand-in takes their place; with
// $WAVETANK_PILOT_DISCOVERY the same world is driven by a real one (tests/cli/control_plane_test.cc).
#include "serve/control_planes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/security/remote_secret.h"
#include "fakes/kube/http/transport/fetch.h"
#include "replay/event_log.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "serve/remote_secret_view.h"
#include "sim/inputs/kinds/kube_request.h"
#include "tests/await.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

namespace fs = std::filesystem;
namespace http = fakekube::http;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class ControlPlanesTest : public ::testing::Test {
 protected:
  ControlPlanesTest() : folder_(fs::path(::testing::TempDir()) / ("wavetank-planes-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ControlPlanesTest() override { fs::remove_all(folder_); }

  // A program that does what the lines say.
  std::string Script(const std::string& lines) {
    const fs::path path = folder_ / "istiod";
    std::ofstream(path) << "#!/bin/sh\n" << lines;
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  static std::string Read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  ControlPlaneOptions Options(const std::string& program) {
    ControlPlaneOptions out;
    out.program = program;
    out.folder = (folder_ / "run").string();
    return out;
  }
  absl::StatusOr<std::unique_ptr<ControlPlanes>> Start(ControlPlaneOptions options) {
    if (session_ == nullptr) {
      SessionOptions session = TwoClusters();
      session.log = log_;
      session.real_istiod = true;
      absl::StatusOr<std::unique_ptr<Session>> made = Session::Create(std::move(session));
      EXPECT_TRUE(made.ok()) << made.status();
      session_ = *std::move(made);
      session_->GoLive();
    }
    return ControlPlanes::Start(session_->loop(), std::move(options));
  }

  // The API server of cluster1 as its istiod reaches it, from a script that printed its kubeconfig.
  std::string ApiOfIstiod() {
    const std::string log = Read(folder_ / "run/cluster1.log");
    const size_t at = log.find("http://127.0.0.1:");
    return at == std::string::npos ? "" : log.substr(at, log.find('"', at) - at);
  }
  // As a client of the cluster's own port: code and answer.
  std::pair<int, json> Send(const std::string& cluster, const std::string& method, const std::string& path,
                            const json& body = nullptr, const std::string& type = "application/json") {
    return *session_->loop().Call([&](sim::World& world) -> std::pair<int, json> {
      http::Request request;
      request.method = method;
      request.path = path;
      request.content_type = type;
      if (!body.is_null()) request.body = body.dump();
      http::Response response = sim::AskKube(world, cluster, request);
      return {response.code, json::parse(response.Text(), nullptr, false)};
    });
  }

  const fs::path folder_;
  std::string log_;  // of the session; empty: none
  std::unique_ptr<Session> session_;
};

TEST_F(ControlPlanesTest, EachPrimaryHasOneWithItsOwnClusterAndReadyIsWhatItSaysItself) {
  const std::string script = Script(
      "env > env; echo \"$@\" > arguments; cat kubeconfig > seen\n"
      "echo '2026-01-01 info starting gRPC discovery service at 127.0.0.1:1'\n"
      "exec sleep 100\n");
  absl::StatusOr<std::unique_ptr<ControlPlanes>> planes = Start(Options(script));
  ASSERT_TRUE(planes.ok()) << planes.status();
  const std::vector<ControlPlanes::Where> where = (*planes)->where();
  ASSERT_EQ(where.size(), 2u);
  EXPECT_EQ(where[0].cluster, "cluster1");
  EXPECT_EQ(where[1].cluster, "cluster2");
  EXPECT_EQ(where[0].address, "127.0.0.1:1");
  const std::string environment = Read(folder_ / "run/cluster2/env");
  EXPECT_THAT(environment, HasSubstr("CLUSTER_ID=cluster2\n"));
  EXPECT_THAT(environment, HasSubstr("ENABLE_CA_SERVER=false\n"));
  EXPECT_THAT(environment, HasSubstr("XDS_AUTH=false\n"));
  EXPECT_THAT(environment, HasSubstr("PILOT_DEBOUNCE_AFTER=10000000ns\n"));
  // Everything that it listens at is of loopback, and nothing is that is not needed.
  const std::string arguments = Read(folder_ / "run/cluster2/arguments");
  EXPECT_THAT(arguments, HasSubstr("--grpcAddr=127.0.0.1:0 --secureGRPCAddr= --httpAddr=127.0.0.1:0 --httpsAddr= "));
  EXPECT_THAT(Read(folder_ / "run/cluster1/seen"), HasSubstr("http://127.0.0.1:"));
  EXPECT_NE(Read(folder_ / "run/cluster1/seen"), Read(folder_ / "run/cluster2/seen"));
  EXPECT_TRUE((*planes)->Check().ok());

  const pid_t pid = where[0].pid;
  EXPECT_EQ(kill(pid, 0), 0);
  (*planes)->Stop();
  EXPECT_NE(kill(pid, 0), 0) << "it is still there";
  EXPECT_THAT(Read(folder_ / "run/cluster1.log"), HasSubstr("starting gRPC")) << "a folder that was named is kept";
}

TEST_F(ControlPlanesTest, WhatIsNoProgramIsRefusedBeforeAnythingStarts) {
  EXPECT_EQ(Start(Options((folder_ / "none").string())).status().message(),
            (folder_ / "none").string() + ": there is no such file");
  std::ofstream(folder_ / "text") << "hello";
  const absl::Status status = Start(Options((folder_ / "text").string())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not executable"));
  fs::permissions(folder_ / "text", fs::perms::owner_all);
  EXPECT_THAT(std::string(Start(Options((folder_ / "text").string())).status().message()),
              HasSubstr("cannot be run: Exec format error"));
  ControlPlaneOptions open = Options("/bin/sh");
  open.listen = "0.0.0.0:15010";
  EXPECT_THAT(std::string(Start(open).status().message()), HasSubstr("loopback only"));
}

TEST_F(ControlPlanesTest, OneThatEndsOrNeverGetsReadyIsNamedWithItsLastWords) {
  absl::Status status = Start(Options(Script("echo 'error: no such flag'; exit 3\n"))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the istiod of cluster1 ended with exit code 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("cluster1.log\n  error: no such flag"));

  ControlPlaneOptions options = Options(Script("echo waiting; exec sleep 100\n"));
  options.ready_limit = 3s;
  status = Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the istiod of cluster1 is not ready after 3 s"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\n  waiting"));
}

TEST_F(ControlPlanesTest, OneThatDiesLaterIsNoticed) {
  absl::StatusOr<std::unique_ptr<ControlPlanes>> planes =
      Start(Options(Script("echo starting gRPC discovery service at 127.0.0.1:1\nexec sleep 100\n")));
  ASSERT_TRUE(planes.ok()) << planes.status();
  kill((*planes)->where()[1].pid, SIGKILL);
  absl::Status status;
  EXPECT_TRUE(Await([&] { return !(status = (*planes)->Check()).ok(); }));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the istiod of cluster2 ended with signal 9"));
}

// ADS of another living world of the same making stands in for a real istiod.
TEST_F(ControlPlanesTest, SimulatedEnvoysAreServedByWhoeverAnswersThere) {
  std::unique_ptr<Server> other = StartServer();
  ASSERT_NE(other, nullptr);
  const std::string address = other->ListenersOf("cluster1")->plaintext;
  const std::string script = Script("echo starting gRPC discovery service at " + address + "\nexec sleep 100\n");
  absl::StatusOr<std::unique_ptr<ControlPlanes>> planes = Start(Options(script));
  ASSERT_TRUE(planes.ok()) << planes.status();
  const auto connected = [&] {
    return *session_->loop().Call([](sim::World& world) {
      int64_t n = 0;
      for (const sim::PodProcess* pod : world.Pods()) n += pod->envoy() != nullptr && pod->envoy()->ads_connected();
      return n;
    });
  };
  const auto streams = [&] { return *other->loop().Call([](sim::World& world) { return world.outside().streams(); }); };
  EXPECT_TRUE(Await([&] { return connected() >= 6 && streams() >= 6; }));
  EXPECT_EQ(connected(), 6);
  EXPECT_EQ(streams(), 6u);
  // When their server goes they hear of it, and try again.
  ASSERT_TRUE(other->Stop().ok());
  EXPECT_TRUE(Await([&] { return connected() == 0; }));
}

// What a real istiod saw, on our own.
TEST_F(ControlPlanesTest, TheLogHoldsWhatOthersDidAndNothingOfTheRealIstiods) {
  log_ = (folder_ / "inputs.wtlog").string();
  absl::StatusOr<std::unique_ptr<ControlPlanes>> planes =
      Start(Options(Script("cat kubeconfig\necho starting gRPC discovery service at 127.0.0.1:1\nexec sleep 100\n")));
  ASSERT_TRUE(planes.ok()) << planes.status();
  const std::string api = ApiOfIstiod(), maps = "/api/v1/namespaces/sample/configmaps";
  ASSERT_NE(api, "");
  const json map = {{"metadata", {{"name", "settings"}}}, {"data", {{"colour", "blue"}}}};
  EXPECT_EQ(Send("cluster1", "POST", maps, map).first, 201);
  // An istiod leads: it writes, and versions run away from those of a world without it.
  for (int i = 0; i < 5; ++i) {
    const json leader = {{"metadata", {{"name", "leader-" + std::to_string(i)}}}};
    const absl::StatusOr<http::Answer> made = http::Send(
        {.server = api, .method = "POST", .path = maps, .content_type = "application/json", .body = leader.dump()},
        60s);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->status, 201) << made->body;
  }
  const json stale = Send("cluster1", "GET", maps + "/settings").second;
  json changed = stale;
  changed["data"]["colour"] = "green";
  EXPECT_EQ(Send("cluster1", "PUT", maps + "/settings", changed).first, 200);
  changed["data"]["colour"] = "red";
  EXPECT_EQ(Send("cluster1", "PUT", maps + "/settings", changed).first, 409);
  EXPECT_EQ(Send("cluster2", "PATCH", "/apis/apps/v1/namespaces/sample/deployments/helloworld-v2/scale",
                 {{"spec", {{"replicas", 3}}}}, "application/merge-patch+json")
                .first,
            200);
  const auto pods = [](sim::World& world) {
    std::vector<std::string> names;
    for (const sim::PodProcess* pod : world.Pods("cluster2", "sample", "helloworld")) names.push_back(pod->name());
    return names;
  };
  EXPECT_TRUE(Await([&] { return session_->loop().Call(pods)->size() >= 3; }));
  const std::vector<std::string> there = *session_->loop().Call(pods);
  EXPECT_EQ(there.size(), 3u);
  (*planes)->Stop();
  ASSERT_TRUE(session_->Finish().ok());

  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(log_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->header().OfRealIstiod());
  replay::WorldTarget target;
  const absl::StatusOr<replay::ReplayResult> replayed = replay::Replay(**log, target);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->compared);
  EXPECT_TRUE(replayed->complete);
  EXPECT_EQ(replayed->events, 0u);
  sim::World& ours = *target.world();
  EXPECT_TRUE(ours.RunUntilSettled(ours.Now() + 5min));
  EXPECT_EQ(pods(ours), there);
  const fakekube::ApiServer& store = ours.cluster("cluster1").api();
  const kube::ObjectRef settings = store.Get("ConfigMap", {"sample", "settings"});
  ASSERT_NE(settings, nullptr);
  EXPECT_EQ(settings->body["data"]["colour"], "green") << "what was accepted is, and what was refused is refused";
  EXPECT_NE(std::to_string(settings->meta.resource_version), changed["metadata"]["resourceVersion"])
      << "the versions are the same, so that this test shows nothing";
  EXPECT_EQ(store.Get("ConfigMap", {"sample", "leader-0"}), nullptr);
  // And our own istiods serve the mesh to its end.
  for (const sim::PodProcess* pod : ours.Pods()) {
    if (pod->envoy() == nullptr) continue;
    EXPECT_TRUE(pod->envoy()->ads_connected()) << pod->name();
  }
}

TEST(RemoteSecretView, LeadsToLoopbackAndNowhereElse) {
  const auto view =
      MakeRemoteSecretView("cluster1", {{"cluster1", "http://127.0.0.1:11"}, {"cluster2", "http://127.0.0.1:12"}});
  const auto secret = [](const std::string& id, const std::string& kubeconfig, const std::string& label = "true") {
    return kube::MakeSecret("istio-system", "istio-remote-secret-x", {{id, kubeconfig}},
                            {{std::string(security::kMultiClusterLabel), label}});
  };
  const auto server_of = [&](const std::string& id, const std::string& address) {
    const kube::ObjectRef seen = view->See(secret(id, kube::RenderKubeConfig({id, address, "", "a-token"})));
    const kube::KubeConfig read = *kube::ParseKubeConfig((*kube::ReadSecretData(*seen)).at(id), "seen");
    EXPECT_EQ(read.token, "a-token");
    return read.server;
  };
  EXPECT_EQ(server_of("cluster2", sim::ApiServerUrl("cluster2")), "http://127.0.0.1:12");
  // The address says which cluster it is, not what the Secret calls it.
  EXPECT_EQ(server_of("cluster2", sim::ApiServerUrl("cluster1")), "http://127.0.0.1:11");
  EXPECT_EQ(server_of("cluster2", "https://203.0.113.7:6443"), "http://127.0.0.1:12");
  // A real API server that no cluster stands for is not dialled.
  EXPECT_EQ(server_of("cluster9", "https://203.0.113.7:6443"), "http://127.0.0.1:1");

  const kube::ObjectRef other = secret("cluster2", "x", "false"), broken = secret("cluster2", "this is no kubeconfig");
  EXPECT_EQ(view->See(other), other);
  EXPECT_EQ((*kube::ReadSecretData(*view->See(broken))).at("cluster2"), "this is no kubeconfig");
}

TEST_F(ControlPlanesTest, EachIstiodSeesRemoteSecretsWithItsOwnPortsAndUsersSeeThemAsTheyAre) {
  absl::StatusOr<std::unique_ptr<ControlPlanes>> planes =
      Start(Options(Script("cat kubeconfig\necho starting gRPC discovery service at 127.0.0.1:1\nexec sleep 100\n")));
  ASSERT_TRUE(planes.ok()) << planes.status();
  const std::string api = ApiOfIstiod();
  ASSERT_NE(api, "");
  const std::string path = "/api/v1/namespaces/istio-system/secrets";
  const auto kubeconfig_in = [](const json& object) {
    return (*kube::ReadSecretData(**kube::Object::FromJson(object))).at("cluster2");
  };
  const auto items = [&](const json& list) {
    for (json item : list.at("items")) {
      if (item["metadata"]["name"] != "istio-remote-secret-cluster2") continue;
      item["apiVersion"] = "v1";
      item["kind"] = "Secret";
      return kubeconfig_in(item);
    }
    return std::string("none");
  };
  const absl::StatusOr<std::string> list = http::Fetch(api, path, 60s);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(items(json::parse(*list)), HasSubstr("server: http://127.0.0.1:"));
  const absl::StatusOr<std::string> one = http::Fetch(api, path + "/istio-remote-secret-cluster2", 60s);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(kubeconfig_in(json::parse(*one)), HasSubstr("server: http://127.0.0.1:"));
  const absl::StatusOr<std::string> watch =
      http::Fetch(api, path + "?watch=true&timeoutSeconds=1&labelSelector=istio/multiCluster%3Dtrue", 60s);
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_THAT(kubeconfig_in(json::parse(watch->substr(0, watch->find('\n'))).at("object")),
              HasSubstr("server: http://127.0.0.1:"));
  const std::string stored = *session_->loop().Call([&](sim::World& world) {
    http::Request request;
    request.method = "GET";
    request.path = path + "/istio-remote-secret-cluster2";
    return sim::AskKube(world, "cluster1", request).Text();
  });
  EXPECT_THAT(kubeconfig_in(json::parse(stored)), HasSubstr("server: " + sim::ApiServerUrl("cluster2")));
}

}  // namespace
}  // namespace wavetank::serve
