// What the files of the server share: its ports and its thread, and the way from a connection to the store and back.
// For server.cc, http1.cc and http2.cc.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/optional.hpp>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/kube/http/message/line_stream.h"
#include "fakes/kube/http/transport/server.h"

namespace wavetank::fakekube::http {

// What waits for an answer and for a watch's lines: a connection of HTTP/1.1, or one stream of HTTP/2. On the server's
// thread.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // `watches`: lines follow.
  virtual void Deliver(Response response, bool watches) = 0;
  // A line of the watch under way, null: its end. Lines may come before the answer has been given here (the store's
  // thread is ahead, or the answer is delayed): they wait.
  virtual void OnLine(uint64_t watch, const Line& line) = 0;
  // Sends what has come.
  virtual void Flush() = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Close() = 0;
};

// What lives on the store's thread: the watches, by the number of their Receiver.
struct StoreSide {
  std::map<uint64_t, std::unique_ptr<LineStream>> streams;
  bool closed = false;
};

// Lines on their way from the store's thread to their receivers. One wake-up of the server's thread takes them all.
struct Outbox {
  struct Item {
    std::weak_ptr<Receiver> receiver;
    uint64_t watch;  // which one of the receiver: an earlier one may have ended
    Line line;       // null: the stream has ended
  };
  std::mutex mutex;
  std::vector<Item> items;
  bool woken = false;
};

inline std::chrono::nanoseconds Real(Duration duration) { return std::chrono::nanoseconds(duration.count()); }

class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(ServerOptions options, Executor run_on_store)
      : options_(options), run_on_store_(std::move(run_on_store)), io_(1) {}

  struct Port {
    explicit Port(boost::asio::io_context& io) : acceptor(io) {}
    boost::asio::ip::tcp::acceptor acceptor;
    Handler handler;
  };

  absl::StatusOr<uint16_t> Listen(const std::string& address, uint16_t port, Handler handler);
  absl::Status UseTls(const TlsIdentity& identity);
  boost::asio::ssl::context* tls() { return tls_ ? &*tls_ : nullptr; }
  void Start();
  void Stop();

  const ServerOptions& options() const { return options_; }
  boost::asio::io_context& io() { return io_; }
  size_t connections() const {
    const std::lock_guard<std::mutex> lock(connections_mutex_);
    return connections_.size();
  }

  // A number for a Receiver; RunOnStore() and Ask() know it by that.
  static uint64_t NextId() {
    static std::atomic<uint64_t> next{1};
    return next++;
  }
  // Has the store's thread answer. `receiver` gets the answer, and what a watch tells as its number `watch`.
  void Ask(uint64_t id, uint64_t watch, const std::shared_ptr<Receiver>& receiver, const Handler& handler,
           Request request);
  // What is left of `id` on the store's thread goes.
  void Forget(uint64_t id);
  // A line that tells the present version, if that watch is still under way.
  void SendBookmark(uint64_t id, uint64_t watch, const std::shared_ptr<Receiver>& receiver);

  void Add(uint64_t id, std::weak_ptr<Connection> connection) {
    const std::lock_guard<std::mutex> lock(connections_mutex_);
    connections_[id] = std::move(connection);
  }
  void Remove(uint64_t id) {
    const std::lock_guard<std::mutex> lock(connections_mutex_);
    connections_.erase(id);
  }
  // HTTP/2's requests under way, of all connections. On the server's thread.
  size_t& exchanges() { return exchanges_; }

 private:
  void Accept(Port& port);
  // Any thread.
  void Send(Outbox::Item item);
  void Drain();
  void CloseAll();

  const ServerOptions options_;
  const Executor run_on_store_;
  const std::shared_ptr<StoreSide> store_side_ = std::make_shared<StoreSide>();
  boost::asio::io_context io_;
  boost::optional<boost::asio::ssl::context> tls_;
  std::list<Port> ports_;
  Outbox outbox_;
  mutable std::mutex connections_mutex_;
  std::map<uint64_t, std::weak_ptr<Connection>> connections_;
  size_t exchanges_ = 0;
  boost::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace wavetank::fakekube::http
