// Long-lived connections of the control plane: pod-agent to istiod (ADS, CSR), API server to webhook. They are dialled
// over the Fabric, with TLS, so that load balancers, gateways, redirects, certificates and resets decide whether one
// stands; what is said on it afterwards takes the latency of the line between both ends.
//
// Fault model. A message lost on the line is sent again after 200 ms, doubling; what follows waits behind it. When
// nothing has passed for kKeepaliveGiveUp, both ends see the channel break (gRPC keepalive: 30 s and 10 s more in
// istio's agents and istiod). When the connection under it closes, both ends hear of it as the Fabric tells them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/base/host.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tls/tls.h"
#include "sim/network/mesh_network.h"

namespace wavetank::sim {

inline constexpr Duration kKeepaliveGiveUp = 40s;

class Channels;
class IstioCsr;
class IstiodProcess;

// What the server keeps for a channel; ends with it.
class ChannelSession {
 public:
  virtual ~ChannelSession() = default;
};

// One connection, shared by both ends. Destroying or closing an end's interest goes through Close().
class Channel final : public std::enable_shared_from_this<Channel> {
 public:
  enum class End : uint8_t { kClient = 0, kServer = 1 };

  // Runs `deliver` at the other end's host, in order. Dropped once the channel is closed.
  void Send(End from, Callback deliver);
  // The end wants no more of it: its own on_close is not called, the other one's is, after a transit.
  void Close(End from);
  // Set by each end; called once, never from within Send or Close.
  void OnClose(End end, std::function<void(const absl::Status&)> handler) {
    on_close_[Index(end)] = std::move(handler);
  }

  bool open() const { return open_; }
  // The listener at the far end, one of the two; only within what runs there.
  IstiodProcess* istiod() const { return istiod_; }
  IstioCsr* csr() const { return csr_; }
  bool speaks_grpc() const { return speaks_grpc_; }
  void set_session(std::shared_ptr<ChannelSession> session) { session_ = std::move(session); }
  const std::shared_ptr<ChannelSession>& session() const { return session_; }
  // Of the client's certificate, if it presented one.
  const std::string& client_identity() const { return client_identity_; }

 private:
  friend class Channels;
  friend class ChannelServer;
  // The client's end of the connection under it.
  class ClientHandler final : public envoysim::ConnectionHandler {
   public:
    explicit ClientHandler(Channel& channel) : channel_(channel) {}
    void OnConnected(envoysim::ConnectionId connection) override;
    void OnTls(envoysim::ConnectionId connection, const envoysim::TlsOutcome& outcome) override;
    void OnFirstFlight(envoysim::ConnectionId, const std::shared_ptr<const envoysim::FirstFlight>&, Duration) override {
    }
    void OnRequest(envoysim::ConnectionId, envoysim::ExchangeId, const envoysim::RequestSpec&, Duration) override {}
    void OnClose(envoysim::ConnectionId connection, envoysim::CloseKind kind, std::string_view detail) override;

   private:
    Channel& channel_;
  };
  static size_t Index(End end) { return static_cast<size_t>(end); }

  explicit Channel(Channels& owner) : owner_(owner), client_(*this) {}
  void DropClient();
  // Lets go of all that refers to it, and runs no callback.
  void Forget();
  void EndSession();
  void Release(End end, const std::function<void(envoysim::ConnectionId, envoysim::Fabric::End)>& how);
  void Pump(End to);
  void Break(const absl::Status& why);
  void Tell(End end, const absl::Status& why);

  struct Direction {
    std::deque<Callback> waiting;
    bool blocked = false;
    int tries = 0;
    Time blocked_since{};
    Time last_arrival{};
  };

  Channels& owner_;
  ClientHandler client_;
  class ChannelServer* server_ = nullptr;
  IstiodProcess* istiod_ = nullptr;
  IstioCsr* csr_ = nullptr;
  bool speaks_grpc_ = true;
  std::shared_ptr<ChannelSession> session_;
  Host* hosts_[2] = {nullptr, nullptr};  // by End
  Line* line_ = nullptr;                 // null: both in one pod
  bool open_ = false, closed_ = false;
  std::string client_identity_;
  std::function<void(absl::Status)> on_open_;
  std::function<void(const absl::Status&)> on_close_[2];
  Direction directions_[2];  // by receiving End
  envoysim::ConnectionId connections_[2]{};
  WorkloadId client_workload_{};
  envoysim::SocketAddress to_;  // as dialled
  std::shared_ptr<const envoysim::FirstFlight> flight_;
};
using ChannelRef = std::shared_ptr<Channel>;

// One port on which an istiod listens, or an istio-csr that signs in its place.
class ChannelServer final : public envoysim::Acceptor {
 public:
  enum class Speaks : uint8_t { kGrpc, kHttp };  // of HTTP alone: to a gRPC call it answers 404
  // `tls()` gives the server's side of the handshake as it is now; null refuses the connection (not started yet).
  ChannelServer(Channels& channels, Host& host, WorkloadId workload,
                std::function<std::shared_ptr<const envoysim::TlsServer>()> tls, IstiodProcess& istiod,
                Speaks speaks = Speaks::kGrpc);
  ChannelServer(Channels& channels, Host& host, WorkloadId workload,
                std::function<std::shared_ptr<const envoysim::TlsServer>()> tls, IstioCsr& csr);
  ~ChannelServer() override;  // resets what is open

  envoysim::ConnectionHandler* Accept(envoysim::ConnectionId connection, const envoysim::AcceptInfo& info) override;

 private:
  friend class Channel;
  class Handler;
  Channels& channels_;
  Host& host_;
  WorkloadId workload_;
  std::function<std::shared_ptr<const envoysim::TlsServer>()> tls_;
  IstiodProcess* const istiod_ = nullptr;
  IstioCsr* const csr_ = nullptr;
  Speaks speaks_ = Speaks::kGrpc;
  std::map<envoysim::ConnectionId, std::unique_ptr<Handler>> handlers_;
};

class Channels {
 public:
  // All must outlive it. `world` schedules; a channel's deliveries run at its ends' own hosts.
  Channels(Host& world, envoysim::Fabric& fabric, envoysim::TlsSessions& tls, MeshNetwork& network, Links& links)
      : world_(world), fabric_(fabric), tls_(tls), network_(network), links_(links) {}
  ~Channels();  // what was still on its way is never delivered

  struct Dialling {
    WorkloadId from{};
    Host* host = nullptr;  // of the client
    envoysim::SocketAddress to;
    std::string sni;
    std::shared_ptr<const envoysim::TlsClient> tls;
    Duration timeout = 20s;  // for the connection to stand (gRPC: minimum connect timeout)
  };
  // `on_open` is called once, later: OK, or Unavailable with why.
  ChannelRef Dial(Dialling dialling, std::function<void(absl::Status)> on_open);

 private:
  friend class Channel;
  friend class ChannelServer;

  Host& world_;
  envoysim::Fabric& fabric_;
  envoysim::TlsSessions& tls_;
  MeshNetwork& network_;
  Links& links_;
  // As long as the Fabric may call their clients' ends.
  absl::flat_hash_map<const Channel*, ChannelRef> held_;
  // Which channel a ClientHello belongs to; gateways that pass TLS through hand the same object on.
  absl::flat_hash_map<const envoysim::FirstFlight*, std::weak_ptr<Channel>> by_flight_;
};

}  // namespace wavetank::sim
