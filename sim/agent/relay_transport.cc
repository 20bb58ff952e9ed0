#include "sim/agent/relay_transport.h"

#include <utility>

#include "core/agent/xds_relay.h"
#include "envoy/service/discovery/v3/discovery.pb.h"

namespace wavetank::sim {
namespace {

using envoysim::AdsStream;
using envoysim::AdsStreamObserver;
using envoysim::AdsTransport;

template <class Message>
void FillError(const agent::OwnRequest& from, Message& to) {
  if (!from.error) return;
  to.mutable_error_detail()->set_code(from.error->code);
  to.mutable_error_detail()->set_message(from.error->message);
}

}  // namespace

// Between one stream of the Envoy and one to istiod. Observers are never called from within Open() or Send(), so
// neither is this.
class RelayStream final : public AdsStream, public AdsStreamObserver {
 public:
  RelayStream(agent::XdsRelay& relay, AdsTransport& upstream, AdsTransport::Protocol protocol,
              AdsStreamObserver* observer, std::shared_ptr<OpenRelay> open)
      : relay_(relay),
        open_(std::move(open)),
        observer_(observer),
        delta_(protocol == AdsTransport::Protocol::kDelta),
        connection_(relay.Connect(false)),
        upstream_(upstream.Open(protocol, this)) {
    open_->stream_ = this;
  }
  ~RelayStream() override {
    if (open_->stream_ == this) open_->stream_ = nullptr;
  }

  bool KnowsNode() const override { return upstream_->KnowsNode(); }
  void Send(envoysim::DiscoveryRequest request) override {
    const std::string type = request.type_url();
    upstream_->Send(std::move(request));
    SendOwn(type);
  }
  void SendPlain(Subscription request) override {
    const std::string_view type = request.type_url;
    upstream_->SendPlain(std::move(request));
    SendOwn(type);
  }
  void SendDelta(envoysim::DeltaDiscoveryRequest request) override {
    const std::string type = request.type_url();
    upstream_->SendDelta(std::move(request));
    SendOwn(type);
  }

  void OnResponse(envoysim::SotwResponse response) override {
    const envoysim::ResponseBody& body = *response.body;
    std::string_view first;
    if (!body.resources.empty()) first = *body.resources[0];
    if (Forward(body.type_url, response.version, response.nonce, body.resources.empty() ? nullptr : &first)) {
      observer_->OnResponse(std::move(response));
    }
  }
  void OnDeltaResponse(std::shared_ptr<const envoysim::DeltaDiscoveryResponse> response) override {
    std::string_view first;
    if (response->resources_size() > 0) first = response->resources(0).resource().value();
    if (Forward(response->type_url(), response->system_version_info(), response->nonce(),
                response->resources_size() == 0 ? nullptr : &first)) {
      observer_->OnDeltaResponse(std::move(response));
    }
  }
  void OnClose(const absl::Status& status) override { observer_->OnClose(status); }

  void SendIfAsked(const agent::OwnRequest& own) {
    if (connection_->may_report_health()) SendOwn(own);
  }

 private:
  void SendOwn(std::string_view after) {
    for (const agent::OwnRequest& own : connection_->AfterDownstream(after)) SendOwn(own);
  }
  void SendOwn(const agent::OwnRequest& own) {
    if (delta_) {
      envoysim::DeltaDiscoveryRequest request;
      request.set_type_url(own.type_url);
      request.set_response_nonce(own.response_nonce);
      FillError(own, request);
      return upstream_->SendDelta(std::move(request));
    }
    envoysim::DiscoveryRequest request;
    request.set_type_url(own.type_url);
    request.set_version_info(own.version_info);
    request.set_response_nonce(own.response_nonce);
    FillError(own, request);
    upstream_->Send(std::move(request));
  }
  bool Forward(std::string_view type, std::string_view version, std::string_view nonce, const std::string_view* first) {
    const agent::XdsRelay::Answer answer = relay_.OnUpstream(type, version, nonce, first);
    if (answer.reply) SendOwn(*answer.reply);
    return answer.verdict == agent::Verdict::kForward;
  }

  agent::XdsRelay& relay_;
  const std::shared_ptr<OpenRelay> open_;
  AdsStreamObserver* observer_;
  const bool delta_;
  std::unique_ptr<agent::XdsRelay::Connection> connection_;
  std::unique_ptr<AdsStream> upstream_;
};

void OpenRelay::Send(const agent::OwnRequest& own) {
  if (stream_ != nullptr) stream_->SendIfAsked(own);
}

std::unique_ptr<AdsStream> RelayTransport::Open(Protocol protocol, AdsStreamObserver* observer) {
  return std::make_unique<RelayStream>(relay_, *upstream_, protocol, observer, open_);
}

}  // namespace wavetank::sim
