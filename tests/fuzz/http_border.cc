#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <utility>

#include "core/base/assert.h"
#include "core/kube/credentials/service_account_token.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/http/transport/http1.h"
#include "fakes/kube/http/transport/http2.h"
#include "fakes/kube/http/transport/server_impl.h"
#include "fakes/kube/http/transport/stream.h"
#include "sim/kernel/kernel.h"
#include "tests/fuzz/takers.h"

namespace wavetank::fuzz {

// Server and store on this thread: the same bytes do the same, whatever else the machine does.
void HttpBytes(std::string_view bytes) {
  namespace http = fakekube::http;
  sim::Kernel kernel(1);
  const kube::TokenAuthority tokens(1, "cluster1");
  fakekube::ClusterOptions options;
  options.name = "cluster1";
  options.nodes = {{"node1", "r1", "z1", ""}};
  fakekube::Cluster cluster(kernel.NewHost("cluster1", 0, nullptr), options, nullptr, nullptr);
  http::RestOptions rest;
  rest.tokens = &tokens;
  http::RestApi api(cluster.api(), rest);
  const http::Server::Handler handler = [&](const http::Request& request) { return api.Handle(request); };

  std::array<int, 2> ends{};
  WAVETANK_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const auto server = std::make_shared<http::Server::Impl>(
      http::ServerOptions{}, [](uint64_t, absl::AnyInvocable<void()> task) { std::move(task)(); });
  boost::asio::ip::tcp::socket socket(server->io());
  socket.assign(boost::asio::ip::tcp::v4(), ends[0]);
  const int client = ends[1];
  ::fcntl(client, F_SETFL, O_NONBLOCK);
  if (bytes.starts_with("PRI * HTTP/2")) {
    http::ServeHttp2(server, std::make_shared<http::Stream>(std::move(socket)), handler, {});
  } else {
    http::ServeHttp1(server, std::move(socket), handler);
  }
  std::array<char, 1 << 16> answer{};
  bool said = false;
  for (bool moved = true; moved || !said;) {
    moved = false;
    if (!bytes.empty()) {
      const ssize_t sent = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (sent < 0 && errno != EAGAIN) bytes = {};  // hung up on
      moved = sent > 0;
    }
    if (bytes.empty() && !std::exchange(said, true)) ::shutdown(client, SHUT_WR);
    server->io().restart();
    if (server->io().poll() > 0) moved = true;
    while (::read(client, answer.data(), answer.size()) > 0) moved = true;
    if (!bytes.empty() && !moved) bytes = {};  // it reads no more
  }
  kernel.RunUntil(kernel.Now() + 1s);
  server->Stop();
  ::close(client);
}

}  // namespace wavetank::fuzz
