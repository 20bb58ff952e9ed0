// Applications: servers that answer requests and clients that send them. They know nothing of meshes; the Network
// decides whether their connections pass through a sidecar.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "core/base/host.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::envoysim {

struct AppReply;

// How an application answers later than it was asked.
class Deferral {
 public:
  virtual ~Deferral() = default;
  // The answer goes out when the function is called, once at most; AppReply::delay does not count. It may outlive the
  // request, its connection and the server.
  virtual std::function<void(const AppReply&)> Later() = 0;
};

// A request as the application sees it.
struct InboundCall {
  const RequestSpec& spec;
  const AcceptInfo& connection;
  Duration lead{};                                // how far the request is ahead of the clock
  Deferral* deferral = nullptr;                   // null: it has to answer at once
  const AnnouncedAddresses* announced = nullptr;  // by the PROXY protocol, before the first request
};

struct AppReply {
  uint16_t code = 200;      // 0: resets the connection instead of answering
  bool unheard = false;     // it does not speak so: no answer in HTTP/1.1, a reset of the stream in HTTP/2
  Duration delay{};         // service time
  BodyPace body_pace;       // how its body comes after its head
  NameId server = kNoName;  // which instance answered
  // Of an authorizer; the texts outlive the world.
  std::string_view body;
  std::string_view headers;       // Reply::headers; over gRPC those of the OkHttpResponse or the DeniedHttpResponse
  std::string_view trailers;      // Reply::trailers
  uint16_t grpc_status = 0xffff;  // 0xffff: the answer is not gRPC's
  uint16_t check_denied = 0;      // Reply::check_denied
  bool later = false;             // nothing else counts: Deferral::Later() was called
};

class Application {
 public:
  virtual ~Application() = default;
  virtual AppReply Serve(const InboundCall& call) = 0;
  // Whether the port that a connection came to speaks TLS, and then its part of a handshake.
  virtual bool SpeaksTls(const AcceptInfo& connection) const { return (void)connection, false; }
  virtual HandshakeResult ShakeHands(const AcceptInfo& connection, const FirstFlight& hello);
};

// One listening port of an application. Destroying it refuses new connections and resets the old ones.
class AppServer final : public Acceptor {
 public:
  struct State;  // internal

  AppServer(Fabric& fabric, Host& host, Application& application);
  ~AppServer() override;
  ConnectionHandler* Accept(ConnectionId connection, const AcceptInfo& info) override;

 private:
  std::unique_ptr<State> state_;
};

// A client process. Requests with keep_alive share idle connections per destination, as an HTTP client library does.
class AppClient {
 public:
  struct State;  // internal

  struct Options {
    bool keep_alive = true;
    Duration timeout{};  // client's own patience; 0: none
    // HTTP/2 with keep_alive: requests to a destination share one connection and are under way on it side by side, as
    // many as its server allows; else each has a connection for itself meanwhile.
    bool multiplex = false;
    // What a connection begins with, TLS or the PROXY protocol; null: what the request's protocol says. Connections
    // are shared by requests of one flight.
    std::shared_ptr<const FirstFlight> flight;
  };
  using Done = absl::AnyInvocable<void(const RequestRecord& record)>;

  // `name`: how trace records name this client (its proxy's name, if it has a sidecar). `source`: the address that its
  // sockets are bound to, if any.
  AppClient(Fabric& fabric, Host& host, WorkloadId workload, std::string_view name, const IpAddress& source = {});
  ~AppClient();  // aborts what is under way without calling back

  // Connects to `destination` (a VIP, a pod, anything) and sends one request. `spec` must live until done. `done` is
  // called once, never within this call.
  void Send(const SocketAddress& destination, const RequestSpec& spec, const Options& options, Done done);

  // One TCP connection held open, e.g. to show that a tcp_proxy stays with its choice. Requests on it are sequential.
  class Session;
  // `flight`: what it begins with instead; null: what `kind` says.
  std::unique_ptr<Session> OpenSession(const SocketAddress& destination, FirstFlight::Kind kind,
                                       std::shared_ptr<const FirstFlight> flight = nullptr);

 private:
  std::unique_ptr<State> state_;
};

class AppClient::Session {
 public:
  virtual ~Session() = default;
  virtual bool open() const = 0;
  // At most one at a time; waits for the connection to stand. A closed session answers with code 0.
  virtual void Send(const RequestSpec& spec, Done done) = 0;
};

}  // namespace wavetank::envoysim
