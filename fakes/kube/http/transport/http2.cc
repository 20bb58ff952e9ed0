#include "fakes/kube/http/transport/http2.h"

#include <openssl/ssl.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "fakes/kube/http/transport/http2_exchange.h"

namespace wavetank::fakekube::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr uint32_t kStreams = 250;             // at once, of one connection: as kube-apiserver allows
constexpr uint32_t kBodyWindow = 1024 * 1024;  // of a request's body
constexpr size_t kAtOnce = 64 * 1024;

class Http2Connection final : public Connection,
                              public ExchangeHost,
                              public std::enable_shared_from_this<Http2Connection> {
 public:
  Http2Connection(std::shared_ptr<Server::Impl> server, std::shared_ptr<Stream> stream, const Server::Handler& handler,
                  ClientName client)
      : server_(std::move(server)),
        stream_(std::move(stream)),
        handler_(handler),
        client_(std::move(client)),
        idle_timer_(stream_->get_executor()) {
    in_.resize(16 * 1024);
  }
  ~Http2Connection() override {
    nghttp2_session_del(session_);
    server_->Remove(id_);
  }

  void Run() {
    server_->Add(id_, weak_from_this());
    stream_->expires_never();
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClose);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const auto header_bytes = static_cast<uint32_t>(server_->options().max_header_bytes);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kStreams},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kBodyWindow},
                                               {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, header_bytes}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 4 * kBodyWindow);
    Pump();
    ArmIdle();
    Read();
  }

  const std::shared_ptr<Server::Impl>& server() const override { return server_; }
  const Server::Handler& handler() const override { return handler_; }
  const ClientName& client() const override { return client_; }
  nghttp2_session* session() const override { return session_; }
  bool stuck() const override { return writing_; }

  void Pump() override {
    if (writing_ || reading_ || closed_) return;
    out_.clear();
    reading_ = true;  // what nghttp2 calls back must not come here again
    while (out_.size() < kAtOnce) {
      const uint8_t* bytes = nullptr;
      const ssize_t count = nghttp2_session_mem_send(session_, &bytes);
      if (count < 0) broken_ = true;
      if (count <= 0) break;
      out_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
    }
    reading_ = false;
    if (broken_) return Close();
    if (out_.empty()) {
      const bool over = nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
      if (over) Close();
      return;
    }
    writing_ = true;
    asio::async_write(*stream_, asio::buffer(out_), [self = shared_from_this()](error_code error, size_t) {
      self->writing_ = false;
      if (error) return self->Close();
      self->Pump();
    });
  }

  void Close() override {
    if (std::exchange(closed_, true)) return;
    for (const auto& [number, exchange] : std::exchange(exchanges_, {})) exchange->Gone();
    idle_timer_.cancel();
    error_code ignored;
    stream_->socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    stream_->socket().close(ignored);
  }

 private:
  static Http2Connection& Self(void* user) { return *static_cast<Http2Connection*>(user); }
  static bool IsRequest(const nghttp2_frame* frame) {
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
  }

  void Read() {
    if (closed_) return;
    stream_->async_read_some(asio::buffer(in_), [self = shared_from_this()](error_code error, size_t count) {
      if (error || self->closed_) return self->Close();
      self->reading_ = true;
      const auto* const bytes = reinterpret_cast<const uint8_t*>(self->in_.data());
      const ssize_t read = nghttp2_session_mem_recv(self->session_, bytes, count);
      self->reading_ = false;
      // No HTTP/2, or a flood of what costs its sender nothing: nghttp2 tells them apart from what it can answer.
      if (read < 0) return self->Close();
      self->Pump();
      self->Read();
    });
  }

  // A connection that nobody asks anything of.
  void ArmIdle() {
    idle_timer_.expires_after(Real(server_->options().idle_timeout));
    idle_timer_.async_wait([weak = weak_from_this()](error_code error) {
      const std::shared_ptr<Http2Connection> self = weak.lock();
      if (error || self == nullptr || self->closed_ || !self->exchanges_.empty()) return;
      nghttp2_session_terminate_session(self->session_, NGHTTP2_NO_ERROR);
      self->Pump();
    });
  }

  Http2Exchange* Find(int32_t number) const {
    const auto it = exchanges_.find(number);
    return it == exchanges_.end() ? nullptr : it->second.get();
  }

  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Http2Connection& self = Self(user);
    if (!IsRequest(frame)) return 0;
    const int32_t number = frame->hd.stream_id;
    // Each is to the store what a connection of HTTP/1.1 is.
    if (self.server_->exchanges() >= self.server_->options().max_connections)
      return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, number, NGHTTP2_REFUSED_STREAM);
    auto exchange = std::make_shared<Http2Exchange>(self.shared_from_this(), number, self.server_->io());
    self.exchanges_[number] = exchange;
    self.idle_timer_.cancel();
    exchange->Begin();
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    Http2Exchange* const exchange = Self(user).Find(frame->hd.stream_id);
    if (exchange == nullptr || !IsRequest(frame)) return 0;  // trailers say nothing here
    exchange->OnHeader({reinterpret_cast<const char*>(name), name_size},
                       {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }

  static int OnData(nghttp2_session*, uint8_t, int32_t number, const uint8_t* bytes, size_t size, void* user) {
    if (Http2Exchange* const exchange = Self(user).Find(number); exchange != nullptr)
      exchange->OnBody({reinterpret_cast<const char*>(bytes), size});
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Exchange* const exchange = Self(user).Find(frame->hd.stream_id);
    if (exchange == nullptr) return 0;
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (IsRequest(frame)) exchange->OnHeadersEnd();
    if (last && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) exchange->OnRequestEnd();
    return 0;
  }

  // What is answered before all of it has come is not waited for (RFC 9113, 8.1).
  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const Http2Exchange* const exchange = Self(user).Find(frame->hd.stream_id);
    if (!last || exchange == nullptr || exchange->request_ended()) return 0;
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
  }

  static int OnStreamClose(nghttp2_session*, int32_t number, uint32_t, void* user) {
    Http2Connection& self = Self(user);
    const auto it = self.exchanges_.find(number);
    if (it == self.exchanges_.end()) return 0;
    const std::shared_ptr<Http2Exchange> exchange = std::move(it->second);
    self.exchanges_.erase(it);
    exchange->Gone();
    if (self.exchanges_.empty()) self.ArmIdle();
    return 0;
  }

  const std::shared_ptr<Server::Impl> server_;
  const std::shared_ptr<Stream> stream_;
  const Server::Handler& handler_;
  const ClientName client_;
  const uint64_t id_ = Server::Impl::NextId();
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, std::shared_ptr<Http2Exchange>> exchanges_;  // by the number of their stream
  std::string in_, out_;
  bool reading_ = false, writing_ = false, closed_ = false, broken_ = false;
  asio::steady_timer idle_timer_;
};

}  // namespace

bool ChoseHttp2(SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  if (ssl != nullptr) SSL_get0_alpn_selected(ssl, &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

void ServeHttp2(std::shared_ptr<Server::Impl> server, std::shared_ptr<Stream> stream, const Server::Handler& handler,
                ClientName client) {
  std::make_shared<Http2Connection>(std::move(server), std::move(stream), handler, std::move(client))->Run();
}

}  // namespace wavetank::fakekube::http
