#include <grpcpp/impl/codegen/proto_buffer_reader.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/observers.h"
#include "core/base/status.h"
#include "core/debug/status.h"
#include "core/istiod/bootstrap_answer.h"
#include "core/xds/proto_adapter.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"
#include "fmt/format.h"
#include "serve/grpc/grpc_services.h"
#include "serve/grpc/grpc_stream.h"
#include "serve/grpc/response_bytes.h"
#include "serve/grpc/status_answer.h"

namespace wavetank::serve {
namespace {

namespace discovery = envoy::service::discovery::v3;

// Envoy's reasons for a refusal may quote a whole listener; a log needs their beginning.
constexpr size_t kMaxErrorMessage = 16 << 10;

int64_t NameCount(const pilot::DiscoveryRequest& r) { return static_cast<int64_t>(r.resource_names.size()); }
int64_t NameCount(const pilot::DeltaDiscoveryRequest& r) {
  return static_cast<int64_t>(r.resource_names_subscribe.size() + r.resource_names_unsubscribe.size() +
                              r.initial_resource_versions.size());
}

class Sink final : public StreamSink {
 public:
  explicit Sink(std::shared_ptr<Outbox> outbox) : outbox_(std::move(outbox)) {}
  void Response(const pilot::DiscoveryResponse& response) override { outbox_->Write(Encode(response)); }
  void DeltaResponse(const pilot::DeltaDiscoveryResponse& response) override { outbox_->Write(Encode(response)); }
  void Closed(const absl::Status& status) override { outbox_->Finish(ToGrpc(status)); }

 private:
  std::shared_ptr<Outbox> outbox_;
};

// One stream; `Message` is the protobuf of its requests.
template <class Message>
class AdsReactor final : public RawReactor {
 public:
  AdsReactor(const ServiceContext& to, grpc::CallbackServerContext* context)
      : frontend_(*to.frontend),
        cluster_(to.cluster),
        peer_(PeerOf(*context, to.tls)),
        outbox_(std::make_shared<Outbox>(this, context, frontend_)) {
    TransportPeer peer = peer_;
    absl::StatusOr<StreamPlaceRef> place = EnterStream(frontend_, peer, outbox_);
    if (!place.ok()) {
      outbox_->Finish(ToGrpc(place.status()));
      return;
    }
    place_ = *std::move(place);
    client_ = frontend_.Open(to.cluster, std::move(peer), std::make_shared<Sink>(outbox_));
    outbox_->Read(&in_);
  }

  void OnReadDone(bool ok) override {
    // The client has hung up, or said that it will ask nothing more, which for ADS is the same.
    if (!ok) return outbox_->Finish(grpc::Status::OK);
    place_->Heard();
    grpc::ProtoBufferReader reader(&in_);
    Message message;
    if (!message.ParseFromZeroCopyStream(&reader) || !reader.status().ok()) {
      return Refuse(absl::InvalidArgumentError("the request is no discovery request"));
    }
    in_.Clear();
    if constexpr (std::is_same_v<Message, discovery::DiscoveryRequest>) {
      if (debug::IsStatusType(message.type_url())) return AnswerAboutIstiod(message);
      if (message.type_url() == pilot::kBootstrapTypeUrl) return AnswerWithBootstrap(message);
    }
    auto request = pilot::FromProto(message);
    if (!request.ok()) return Refuse(request.status());
    const int64_t names = NameCount(*request);
    if (names > frontend_.limits().names) {
      return Refuse(absl::ResourceExhaustedError(
          fmt::format("a request names {} resources; at most {} are allowed", names, frontend_.limits().names)));
    }
    if (request->error_detail && request->error_detail->message.size() > kMaxErrorMessage) {
      std::string& text = request->error_detail->message;
      size_t end = kMaxErrorMessage;
      while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
      text.resize(end);
    }
    // `in_` lives as long as the reactor, and the outbox reads only as long as that.
    frontend_.Request(client_, *std::move(request), [outbox = outbox_, in = &in_] { outbox->Read(in); });
  }
  void OnWriteDone(bool ok) override { outbox_->Wrote(ok); }
  void OnCancel() override { outbox_->Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    outbox_->Detach();
    frontend_.Post(peer_, [followed = std::move(followed_)](sim::World&) { followed->clear(); });
    if (client_.number != 0) frontend_.Close(client_);
    delete this;
  }

 private:
  void AnswerAboutIstiod(const discovery::DiscoveryRequest& message) {
    // An ACK asks for nothing. istioctl's first question has a nonce as well, which nobody gave it (istio: pkg/adsc,
    // Send); istiod's answer does not look at it.
    if (message.response_nonce().starts_with(kStatusNonce)) return outbox_->Read(&in_);
    StatusQuestion question{
        cluster_, peer_, message.type_url(), {message.resource_names().begin(), message.resource_names().end()}};
    const auto write = [outbox = outbox_](const std::string& response) {
      const grpc::Slice slice(response);
      outbox->Write(grpc::ByteBuffer(&slice, 1));
    };
    AnswerBeside([followed = followed_, write, question = std::move(question)](sim::World& world) {
      // Once for each type, however often it is asked for; events come after the answer, as both are of one thread.
      if (!(*followed)[question.type_url].active())
        (*followed)[question.type_url] = FollowStatus(world, question, write);
      return AnswerStatus(world, question);
    });
  }

  // The Envoy that it is for has not started yet.
  void AnswerWithBootstrap(const discovery::DiscoveryRequest& message) {
    if (message.response_nonce().starts_with(kStatusNonce)) return outbox_->Read(&in_);
    if (!message.has_node()) return Refuse(absl::InvalidArgumentError("missing node information"));
    AnswerBeside([cluster = cluster_, node = pilot::FromProto(message.node())](sim::World& world) {
      return AnswerBootstrap(world, cluster, *node);
    });
  }

  // With a response that is made beside the world's streams, encoded.
  void AnswerBeside(std::function<absl::StatusOr<std::string>(sim::World&)> make) {
    frontend_.Post(peer_, [outbox = outbox_, in = &in_, make = std::move(make)](sim::World& world) {
      const absl::StatusOr<std::string> answer = make(world);
      if (!answer.ok()) return outbox->Finish(ToGrpc(answer.status()));
      const grpc::Slice slice(*answer);
      outbox->Write(grpc::ByteBuffer(&slice, 1));
      outbox->Read(in);
    });
  }

  void Refuse(const absl::Status& status) { outbox_->Finish(ToGrpc(status)); }

  Frontend& frontend_;
  const std::string cluster_;
  const TransportPeer peer_;
  std::shared_ptr<Outbox> outbox_;
  grpc::ByteBuffer in_;
  StreamPlaceRef place_;
  OutsideClient client_;
  // Events that its client is told of, by type; of the loop's thread.
  std::shared_ptr<std::map<std::string, Subscription>> followed_ =
      std::make_shared<std::map<std::string, Subscription>>();
};

using AdsBase = discovery::AggregatedDiscoveryService::WithRawCallbackMethod_StreamAggregatedResources<
    discovery::AggregatedDiscoveryService::WithRawCallbackMethod_DeltaAggregatedResources<
        discovery::AggregatedDiscoveryService::Service>>;

class AdsService final : public AdsBase {
 public:
  explicit AdsService(ServiceContext context) : context_(std::move(context)) {}

 private:
  RawReactor* StreamAggregatedResources(grpc::CallbackServerContext* context) override {
    return new AdsReactor<discovery::DiscoveryRequest>(context_, context);
  }
  RawReactor* DeltaAggregatedResources(grpc::CallbackServerContext* context) override {
    return new AdsReactor<discovery::DeltaDiscoveryRequest>(context_, context);
  }
  const ServiceContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdsService(const ServiceContext& context) {
  return std::make_unique<AdsService>(context);
}

}  // namespace wavetank::serve
