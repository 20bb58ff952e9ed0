#include "serve/agent/uds_server.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/status.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"
#include "envoy/service/secret/v3/sds.grpc.pb.h"
#include "fmt/format.h"
#include "serve/agent/tap.h"
#include "serve/streams/ads_call.h"

namespace wavetank::serve {
namespace {

namespace discovery = envoy::service::discovery::v3;
using Ads = discovery::AggregatedDiscoveryService;
using Sds = envoy::service::secret::v3::SecretDiscoveryService;
constexpr char kSecretTypeUrl[] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

grpc::Status GrpcStatusOf(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(Message(status))};
}
absl::Status StatusOfGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// The Envoy's end of a stream. What it says is posted to the host; what it is told goes out one by one.
template <class Request, class Response>
class Down final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  struct Listener {
    virtual ~Listener() = default;
    virtual void OnRequest(Request request) = 0;
    virtual void OnGone() = 0;
  };
  // The half that others hold; it outlives the reactor.
  class Handle {
   public:
    void Write(std::shared_ptr<const Response> response) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (reactor_ == nullptr || finishing_) return;
      waiting_.push_back(std::move(response));
      if (waiting_.size() == 1) reactor_->StartWrite(waiting_.front().get());
    }
    void Finish(const grpc::Status& status) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (reactor_ == nullptr || std::exchange(finishing_, true)) return;
      status_ = status;
      if (waiting_.empty()) reactor_->Finish(status_);
    }

   private:
    friend class Down;
    std::mutex mutex_;
    Down* reactor_ = nullptr;
    std::deque<std::shared_ptr<const Response>> waiting_;  // the first is being written
    bool finishing_ = false;
    grpc::Status status_;
  };

  Down(RealHost& host, std::shared_ptr<Handle> handle, std::shared_ptr<Listener> listener)
      : host_(host), handle_(std::move(handle)), listener_(std::move(listener)) {
    handle_->reactor_ = this;
  }
  void Begin() { this->StartRead(&in_); }

  void OnReadDone(bool ok) override {
    if (!ok) return handle_->Finish(grpc::Status::OK);
    if (!host_.Call(
            [listener = listener_, request = std::move(in_)]() mutable { listener->OnRequest(std::move(request)); })) {
      return handle_->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the agent ends"));
    }
    in_ = Request();
    this->StartRead(&in_);
  }
  void OnWriteDone(bool /*ok*/) override {
    const std::lock_guard<std::mutex> lock(handle_->mutex_);
    handle_->waiting_.pop_front();
    if (!handle_->waiting_.empty()) {
      this->StartWrite(handle_->waiting_.front().get());
    } else if (handle_->finishing_) {
      this->Finish(handle_->status_);
    }
  }
  void OnCancel() override { handle_->Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    {
      const std::lock_guard<std::mutex> lock(handle_->mutex_);
      handle_->reactor_ = nullptr;
    }
    host_.Call([listener = std::move(listener_)] { listener->OnGone(); });
    delete this;
  }

 private:
  RealHost& host_;
  const std::shared_ptr<Handle> handle_;
  std::shared_ptr<Listener> listener_;
  Request in_;
};

// istiod's end.
template <class Request, class Response>
class Up final : public AdsCall<Request, Response> {
 public:
  // On the host's thread.
  struct Listener {
    virtual ~Listener() = default;
    virtual void OnConnected() = 0;
    virtual void OnResponse(std::shared_ptr<const Response> response) = 0;
    virtual void OnEnd(const absl::Status& status) = 0;
  };
  Up(RealHost& host, std::weak_ptr<Listener> listener) : host_(host), listener_(std::move(listener)) {}

  void Start(const DialOptions& options, std::shared_ptr<grpc::Channel> channel) {
    channel_ = std::move(channel);
    AddCallMetadata(options, this->context());
    this->Begin(Ads::NewStub(channel_));
  }
  void HangUp() { this->Cancel(); }

 private:
  void Connected() override {
    Tell([](Listener& to) { to.OnConnected(); });
  }
  void Received(std::shared_ptr<const Response> response) override {
    Tell([response = std::move(response)](Listener& to) { to.OnResponse(response); });
  }
  void Ended(const grpc::Status& status) override {
    Tell([end = StatusOfGrpc(status)](Listener& to) { to.OnEnd(end); });
  }

  template <class Fn>
  void Tell(Fn fn) {
    host_.Call([listener = listener_, fn = std::move(fn)] {
      if (const auto to = listener.lock()) fn(*to);
    });
  }

  RealHost& host_;
  const std::weak_ptr<Listener> listener_;
  std::shared_ptr<grpc::Channel> channel_;
};

// A stream between Envoy and istiod, of either protocol. On the host's thread.
class AnyPair {
 public:
  virtual ~AnyPair() = default;
  virtual void SendOwn(const agent::OwnRequest& own) = 0;
  virtual void Close(const absl::Status& status) = 0;
  virtual bool may_report_health() const = 0;
  virtual bool connected() const = 0;
  virtual void Tap(const agent::OwnRequest& question) = 0;
};

// What all streams share; the pair that is open, of which there is one.
struct Ends {
  RealHost& host;
  agent::XdsRelay& relay;
  agent::SecretManager& secrets;
  UdsServer::Options options;
  std::weak_ptr<AnyPair> open;
  uint64_t next = 1;
  std::function<void(const discovery::DiscoveryResponse& response)> tapped = {};
};

template <class Request, class Response>
class Pair final : public AnyPair,
                   public Down<Request, Response>::Listener,
                   public Up<Request, Response>::Listener,
                   public std::enable_shared_from_this<Pair<Request, Response>> {
 public:
  using Handle = typename Down<Request, Response>::Handle;
  static constexpr bool kDelta = std::is_same_v<Request, discovery::DeltaDiscoveryRequest>;

  Pair(Ends& ends, std::shared_ptr<Handle> down) : ends_(ends), down_(std::move(down)) {}

  void Open() {
    const std::shared_ptr<AnyPair> before = ends_.open.lock();
    if (before != nullptr) before->Close(absl::OkStatus());
    number_ = ends_.next++;
    connection_ = ends_.relay.Connect(before != nullptr);
    ends_.open = this->weak_from_this();
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(ends_.options.istiod);
    if (!channel.ok()) {
      ends_.relay.ConnectFailed(ends_.options.istiod.address, channel.status());
      return Close(absl::UnavailableError(std::string(Message(channel.status()))));
    }
    up_ = std::make_shared<Up<Request, Response>>(ends_.host, this->weak_from_this());
    up_->Start(ends_.options.istiod, *std::move(channel));
  }

  void OnRequest(Request request) override {
    if (up_ == nullptr) return;
    const std::string type = request.type_url();
    up_->Write(std::move(request));
    for (const agent::OwnRequest& own : connection_->AfterDownstream(type)) SendOwn(own);
  }
  void OnGone() override {
    if (up_ != nullptr) {
      ends_.relay.DownstreamEnded(number_, absl::CancelledError("context canceled"));
      std::exchange(up_, nullptr)->HangUp();
    }
    if (ends_.open.lock().get() == this) ends_.open.reset();
  }

  void OnConnected() override { ends_.relay.Connected(ends_.options.istiod.address); }
  void OnResponse(std::shared_ptr<const Response> response) override {
    std::string_view first;
    std::string version;
    if constexpr (kDelta) {
      if (response->resources_size() > 0) first = response->resources(0).resource().value();
      version = response->system_version_info();
    } else {
      if (response->resources_size() > 0) first = response->resources(0).value();
      version = response->version_info();
    }
    const agent::XdsRelay::Answer answer = ends_.relay.OnUpstream(response->type_url(), version, response->nonce(),
                                                                  response->resources_size() == 0 ? nullptr : &first);
    if constexpr (!kDelta) {
      if (answer.verdict == agent::Verdict::kTap) ends_.tapped(*response);
    }
    if (answer.reply) SendOwn(*answer.reply);
    if (answer.verdict == agent::Verdict::kForward) down_->Write(std::move(response));
  }
  void OnEnd(const absl::Status& status) override {
    if (up_ == nullptr) return;
    up_ = nullptr;
    ends_.relay.UpstreamEnded(number_, status);
    down_->Finish(GrpcStatusOf(status));
  }

  void SendOwn(const agent::OwnRequest& own) override {
    if (up_ == nullptr) return;
    Request request;
    request.set_type_url(own.type_url);
    request.set_response_nonce(own.response_nonce);
    if constexpr (!kDelta) {
      request.set_version_info(own.version_info);
      for (const std::string& name : own.resource_names) request.add_resource_names(name);
    }
    if (own.error) {
      request.mutable_error_detail()->set_code(own.error->code);
      request.mutable_error_detail()->set_message(own.error->message);
    }
    up_->Write(std::move(request));
  }
  void Close(const absl::Status& status) override {
    if (up_ != nullptr) std::exchange(up_, nullptr)->HangUp();
    down_->Finish(GrpcStatusOf(status));
  }
  bool may_report_health() const override { return connection_->may_report_health(); }
  bool connected() const override { return up_ != nullptr; }
  void Tap(const agent::OwnRequest& question) override {
    if constexpr (!kDelta) SendOwn(question);
  }

 private:
  Ends& ends_;
  const std::shared_ptr<Handle> down_;
  uint64_t number_ = 0;
  std::unique_ptr<agent::XdsRelay::Connection> connection_;
  std::shared_ptr<Up<Request, Response>> up_;
};

template <class Request, class Response>
grpc::ServerBidiReactor<Request, Response>* OpenPair(Ends& ends) {
  using Reactor = Down<Request, Response>;
  auto handle = std::make_shared<typename Reactor::Handle>();
  auto pair = std::make_shared<Pair<Request, Response>>(ends, handle);
  auto* reactor = new Reactor(ends.host, handle, pair);
  if (!ends.host.Call([pair] { pair->Open(); })) {
    handle->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the agent ends"));
    return reactor;
  }
  reactor->Begin();
  return reactor;
}

class AdsService final : public Ads::CallbackService {
 public:
  explicit AdsService(Ends& ends) : ends_(ends) {}
  grpc::ServerBidiReactor<discovery::DiscoveryRequest, discovery::DiscoveryResponse>* StreamAggregatedResources(
      grpc::CallbackServerContext* /*context*/) override {
    return OpenPair<discovery::DiscoveryRequest, discovery::DiscoveryResponse>(ends_);
  }
  grpc::ServerBidiReactor<discovery::DeltaDiscoveryRequest, discovery::DeltaDiscoveryResponse>*
  DeltaAggregatedResources(grpc::CallbackServerContext* /*context*/) override {
    return OpenPair<discovery::DeltaDiscoveryRequest, discovery::DeltaDiscoveryResponse>(ends_);
  }

 private:
  Ends& ends_;
};

// One SDS stream, of one name as Envoy asks. On the host's thread.
using SdsDown = Down<discovery::DiscoveryRequest, discovery::DiscoveryResponse>;
class SecretStreamOfAgent final : public SdsDown::Listener, public std::enable_shared_from_this<SecretStreamOfAgent> {
 public:
  SecretStreamOfAgent(Ends& ends, std::shared_ptr<SdsDown::Handle> down) : ends_(ends), down_(std::move(down)) {}

  void OnRequest(discovery::DiscoveryRequest request) override {
    std::set<std::string> names(request.resource_names().begin(), request.resource_names().end());
    // An ACK or a NACK asks for nothing.
    if (!request.response_nonce().empty() && names == names_) return;
    names_ = std::move(names);
    watches_.clear();
    for (const std::string& name : names_) {
      watches_.push_back(ends_.secrets.Watch(name, [weak = weak_from_this()](absl::StatusOr<agent::SecretItem> item) {
        if (const auto self = weak.lock()) self->OnSecret(std::move(item));
      }));
    }
  }
  void OnGone() override { watches_.clear(); }

 private:
  void OnSecret(absl::StatusOr<agent::SecretItem> item) {
    if (!item.ok()) {
      // Envoy comes again, with its own back-off.
      return down_->Finish(grpc::Status(grpc::StatusCode::UNKNOWN, std::string(Message(item.status()))));
    }
    envoy::extensions::transport_sockets::tls::v3::Secret secret;
    secret.set_name(item->name);
    if (item->roots != nullptr) {
      secret.mutable_validation_context()->mutable_trusted_ca()->set_inline_bytes(item->roots->ToPem());
    } else {
      auto* certificate = secret.mutable_tls_certificate();
      certificate->mutable_certificate_chain()->set_inline_bytes(x509::ToPem(item->chain));
      certificate->mutable_private_key()->set_inline_bytes(item->key->ExportPrivateKeyPem(item->key_form));
    }
    auto response = std::make_shared<discovery::DiscoveryResponse>();
    response->set_type_url(kSecretTypeUrl);
    response->set_version_info(fmt::format("{}", ++version_));
    response->set_nonce(fmt::format("{}", version_));
    google::protobuf::Any* any = response->add_resources();
    any->set_type_url(kSecretTypeUrl);
    secret.SerializeToString(any->mutable_value());
    down_->Write(std::move(response));
  }

  Ends& ends_;
  const std::shared_ptr<SdsDown::Handle> down_;
  std::set<std::string> names_;
  std::vector<agent::SecretManager::Stream> watches_;
  uint64_t version_ = 0;
};

// Delta and single answers are not implemented, as in 1.18.2.
class AgentSecretService final : public Sds::WithCallbackMethod_StreamSecrets<Sds::Service> {
 public:
  explicit AgentSecretService(Ends& ends) : ends_(ends) {}
  grpc::ServerBidiReactor<discovery::DiscoveryRequest, discovery::DiscoveryResponse>* StreamSecrets(
      grpc::CallbackServerContext* /*context*/) override {
    auto handle = std::make_shared<SdsDown::Handle>();
    auto* reactor = new SdsDown(ends_.host, handle, std::make_shared<SecretStreamOfAgent>(ends_, handle));
    reactor->Begin();
    return reactor;
  }

 private:
  Ends& ends_;
};

// A listener at a socket's path, whose folder is made if need be. Null: it cannot be.
std::unique_ptr<grpc::Server> ListenAt(const std::string& path, grpc::Service& service) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::filesystem::remove(path, error);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  // Only this user's Envoy has business here.
  if (server != nullptr) chmod(path.c_str(), 0600);
  return server;
}

class UdsServerImpl final : public UdsServer {
 public:
  UdsServerImpl(RealHost& host, agent::XdsRelay& relay, agent::SecretManager& secrets, Options options)
      : ends_{host, relay, secrets, std::move(options), {}}, ads_(ends_), sds_(ends_) {
    ends_.tapped = [this](const discovery::DiscoveryResponse& response) {
      if (taps_.empty() || !taps_.front().sent || taps_.front().request.type_url != response.type_url()) return;
      EndTap(TapJson(response));
    };
  }
  ~UdsServerImpl() override {
    if (const auto open = ends_.open.lock()) open->Close(absl::UnavailableError("the agent ends"));
    const auto now = std::chrono::system_clock::now();
    for (auto* server : {&xds_server_, &sds_server_}) {
      if (*server != nullptr) (*server)->Shutdown(now);
    }
  }

  absl::Status Start() {
    for (const bool xds : {true, false}) {
      const std::string& path = xds ? ends_.options.xds_socket : ends_.options.sds_socket;
      auto& server = xds ? xds_server_ : sds_server_;
      server = xds ? ListenAt(path, ads_) : ListenAt(path, sds_);
      if (server == nullptr) return absl::UnavailableError(fmt::format("{}: cannot be listened on", path));
      if (!xds) {
        Say(ends_.options.log, agent::Level::kInfo, "sds",
            fmt::format("SDS server for workload certificates started, listening on \"{}\"", path));
      }
    }
    return absl::OkStatus();
  }
  void SendOwn(const agent::OwnRequest& request) override {
    const auto open = ends_.open.lock();
    if (open != nullptr && open->may_report_health()) open->SendOwn(request);
  }
  void Tap(agent::OwnRequest request, Tapped done) override {
    taps_.push_back({std::move(request), std::move(done), false});
    if (taps_.size() == 1) SendTap();
  }
  bool Reachable() const override {
    struct stat now {};
    return stat(ends_.options.sds_socket.c_str(), &now) == 0 && stat(ends_.options.xds_socket.c_str(), &now) == 0;
  }

 private:
  struct Question {
    agent::OwnRequest request;
    Tapped done;
    bool sent = false;
  };

  void SendTap() {
    const auto open = ends_.open.lock();
    if (open == nullptr || !open->connected()) return EndTap(absl::UnavailableError("proxy not connected to Istiod"));
    taps_.front().sent = true;
    open->Tap(taps_.front().request);
    tap_timer_ = ends_.host.RunAfter(kTapPatience, [this, alive = std::weak_ptr<char>(alive_)] {
      if (alive.expired()) return;
      Say(ends_.options.log, agent::Level::kInfo, "",
          fmt::format("timed out waiting for Istiod to respond to \"{}\"", taps_.front().request.type_url));
      EndTap(absl::DeadlineExceededError(""));
    });
  }
  void EndTap(absl::StatusOr<std::string> page) {
    ends_.host.Cancel(std::exchange(tap_timer_, kNoTimer));
    const Tapped done = std::move(taps_.front().done);
    taps_.pop_front();
    done(std::move(page));
    if (!taps_.empty()) SendTap();
  }

  Ends ends_;
  std::deque<Question> taps_;  // the first is under way
  TimerId tap_timer_ = kNoTimer;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  AdsService ads_;
  AgentSecretService sds_;
  std::unique_ptr<grpc::Server> xds_server_, sds_server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UdsServer>> UdsServer::Listen(RealHost& host, agent::XdsRelay& relay,
                                                             agent::SecretManager& secrets, Options options) {
  auto server = std::make_unique<UdsServerImpl>(host, relay, secrets, std::move(options));
  if (absl::Status status = server->Start(); !status.ok()) return status;
  return server;
}

}  // namespace wavetank::serve
