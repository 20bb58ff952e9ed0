// A connection to a host that may have several addresses: attempts one after the other, until one of them stands.
//
// Envoy: source/common/network/multi_connection_base_impl.cc, happy_eyeballs_connection_impl.cc. The next attempt
// begins when one has failed, or 300 ms after the last began; the first to stand (over TLS: to have shaken hands) is
// the connection, and the others are closed. All addresses failed: the last failure is the connection's.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "fakes/envoy/process/process.h"
#include "fakes/envoy/tcp/fabric.h"

namespace wavetank::envoysim {

class Dial {
 public:
  // `handler` hears of all attempts, told apart by their ids. It closes them, by Close() or Vanish(), before it goes.
  Dial(Process& process, ConnectionHandler* handler) : process_(process), handler_(handler) {}
  ~Dial() { process_.host().Cancel(timer_); }
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  // `more`: null of a host of one address. True: it is connected, over a local path, of which the handler was not told.
  bool Start(const Origin& origin, const SocketAddress& address, std::shared_ptr<const std::vector<SocketAddress>> more,
             Duration lead);
  // The connection, or the last attempt at one.
  ConnectionId id() const { return id_; }
  // Process::NewConnection(), of all attempts together where there may be several; 0: it was not started.
  uint64_t number() const { return number_; }
  // No other attempt is under way, or could be made.
  bool alone() const { return others_.empty() && !HasNext(); }
  // The handler does not want it, or heard its end. True: others go on, and nothing has failed yet.
  bool Failed(ConnectionId attempt);
  // It stands.
  void Settle(ConnectionId attempt);
  void Close(CloseKind kind, std::string_view detail = {});
  void Vanish();

 private:
  void TryNext(Duration lead);
  bool HasNext() const { return more_ != nullptr && next_ < more_->size(); }

  Process& process_;
  ConnectionHandler* const handler_;
  Origin origin_;
  std::shared_ptr<const std::vector<SocketAddress>> more_;
  size_t next_ = 0;  // of more_
  uint64_t number_ = 0;
  ConnectionId id_ = kNoConnection;
  std::vector<ConnectionId> others_;  // attempts beside id_
  TimerId timer_ = kNoTimer;
};

}  // namespace wavetank::envoysim
