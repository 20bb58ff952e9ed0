// The same through sockets: libcurl against an API server's HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "fmt/format.h"
#include "record/http_transport.h"
#include "record/kubeconfig_file.h"
#include "record/recording.h"
#include "replay/event_log.h"
#include "sim/kernel/kernel.h"
#include "tests/fakes/kube/http/served_cluster.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::record {
namespace {

using fakekube::http::ServedCluster;
using nlohmann::json;
using testing::HasSubstr;

json Service(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"namespace", "sample"}}},
          {"spec", {{"ports", json::array({{{"port", 80}}})}}}};
}

class HttpTest : public testing::Test {
 protected:
  // Real time passes; what is waited for comes within milliseconds, or on a busy machine a little later.
  bool Until(const std::function<bool()>& done, std::chrono::seconds limit = std::chrono::seconds(120)) {
    const auto begin = std::chrono::steady_clock::now();
    while (!done()) {
      if (std::chrono::steady_clock::now() - begin > limit) return false;
      loop_.Wait(20ms);
      kernel_.RunUntil(Time{} + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_));
      loop_.Deliver();
    }
    return true;
  }
  std::string KubeConfig(const std::string& server, const std::string& user) {
    WriteAll(
        folder_ / "config",
        fmt::format("apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: \"{}\"}}}}]\n"
                    "users: [{{name: u, user: {}}}]\ncontexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n",
                    server, user));
    return folder_ / "config";
  }
  absl::StatusOr<std::unique_ptr<Recording>> Start(const kube::KubeConfig& config, Duration patience = 60s) {
    auto transport = loop_.Connect(config);
    if (!transport.ok()) return transport.status();
    transport_ = *std::move(transport);
    RecordingOptions options;
    options.clusters = {{config.context, transport_.get()}};
    options.log = folder_ / "log";
    options.patience = patience;
    return Recording::Start(host_, std::move(options));
  }

  TempFolder folder_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("test", 0, nullptr);
  HttpLoop loop_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(HttpTest, AClusterIsRecordedThroughSocketsAcrossARestartOfItsServer) {
  ServedCluster::Options served;
  served.cluster.create_namespaces = true;
  served.rest.bearer_token = "let-me-in";
  auto server = std::make_unique<ServedCluster>(served);
  ASSERT_TRUE(server->port().ok()) << server->port().status();
  server->Call([](fakekube::Cluster& cluster) { return cluster.api().Apply(Service("first")).ok(); });
  WriteAll(folder_ / "token", "let-me-in\n");
  const auto configs = LoadKubeConfigFile(KubeConfig(server->url(), "{tokenFile: token}"), {});
  ASSERT_TRUE(configs.ok()) << configs.status();
  auto recording = Start(configs->front());
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_TRUE(Until([&] { return (*recording)->recording() || !(*recording)->status().ok(); }));
  ASSERT_TRUE((*recording)->status().ok()) << (*recording)->status();
  uint64_t before = (*recording)->inputs();
  server->Call([](fakekube::Cluster& cluster) { return cluster.api().Apply(Service("second")).ok(); });
  EXPECT_TRUE(Until([&] { return (*recording)->inputs() > before; }));

  // Another life of the server, at the same port, with other objects.
  served.port = *server->port();
  server.reset();
  server = std::make_unique<ServedCluster>(served);
  ASSERT_TRUE(server->port().ok()) << server->port().status();
  server->Call([](fakekube::Cluster& cluster) { return cluster.api().Apply(Service("third")).ok(); });
  before = (*recording)->inputs();
  EXPECT_TRUE(Until([&] { return (*recording)->inputs() > before; }));
  ASSERT_TRUE((*recording)->Finish().ok());
  recording->reset();
  EXPECT_EQ(ReadAll(folder_ / "log").find("let-me-in"), std::string::npos);
  EXPECT_NE(ReadAll(folder_ / "log").find("third"), std::string::npos);
}

TEST_F(HttpTest, AWrongTokenIsSaidAtOnce) {
  ServedCluster::Options served;
  served.rest.bearer_token = "let-me-in";
  ServedCluster server(served);
  ASSERT_TRUE(server.port().ok());
  const auto configs = LoadKubeConfigFile(KubeConfig(server.url(), "{token: guessed}"), {"here"});
  ASSERT_TRUE(configs.ok()) << configs.status();
  auto recording = Start(configs->front());
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_TRUE(Until([&] { return !(*recording)->status().ok(); }));
  EXPECT_TRUE(absl::IsUnauthenticated((*recording)->status())) << (*recording)->status();
  EXPECT_EQ(std::string((*recording)->status().message()).find("guessed"), std::string::npos);
}

TEST_F(HttpTest, NobodyThereIsSaidWhenPatienceEnds) {
  const auto configs = LoadKubeConfigFile(KubeConfig("http://127.0.0.1:1", "{}"), {});
  ASSERT_TRUE(configs.ok()) << configs.status();
  auto recording = Start(configs->front(), 2s);
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_TRUE(Until([&] { return !(*recording)->status().ok(); }));
  EXPECT_TRUE(absl::IsUnavailable((*recording)->status())) << (*recording)->status();
}

TEST_F(HttpTest, PlaintextGoesNowhereButToLoopback) {
  kube::KubeConfig config;
  config.context = "c";
  config.server = "http://10.0.0.1:8080";
  EXPECT_TRUE(absl::IsInvalidArgument(loop_.Connect(config).status()));
  config.server = "http://127.0.0.1.evil.example:8080";
  EXPECT_TRUE(absl::IsInvalidArgument(loop_.Connect(config).status()));
  config.server = "http://localhost:8080";
  EXPECT_TRUE(loop_.Connect(config).ok());
}

TEST_F(HttpTest, AKubeconfigFileThatIsOfNoUseSaysWhy) {
  EXPECT_TRUE(absl::IsNotFound(LoadKubeConfigFile(folder_ / "none", {}).status()));
  WriteAll(folder_ / "config", "just: this\n");
  EXPECT_THAT(std::string(LoadKubeConfigFile(folder_ / "config", {}).status().message()), HasSubstr("no contexts"));
  WriteAll(folder_ / "config", "a: [\n");
  EXPECT_TRUE(absl::IsInvalidArgument(LoadKubeConfigFile(folder_ / "config", {}).status()));
  const std::string path = KubeConfig("https://a.example", "{exec: {command: aws, apiVersion: v1}}");
  EXPECT_THAT(std::string(LoadKubeConfigFile(path, {}).status().message()),
              HasSubstr("gets its credentials from a program"));
  EXPECT_THAT(std::string(LoadKubeConfigFile(path, {"there"}).status().message()),
              HasSubstr("no context 'there'; it has: here"));
  KubeConfig("https://a.example", "{client-certificate: gone.pem, client-key: gone.key}");
  EXPECT_THAT(std::string(LoadKubeConfigFile(path, {}).status().message()), HasSubstr("gone.pem"));
}

}  // namespace
}  // namespace wavetank::record
