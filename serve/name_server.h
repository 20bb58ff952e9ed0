// The world's DNS for a real istiod: a server on loopback that answers by UDP what the DNS of one cluster says now.
//
// A query that the world lets fail is answered with a server failure; one for a name that is not there with NXDOMAIN.
// Types other than A and AAAA have no records. The time to live is what the name says, or as long as istiods of the
// world take it for (sim/istiod_run.cc, Resolve); what is not there holds for half a minute.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "serve/loop/loop.h"

namespace wavetank::serve {

class NameServer {
 public:
  // `address`: an IPv4 address of loopback; port 53 of it, which is what /etc/resolv.conf can name. Names are asked for
  // as a pod of istio-system in `cluster` would. `loop` must outlive it. Unavailable: the port cannot be had.
  static absl::StatusOr<std::unique_ptr<NameServer>> Start(Loop& loop, const std::string& cluster,
                                                           const std::string& address);
  ~NameServer();

 private:
  NameServer(Loop& loop, std::string cluster, int socket)
      : loop_(loop), cluster_(std::move(cluster)), socket_(std::make_shared<Socket>(socket)) {}
  struct Socket {
    explicit Socket(int n) : number(n) {}
    ~Socket();
    const int number;
  };
  void Run();

  Loop& loop_;
  const std::string cluster_;
  const std::shared_ptr<Socket> socket_;  // an answer may be given when this has gone
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// The answer of `world`'s `cluster` to a message; nothing: it is no query that can be answered.
std::optional<std::string> AnswerQuery(sim::World& world, const std::string& cluster, std::string_view message);

}  // namespace wavetank::serve
