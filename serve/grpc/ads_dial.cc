#include "serve/grpc/ads_dial.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/xds/messages.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"
#include "serve/streams/ads_call.h"

namespace wavetank::serve {
namespace {

namespace discovery = envoy::service::discovery::v3;
using Ads = discovery::AggregatedDiscoveryService;

// Field 1 of Cluster, ClusterLoadAssignment, Listener, RouteConfiguration and Secret.
std::string NameOf(const std::string& resource) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(resource.data()),
                                            static_cast<int>(resource.size()));
  constexpr uint32_t kNameTag = 1 << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  for (uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    std::string name;
    uint32_t size = 0;
    if (tag == kNameTag) return in.ReadVarint32(&size) && in.ReadString(&name, static_cast<int>(size)) ? name : "";
    if (!WireFormatLite::SkipField(&in, tag)) break;
  }
  return {};
}

// Tells those who watch what proxies get (Commons::on_xds).
void Show(sim::Commons& commons, const std::string& proxy, const discovery::DiscoveryResponse& message) {
  const std::optional<pilot::XdsType> type = pilot::ParseTypeUrl(message.type_url());
  if (commons.on_xds.empty() || !type) return;
  pilot::DiscoveryResponse plain;
  plain.type = *type;
  plain.version_info = message.version_info();
  plain.nonce = message.nonce();
  std::vector<pilot::Resource> resources;
  for (const google::protobuf::Any& any : message.resources()) {
    resources.push_back({NameOf(any.value()), any.value()});
    plain.bytes += static_cast<int64_t>(any.value().size());
  }
  plain.resources = std::move(resources);
  commons.on_xds.Tell(proxy, plain);
}

void Show(sim::Commons& commons, const std::string& proxy, const discovery::DeltaDiscoveryResponse& message) {
  const std::optional<pilot::XdsType> type = pilot::ParseTypeUrl(message.type_url());
  if (commons.on_delta_xds.empty() || !type) return;
  pilot::DeltaDiscoveryResponse plain;
  plain.type = *type;
  plain.system_version_info = message.system_version_info();
  plain.nonce = message.nonce();
  std::vector<pilot::Resource> resources;
  for (const discovery::Resource& resource : message.resources()) {
    resources.push_back({resource.name(), resource.resource().value()});
  }
  plain.resources = std::move(resources);
  plain.removed_resources.assign(message.removed_resources().begin(), message.removed_resources().end());
  commons.on_delta_xds.Tell(proxy, plain);
}

void Deliver(envoysim::AdsStreamObserver& to, std::shared_ptr<const discovery::DiscoveryResponse> message) {
  to.envoysim::AdsStreamObserver::OnResponse(message);
}
void Deliver(envoysim::AdsStreamObserver& to, std::shared_ptr<const discovery::DeltaDiscoveryResponse> message) {
  to.OnDeltaResponse(std::move(message));
}

}  // namespace

// What is under way at gRPC, so that nothing is when its end is waited for; and the connections.
class AdsDial::Calls {
 public:
  std::shared_ptr<Ads::Stub> To(const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Ads::Stub>& stub = stubs_[address];
    if (stub == nullptr) {
      grpc::ChannelArguments arguments;
      arguments.SetMaxReceiveMessageSize(-1);
      // When to try again is the Envoys' own decision.
      arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
      arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
      arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
      stub = Ads::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    }
    return stub;
  }

  // False: it is the end, and no call may begin.
  bool Add(grpc::ClientContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!over_) contexts_.insert(context);
    return !over_;
  }
  void Remove(grpc::ClientContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts_.erase(context);
    gone_.notify_all();
  }
  void End() {
    std::unique_lock<std::mutex> lock(mutex_);
    over_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
    gone_.wait(lock, [this] { return contexts_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable gone_;
  std::map<std::string, std::shared_ptr<Ads::Stub>> stubs_;
  std::set<grpc::ClientContext*> contexts_;
  bool over_ = false;
};

// One stream. Its observer is told on the loop's thread.
template <class Request, class Response>
class AdsDial::Call final : public AdsCall<Request, Response> {
 public:
  Call(Loop& loop, std::shared_ptr<Calls> calls, std::string proxy, envoysim::AdsStreamObserver* observer)
      : loop_(loop), calls_(std::move(calls)), proxy_(std::move(proxy)), observer_(observer) {}

  void Start(std::shared_ptr<Ads::Stub> stub) {
    if (calls_->Add(&this->context())) this->Begin(std::move(stub));
  }
  // The Envoy has let go of it.
  void HangUp() {
    observer_ = nullptr;
    this->Cancel();
  }

 private:
  std::shared_ptr<Call> Self() { return std::static_pointer_cast<Call>(this->shared_from_this()); }

  void Received(std::shared_ptr<const Response> response) override {
    loop_.Post([self = Self(), message = std::move(response)](sim::World& world) mutable {
      if (self->observer_ == nullptr) return;
      Show(world.commons(), self->proxy_, *message);
      Deliver(*self->observer_, std::move(message));
    });
  }
  void Ended(const grpc::Status& status) override {
    loop_.Post([self = Self(), status](sim::World&) {
      envoysim::AdsStreamObserver* observer = std::exchange(self->observer_, nullptr);
      // gRPC counts its codes as absl does. A server that ends a stream in order has still gone.
      const auto code = static_cast<absl::StatusCode>(status.error_code());
      if (observer != nullptr) {
        observer->OnClose(status.ok() ? absl::UnavailableError("the control plane closed the stream")
                                      : absl::Status(code, status.error_message()));
      }
    });
    calls_->Remove(&this->context());
  }

  Loop& loop_;
  const std::shared_ptr<Calls> calls_;
  const std::string proxy_;
  envoysim::AdsStreamObserver* observer_;  // on the loop's thread
};

// An Envoy's end.
class AdsDial::Stream final : public envoysim::AdsStream {
 public:
  using Sotw = Call<discovery::DiscoveryRequest, discovery::DiscoveryResponse>;
  using Delta = Call<discovery::DeltaDiscoveryRequest, discovery::DeltaDiscoveryResponse>;

  explicit Stream(std::shared_ptr<Sotw> sotw) : sotw_(std::move(sotw)) {}
  explicit Stream(std::shared_ptr<Delta> delta) : delta_(std::move(delta)) {}
  ~Stream() override {
    if (sotw_ != nullptr) sotw_->HangUp();
    if (delta_ != nullptr) delta_->HangUp();
  }
  void Send(envoysim::DiscoveryRequest request) override {
    if (sotw_ != nullptr) sotw_->Write(std::move(request));
  }
  void SendDelta(envoysim::DeltaDiscoveryRequest request) override {
    if (delta_ != nullptr) delta_->Write(std::move(request));
  }

 private:
  std::shared_ptr<Sotw> sotw_;
  std::shared_ptr<Delta> delta_;
};

AdsDial::AdsDial(Loop& loop, AddressOf address_of)
    : loop_(loop), address_of_(std::move(address_of)), calls_(std::make_shared<Calls>()) {}

AdsDial::~AdsDial() { calls_->End(); }

std::unique_ptr<envoysim::AdsStream> AdsDial::Open(const std::string& cluster, const std::string& proxy,
                                                   envoysim::AdsTransport::Protocol protocol,
                                                   envoysim::AdsStreamObserver* observer) {
  const std::string address = address_of_(cluster, proxy);
  const std::shared_ptr<Ads::Stub> stub = calls_->To(address.empty() ? "127.0.0.1:1" : address);
  const auto start = [&](auto call) {
    call->Start(stub);
    return std::make_unique<Stream>(std::move(call));
  };
  if (protocol == envoysim::AdsTransport::Protocol::kDelta) {
    return start(std::make_shared<Stream::Delta>(loop_, calls_, proxy, observer));
  }
  return start(std::make_shared<Stream::Sotw>(loop_, calls_, proxy, observer));
}

}  // namespace wavetank::serve
