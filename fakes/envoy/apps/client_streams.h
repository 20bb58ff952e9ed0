// One HTTP/2 connection of a client, and its requests, which go out side by side.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fakes/envoy/apps/app.h"
#include "fakes/envoy/apps/client_record.h"

namespace wavetank::envoysim {

class ClientStreams final : public ConnectionHandler, public ExchangeOwner {
 public:
  // A request that is to be sent. The specification is the connection's own: a server may have it longer than its
  // client waits.
  struct Request {
    std::shared_ptr<const RequestSpec> spec;
    AppClient::Done done;
    Time start{};
    std::optional<Time> deadline;  // the client's patience ends
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    // The server takes no more: this one is to go on another connection.
    virtual void SendElsewhere(const ClientStreams& streams, Request request) = 0;
    // It is closed and owes no answer; it may be destroyed within the call.
    virtual void Ended(ClientStreams& streams) = 0;
  };

  // `given`: the flight is its maker's wish, not what the protocol says.
  ClientStreams(const ClientContext& client, const SocketAddress& destination,
                std::shared_ptr<const FirstFlight> flight, bool given, Owner& owner);
  ~ClientStreams() override;  // aborts what is under way without calling back
  ClientStreams(const ClientStreams&) = delete;
  ClientStreams& operator=(const ClientStreams&) = delete;

  void Open();
  // Whether a request to `destination` may go on it. `given`: the flight that its maker wants, null: the protocol's.
  bool Takes(const SocketAddress& destination, const FirstFlight* given) const;
  // What is beyond the streams that the server allows waits for its turn.
  void Send(Request request);

  const SocketAddress& destination() const { return destination_; }
  const std::shared_ptr<const FirstFlight>& flight() const { return flight_; }
  bool given() const { return given_; }

 private:
  struct Stream {
    Request request;
    bool sent = false, refused = false;
    ExchangeId exchange = kNoExchange;
    TimerId timeout = kNoTimer;
    TimerId answered = kNoTimer;  // set: it is answered, and its client goes on when the clock is there
  };
  using Streams = std::map<uint64_t, Stream>;  // by number, the oldest first

  // ConnectionHandler
  void OnConnected(ConnectionId) override;
  void OnTls(ConnectionId, const TlsOutcome& outcome) override;
  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId, ExchangeId, const RequestSpec&, Duration) override {}
  void OnHttp2Notice(ConnectionId, const Http2Notice& notice) override;
  void OnClose(ConnectionId, CloseKind kind, std::string_view detail) override;
  // ExchangeOwner
  void OnReply(uint64_t number, const Reply& reply, Duration lead) override;

  void Ready();
  void DispatchWaiting();
  void GiveUp(uint64_t number);
  void Finish(uint64_t number, const RequestRecord& record);
  void Gone(std::string_view why, std::string_view closer);
  // After anything has ended. The last thing that any member does.
  void Settle();

  const ClientContext& client_;
  const SocketAddress destination_;
  const std::shared_ptr<const FirstFlight> flight_;
  const bool given_;
  Owner& owner_;
  ConnectionId id_ = kNoConnection;
  bool ready_ = false, goes_away_ = false, dispatching_ = false;
  bool gone_ = false;  // the connection is, and those that were under way on it are being told
  uint32_t allowed_ = std::numeric_limits<uint32_t>::max();  // SETTINGS_MAX_CONCURRENT_STREAMS
  uint32_t running_ = 0;                                     // sent and not answered
  uint64_t next_ = 1;
  Streams streams_;
  std::string finding_;  // TlsOutcome::finding
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace wavetank::envoysim
