// A connection that a listener of an Envoy accepted: listener filters, filter chain, then an HTTP connection manager or
// a tcp_proxy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/envoy/access_log/istio_stats.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/config/network_filter.h"
#include "fakes/envoy/proxy/http_stats.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/upstream/cluster_runtime.h"

namespace wavetank::envoysim {

class DataPlaneView;
class TcpUpstream;

// How access logs name the side of a connection that opened it. Where the simulation gives it no port, one is made up
// of the connection's id, the same for both sides.
SocketAddress ConnectingEnd(const Fabric& fabric, ConnectionId connection);

// What only an access log wants to know of a connection.
struct ConnectionLog {
  Time start{};
  SocketAddress source, destination;
  ResponseFlags flags = kNoFlags;
  std::string details, termination, transport_failure, cluster, cluster_stat_name, cluster_config;
  SocketAddress tried;  // the host of the last try; `host` once that has succeeded or failed
  SocketAddress host, remote, local;
  std::string name, endpoint_workload;  // of the host
  uint64_t upstream_number = 0;         // Dial::number(), of one that stood
  uint64_t read = 0;                    // as HTTP/1.1 writes it, whether it went on or not
  bool read_known = true;               // it was written so
  UpstreamSession session;              // of the upstream's connection
  bool heard = false, spliced = false;  // bytes came; went on
  uint64_t received = 0, sent = 0;      // of what went on and back, as HTTP/1.1 writes it
  bool sizes_known = true;              // that is all, and it was written so
  // Only of those that Istio's metrics are about.
  std::string service_host, service_name;
  std::string peer_identity, own_identity;  // of the upstream's session
  const PeerInfo* peer = nullptr;           // who is at the other end; null: it did not say
  bool asks_upstream = false;               // which is asked who it is
  // What was sent and received by the time of its last report, for each of the chain's stats.
  struct Reported {
    int64_t reports = 0;
    uint64_t sent = 0, received = 0;
  };
  std::vector<Reported> reported;
};

class DownstreamConnection final : public ConnectionHandler, private NetworkConnection {
 public:
  // Registers itself with the Envoy; deletes itself when the connection is gone.
  // `restored`: it was redirected, and a listener filter found out whereto it went.
  DownstreamConnection(DataPlaneView& envoy, ConnectionId id, std::shared_ptr<const ListenerConfig> listener,
                       bool restored);

  ConnectionId id() const { return id_; }
  DataPlaneView& envoy() { return envoy_; }
  const ListenerConfig& listener() const { return *listener_; }
  bool uses(const std::shared_ptr<const ListenerConfig>& l) const { return listener_ == l; }
  const FilterChain* chain() const { return chain_; }
  const SocketAddress& original_destination() const;
  // The same if it was restored, else nothing: what ORIGINAL_DST clusters go by.
  const SocketAddress& restored_destination() const;
  const IpAddress& source_ip() const;
  // Who is at the other end, or for whom that says it is.
  SocketAddress remote() const;
  // Process::NewConnection(); 0: its listener filters still wait, or have refused it.
  uint64_t number() const { return number_; }
  // As the PROXY protocol had it; null: not.
  const std::shared_ptr<const AnnouncedAddresses>& announced() const { return announced_; }
  std::string_view peer_identity() const { return client_identity_; }
  std::string_view own_identity() const { return server_identity_; }
  // The peer's leaf certificate; nullptr: it presented none, or TLS does not end here.
  x509::CertificateRef peer_certificate() const {
    if (!tls_ || flight_ == nullptr || flight_->tls == nullptr || flight_->tls->certificate == nullptr) return nullptr;
    const auto& chain = flight_->tls->certificate->certificates;
    return chain.empty() ? nullptr : chain.front();
  }
  // The chain's connection manager, kept alive with its listener.
  std::shared_ptr<const HttpConnectionManager> manager() const { return {listener_, &*chain_->http}; }
  bool tls() const { return tls_; }
  // Of its connection manager, and of that at this listener; there is one.
  HttpStats& http_stats() const { return *http_stats_; }
  HttpStats& listener_http_stats() const { return *listener_http_stats_; }
  // Adds it to Istio's metrics, if it counts as opened already.
  void AddOpened(std::map<std::string, uint64_t>* counters) const;
  // Adds what an access log says of the connection.
  void Describe(AccessLogEntry* entry) const;
  // As network filters know it.
  ConnectionFacts Facts() const override;

  void AddStream(StreamId stream) { streams_.push_back(stream); }
  // The stream was answered. A draining connection closes after its last one.
  void RemoveStream(StreamId stream);
  // Its listener or chain went away: as `envoy.draining()`, and after the drain time it is closed whatever it does.
  void BeginDrain();
  // The client is to use this connection no more.
  bool closing() const { return draining_ || listener_gone_ || envoy_draining(); }
  // One more request came, of those that the manager allows a connection.
  void CountRequest();
  // It was upgraded, to a cluster's connection: from now on bytes go over it, both ways.
  void BecomeTunnel(std::string_view cluster) { tunnel_ = cluster; }
  // The answer that goes out is the last: the client is to close, and has a while for it.
  void CloseAfterAnswer() { draining_ = lingers_ = true; }
  // A request is about to be answered. Whether the answer says that the connection closes: of HTTP/2 a frame of its own
  // does.
  bool SayIfClosing();
  void Abort(StopKind kind);
  // The codec has read what it does not take, of a request that is under way: the connection ends with all of them.
  void FailCodec(StreamId culprit, std::string_view details);
  // Ends the connection from this side and deletes this. `why`: in words, for a reader who asks what became of a
  // request.
  void CloseNow(CloseKind kind, std::string_view why = {});

  DownstreamConnection* next = nullptr;
  DownstreamConnection* prev = nullptr;

  // What HTTP filters keep for the connection.
  std::shared_ptr<FilterState>& filter_state(uint64_t key) { return filter_states_[key]; }

 private:
  friend class TcpUpstream;
  ~DownstreamConnection() override;

  void OnConnected(ConnectionId) override {}
  void OnTls(ConnectionId, const TlsOutcome&) override {}
  void OnFirstFlight(ConnectionId connection, const std::shared_ptr<const FirstFlight>& flight, Duration lead) override;
  void OnRequest(ConnectionId connection, ExchangeId exchange, const RequestSpec& spec, Duration lead) override;
  void OnRequestReset(ConnectionId connection, ExchangeId exchange) override;
  void OnClose(ConnectionId connection, CloseKind kind, std::string_view detail) override;
  void OnPassed(const RequestSpec& spec) override;
  void OnPassed(const Reply& reply) override;
  void Describe(Hop* hop) const override;

  const DynamicMetadata& notes() const override { return notes_; }
  void Note(MetadataNote note) override { notes_.push_back(std::move(note)); }
  uint64_t& Counter(std::string_view name) override;
  void NotePeer() override { peer_noted_ = true; }
  void UseCluster(std::string_view cluster) override { named_cluster_ = cluster; }
  void Explain(ResponseFlags flags, std::string_view details, std::string_view termination) override;
  void Call(const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Answered answered) override;
  void Decide(bool goes_on) override;

  // False: it lacks what the listener wants, and this is gone.
  bool ReadProxyProtocol();
  void AnswerGarbled(ExchangeId exchange, Duration lead);
  void Classify(const FirstFlight& flight, Duration lead, bool timed_out);
  bool ChooseChain(const FirstFlight& flight, bool inspect);
  bool HandshakeOk(const FirstFlight& flight, Duration lead);
  void SetSessions(TlsServer* server) const;
  bool Speaks() const;
  bool SpeaksAlone() const;
  // It carries a session that began elsewhere, and ends elsewhere.
  bool PassesTls() const;
  // The network filters that decide about the connection, once, on the client's first bytes.
  enum class Admission : uint8_t { kAdmitted, kRefused, kAsking };
  Admission Admit();
  // Does what waited for the verdict.
  void Proceed();
  // `details`: as Router::AbortDownstream has them.
  void AbortStreams(std::string_view details);
  // access_log_entries.cc: the lines of the tcp_proxy and of the listener.
  void WriteLogs();
  void FillLogEntry(AccessLogEntry* entry) const;
  // istio_metrics.cc: Istio's metrics of it, at its end, and what they are about.
  void Measure() const;
  struct Bytes {
    uint64_t sent = 0, received = 0;
  };
  void CountConnection(const IstioStats& stats, bool ended, const Bytes& bytes, IstioCounters* to) const;
  void CountBytes(uint64_t sent, uint64_t received, bool known);
  // How often it has reported.
  int64_t Reports(const IstioStats& stats) const;
  bool CountsAsOpened(const IstioStats& stats) const;
  void BeginLog();
  void AnnounceFlight();
  // proxy/connection_limits.cc: how long it may be open, and how long silent.
  void LimitAge();
  // connection_limits.cc: what it counts as when its chain is chosen, and when it is gone.
  void CountBegin();
  void CountEnd(bool local);
  void StartDrainSequence();
  // It is out of use, and nothing is under way on it: it closes.
  void CloseIfDone();
  void Linger();
  bool envoy_draining() const;
  // The first request tells what the connection speaks.
  void BeginToSpeak(HttpProtocol protocol, Duration lead);
  // A request that the network filters let in. It may be answered at once, and this be gone.
  void Take(ExchangeId exchange, const RequestSpec& spec, Duration lead);
  void ArmIdle(Duration after);
  void Splice();
  void StartTcpProxy(Duration lead);
  void TcpConnect(Duration lead);
  // False: it is being asked for, and this goes on later, or is gone.
  bool LookUpServerName();
  // As clusters that go by names know the one that the client asks for.
  std::string NamedHost(const ClusterConfig& config) const;
  void TcpUpstreamReady();
  // `finding`: TlsOutcome::finding.
  void TcpUpstreamFailed(ResponseFlags flags, std::string_view failure, std::string_view finding = {});
  // `what` happened, and where: for the client's ears.
  std::string At(std::string_view what) const;
  void NoteFailure(ResponseFlags flags, std::string_view failure);
  std::string StatPrefix() const;  // "listener.0.0.0.0_15006."

  DataPlaneView& envoy_;
  const ConnectionId id_;
  std::shared_ptr<const ListenerConfig> listener_;
  const FilterChain* chain_ = nullptr;
  std::shared_ptr<const FirstFlight> flight_;
  std::shared_ptr<const FirstFlight>
      inner_flight_;  // within the session that ended here, of a tcp_proxy; until Splice()
  bool passes_inner_ = false;
  std::shared_ptr<const AnnouncedAddresses> announced_;
  std::shared_ptr<const AnnouncedAddresses> announcing_;  // to a tcp_proxy's upstream
  bool garbled_ = false;                                  // it begins with a PROXY protocol that nobody reads
  std::string client_identity_, server_identity_, alpn_;
  TlsTerms terms_;
  uint64_t session_number_ = 0;  // of the client's session, where it has an id
  std::shared_ptr<const CertificateChain> server_certificate_;
  bool tls_ = false;
  bool refused_ = false;  // TlsOutcome::refused
  bool client_verified_ = false;
  bool server_verified_ = false;
  bool draining_ = false;  // it is to end, whatever becomes of its listener
  bool listener_gone_ = false;
  bool ends_ = false;        // it is on its way out
  bool* is_gone_ = nullptr;  // of a caller that wants to know
  bool lingers_ = false;     // CloseAfterAnswer() was called
  const bool restored_;
  uint64_t number_ = 0;
  size_t next_filter_ = 0;                                             // of the chain's, to see the first bytes
  DynamicMetadata notes_;                                              // of those before
  bool peer_noted_ = false;                                            // by istio_authn
  std::string named_cluster_;                                          // by a filter, for the tcp_proxy
  std::shared_ptr<char> awaits_name_;                                  // while a name is looked up
  StreamId call_ = kNoStream;                                          // what a filter is asking
  std::optional<bool> decision_;                                       // of the filter whose turn it is
  bool deciding_ = false, asking_ = false;                             // it is asked; its answer is awaited
  std::vector<std::pair<ExchangeId, const RequestSpec*>> unadmitted_;  // requests meanwhile
  bool upstream_ready_ = false, flight_told_ = false;                  // of a tcp_proxy
  std::map<uint64_t, std::shared_ptr<FilterState>> filter_states_;
  std::vector<StreamId> streams_;
  // One for each purpose: listener filters wait; the drain time of a listener that is gone, of the manager's drain
  // sequence; a client that is to close first.
  TimerId filters_timer_ = kNoTimer, drain_timer_ = kNoTimer, sequence_timer_ = kNoTimer, linger_timer_ = kNoTimer;
  TimerId age_timer_ = kNoTimer, idle_timer_ = kNoTimer;
  uint32_t requests_ = 0;
  // tcp_proxy
  std::string tcp_cluster_;
  SocketAddress tried_;  // of a tcp_proxy: the host of the last try
  std::string refusal_;  // what a network filter said of it
  TcpUpstream* upstream_ = nullptr;
  uint32_t connect_attempts_ = 0;
  std::vector<ExchangeId> held_;
  HttpStats *http_stats_ = nullptr, *listener_http_stats_ = nullptr;
  ListenerStats* listener_stats_ = nullptr;
  bool spoke_ = false;                              // a request came
  bool multiplexed_ = false;                        // in HTTP/2
  bool said_goaway_ = false, drain_ended_ = false;  // of HTTP/2: told, and the time for leaving is over
  std::string tunnel_;                              // of one that was upgraded: the cluster; else empty
  std::unique_ptr<ConnectionLog> log_;              // nullptr: no log wants a line
};

}  // namespace wavetank::envoysim
