// One request of an HTTP/2 connection and its answer or watch: what HTTP/2 calls a stream. For http2.cc.
#pragma once

#include <nghttp2/nghttp2.h>

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/http/transport/server_impl.h"

namespace wavetank::fakekube::http {

struct ClientName;

// The connection, as its exchanges see it.
class ExchangeHost {
 public:
  virtual ~ExchangeHost() = default;
  virtual const std::shared_ptr<Server::Impl>& server() const = 0;
  virtual const Server::Handler& handler() const = 0;
  virtual const ClientName& client() const = 0;
  virtual nghttp2_session* session() const = 0;
  // Sends what there is to send, now or once what is being read has been read.
  virtual void Pump() = 0;
  // Whether the peer takes no bytes, of whatever exchange.
  virtual bool stuck() const = 0;
  virtual void Close() = 0;
};

// Owned by its connection; lives on without it where the store still holds it, and then does nothing.
class Http2Exchange final : public Receiver, public std::enable_shared_from_this<Http2Exchange> {
 public:
  Http2Exchange(std::shared_ptr<ExchangeHost> host, int32_t stream, boost::asio::io_context& io);
  ~Http2Exchange() override;

  // The request as it comes. Begin() first.
  void Begin();
  void OnHeader(std::string_view name, std::string_view value);
  void OnHeadersEnd();
  void OnBody(std::string_view bytes);
  void OnRequestEnd();
  bool request_ended() const { return request_ended_; }

  // The answer's next bytes, for nghttp2's data source.
  ssize_t Fill(uint8_t* out, size_t size, uint32_t* flags);

  void Deliver(Response response, bool watches) override;
  void OnLine(uint64_t watch, const Line& line) override;
  void Flush() override;

  // The stream or its connection has ended.
  void Gone();

 private:
  std::string Header(std::string_view name) const;
  void Answer(Response response);
  void StartWatch(Response response);
  // Sends the head; the body follows from Fill() if there is one.
  void Submit(bool body);
  bool NextPiece();
  void Reset(uint32_t code);
  void ArmWriteTimer();
  void ArmBookmark();

  std::shared_ptr<ExchangeHost> host_;  // null once it has gone
  const std::shared_ptr<Server::Impl> server_;
  const int32_t stream_;
  const uint64_t id_ = Server::Impl::NextId();

  std::map<std::string, std::vector<std::string>, std::less<>> headers_;
  size_t header_bytes_ = 0;
  std::string body_;
  bool request_ended_ = false, asked_ = false, answered_ = false;

  Response response_;
  std::string current_;     // the piece being sent, or
  Line line_;               // the line
  std::string_view piece_;  // what is left of either
  bool deferred_ = false;   // nghttp2 waits for more
  bool watching_ = false, ending_ = false;
  std::deque<Line> queue_;
  size_t unsent_ = 0;  // of the watch, what is being sent included
  boost::asio::steady_timer deadline_, bookmark_timer_, end_timer_;
};

}  // namespace wavetank::fakekube::http
