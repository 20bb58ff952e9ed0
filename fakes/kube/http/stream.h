// One connection's bytes, in the clear or through TLS: a Beast stream either way. For server.cc.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/optional.hpp>
#include <chrono>
#include <utility>

namespace wavetank::fakekube::http {

class Stream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  explicit Stream(boost::asio::ip::tcp::socket socket) : tcp_(std::move(socket)) {}

  // From here on what is read and written is encrypted. `first`: what of the handshake has come already; `done` is told
  // how much of it was used.
  template <class Buffers, class Handler>
  void Encrypt(boost::asio::ssl::context& context, const Buffers& first, Handler done) {
    tls_.emplace(tcp_, context);
    tls_->async_handshake(boost::asio::ssl::stream_base::server, first, std::move(done));
  }
  bool encrypted() const { return tls_.has_value(); }
  // After the handshake; null in the clear.
  SSL* ssl() { return tls_ ? tls_->native_handle() : nullptr; }

  executor_type get_executor() noexcept { return tcp_.get_executor(); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    tcp_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    tcp_.async_write_some(buffers, std::forward<Handler>(handler));
  }

  // Of the connection itself.
  boost::beast::tcp_stream& tcp() { return tcp_; }
  boost::asio::ip::tcp::socket& socket() { return tcp_.socket(); }
  void expires_after(std::chrono::nanoseconds time) { tcp_.expires_after(time); }
  void expires_never() { tcp_.expires_never(); }

 private:
  boost::beast::tcp_stream tcp_;
  boost::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
};

}  // namespace wavetank::fakekube::http
