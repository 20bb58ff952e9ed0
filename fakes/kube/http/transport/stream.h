// One connection's bytes, in the clear or through TLS: a Beast stream either way. For server.cc.
//
// Beast's operations bring a type of buffers and of handler each, for every one of which sockets and TLS would be
// compiled anew; here they become the same two types, and stream.cc alone pays for them.
#pragma once

#include <absl/functional/any_invocable.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace wavetank::fakekube::http {

class Stream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;
  // How it went, and how many bytes.
  using Done = absl::AnyInvocable<void(boost::system::error_code, size_t)>;

  explicit Stream(boost::asio::ip::tcp::socket socket);
  ~Stream();

  // From here on what is read and written is encrypted. `first`: what of the handshake has come already; `done` is told
  // how much of it was used.
  void Encrypt(boost::asio::ssl::context& context, boost::asio::const_buffer first, Done done);
  bool encrypted() const { return tls_ != nullptr; }
  // After the handshake; null in the clear.
  SSL* ssl();

  executor_type get_executor() noexcept { return tcp_.get_executor(); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    Read(FirstOf<boost::asio::mutable_buffer>(buffers, 1), Done(std::forward<Handler>(handler)));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    Write(FirstOf<boost::asio::const_buffer>(buffers, kAtOnce), Done(std::forward<Handler>(handler)));
  }

  // Of the connection itself.
  boost::beast::tcp_stream& tcp() { return tcp_; }
  boost::asio::ip::tcp::socket& socket() { return tcp_.socket(); }
  void expires_after(std::chrono::nanoseconds time) { tcp_.expires_after(time); }
  void expires_never() { tcp_.expires_never(); }

 private:
  // As many as asio gives to one system call; "some" may be less than all there is.
  static constexpr size_t kAtOnce = 64;
  struct Tls;

  template <class Buffer, class Buffers>
  static std::vector<Buffer> FirstOf(const Buffers& buffers, size_t most) {
    std::vector<Buffer> out;
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != end && out.size() < most; ++it) {
      if (const Buffer buffer = *it; buffer.size() > 0) out.push_back(buffer);
    }
    return out;
  }
  void Read(std::vector<boost::asio::mutable_buffer> buffers, Done done);
  void Write(std::vector<boost::asio::const_buffer> buffers, Done done);

  boost::beast::tcp_stream tcp_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace wavetank::fakekube::http
