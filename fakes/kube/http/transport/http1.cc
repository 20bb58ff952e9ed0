#include "fakes/kube/http/transport/http1.h"

#include <fmt/format.h>

#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <mutex>
#include <vector>

#include "absl/strings/ascii.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/message/tunnel.h"
#include "fakes/kube/http/transport/gzip.h"
#include "fakes/kube/http/transport/http2.h"
#include "fakes/kube/http/transport/request_head.h"
#include "fakes/kube/http/transport/stream.h"

namespace wavetank::fakekube::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// One connection. On the server's thread.
class Session final : public Receiver, public Connection, public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Server::Impl> server, tcp::socket socket, const Server::Handler& handler)
      : server_(std::move(server)),
        held_(std::make_shared<Stream>(std::move(socket))),
        handler_(handler),
        id_(Server::Impl::NextId()),
        bookmark_timer_(stream_.get_executor()),
        end_timer_(stream_.get_executor()) {}
  ~Session() override { server_->Remove(id_); }

  void Run() {
    server_->Add(id_, weak_from_this());
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    stream_.socket().set_option(asio::socket_base::keep_alive(true), ignored);
    if (server_->tls() == nullptr) return ReadHeader();
    stream_.expires_after(Real(server_->options().request_timeout));
    beast::async_detect_ssl(stream_.tcp(), buffer_, [self = shared_from_this()](error_code error, bool tls) {
      if (error) return self->Close();
      if (!tls) return self->ReadHeader();
      self->stream_.Encrypt(*self->server_->tls(), self->buffer_.data(), [self](error_code failed, size_t used) {
        if (failed) return self->Close();
        self->buffer_.consume(used);
        self->client_ = VerifiedClient(self->stream_.ssl());
        if (ChoseHttp2(self->stream_.ssl())) return self->GoOnWithHttp2();
        self->ReadHeader();
      });
    });
  }

  void OnLine(uint64_t watch, const Line& line) override {
    if (closed_ || watch != watch_ || watch == over_) return;
    if (line == nullptr) {
      ending_ = true;
    } else {
      unsent_ += line->size();
      queue_.push_back(line);
      if (unsent_ > server_->options().max_unsent_watch_bytes) return Close();
    }
  }
  void Flush() override {
    if (watching_ && !writing_ && header_sent_) WriteLines();
  }

  void Close() override;

 private:
  template <class Method>
  auto Bind(Method method) {
    return beast::bind_front_handler(method, shared_from_this());
  }

  void GoOnWithHttp2() {
    closed_ = true;  // the stream is another's
    ServeHttp2(server_, held_, handler_, std::move(client_));
  }

  // The next request, once its first byte is here: from then on all of it has one deadline, however slowly it comes.
  void ReadHeader() {
    if (buffer_.size() > 0) return ReadRequest();
    constexpr size_t kFirst = 4096;
    stream_.expires_after(Real(server_->options().idle_timeout));
    stream_.async_read_some(asio::buffer(buffer_.prepare(kFirst)),
                            [self = shared_from_this()](error_code error, size_t read) {
                              if (error) return self->Close();
                              self->buffer_.commit(read);
                              self->ReadRequest();
                            });
  }

  void ReadRequest() {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(server_->options().max_header_bytes));
    parser_->body_limit(server_->options().max_body_bytes);
    deadline_ = std::chrono::steady_clock::now() + Real(server_->options().request_timeout);
    ExpireAtDeadline();
    bhttp::async_read_header(stream_, buffer_, *parser_, Bind(&Session::OnHeader));
  }
  void ExpireAtDeadline() {
    stream_.expires_after(
        std::max<std::chrono::nanoseconds>(deadline_ - std::chrono::steady_clock::now(), std::chrono::nanoseconds(1)));
  }

  void OnHeader(error_code error, size_t) {
    if (error) return Refuse(error);
    if (server_->tls() != nullptr && !stream_.encrypted()) {
      keep_alive_ = false;
      refused_ = true;
      return Answer(BadRequest("Client sent an HTTP request to an HTTPS server."));
    }
    ExpireAtDeadline();
    if (beast::iequals(parser_->get()[bhttp::field::expect], "100-continue")) {
      auto reply = std::make_shared<bhttp::response<bhttp::empty_body>>(bhttp::status::continue_, 11);
      bhttp::async_write(stream_, *reply, [self = shared_from_this(), reply](error_code failed, size_t) {
        if (failed) return self->Close();
        self->ReadBody();
      });
      return;
    }
    ReadBody();
  }
  void ReadBody() { bhttp::async_read(stream_, buffer_, *parser_, Bind(&Session::OnRequest)); }

  // A request that cannot be read is answered where there is one to answer, and its connection ends: nobody knows where
  // the next would begin.
  void Refuse(error_code error) {
    keep_alive_ = false;
    refused_ = true;
    version_ = 11;
    head_only_ = takes_gzip_ = false;
    if (error == bhttp::error::body_limit) {
      return Answer(Failure(413, "RequestEntityTooLarge",
                            fmt::format("Request entity too large: limit is {}", server_->options().max_body_bytes)));
    }
    if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow) {
      return Answer(Failure(431, "BadRequest", "the request's headers are too large"));
    }
    if (error.category() == bhttp::make_error_code(bhttp::error::bad_method).category() &&
        error != bhttp::error::end_of_stream && error != bhttp::error::partial_message) {
      return Answer(Failure(400, "BadRequest", fmt::format("the request is no HTTP: {}", error.message())));
    }
    Close();
  }

  void OnRequest(error_code error, size_t) {
    if (error) return Refuse(error);
    stream_.expires_never();
    auto message = parser_->release();
    keep_alive_ = message.keep_alive();
    version_ = message.version();
    head_only_ = message.method() == bhttp::verb::head;
    const auto text = [](boost::string_view view) { return std::string(view.data(), view.size()); };
    const std::string target = text(message.target());
    if (target.empty() || target[0] != '/') return Answer(BadRequest("the request names no path"));
    HeadersByName headers;
    for (const auto& field : message)
      headers[absl::AsciiStrToLower(text(field.name_string()))].push_back(text(field.value()));
    Request request = ReadHead(text(message.method_string()), target, headers, client_);
    takes_gzip_ = !head_only_ && AcceptsGzip(text(message[bhttp::field::accept_encoding]));
    request.upgrade = text(message[bhttp::field::upgrade]);
    if (!request.upgrade.empty()) {
      request.websocket_key = text(message[bhttp::field::sec_websocket_key]);
      // Either protocol's list may stand on several lines.
      for (const auto& field : message) {
        if (!beast::iequals(field.name_string(), "X-Stream-Protocol-Version") &&
            field.name() != bhttp::field::sec_websocket_protocol) {
          continue;
        }
        request.upgrade_protocols += (request.upgrade_protocols.empty() ? "" : ",") + text(field.value());
      }
    }
    request.body = std::move(message.body());
    // The answer comes back here, unless the store's thread has ended.
    const uint64_t watch = ++watch_;
    queue_.clear();
    unsent_ = 0;
    ending_ = false;
    server_->Ask(id_, watch, shared_from_this(), handler_, std::move(request));
  }

  void Deliver(Response response, bool watches) override {
    if (closed_) return;
    if (response.hang_up) return Close();
    if (response.delay > Duration::zero()) {
      const auto delay = Real(std::exchange(response.delay, Duration{}));
      auto held = std::make_shared<Response>(std::move(response));
      end_timer_.expires_after(delay);
      end_timer_.async_wait([self = shared_from_this(), held, watches](error_code error) {
        if (!error) self->Deliver(std::move(*held), watches);
      });
      return;
    }
    if (watches) return StartWatch(std::move(response));
    Answer(std::move(response));
  }

  bhttp::response<bhttp::empty_body> Head(const Response& response) const {
    bhttp::response<bhttp::empty_body> head(bhttp::int_to_status(static_cast<unsigned>(response.code)), version_);
    head.result(static_cast<unsigned>(response.code));
    head.set(bhttp::field::content_type, response.content_type);
    head.set(bhttp::field::cache_control, "no-cache, private");
    for (const auto& [name, value] : response.headers) head.set(name, value);
    head.keep_alive(keep_alive_);
    return head;
  }

  void Answer(Response response) {
    if (response.tunnel != nullptr && response.code == 101) return StartTunnel(std::move(response));
    if (takes_gzip_) CompressIfLarge(&response);
    // HTTP/1.0 knows no chunks.
    if (response.produce && version_ < 11) {
      response.body = response.Text();
      response.produce = nullptr;
    }
    response_ = std::move(response);
    stream_.expires_after(Real(server_->options().write_timeout));
    if (response_.produce && !head_only_) {
      SendHead([self = shared_from_this()] { self->WritePiece(); });
      return;
    }
    auto message = std::make_shared<bhttp::response<bhttp::string_body>>(Head(response_).base());
    message->content_length(response_.body.size());
    if (!head_only_) message->body() = std::move(response_.body);
    bhttp::async_write(stream_, *message,
                       [self = shared_from_this(), message](error_code error, size_t) { self->OnAnswered(error); });
  }

  template <class Then>
  void SendHead(Then then) {
    auto head = std::make_shared<bhttp::response<bhttp::empty_body>>(Head(response_));
    if (version_ >= 11) head->chunked(true);
    if (version_ < 11) head->keep_alive(keep_alive_ = false);
    auto serializer = std::make_shared<bhttp::response_serializer<bhttp::empty_body>>(*head);
    bhttp::async_write_header(stream_, *serializer,
                              [self = shared_from_this(), head, serializer, then](error_code error, size_t) {
                                if (error) return self->Close();
                                then();
                              });
  }

  void WritePiece() {
    piece_.clear();
    const bool more = response_.produce(&piece_);
    stream_.expires_after(Real(server_->options().write_timeout));
    asio::async_write(stream_, bhttp::make_chunk(asio::buffer(piece_)),
                      [self = shared_from_this(), more](error_code error, size_t) {
                        if (error) return self->Close();
                        if (more) return self->WritePiece();
                        self->WriteLast();
                      });
  }

  void WriteLast() {
    if (version_ < 11) return Close();
    stream_.expires_after(Real(server_->options().write_timeout));
    asio::async_write(stream_, bhttp::make_chunk_last(),
                      [self = shared_from_this()](error_code error, size_t) { self->OnAnswered(error); });
  }

  void OnAnswered(error_code error) {
    response_ = Response();
    if (!error && refused_) return Linger();
    if (error || !keep_alive_) return Close();
    ReadHeader();
  }

  // A client that still sends what was refused would lose the answer to a reset; a little of it is read and thrown
  // away.
  void Linger() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(2));
    piece_.resize(64 * 1024);
    ReadAway();
  }
  void ReadAway() {
    stream_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](error_code error, size_t read) {
      self->thrown_away_ += read;
      if (error || self->thrown_away_ > 4 * self->server_->options().max_body_bytes) return self->Close();
      self->ReadAway();
    });
  }

  // --- another protocol from here on

  void StartTunnel(Response response) {
    tunnel_ = std::move(response.tunnel);
    keep_alive_ = false;
    auto head = std::make_shared<bhttp::response<bhttp::empty_body>>(bhttp::status::switching_protocols, 11);
    for (const auto& [name, value] : response.headers) head->set(name, value);
    stream_.expires_never();
    bhttp::async_write(stream_, *head, [self = shared_from_this(), head](error_code error, size_t) {
      if (error) return self->Close();
      self->OpenTunnel();
    });
  }

  void OpenTunnel() {
    const std::weak_ptr<Session> weak = weak_from_this();
    Server::Impl* const server = server_.get();
    const auto post = [weak, server](auto fn) {
      // The server outlives its sessions' tunnels: Stop() waits for what is posted.
      asio::post(server->io(), [weak, fn = std::move(fn)]() mutable {
        if (const std::shared_ptr<Session> self = weak.lock()) fn(*self);
      });
    };
    // In the order of the calls, whichever threads they come from: what this thread posts to itself, others overtake.
    struct TunnelOutbox {
      std::mutex mutex;
      std::string bytes;
      bool close = false;
    };
    const auto outbox = std::make_shared<TunnelOutbox>();
    const auto drain = [post, outbox] {
      post([outbox](Session& self) {
        std::string bytes;
        bool close = false;
        {
          const std::lock_guard<std::mutex> lock(outbox->mutex);
          bytes.swap(outbox->bytes);
          close = outbox->close;
        }
        if (!bytes.empty()) self.SendTunnel(std::move(bytes));
        if (!close) return;
        self.ending_ = true;
        if (!self.writing_) self.Close();
      });
    };
    tunnel_->Open({.send =
                       [drain, outbox](std::string bytes) {
                         {
                           const std::lock_guard<std::mutex> lock(outbox->mutex);
                           outbox->bytes += bytes;
                         }
                         drain();
                       },
                   .close =
                       [drain, outbox] {
                         {
                           const std::lock_guard<std::mutex> lock(outbox->mutex);
                           outbox->close = true;
                         }
                         drain();
                       }});
    if (buffer_.size() > 0) {
      const std::string first = beast::buffers_to_string(buffer_.data());
      buffer_.consume(buffer_.size());
      tunnel_->OnBytes(first);
    }
    piece_.resize(16 * 1024);
    ReadTunnel();
  }

  void ReadTunnel() {
    if (closed_) return;
    stream_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](error_code error, size_t read) {
      if (error || self->closed_) return self->Close();
      self->tunnel_->OnBytes(std::string_view(self->piece_).substr(0, read));
      self->ReadTunnel();
    });
  }

  void SendTunnel(std::string bytes) {
    if (closed_ || ending_) return;
    unsent_ += bytes.size();
    if (unsent_ > server_->options().max_unsent_watch_bytes) return Close();
    tunnel_out_ += bytes;
    if (!writing_) WriteTunnel();
  }

  void WriteTunnel() {
    writing_ = true;
    auto sending = std::make_shared<std::string>(std::exchange(tunnel_out_, {}));
    asio::async_write(stream_, asio::buffer(*sending), [self = shared_from_this(), sending](error_code error, size_t) {
      self->writing_ = false;
      if (error) return self->Close();
      self->unsent_ -= sending->size();
      if (!self->tunnel_out_.empty()) return self->WriteTunnel();
      if (self->ending_) self->Close();
    });
  }

  // --- watches

  void StartWatch(Response response) {
    const bool bookmarks = response.watch_bookmarks;
    const Duration timeout = response.watch_timeout;
    // Whether a client of TLS has gone tells a read only, and the connection serves for nothing else after it.
    if (stream_.encrypted()) keep_alive_ = false;
    response_ = std::move(response);
    watching_ = true;
    header_sent_ = false;
    stream_.expires_never();
    SendHead([self = shared_from_this()] {
      self->header_sent_ = true;
      self->Flush();
    });
    if (timeout > Duration::zero()) {
      end_timer_.expires_after(Real(timeout));
      end_timer_.async_wait([self = shared_from_this(), watch = watch_](error_code error) {
        if (error || watch != self->watch_ || !self->watching_) return;
        self->ending_ = true;
        self->Flush();
      });
    }
    if (bookmarks) ArmBookmark();
    AwaitHangUp();
  }

  void ArmBookmark() {
    bookmark_timer_.expires_after(Real(server_->options().bookmark_period));
    bookmark_timer_.async_wait([self = shared_from_this(), watch = watch_](error_code error) {
      if (error || watch != self->watch_ || !self->watching_) return;
      self->server_->SendBookmark(self->id_, watch, self);
      self->ArmBookmark();
    });
  }

  // A client of a quiet watch that goes would not be noticed otherwise.
  void AwaitHangUp() {
    if (stream_.encrypted()) {
      piece_.resize(1);
      return stream_.async_read_some(asio::buffer(piece_),
                                     [self = shared_from_this(), watch = watch_](error_code error, size_t) {
                                       // Another request, sent ahead, is not answered: the answer's head has said that
                                       // the connection will close.
                                       if (error && watch == self->watch_ && self->watching_) self->Close();
                                     });
    }
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(), watch = watch_](error_code error) {
      if (watch != self->watch_ || !self->watching_) return;
      if (error) return self->Close();
      error_code failed;
      const size_t available = self->stream_.socket().available(failed);
      if (failed || available == 0) return self->Close();
      // The next request, sent ahead: it waits. From here on only a failed write tells that the client has gone.
    });
  }

  void WriteLines() {
    if (queue_.empty()) {
      if (ending_) EndWatch();
      return;
    }
    writing_ = true;
    constexpr size_t kAtOnce = 256;
    sending_.clear();
    std::vector<asio::const_buffer> buffers;
    while (!queue_.empty() && sending_.size() < kAtOnce) {
      sending_.push_back(std::move(queue_.front()));
      queue_.pop_front();
      buffers.emplace_back(sending_.back()->data(), sending_.back()->size());
    }
    auto done = [self = shared_from_this()](error_code error, size_t) {
      self->writing_ = false;
      if (error) return self->Close();
      for (const Line& line : self->sending_) self->unsent_ -= line->size();
      self->sending_.clear();
      self->WriteLines();
    };
    if (version_ >= 11) {
      asio::async_write(stream_, bhttp::make_chunk(buffers), std::move(done));
    } else {
      asio::async_write(stream_, buffers, std::move(done));
    }
  }

  void EndWatch() {
    StopWatching();
    // The wait for a hang-up must not outlive the watch: the next request is read by another.
    error_code ignored;
    stream_.socket().cancel(ignored);
    WriteLast();
  }

  void StopWatching() {
    over_ = watch_;  // what still comes of it is nobody's
    queue_.clear();
    if (!watching_) return;
    watching_ = ending_ = false;
    unsent_ = 0;
    bookmark_timer_.cancel();
    end_timer_.cancel();
    server_->Forget(id_);
  }
  const std::shared_ptr<Server::Impl> server_;
  const std::shared_ptr<Stream> held_;
  Stream& stream_ = *held_;
  const Server::Handler& handler_;
  const uint64_t id_;
  ClientName client_;  // of its verified certificate
  beast::flat_buffer buffer_;
  boost::optional<bhttp::request_parser<bhttp::string_body>> parser_;
  std::chrono::steady_clock::time_point deadline_;  // of the request that is being read
  bool keep_alive_ = true, head_only_ = false, takes_gzip_ = false, closed_ = false, refused_ = false;
  size_t thrown_away_ = 0;
  unsigned version_ = 11;
  Response response_;
  std::string piece_;

  uint64_t watch_ = 0;  // counts requests, so that what comes late for an earlier one is told apart
  uint64_t over_ = 0;   // the one of them whose watch has ended here
  bool watching_ = false, header_sent_ = false, writing_ = false, ending_ = false;
  std::deque<Line> queue_;
  std::vector<Line> sending_;
  size_t unsent_ = 0;
  asio::steady_timer bookmark_timer_, end_timer_;

  std::shared_ptr<Tunnel> tunnel_;  // null: the connection speaks HTTP
  std::string tunnel_out_;
};

void Session::Close() {
  if (std::exchange(closed_, true)) return;
  if (tunnel_ != nullptr) tunnel_->OnClosed();
  // An answer may still be on its way from the store with a watch that nobody wants any more.
  const bool watched = watch_ > 0;
  StopWatching();
  if (watched) server_->Forget(id_);
  end_timer_.cancel();
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.socket().close(ignored);
}

}  // namespace

void ServeHttp1(std::shared_ptr<Server::Impl> server, tcp::socket socket, const Server::Handler& handler) {
  std::make_shared<Session>(std::move(server), std::move(socket), handler)->Run();
}

}  // namespace wavetank::fakekube::http
