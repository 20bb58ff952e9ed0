// TCP of the simulated world: connections over Paths, retransmission, resets, connections spliced by tcp_proxies, and
// HTTP exchanges on them. One Fabric per world.
//
// Fault model. A segment may be late (Path latency; a direction never reorders) or lost; a lost SYN is sent again after
// 1 s, 3 s, 7 s, ...; lost data after 200 ms, doubling up to 120 s, and after 15 tries the sender sees ETIMEDOUT. A
// process that dies resets its connections (FIN or RST after one transit); a host that vanishes says nothing. Whoever
// holds a connection must survive OnClose at any time, for any reason.
//
// Time. Messages over a local() path are handed over within the call, with their latency added to `lead`: how far the
// handler is ahead of the clock. Only messages that leave a pod cost events. A plain request over an established
// connection is two events: one at the far pod, one back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "core/base/time.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/network.h"
#include "fakes/envoy/tcp/slab.h"

namespace wavetank::envoysim {

struct CertificateChain;
class TlsClient;
class TlsServer;
struct PeerInfo;

enum class ExchangeId : uint64_t {};
inline constexpr ExchangeId kNoExchange{0};

// A header of the PROXY protocol: for whom a connection is. Of an empty source nothing is said (LOCAL, UNKNOWN).
struct AnnouncedAddresses {
  uint8_t version = 1;
  SocketAddress source, destination;
};

// What goes on from an earlier handshake: a ticket, or what either side remembers.
struct TlsSession {
  uint64_t server = 0;  // whose it is: of one certificate and one set of keys for tickets; 0: there is none
  uint64_t number = 0;  // of that one alone
  bool once = false;    // of TLS 1.3: its client uses it but once
  Time until{};         // by the server's clock
};

// What a client says first; all that proxies on the way may look at. Immutable and shared.
struct FirstFlight {
  enum class Kind : uint8_t {
    kTls,     // ClientHello
    kHttp1,   // a request line
    kHttp10,  // one of HTTP/1.0
    kHttp2,   // the HTTP/2 preface in clear text
    kOpaque,  // bytes that no inspector knows
    kSilent,  // nothing: the server speaks first
  };
  Kind kind = Kind::kHttp1;
  std::string sni;
  std::vector<std::string> alpn;
  std::shared_ptr<const TlsClient> tls;                 // kTls: the client's side of the handshake
  std::shared_ptr<const AnnouncedAddresses> announced;  // before all else; null: no PROXY protocol
  // The workload whose proxy it is, for who exchanges that (kPeerExchange); lives as long as the world.
  const PeerInfo* peer = nullptr;
  const Host* client = nullptr;  // whose clock the client has; null: the server's
  TlsSession session;            // kTls: that it would resume
};

// The same with another announcement, or none.
inline std::shared_ptr<const FirstFlight> WithAnnouncement(const FirstFlight& flight,
                                                           std::shared_ptr<const AnnouncedAddresses> announced) {
  auto out = std::make_shared<FirstFlight>(flight);
  out->announced = std::move(announced);
  return out;
}

enum class CloseKind : uint8_t {
  kFin,        // orderly
  kReset,      // RST
  kRefused,    // never established: RST to the SYN
  kTimeout,    // never established, or no acknowledgement any more
  kTlsFailed,  // handshake failed here or there; detail has the error
};

// What a handshake came to, in the words of Envoy's counters: static, empty where there was nothing to agree on.
struct TlsTerms {
  std::string_view version, cipher, curve;
  std::string_view server_signature, client_signature;  // by which either side showed that its certificate is its own
};

// How a TLS handshake ended, at the client.
struct TlsOutcome {
  bool ok = false;
  std::string alpn;   // as negotiated; empty if no overlap
  std::string error;  // as in %UPSTREAM_TRANSPORT_FAILURE_REASON%
  std::string server_identity;
  std::string client_identity;  // that the server asked for, and was shown
  bool local = false;           // the client itself refused (the server sees its alert)
  bool san_mismatch = false;
  std::string_view counter;  // static: what its cluster counts, "fail_verify_san"; empty: nothing was found wrong
  TlsTerms terms;            // of one that came so far
  std::shared_ptr<const CertificateChain> server_certificate;  // of one that stands
  TlsSession resumed;                                          // that it went on from
  TlsSession session;                                          // that the client may resume next time
  const PeerInfo* peer = nullptr;                              // FirstFlight::peer of the server
  bool refused = false;  // TLS 1.3: ok as far as the client knows, but the server hangs up on what it says next
  // What was wrong with a certificate for which either side refused, in plain words (tls/findings.h). It does not go
  // over the wire: it is told to whoever asks what happened.
  std::string finding;
};

// What an HTTP/2 server says of a whole connection: SETTINGS, GOAWAY.
struct Http2Notice {
  std::optional<uint32_t> max_concurrent_streams;
  bool goes_away = false;  // no further request on it
};

// The answer of an application, or of a proxy on the way.
struct Reply {
  uint16_t code = 200;  // 0: connection torn down instead of an answer
  ResponseFlags flags = kNoFlags;
  bool refused = false;     // HTTP/2: no answer, the server did not look at the request (REFUSED_STREAM)
  bool from_proxy = false;  // a local reply of the far sidecar
  bool close = false;       // "connection: close" or GOAWAY: no further request on this connection
  bool has_body = false;    // more than its head
  // Nothing that HTTP/1.1 knows: a server of HTTP/2 alone was spoken to in that. `code` is 0.
  bool garbled = false;
  uint16_t grpc_status = 0xffff;  // 0xffff: none given
  uint16_t check_denied = 0;      // of an authorizer's CheckResponse: 0 allows, else the status for the client
  NameId server = kNoName;
  std::string_view details;  // static or owned by configuration that outlives the exchange
  std::string_view body;
  // What else it says that some code here looks at: lines "name: value\n". Static or kept (ConfigStore::Keep).
  std::string_view headers;
  std::string_view trailers;  // what comes behind its body, the same way
  BodyPace pace;              // of a head alone (OnReplyHead): what is still to come
  // HTTP/2, of a head: a CONNECT was accepted, and this is what goes both ways over its stream (Fabric::OpenTunnel).
  ConnectionId tunnel = kNoConnection;
  // The workload whose proxy passed it on, if it was asked to say so (SetPeer); lives as long as the world.
  const PeerInfo* peer = nullptr;
  // What a proxy in the client's own pod logged; only during OnReply, and only over a local path.
  const RequestRecord* record = nullptr;
};

// One end of a connection. Handlers of server ends belong to the connection from Accept() until OnClose().
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // Client end: TCP stands (not called over local paths, where Connect() says so itself).
  virtual void OnConnected(ConnectionId connection) = 0;
  // Client end, after StartTls.
  virtual void OnTls(ConnectionId connection, const TlsOutcome& outcome) = 0;
  // Server end: first bytes. Called once, before any request; where TLS ended here, once more for what the client
  // begins within the session, if that is a ClientHello. It may close the connection.
  virtual void OnFirstFlight(ConnectionId connection, const std::shared_ptr<const FirstFlight>& flight,
                             Duration lead) = 0;
  // Server end: a request; must lead to Fabric::Answer(), Forward() or Close() of the connection.
  virtual void OnRequest(ConnectionId connection, ExchangeId exchange, const RequestSpec& spec, Duration lead) = 0;
  // Server end, HTTP/2: the client has given up a request that was not answered yet (RST_STREAM).
  virtual void OnRequestReset(ConnectionId connection, ExchangeId exchange) { (void)connection, (void)exchange; }
  // Client end, HTTP/2.
  virtual void OnHttp2Notice(ConnectionId connection, const Http2Notice& notice) { (void)connection, (void)notice; }
  // The other end closed, or the network gave up. The connection is gone after this call; exchanges on it get no
  // OnReply. Not called for one's own Close().
  virtual void OnClose(ConnectionId connection, CloseKind kind, std::string_view detail) = 0;
  // Server end of a connection that is spliced: a request, or an answer, has passed through.
  virtual void OnPassed(const RequestSpec& spec) { (void)spec; }
  virtual void OnPassed(const Reply& reply) { (void)reply; }
  // Server end: fills in what it chose for the connection (listener, filter chain, identities, ...).
  virtual void Describe(Hop* hop) const { (void)hop; }
};

// The sender of a request.
class ExchangeOwner {
 public:
  virtual ~ExchangeOwner() = default;
  virtual void OnReply(uint64_t cookie, const Reply& reply, Duration lead) = 0;
  // The head of an answer whose body takes its time: OnReply() comes with the last byte, unless it breaks off.
  virtual void OnReplyHead(uint64_t cookie, const Reply& head) { (void)cookie, (void)head; }
};

class Fabric {
 public:
  struct Options {
    Duration tcp_hop{25us};  // StageLatencies::tcp_hop
    Duration syn_retry{1s};
    Duration rto_min{200ms};
    Duration rto_max{120s};
    int data_retries = 15;  // net.ipv4.tcp_retries2
    int syn_retries = 6;    // net.ipv4.tcp_syn_retries
  };

  enum class End : uint8_t { kClient = 0, kServer = 1 };
  enum class State : uint8_t { kGone, kConnecting, kConnected };

  // Both must outlive it. Deliveries are scheduled on `host`, which is the world's, not a pod's.
  Fabric(Host& host, Network& network, const Options& options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Sends a SYN `lead` from now. Over a local path the connection is connected on return; a refusal or failure is
  // always reported later, by OnClose. The server end's handler exists from here on.
  ConnectionId Connect(const Origin& origin, const SocketAddress& destination, ConnectionHandler* client,
                       Duration lead = Duration::zero());
  State state(ConnectionId connection) const;
  const AcceptInfo& info(ConnectionId connection) const;
  bool local(ConnectionId connection) const;
  // How many proxies a connection has come through, or a request. More than kMostProxies go in a circle: real ones go
  // on until a proxy has no port left for another connection, or a request's headers have grown too large.
  static constexpr uint16_t kMostProxies = 64;
  uint16_t proxies(ConnectionId connection) const;
  uint16_t proxies(ExchangeId exchange) const;
  // When something last went over it; Time{} of one that is gone.
  Time last_used(ConnectionId connection) const;

  // Client end. Plain text: announces what the first request's bytes look like, no message of its own unless the flight
  // is kOpaque or kSilent; must precede the first request. TLS: sends the ClientHello, OnTls follows.
  void SetFlight(ConnectionId connection, std::shared_ptr<const FirstFlight> flight, Duration lead = Duration::zero());
  // Server end that terminates TLS: what its part of the handshake came to. If outcome.ok the session stands and the
  // server end may get requests; else the server closes.
  void AnswerTls(ConnectionId connection, const TlsOutcome& outcome, Duration lead);

  // Closes from one end; the handler there is not called again and may be destroyed. The other end gets OnClose after a
  // transit (never within this call).
  void Close(ConnectionId connection, End end, CloseKind kind, std::string_view detail = {});
  // As Close, but the other end never hears of it: the host is gone.
  void Vanish(ConnectionId connection, End end);

  // From now on segments are lost on the connections of which `cut` is true, and pass on all others.
  void CutWhere(
      const std::function<bool(const Origin& origin, const SocketAddress& dialled, const AcceptInfo& info)>& cut);
  // Whether that is so of a connection, or of one that it is spliced to on its way.
  bool IsCut(ConnectionId connection) const;

  // Whatever translated this address has forgotten its connections: both ends of each get a reset.
  void ResetDialled(const IpAddress& ip);

  // A tcp_proxy (server end of `downstream`, client end of `upstream`) joins both: messages no longer stop there.
  // Either side's OnClose still reaches the proxy, which closes the other side.
  void Splice(ConnectionId downstream, ConnectionId upstream);

  // HTTP/2, server end: from now on bytes go both ways over the stream of a request. What is spliced to it passes
  // through the connections that the request came over, of which `server` hears as their handlers do (OnPassed,
  // Describe); no other call comes. It lasts until CloseTunnel(), whatever becomes of them.
  ConnectionId OpenTunnel(ExchangeId exchange, ConnectionHandler* server);
  void CloseTunnel(ConnectionId tunnel);

  // A request on a connected connection. `of`: the one that a proxy sends on with it. `proxies`: that it has come
  // through. `keeper`: what `spec` lives in. A server end learns a transit later that nobody waits for its answer any
  // more, and holds that until then (keeper()); null: `spec` lives longer than that by itself.
  ExchangeId NewExchange(ConnectionId connection, const RequestSpec& spec, ExchangeOwner* owner, uint64_t cookie,
                         ExchangeId of = kNoExchange, uint16_t proxies = 0,
                         std::shared_ptr<const void> keeper = nullptr);
  std::shared_ptr<const void> keeper(ExchangeId exchange) const;
  // Which exchange the request was at first, at its client.
  ExchangeId root(ExchangeId exchange) const;
  // How its body follows it, where it stands; as its specification says unless it is set before Dispatch().
  BodyPace pace(ExchangeId exchange) const;
  void SetPace(ExchangeId exchange, const BodyPace& pace);
  // The workload whose proxy sends it, which tells its name and asks for the other's; null: it does neither. Lives as
  // long as the world.
  const PeerInfo* peer(ExchangeId exchange) const;
  void SetPeer(ExchangeId exchange, const PeerInfo* peer);
  // Its owner knows it by another name from now on.
  void SetCookie(ExchangeId exchange, uint64_t cookie);
  // May call owner->OnReply before returning, if the whole way is local.
  void Dispatch(ExchangeId exchange, Duration lead);
  // Server end that held a request back (a tcp_proxy waiting for its upstream): sends it on after Splice().
  void Resume(ExchangeId exchange, Duration lead);
  // The head goes out now, and Answer() comes later. A head that is lost on a line that stays cut is never told.
  void AnswerBegins(ExchangeId exchange, const Reply& head);
  // Server end: the answer leaves `delay` from now.
  void Answer(ExchangeId exchange, const Reply& reply, Duration delay);
  // The owner is no longer interested.
  void Abandon(ExchangeId exchange);
  // The same, and the server end hears of it a transit later, if the request was with it unanswered. HTTP/2: the
  // connection stands.
  void ResetRequest(ExchangeId exchange);
  // Server end of an HTTP/2 connection, which may begin before a tcp_proxy on the way.
  void Notify(ConnectionId connection, const Http2Notice& notice, Duration lead = Duration::zero());
  // False once answered or abandoned.
  bool pending(ExchangeId exchange) const;

  // Appends the hops from the client end of `connection` on.
  void DescribeHops(ConnectionId connection, std::vector<Hop>* hops) const;

  struct Counters {
    uint64_t connections = 0;  // SYNs sent, without retransmissions
    uint64_t refused = 0;
    uint64_t retransmissions = 0;
    uint64_t exchanges = 0;
    uint64_t open_connections = 0;
    uint64_t open_exchanges = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Connection {
    State state = State::kGone;
    bool classified = false;                             // OnFirstFlight was called
    bool cut = false;                                    // the network under it lets nothing pass any more
    bool vanished[2] = {false, false};                   // by End: its host is gone, packets to it are lost
    uint8_t tries = 0;                                   // of the SYN
    ConnectionHandler* handler[2] = {nullptr, nullptr};  // by End; nullptr: closed
    Path* path = nullptr;
    ConnectionId next = kNoConnection;  // spliced, away from the client
    ConnectionId prev = kNoConnection;
    ConnectionId first = kNoConnection, last = kNoConnection;  // of a tunnel: the way that its stream takes
    Time last_used{};
    Time last_arrival[2]{};  // by receiving End: what is sent later does not arrive earlier
    Origin origin;
    SocketAddress dialled;
    AcceptInfo info;
    std::shared_ptr<const FirstFlight> flight;
  };
  struct Exchange {
    ConnectionId connection = kNoConnection;  // where it was sent
    ConnectionId terminal = kNoConnection;    // where it arrived
    const RequestSpec* spec = nullptr;
    BodyPace pace;
    ExchangeOwner* owner = nullptr;
    uint64_t cookie = 0;
    ExchangeId root = kNoExchange;  // nothing: itself
    const PeerInfo* peer = nullptr;
    std::shared_ptr<const void> keeper;
    uint16_t proxies = 0;
    uint8_t tries = 0;
    bool answered = false;
    Reply reply;
  };

  void SendSyn(ConnectionId id, Duration lead);
  void SynArrived(ConnectionId id, Duration round_trip);
  void SynFailed(ConnectionId id, CloseKind kind, Duration after);
  void DeliverFlight(ConnectionId id, Duration lead);
  void SendTlsFlight(ConnectionId id, Duration lead, int tries);
  void SendTlsAnswer(ConnectionId id, std::shared_ptr<const TlsOutcome> outcome, Duration lead, int tries);
  void SendClose(ConnectionId id, End to, CloseKind kind, std::string detail, int tries);
  void DeliverClose(ConnectionId id, End to, CloseKind kind, std::string_view detail);
  struct RequestReset {
    ConnectionId first, last;  // of the way
    ExchangeId exchange;
    std::shared_ptr<const void> keeper;
  };
  void SendReset(const RequestReset& reset, int tries);
  void SendNotice(ConnectionId id, const Http2Notice& notice, Duration lead, int tries);
  void DeliverRequest(ExchangeId id, Duration lead);
  void SendReply(ExchangeId id, Duration delay);
  void SendHead(ExchangeId id, std::shared_ptr<const Reply> head, Duration delay, int tries);
  void DeliverReply(ExchangeId id, Duration lead);
  // Tells the tcp_proxies from the server end of `first` to that of `last`, which it leaves out, of what has passed.
  template <typename Message>
  void TellPassed(ConnectionId first, ConnectionId last, const Message& message);
  // Adds one transit over `connection` towards `to` to *when; false if the segment is lost.
  bool Cross(Connection& connection, End to, Time* when, bool* local);
  bool CrossTunnel(const Connection& tunnel, End to, Time* when, bool* local);
  Duration RetryDelay(int tries) const;
  void GiveUp(ConnectionId id);
  void Unsplice(Connection& connection);
  // The server end is gone: it hears of no reset.
  void Forget(ConnectionId id);
  void Free(ConnectionId id);

  Host& host_;
  Network& network_;
  const Options options_;
  Counters counters_;
  uint64_t flows_ = 0;
  Slab<Connection, ConnectionId> connections_;
  Slab<Exchange, ExchangeId> exchanges_;
  std::vector<std::pair<ConnectionId, ConnectionHandler*>> severed_;  // server ends that are to hear of a reset
};

}  // namespace wavetank::envoysim
