#include "fakes/kube/http/transport/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <memory>
#include <utility>

#include "fakes/kube/http/transport/http1.h"
#include "fakes/kube/http/transport/http2.h"
#include "fakes/kube/http/transport/server_impl.h"

namespace wavetank::fakekube::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// A program that this process starts would otherwise hold what the server closes open.
template <class Socket>
void KeepFromChildren(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

// HTTP/2 before HTTP/1.1, in whatever order the client names them.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                   unsigned int offered_size, void*) {
  static const unsigned char kOurs[] = "\x02h2\x08http/1.1";
  const int result =
      SSL_select_next_proto(const_cast<unsigned char**>(chosen), size, kOurs, sizeof kOurs - 1, offered, offered_size);
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

// Names the authorities to clients as it asks for a certificate: one that has several picks by them (kubernetes:
// apiserver: pkg/server/secure_serving.go, tlsConfig.ClientCAs).
void NameAuthorities(const std::string& pem, asio::ssl::context& context) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                       &BIO_free);
  while (text != nullptr) {
    const std::unique_ptr<X509, decltype(&X509_free)> authority(
        PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), &X509_free);
    if (authority == nullptr) break;  // the end; what cannot be read was refused before
    SSL_CTX_add_client_CA(context.native_handle(), authority.get());
  }
  ERR_clear_error();
}

}  // namespace

absl::StatusOr<uint16_t> Server::Impl::Listen(const std::string& address, uint16_t port, Handler handler) {
  error_code error;
  const asio::ip::address ip = asio::ip::make_address(address, error);
  if (error) return absl::InvalidArgumentError(fmt::format("'{}' is no IP address; write e.g. 127.0.0.1", address));
  const tcp::endpoint endpoint(ip, port);
  Port& entry = ports_.emplace_back(io_);
  entry.handler = std::move(handler);
  const auto failed = [&](std::string_view what) {
    ports_.pop_back();
    const std::string text = fmt::format("cannot {} {}:{}: {}", what, address, port, error.message());
    return error == asio::error::address_in_use ? absl::UnavailableError(text) : absl::InvalidArgumentError(text);
  };
  if (entry.acceptor.open(endpoint.protocol(), error)) return failed("open");
  KeepFromChildren(entry.acceptor);
  if (entry.acceptor.set_option(asio::socket_base::reuse_address(true), error)) return failed("prepare");
  if (entry.acceptor.bind(endpoint, error)) return failed("listen at");
  if (entry.acceptor.listen(1024, error)) return failed("listen at");
  return entry.acceptor.local_endpoint(error).port();
}

absl::Status Server::Impl::UseTls(const TlsIdentity& identity) {
  tls_.emplace(asio::ssl::context::tls_server);
  asio::ssl::context& context = *tls_;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  error_code error;
  context.use_certificate_chain(asio::buffer(identity.certificates_pem), error);
  if (!error) context.use_private_key(asio::buffer(identity.key_pem), asio::ssl::context::pem, error);
  if (!error && !identity.client_ca_pem.empty()) {
    context.add_certificate_authority(asio::buffer(identity.client_ca_pem), error);
    if (!error) NameAuthorities(identity.client_ca_pem, context);
    // As kube-apiserver: a certificate that nobody vouches for ends no handshake, it only says nothing
    // (VerifiedClient).
    context.set_verify_mode(asio::ssl::verify_peer);
    context.set_verify_callback([](bool, asio::ssl::verify_context&) { return true; });
    // Sessions are not resumed: what was verified is not kept with them.
    SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_TICKET);
  }
  SSL_CTX_set_alpn_select_cb(context.native_handle(), ChooseProtocol, nullptr);
  if (!error) return absl::OkStatus();
  tls_ = boost::none;
  return absl::InvalidArgumentError(fmt::format("the server's certificate cannot be used: {}", error.message()));
}

void Server::Impl::Accept(Port& port) {
  port.acceptor.async_accept([this, &port](error_code error, tcp::socket socket) {
    // A connection may have been accepted, and its handler be under way here, when the port was closed.
    if (!port.acceptor.is_open()) return;
    if (!error) KeepFromChildren(socket);
    if (!error && connections() < options_.max_connections)
      ServeHttp1(shared_from_this(), std::move(socket), port.handler);
    if (!error) return Accept(port);
    // Out of descriptors, most likely: some must close first.
    auto timer = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(50));
    timer->async_wait([this, &port, timer](error_code cancelled) {
      if (!cancelled && port.acceptor.is_open()) Accept(port);
    });
  });
}

void Server::Impl::Ask(uint64_t id, uint64_t watch, const std::shared_ptr<Receiver>& receiver, const Handler& handler,
                       Request request) {
  run_on_store_(id, [self = shared_from_this(), receiver, handler = &handler, id, watch, request = std::move(request)] {
    StoreSide& side = *self->store_side_;
    if (side.closed) return;
    auto response = std::make_shared<Response>((*handler)(request));
    if (response->later != nullptr) {
      return response->later->Then([self, receiver](Response decided) {
        auto held = std::make_shared<Response>(std::move(decided));
        asio::post(self->io_, [receiver, held] { receiver->Deliver(std::move(*held), false); });
      });
    }
    const bool watches = response->watch != nullptr;
    std::unique_ptr<LineStream> starting = std::move(response->watch);
    // The header goes first; then what the watch begins with.
    asio::post(self->io_, [receiver, response, watches] { receiver->Deliver(std::move(*response), watches); });
    if (!watches) return;
    std::unique_ptr<LineStream>& stream = side.streams[id];
    stream = std::move(starting);
    const std::weak_ptr<Receiver> weak = receiver;
    Impl* const server = self.get();
    stream->Start(
        [weak, watch, server](Line line) {
          server->Send({weak, watch, std::move(line)});
        },
        [weak, watch, server] {
          server->Send({weak, watch, nullptr});
        });
  });
}

void Server::Impl::Forget(uint64_t id) {
  run_on_store_(id, [side = store_side_, id] { side->streams.erase(id); });
}

void Server::Impl::SendBookmark(uint64_t id, uint64_t watch, const std::shared_ptr<Receiver>& receiver) {
  run_on_store_(id, [self = shared_from_this(), receiver, id, watch] {
    const auto stream = self->store_side_->streams.find(id);
    if (self->store_side_->closed || stream == self->store_side_->streams.end()) return;
    self->Send({receiver, watch, stream->second->Bookmark()});
  });
}

void Server::Impl::Send(Outbox::Item item) {
  const std::lock_guard<std::mutex> lock(outbox_.mutex);
  outbox_.items.push_back(std::move(item));
  if (std::exchange(outbox_.woken, true)) return;
  asio::post(io_, [this] { Drain(); });
}

void Server::Impl::Drain() {
  std::vector<Outbox::Item> items;
  {
    const std::lock_guard<std::mutex> lock(outbox_.mutex);
    items.swap(outbox_.items);
    outbox_.woken = false;
  }
  std::vector<std::shared_ptr<Receiver>> touched;
  for (const Outbox::Item& item : items) {
    std::shared_ptr<Receiver> receiver = item.receiver.lock();
    if (receiver == nullptr) continue;
    receiver->OnLine(item.watch, item.line);
    if (touched.empty() || touched.back() != receiver) touched.push_back(std::move(receiver));
  }
  for (const std::shared_ptr<Receiver>& receiver : touched) receiver->Flush();
}

void Server::Impl::Start() {
  for (Port& port : ports_) Accept(port);
  work_.emplace(io_.get_executor());
  thread_ = std::thread([this] { io_.run(); });
}

void Server::Impl::CloseAll() {
  for (Port& port : ports_) {
    error_code ignored;
    port.acceptor.close(ignored);
  }
  std::vector<std::shared_ptr<Connection>> open;
  {
    const std::lock_guard<std::mutex> lock(connections_mutex_);
    for (const auto& [id, connection] : connections_) open.push_back(connection.lock());
  }
  for (const std::shared_ptr<Connection>& connection : open) {
    if (connection != nullptr) connection->Close();
  }
}

void Server::Impl::Stop() {
  if (std::exchange(stopped_, true)) return;
  if (thread_.joinable()) {
    // Closed sessions end by themselves; the thread ends when the last has.
    asio::post(io_, [this] {
      CloseAll();
      work_.reset();
    });
    thread_.join();
  } else {
    CloseAll();
  }
  // Everything that was given to the store before this has run, or never will.
  auto closed = std::make_shared<std::promise<void>>();
  std::future<void> done = closed->get_future();
  run_on_store_(0, [side = store_side_, closed = std::move(closed)] {
    side->closed = true;
    side->streams.clear();
    closed->set_value();
  });
  done.wait();
  // If that task was destroyed, the store's thread has ended and nobody else touches this.
  store_side_->closed = true;
  store_side_->streams.clear();
  // Answers that came after the thread's end still hold their sessions.
  io_.restart();
  io_.poll();
}

Server::Server(ServerOptions options, Executor run_on_store)
    : impl_(std::make_shared<Impl>(options, std::move(run_on_store))) {}
Server::~Server() { Stop(); }
absl::StatusOr<uint16_t> Server::Listen(const std::string& address, uint16_t port, Handler handler) {
  return impl_->Listen(address, port, std::move(handler));
}
absl::Status Server::UseTls(const TlsIdentity& identity) { return impl_->UseTls(identity); }
void Server::Start() { impl_->Start(); }
void Server::Stop() { impl_->Stop(); }
size_t Server::connections() const { return impl_->connections(); }

}  // namespace wavetank::fakekube::http
