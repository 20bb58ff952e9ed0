#include "fakes/kube/http/transport/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <boost/beast/http.hpp>
#include <boost/optional.hpp>
#include <deque>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/message/tunnel.h"
#include "fakes/kube/http/message/watch_stream.h"
#include "fakes/kube/http/transport/gzip.h"
#include "fakes/kube/http/transport/stream.h"

namespace wavetank::fakekube::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

class Session;

// What lives on the store's thread: the watches, by session.
struct StoreSide {
  std::map<uint64_t, std::unique_ptr<WatchStream>> streams;
  bool closed = false;
};

// Lines on their way from the store's thread to the sessions. One wake-up of the server's thread takes them all.
struct Outbox {
  struct Item {
    std::weak_ptr<Session> session;
    uint64_t watch;  // which one of the session: an earlier one may have ended
    Line line;       // null: the stream has ended
  };
  std::mutex mutex;
  std::vector<Item> items;
  bool woken = false;
};

// Who writes and does not say as whom is known by what he calls himself (apiserver: pkg/endpoints/handlers,
// managerOrUserAgent). Put into the query, it is part of what a log holds.
std::string WithFieldManager(const Request& request, std::string_view user_agent) {
  constexpr size_t kLongest = 128;
  const bool writes = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  const bool applies = request.content_type.starts_with("application/apply-patch");  // must say it
  if (!writes || applies || request.query.find("fieldManager=") != std::string::npos) return request.query;
  std::string name;
  for (const char c : user_agent.substr(0, user_agent.find('/'))) {
    if (name.size() < kLongest && c > ' ' && c < 0x7f) name += c;
  }
  // What would have to be escaped is nobody's name.
  if (name.empty() || name.find_first_of("&#%+=?") != std::string::npos) return request.query;
  return fmt::format("{}{}fieldManager={}", request.query, request.query.empty() ? "" : "&", name);
}

// A program that this process starts would otherwise hold what the server closes open.
template <class Socket>
void KeepFromChildren(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace

namespace {

struct ClientName {
  std::string user;
  std::vector<std::string> groups;
};

// Whom the client's certificate names, if its chain leads to an authority that counts and it is for clients.
ClientName VerifiedClient(SSL* ssl) {
  ClientName out;
  if (ssl == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return out;
  const std::unique_ptr<X509, decltype(&X509_free)> leaf(SSL_get1_peer_certificate(ssl), &X509_free);
  if (leaf == nullptr) return out;
  const X509_NAME* subject = X509_get_subject_name(leaf.get());
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    unsigned char* bytes = nullptr;
    const int size = ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(entry));
    if (size < 0) continue;
    std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    OPENSSL_free(bytes);
    if (text.find('\0') != std::string::npos) return {};
    const int field = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (field == NID_commonName)
      out.user = std::move(text);
    else if (field == NID_organizationName)
      out.groups.push_back(std::move(text));
  }
  return out;
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(ServerOptions options, Executor run_on_store)
      : options_(options), run_on_store_(std::move(run_on_store)), io_(1) {}

  struct Port {
    explicit Port(asio::io_context& io) : acceptor(io) {}
    tcp::acceptor acceptor;
    Handler handler;
  };

  absl::StatusOr<uint16_t> Listen(const std::string& address, uint16_t port, Handler handler);
  absl::Status UseTls(const TlsIdentity& identity);
  asio::ssl::context* tls() { return tls_ ? &*tls_ : nullptr; }
  void Start();
  void Stop();

  const ServerOptions& options() const { return options_; }
  const std::shared_ptr<StoreSide>& store_side() const { return store_side_; }
  asio::io_context& io() { return io_; }
  size_t connections() const {
    const std::lock_guard<std::mutex> lock(sessions_mutex_);
    return sessions_.size();
  }
  void RunOnStore(uint64_t connection, absl::AnyInvocable<void()> task) { run_on_store_(connection, std::move(task)); }
  // Any thread.
  void Send(Outbox::Item item);
  void Add(uint64_t id, std::weak_ptr<Session> session) {
    const std::lock_guard<std::mutex> lock(sessions_mutex_);
    sessions_[id] = std::move(session);
  }
  void Remove(uint64_t id) {
    const std::lock_guard<std::mutex> lock(sessions_mutex_);
    sessions_.erase(id);
  }

 private:
  void Accept(Port& port);
  void Drain();
  void CloseAll();

  const ServerOptions options_;
  const Executor run_on_store_;
  const std::shared_ptr<StoreSide> store_side_ = std::make_shared<StoreSide>();
  asio::io_context io_;
  boost::optional<asio::ssl::context> tls_;
  std::list<Port> ports_;
  Outbox outbox_;
  mutable std::mutex sessions_mutex_;
  std::map<uint64_t, std::weak_ptr<Session>> sessions_;
  boost::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::thread thread_;
  bool stopped_ = false;
};

namespace {

// One connection. On the server's thread.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Server::Impl> server, tcp::socket socket, const Server::Handler& handler)
      : server_(std::move(server)),
        stream_(std::move(socket)),
        handler_(handler),
        id_(NextId()),
        bookmark_timer_(stream_.get_executor()),
        end_timer_(stream_.get_executor()) {}
  ~Session() { server_->Remove(id_); }

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
        self->ReadHeader();
      });
    });
  }

  // A line of the watch under way, or its end. Lines may come before the answer's header has been given here (the
  // store's thread is ahead, or the answer is delayed): they wait.
  void OnLine(uint64_t watch, const Line& line) {
    if (closed_ || watch != watch_ || watch == over_) return;
    if (line == nullptr) {
      ending_ = true;
    } else {
      unsent_ += line->size();
      queue_.push_back(line);
      if (unsent_ > server_->options().max_unsent_watch_bytes) return Close();
    }
  }
  void Flush() {
    if (watching_ && !writing_ && header_sent_) WriteLines();
  }

  void Close();

 private:
  static uint64_t NextId() {
    static std::atomic<uint64_t> next{1};
    return next++;
  }
  template <class Method>
  auto Bind(Method method) {
    return beast::bind_front_handler(method, shared_from_this());
  }
  static std::chrono::nanoseconds Real(Duration duration) { return std::chrono::nanoseconds(duration.count()); }

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
    Request request;
    const auto text = [](boost::string_view view) { return std::string(view.data(), view.size()); };
    request.method = text(message.method_string());
    const std::string target = text(message.target());
    if (target.empty() || target[0] != '/') return Answer(BadRequest("the request names no path"));
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    request.content_type = text(message[bhttp::field::content_type]);
    request.accept = text(message[bhttp::field::accept]);
    takes_gzip_ = !head_only_ && AcceptsGzip(text(message[bhttp::field::accept_encoding]));
    request.authorization = text(message[bhttp::field::authorization]);
    request.impersonate_user = text(message["Impersonate-User"]);
    request.query = WithFieldManager(request, text(message[bhttp::field::user_agent]));
    request.certificate_user = client_.user;
    request.certificate_groups = client_.groups;
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
    server_->RunOnStore(id_, [self = shared_from_this(), side = server_->store_side(), handler = &handler_, id = id_,
                              watch, request = std::move(request)] {
      if (side->closed) return;
      auto response = std::make_shared<Response>((*handler)(request));
      if (response->later != nullptr) {
        return response->later->Then([self](Response decided) {
          auto held = std::make_shared<Response>(std::move(decided));
          asio::post(self->server_->io(), [self, held] { self->Deliver(std::move(*held), false); });
        });
      }
      const bool watches = response->watch != nullptr;
      if (watches) {
        std::unique_ptr<WatchStream>& stream = side->streams[id];
        stream = std::move(response->watch);
        const std::weak_ptr<Session> weak = self;
        Server::Impl* server = self->server_.get();
        // The header goes first; then what the watch begins with.
        asio::post(server->io(), [self, response] { self->Deliver(std::move(*response), true); });
        stream->Start(
            [weak, watch, server](Line line) {
              server->Send({weak, watch, std::move(line)});
            },
            [weak, watch, server] {
              server->Send({weak, watch, nullptr});
            });
        return;
      }
      asio::post(self->server_->io(), [self, response] { self->Deliver(std::move(*response), false); });
    });
  }

  void Deliver(Response response, bool watches) {
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

  // Who still sends what was refused would lose the answer to a reset; a little of it is read and thrown away.
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
      self->server_->RunOnStore(self->id_, [self, side = self->server_->store_side(), id = self->id_, watch] {
        const auto stream = side->streams.find(id);
        if (side->closed || stream == side->streams.end()) return;
        self->server_->Send({self, watch, stream->second->Bookmark()});
      });
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
    DropStream();
  }
  void DropStream() {
    server_->RunOnStore(id_, [side = server_->store_side(), id = id_] { side->streams.erase(id); });
  }

  const std::shared_ptr<Server::Impl> server_;
  Stream stream_;
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
  if (watched) DropStream();
  end_timer_.cancel();
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.socket().close(ignored);
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
    // As kube-apiserver: a certificate that nobody vouches for ends no handshake, it only says nothing
    // (VerifiedClient).
    context.set_verify_mode(asio::ssl::verify_peer);
    context.set_verify_callback([](bool, asio::ssl::verify_context&) { return true; });
    // Sessions are not resumed: what was verified is not kept with them.
    SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_TICKET);
  }
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
      std::make_shared<Session>(shared_from_this(), std::move(socket), port.handler)->Run();
    if (!error) return Accept(port);
    // Out of descriptors, most likely: some must close first.
    auto timer = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(50));
    timer->async_wait([this, &port, timer](error_code cancelled) {
      if (!cancelled && port.acceptor.is_open()) Accept(port);
    });
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
  std::vector<std::shared_ptr<Session>> touched;
  for (const Outbox::Item& item : items) {
    std::shared_ptr<Session> session = item.session.lock();
    if (session == nullptr) continue;
    session->OnLine(item.watch, item.line);
    if (touched.empty() || touched.back() != session) touched.push_back(std::move(session));
  }
  for (const std::shared_ptr<Session>& session : touched) session->Flush();
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
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard<std::mutex> lock(sessions_mutex_);
    for (const auto& [id, session] : sessions_) sessions.push_back(session.lock());
  }
  for (const std::shared_ptr<Session>& session : sessions) {
    if (session != nullptr) session->Close();
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
