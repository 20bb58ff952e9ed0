// HTTP for fake API servers, one port per cluster, all on one thread of its own: HTTP/1.1, and HTTP/2 where TLS is
// spoken.
//
// The store belongs to another thread: the server touches it only inside tasks that it gives to the executor. Handlers
// run there, and watches live there. Objects are immutable, so that long lists are rendered here, while they are sent.
//
// Hostile peers: everything that they can make grow has a limit (ServerOptions); a client that reads too slowly or
// sends too slowly, and one too many, is cut off, and the others notice nothing. Nothing that a client says is ever a
// file's name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/kube/http/message/message.h"

namespace wavetank::fakekube::http {

// A server of TLS. Holds a private key: never for logs, traces or messages.
struct TlsIdentity {
  std::string certificates_pem;  // its own first, then those that lead to its CA's
  std::string key_pem;
  // Authorities, whose client certificates say who asks: the common name is the user, organizations are groups. Empty:
  // nobody is asked for one. A certificate of anybody else counts as none.
  std::string client_ca_pem;
};

struct ServerOptions {
  size_t max_connections = 4096;              // of all ports together
  size_t max_header_bytes = 32 * 1024;        // with the request line
  size_t max_body_bytes = 3 * 1024 * 1024;    // as kube-apiserver's
  size_t max_unsent_watch_bytes = 16u << 20;  // per watch; a client that falls behind further is cut off
  Duration request_timeout = 30s;             // from a request's first byte to its last
  Duration idle_timeout = 180s;               // between requests
  Duration write_timeout = 60s;               // for each piece of an answer
  Duration bookmark_period = 60s;
};

class Server {
 public:
  // Runs a task on the store's thread, or destroys it when that has ended. Tasks of one connection run in the order in
  // which they were given; those of several may take turns. 0: the server's own.
  using Executor = std::function<void(uint64_t connection, absl::AnyInvocable<void()>)>;
  // On the store's thread.
  using Handler = std::function<Response(const Request&)>;

  Server(ServerOptions options, Executor run_on_store);
  // Stop(). Not on the store's thread.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Begins to listen; connections are taken from Start() on. The port that it got, also when `port` is 0. Unavailable:
  // the port is taken; InvalidArgument: no address of this machine. Before Start() only.
  absl::StatusOr<uint16_t> Listen(const std::string& address, uint16_t port, Handler handler);
  // TLS 1.2 and later, on all ports; what is not TLS is answered with 400. InvalidArgument: the key is not the
  // certificate's, or either cannot be read. Before Start() only.
  absl::Status UseTls(const TlsIdentity& identity);
  void Start();
  // Closes all connections and ends all watches; no handler runs afterwards. The store's thread must still run, or have
  // ended. Idempotent.
  void Stop();

  size_t connections() const;

  class Impl;  // for server.cc

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace wavetank::fakekube::http
