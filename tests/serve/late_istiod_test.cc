// Clusters in which istiod is installed after `serve` began, as `istioctl install` does it.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fakes/kube/objects/manifest.h"
#include "sim/inputs/input.h"
#include "tests/await.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

SessionOptions Bare() {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "bare-cluster";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "ns.yaml") << "apiVersion: v1\nkind: Namespace\nmetadata: {name: sample}\n";
  std::ofstream(folder / "scenario.yaml") << "name: bare\nmend: none\nclusters:\n"
                                             "  - {name: cluster1, network: network1, manifests: [ns.yaml]}\n";
  SessionOptions out;
  out.scenario = *scenario::LoadScenario(folder.string());
  out.start = *scenario::MakeStart(out.scenario);
  out.timing = TwoClusters().timing;
  return out;
}

TEST(LateIstiod, TlsIsServedOnceItHasACertificate) {
  ServerOptions options = OnAnyPort();
  const uint16_t port = FreePort();
  ASSERT_GT(port, 0);
  options.secure_listen = "127.0.0.1:" + std::to_string(port);
  const std::unique_ptr<Server> server = StartServer(options, Bare());
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(server->grpc()[0]->where().secure_waits);
  const auto listens = [&] {
    const int socket_fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(port);
    const bool connected = ::connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    ::close(socket_fd);
    return connected;
  };
  EXPECT_FALSE(listens());
  const auto objects = fakekube::LoadManifests(WAVETANK_SOURCE_DIR "/scenarios/manifests/istiod.yaml");
  ASSERT_TRUE(objects.ok()) << objects.status();
  server->loop().Call([&](sim::World& world) {
    const auto apply = [&](const nlohmann::json& object) {
      const auto input = sim::Input::Parse("apply", {{"cluster", "cluster1"}, {"object", object}});
      return input.ok() ? world.Do(*input) : input.status();
    };
    EXPECT_TRUE(apply({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "istio-system"}}}}).ok());
    for (const auto& object : *objects) EXPECT_TRUE(apply(object.object).ok());
    return 0;
  });
  EXPECT_TRUE(Await(listens));
}

}  // namespace
}  // namespace wavetank::serve
