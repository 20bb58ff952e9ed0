#include "sim/istiod_client.h"

#include <deque>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/xds/proto_adapter.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fmt/format.h"
#include "sim/istiod_process.h"
#include "sim/signing/istio_csr.h"

namespace wavetank::sim {
namespace {

using envoysim::AdsStreamObserver;

// One body for all streams that carry these resources.
std::shared_ptr<const envoysim::ResponseBody> BodyOf(const pilot::DiscoveryResponse& response) {
  if (const auto& known = response.resources.wire(); known != nullptr) {
    return std::static_pointer_cast<const envoysim::ResponseBody>(known);
  }
  auto body = std::make_shared<envoysim::ResponseBody>();
  body->type_url = pilot::TypeUrl(response.type);
  body->resources.reserve(response.resources.size());
  for (const pilot::Resource& resource : response.resources) body->resources.push_back(resource.bytes);
  body->bytes = static_cast<size_t>(response.bytes);
  if (!response.resources.empty()) response.resources.set_wire(body);
  return body;
}

// What grpc-go makes of the 404 of a server that knows no such path, as istiod's webhooks' does (grpc:
// internal/transport/http2_client.go, operateHeaders).
absl::Status NoGrpcThere() {
  return absl::UnimplementedError(
      "unexpected HTTP status code received from server: 404 (Not Found); transport: received unexpected content-type "
      "\"text/plain; charset=utf-8\"");
}

// The client's half of one stream. The observer is told nothing after Cancel().
class ClientStream final : public IstiodProcess::AdsSink, public std::enable_shared_from_this<ClientStream> {
 public:
  ClientStream(IstiodClient& client, AdsStreamObserver* observer) : client_(&client), observer_(observer) {}

  void Start() {
    Commons& commons = *client_->site().commons;
    commons.on_dial.Tell(client_->options().proxy);
    client_->Dial([weak = weak_from_this()](absl::StatusOr<ChannelRef> channel) {
      const auto self = weak.lock();
      if (self == nullptr || self->observer_ == nullptr) {
        if (channel.ok()) (*channel)->Close(Channel::End::kClient);
        return;
      }
      if (!channel.ok()) return self->OnStreamClosed(channel.status());
      self->Opened(*std::move(channel));
    });
  }

  void Send(pilot::DiscoveryRequest request) {
    Deliver([request = std::move(request)](const ChannelRef& channel) mutable {
      IstiodProcess::AdsRequest(channel, std::move(request));
    });
  }
  void SendDelta(pilot::DeltaDiscoveryRequest request) {
    Deliver([request = std::move(request)](const ChannelRef& channel) mutable {
      IstiodProcess::AdsDeltaRequest(channel, std::move(request));
    });
  }

  void Cancel() {
    observer_ = nullptr;
    if (channel_ != nullptr) std::exchange(channel_, nullptr)->Close(Channel::End::kClient);
  }

  void OnResponse(std::shared_ptr<const pilot::DiscoveryResponse> response) override {
    if (observer_ == nullptr) return;
    Commons& commons = *client_->site().commons;
    client_->set_ads_status(absl::OkStatus());
    commons.on_xds.Tell(client_->options().proxy, *response);
    observer_->OnResponse({BodyOf(*response), response->version_info, response->nonce});
  }
  void OnDeltaResponse(std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) override {
    if (observer_ == nullptr) return;
    Commons& commons = *client_->site().commons;
    client_->set_ads_status(absl::OkStatus());
    commons.on_delta_xds.Tell(client_->options().proxy, *response);
    auto message = std::make_shared<envoysim::DeltaDiscoveryResponse>();
    pilot::ToProto(*response, message.get());
    observer_->OnDeltaResponse(std::move(message));
  }
  void OnStreamClosed(const absl::Status& status) override {
    AdsStreamObserver* observer = std::exchange(observer_, nullptr);
    if (channel_ != nullptr) std::exchange(channel_, nullptr)->Close(Channel::End::kClient);
    if (observer == nullptr) return;
    client_->set_ads_status(status.ok() ? absl::UnavailableError("EOF") : status);
    observer->OnClose(status);
  }

 private:
  using Message = absl::AnyInvocable<void(const ChannelRef&)>;

  void Opened(ChannelRef channel) {
    channel_ = std::move(channel);
    channel_->OnClose(Channel::End::kClient, [weak = weak_from_this()](const absl::Status& status) {
      if (const auto self = weak.lock()) self->OnStreamClosed(status);
    });
    if (!channel_->speaks_grpc()) {
      channel_->Send(Channel::End::kClient, [channel = channel_, weak = weak_from_this()] {
        channel->Send(Channel::End::kServer, [weak] {
          if (const auto self = weak.lock()) self->OnStreamClosed(NoGrpcThere());
        });
      });
      return;
    }
    Deliver([peer = client_->options().credentials(), address = client_->options().address,
             weak = weak_from_this()](const ChannelRef& open) mutable {
      if (open->istiod() != nullptr) open->istiod()->OpenAds(open, std::move(peer), std::move(address), weak);
      if (open->csr() == nullptr) return;
      // istio-csr serves no configuration (grpc-go: server.go, handleStream).
      open->Send(Channel::End::kServer, [weak] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->OnStreamClosed(
            absl::UnimplementedError("unknown service envoy.service.discovery.v3.AggregatedDiscoveryService"));
      });
    });
    for (Message& message : std::exchange(waiting_, {})) Deliver(std::move(message));
  }

  template <typename Fn>  // a Message, or what becomes one if it has to wait
  void Deliver(Fn message) {
    if (channel_ == nullptr) {
      waiting_.push_back(std::move(message));
      return;
    }
    channel_->Send(Channel::End::kClient,
                   [channel = channel_, message = std::move(message)]() mutable { message(channel); });
  }

  IstiodClient* client_;
  AdsStreamObserver* observer_;
  ChannelRef channel_;
  std::deque<Message> waiting_;
};

}  // namespace

class AdsTransportToIstiod final : public envoysim::AdsTransport {
 public:
  explicit AdsTransportToIstiod(IstiodClient& client) : client_(client) {}

  std::unique_ptr<envoysim::AdsStream> Open(Protocol protocol, AdsStreamObserver* observer) override {
    Commons& commons = *client_.site().commons;
    client_.break_ads_ = nullptr;
    if (commons.ads_elsewhere != nullptr) {
      commons.on_dial.Tell(client_.options().proxy);
      return commons.ads_elsewhere->Open(client_.site().name, client_.options().proxy, protocol, observer);
    }
    auto stream = std::make_shared<ClientStream>(client_, observer);
    stream->Start();
    client_.break_ads_ = [weak = std::weak_ptr<ClientStream>(stream)](const absl::Status& why) {
      if (const auto open = weak.lock()) open->OnStreamClosed(why);
    };
    return std::make_unique<Stream>(client_, std::move(stream));
  }

 private:
  class Stream final : public envoysim::AdsStream {
   public:
    Stream(IstiodClient& client, std::shared_ptr<ClientStream> stream) : client_(client), stream_(std::move(stream)) {}
    ~Stream() override { stream_->Cancel(); }
    bool KnowsNode() const override { return true; }
    void Send(envoysim::DiscoveryRequest request) override {
      named_ |= request.has_node();
      if (auto plain = pilot::FromProto(request); plain.ok()) stream_->Send(*std::move(plain));
    }
    void SendPlain(Subscription request) override {
      const std::optional<pilot::XdsType> type = pilot::ParseTypeUrl(request.type_url);
      if (!type) return;
      pilot::DiscoveryRequest plain;
      plain.type = *type;
      plain.version_info = std::move(request.version);
      plain.response_nonce = std::move(request.nonce);
      plain.resource_names = std::move(request.names);
      if (!std::exchange(named_, true)) plain.node = client_.options().node;
      stream_->Send(std::move(plain));
    }
    void SendDelta(envoysim::DeltaDiscoveryRequest request) override {
      if (auto plain = pilot::FromProto(request); plain.ok()) stream_->SendDelta(*std::move(plain));
    }

   private:
    IstiodClient& client_;
    std::shared_ptr<ClientStream> stream_;
    bool named_ = false;
  };

  IstiodClient& client_;
};

namespace {

// `tls` null: in clear text.
void DialAs(const IstiodClient& client, ClusterSite& site, std::shared_ptr<const envoysim::TlsClient> tls,
            std::function<void(absl::StatusOr<ChannelRef>)> done) {
  Commons& commons = *site.commons;
  const IstiodClient::Options& options = client.options();
  const absl::Status kept = site.MayAskDns(options.workload, options.istiod.host);
  const absl::StatusOr<std::vector<IpAddress>> addresses =
      kept.ok() ? site.dns->Resolve(options.istiod.host, options.ns) : kept;
  if (!addresses.ok()) {
    // grpc-go dials names itself (its default scheme is passthrough).
    const bool none = absl::IsNotFound(addresses.status());
    const char* const why = none ? "no such host" : kept.ok() ? "server misbehaving" : "i/o timeout";
    const std::string words =
        fmt::format("connection error: desc = \"transport: Error while dialing: dial tcp: lookup {}: {}\"",
                    options.istiod.host, why);
    commons.host->Post([done, failed = absl::UnavailableError(words)] { done(failed); });
    return;
  }
  Channels::Dialling dialling;
  dialling.from = options.workload;
  dialling.host = options.host;
  dialling.to = {addresses->front(), options.istiod.port};
  dialling.sni = options.server_name;
  dialling.tls = std::move(tls);
  auto channel = std::make_shared<std::weak_ptr<Channel>>();
  *channel = commons.channels->Dial(std::move(dialling), [channel, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    if (ChannelRef open = channel->lock()) done(std::move(open));
  });
}

}  // namespace

void IstiodClient::Dial(std::function<void(absl::StatusOr<ChannelRef>)> done) {
  if (options_.xds_plaintext) return DialAs(*this, site_, nullptr, std::move(done));
  DialWithTls(std::move(done));
}

void IstiodClient::DialWithTls(std::function<void(absl::StatusOr<ChannelRef>)> done) {
  Commons& commons = *site_.commons;
  const auto fail = [&](absl::Status why) { commons.host->Post([done, why = std::move(why)] { done(why); }); };
  const absl::StatusOr<std::string> roots = options_.roots_pem();
  if (!roots.ok()) return fail(roots.status());
  absl::StatusOr<std::shared_ptr<const envoysim::TlsClient>> tls = site_.TlsTo(*roots, options_.server_name);
  if (!tls.ok()) return fail(tls.status());
  DialAs(*this, site_, *std::move(tls), std::move(done));
}

void IstiodClient::CreateCertificate(std::string csr_pem, Duration ttl,
                                     absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) {
  // Called once, whoever comes first: the answer, or the end of the channel.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)>;
  auto once = std::make_shared<Done>(std::move(done));
  const auto finish = [this, alive = std::weak_ptr<char>(alive_),
                       once](absl::StatusOr<std::vector<std::string>> answer) {
    Done call = std::exchange(*once, nullptr);
    if (call == nullptr) return;
    if (!alive.expired()) ca_status_ = answer.status();
    call(std::move(answer));
  };
  // On that port the agent speaks in clear text (istiod: pkg/istio-agent/agent.go, newSecretManager), where istiod
  // has registered no such service (pilot/pkg/bootstrap/server.go, startCA).
  constexpr uint16_t kPlaintext = 15010;
  const bool plaintext = options_.istiod.port == kPlaintext;
  const auto dialled_as = [this, alive = std::weak_ptr<char>(alive_), finish, plaintext, csr = std::move(csr_pem),
                           ttl](absl::StatusOr<ChannelRef> dialled) {
    if (!dialled.ok()) return finish(dialled.status());
    const ChannelRef channel = *std::move(dialled);
    // Its pod went while it dialled.
    if (alive.expired()) {
      channel->Close(Channel::End::kClient);
      return finish(absl::CancelledError("the pod is gone"));
    }
    channel->OnClose(Channel::End::kClient, finish);
    if (plaintext || !channel->speaks_grpc()) {
      channel->Send(Channel::End::kClient, [channel, finish] {
        channel->Send(Channel::End::kServer, [channel, finish] {
          channel->Close(Channel::End::kClient);
          finish(channel->speaks_grpc()
                     ? absl::UnimplementedError("unknown service istio.v1.auth.IstioCertificateService")
                     : NoGrpcThere());
        });
      });
      return;
    }
    security::CertificateRequestMessage request;
    request.csr = csr;
    request.validity_seconds = ttl / std::chrono::seconds(1);
    // ISTIO_META_CERT_SIGNER (istiod: security/pkg/nodeagent/caclient/providers/citadel/client.go).
    if (options_.node != nullptr) request.cert_signer = Text(options_.node->metadata, "CERT_SIGNER");
    channel->Send(Channel::End::kClient,
                  [channel, finish, peer = options_.credentials(), request = std::move(request)]() mutable {
                    const auto answer = [channel, finish](absl::StatusOr<std::vector<std::string>> chain) {
                      channel->Send(Channel::End::kServer, [channel, finish, chain = std::move(chain)]() mutable {
                        channel->Close(Channel::End::kClient);
                        finish(std::move(chain));
                      });
                    };
                    IstioCsr* const signer = channel->csr();
                    if (channel->istiod() == nullptr && signer == nullptr) return;
                    if (signer == nullptr ? !channel->istiod()->istiod().VerifyClient(peer.verified_chain).ok()
                                          : !signer->Believes(peer.verified_chain)) {
                      return channel->Send(Channel::End::kServer, [channel, finish] {
                        channel->Close(Channel::End::kClient);
                        finish(ClientCertificateRefused());
                      });
                    }
                    if (signer != nullptr)
                      return signer->CreateCertificate(std::move(peer), std::move(request), answer);
                    channel->istiod()->istiod().CreateCertificate(std::move(peer), std::move(request), answer);
                  });
  };
  if (plaintext) return DialAs(*this, site_, nullptr, dialled_as);
  DialWithTls(dialled_as);
}

std::unique_ptr<envoysim::AdsTransport> IstiodClient::NewAdsTransport() {
  return std::make_unique<AdsTransportToIstiod>(*this);
}

}  // namespace wavetank::sim
