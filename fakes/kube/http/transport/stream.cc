#include "fakes/kube/http/transport/stream.h"

#include <boost/asio/ssl.hpp>

namespace wavetank::fakekube::http {

namespace asio = boost::asio;

struct Stream::Tls {
  asio::ssl::stream<boost::beast::tcp_stream&> stream;
};

Stream::Stream(asio::ip::tcp::socket socket) : tcp_(std::move(socket)) {}
Stream::~Stream() = default;

void Stream::Encrypt(asio::ssl::context& context, asio::const_buffer first, Done done) {
  tls_.reset(new Tls{{tcp_, context}});
  tls_->stream.async_handshake(asio::ssl::stream_base::server, first, std::move(done));
}

SSL* Stream::ssl() { return tls_ ? tls_->stream.native_handle() : nullptr; }

void Stream::Read(std::vector<asio::mutable_buffer> buffers, Done done) {
  if (tls_) return tls_->stream.async_read_some(std::move(buffers), std::move(done));
  tcp_.async_read_some(std::move(buffers), std::move(done));
}

void Stream::Write(std::vector<asio::const_buffer> buffers, Done done) {
  if (tls_) return tls_->stream.async_write_some(std::move(buffers), std::move(done));
  tcp_.async_write_some(std::move(buffers), std::move(done));
}

}  // namespace wavetank::fakekube::http
