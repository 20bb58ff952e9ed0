// Clusters in which istiod is installed after `serve` began, as `istioctl install` does it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fakes/kube/objects/manifest.h"
#include "sim/inputs/input.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

using namespace std::chrono_literals;

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

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

uint16_t FreePort() {
  const int socket_fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  ::bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket_fd);
  return ntohs(address.sin_port);
}

TEST(LateIstiod, TlsIsServedOnceItHasACertificate) {
  ServerOptions options = OnAnyPort();
  const uint16_t port = FreePort();
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
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!listens() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(listens());
}

}  // namespace
}  // namespace wavetank::serve
