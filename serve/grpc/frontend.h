// Between real transports and the istiods of a world: the streams and certificate requests of real clients become
// inputs of the world, and what its istiods answer goes back to the transport that asked.
//
// Knows no gRPC. Transports call from any thread; they are called on the loop's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/security/ca_server.h"
#include "core/xds/messages.h"
#include "serve/loop/loop.h"
#include "sim/outside_clients.h"

namespace wavetank::serve {

// What one client may take of the server. docs/serve.md lists the flags.
struct Limits {
  int64_t message_bytes = 4 << 20;       // of a request, as istiod's ISTIO_GPRC_MAXRECVMSGSIZE
  int64_t names = 50'000;                // of resources in one request
  int64_t streams = 10'000;              // of all clients together
  int64_t streams_per_peer = 5'000;      // of one address; all of a machine's loopback are one, so are Unix sockets
  int64_t streams_per_connection = 100;  // HTTP/2's MAX_CONCURRENT_STREAMS
  int64_t unread_bytes = 64 << 20;       // that wait for one slow reader, before its stream is broken
  int64_t unread_bytes_total = 1 << 30;  // for all; beyond, those above their share go
  int64_t unread_answers = 8;            // that wait for one client, before nothing more is read from it
  Duration first_request = 30s;          // for a new stream to say something; zero: for ever
  Duration idle{};                       // for a stream to say something again, if only an ACK; zero: for ever
};

// The peer of a connection, as the transport knows it. Never logged: it holds the bearer token.
struct TransportPeer {
  bool tls = false;
  std::string address;          // for messages
  std::string certificate_pem;  // leaf of the verified client certificate
  std::string bearer_token, cluster_id;
};

// A stream's place among all that are open, of whatever service: its end makes room. Watches that its client says
// something from time to time.
class StreamPlace {
 public:
  // Expires the stream, on the loop's thread: ends it with this status.
  using Expire = absl::AnyInvocable<void(const absl::Status&)>;

  StreamPlace(std::function<void()> leave, Expire expire) : leave_(std::move(leave)), expire_(std::move(expire)) {}
  ~StreamPlace() { leave_(); }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;

  // The client said something. Any thread.
  void Heard() { heard_ = std::chrono::steady_clock::now().time_since_epoch().count(); }

 private:
  friend class Frontend;
  std::function<void()> leave_;
  Expire expire_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::atomic<int64_t> heard_{0};  // of the steady clock; 0: never
};
using StreamPlaceRef = std::shared_ptr<StreamPlace>;

// A client of the world, and the connection on which it asks, among which requests take turns.
struct OutsideClient {
  uint64_t number = 0;  // 0: not let in
  std::string connection;
};

// The transport's half of an ADS stream.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual void Response(const pilot::DiscoveryResponse& response) = 0;
  virtual void DeltaResponse(const pilot::DeltaDiscoveryResponse& response) = 0;
  // The stream's end, with the status for the client. Nothing follows.
  virtual void Closed(const absl::Status& status) = 0;
};

class Frontend final : public sim::OutsideClients::Listener {
 public:
  // `loop` outlives it. It hears of the world's istiods from now on; the loop must not have started yet.
  Frontend(Loop& loop, Limits limits);
  // The loop must have stopped.
  ~Frontend() override;

  const Limits& limits() const { return limits_; }
  Loop& loop() { return loop_; }

  // Room for one more stream from `address` ("ipv4:127.0.0.1:4711"), of whatever service. ResourceExhausted: there are
  // too many, or too many from there; Unavailable: the server is going down. `expire` may be called (DeadlineExceeded)
  // as long as the place is held.
  absl::StatusOr<StreamPlaceRef> Enter(const std::string& address, StreamPlace::Expire expire);

  // A new stream, which has its place, to the istiod of `cluster`.
  OutsideClient Open(std::string cluster, TransportPeer peer, std::shared_ptr<StreamSink> sink);
  // `taken` is called when the world has the request, on the loop's thread: then is the time to read the next one, so
  // that a client never has more than one in memory. Not called if the stream is over.
  using Taken = absl::AnyInvocable<void()>;
  void Request(const OutsideClient& client, pilot::DiscoveryRequest request, Taken taken);
  void Request(const OutsideClient& client, pilot::DeltaDiscoveryRequest request, Taken taken);
  // The client is gone; its sink is called no more (but may be just now). Once per stream that Open gave.
  void Close(const OutsideClient& client);

  // Anything else that `peer` wants of the world, in turn with what others want.
  bool Post(const TransportPeer& peer, Loop::Task task);

  // Responses wait for a client, or (negative) have gone out to it or with it. Any thread.
  void CountUnread(int64_t bytes) { unread_ += bytes; }
  // Whether a client with so much waiting must go, because what waits for all is too much and it has more than
  // its share of it. One of them always has.
  bool TakesTooMuch(int64_t waiting) const;
  int64_t unread() const { return unread_; }

  // `done` once, on the loop's thread (or at once, when the server is going down).
  using Certificates = absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)>;
  void CreateCertificate(std::string cluster, TransportPeer peer, security::CertificateRequestMessage request,
                         Certificates done);
  // The same for a caller whose token's claims are known; on the loop's thread.
  void CreateCertificate(sim::World& world, const std::string& cluster, const sim::OutsidePeer& peer,
                         const security::CertificateRequestMessage& request, Certificates done);

  // Closes all streams as Unavailable and answers what waits; nothing is let in any more. Before transports shut down.
  void ShutDown();

  int64_t streams() const { return open_; }

  // sim::OutsideClients::Listener, on the loop's thread.
  void OnResponse(uint64_t client, std::shared_ptr<const pilot::DiscoveryResponse> response) override;
  void OnDeltaResponse(uint64_t client, std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) override;
  void OnClosed(uint64_t client, const absl::Status& status) override;
  void OnCertificate(uint64_t client, absl::StatusOr<std::vector<std::string>> chain) override;

 private:
  void Do(sim::World& world, uint64_t client, const sim::Input& input);
  void Watch(const std::weak_ptr<StreamPlace>& place, Duration delay);
  static sim::OutsidePeer Describe(sim::World& world, const TransportPeer& peer);

  Loop& loop_;
  const Limits limits_;
  std::atomic<uint64_t> next_{1};
  std::atomic<int64_t> open_{0};  // streams that a transport holds
  std::atomic<int64_t> unread_{0};
  std::mutex peers_mutex_;
  std::map<std::string, int64_t> peers_;  // of them, by host
  std::atomic<bool> down_{false};
  // On the loop's thread.
  std::map<uint64_t, std::shared_ptr<StreamSink>> sinks_;
  std::map<uint64_t, Certificates> certificates_;
};

}  // namespace wavetank::serve
