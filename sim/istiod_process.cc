#include "sim/istiod_process.h"

#include <algorithm>
#include <utility>

#include "core/security/istiod_ca.h"

namespace wavetank::sim {

using pilot::DeltaDiscoveryRequest;
using pilot::DeltaDiscoveryResponse;
using pilot::DiscoveryRequest;
using pilot::DiscoveryResponse;

// One ADS stream at the server. Everything it says travels over the channel to the client's sink.
class IstiodProcess::AdsSession final : public ChannelSession, public pilot::AdsStream {
 public:
  AdsSession(ChannelRef channel, std::weak_ptr<AdsSink> client)
      : channel_(std::move(channel)), client_(std::move(client)) {}

  void Send(std::shared_ptr<const DiscoveryResponse> response) override {
    if (const ChannelRef channel = channel_.lock()) {
      channel->Send(Channel::End::kServer, [client = client_, response = std::move(response)] {
        if (const auto sink = client.lock()) sink->OnResponse(response);
      });
    }
  }
  void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse> response) override {
    if (const ChannelRef channel = channel_.lock()) {
      channel->Send(Channel::End::kServer, [client = client_, response = std::move(response)] {
        if (const auto sink = client.lock()) sink->OnDeltaResponse(response);
      });
    }
  }
  void Close(const absl::Status& status) override {
    // The status is the stream's trailer; the client then closes the connection.
    if (const ChannelRef channel = channel_.lock()) {
      channel->Send(Channel::End::kServer, [client = client_, status] {
        if (const auto sink = client.lock()) sink->OnStreamClosed(status);
      });
    }
  }

  std::unique_ptr<pilot::AdsConnection> connection;

 private:
  std::weak_ptr<Channel> channel_;
  std::weak_ptr<AdsSink> client_;
};

IstiodProcess::IstiodProcess(Channels& channels, Host& host, WorkloadId workload,
                             pilot::IstiodSurroundings surroundings, pilot::IstiodOptions options,
                             const ConnectionAge& age)
    : host_(host),
      age_(age),
      ages_(age.seed, "connection age/" + options.name),
      istiod_(std::make_unique<pilot::Istiod>(std::move(surroundings), std::move(options))),
      grpc_(
          channels, host, workload, [this] { return Tls(); }, *this),
      webhook_(
          channels, host, workload, [this] { return Tls(); }, *this, ChannelServer::Speaks::kHttp) {}

absl::Status ClientCertificateRefused() {
  return absl::UnavailableError(
      "connection error: desc = \"error reading server preface: remote error: tls: bad certificate\"");
}

IstiodProcess::~IstiodProcess() = default;

void IstiodProcess::Start(std::function<void(bool)> ready) {
  istiod_->Start([this, weak = std::weak_ptr<int>(alive_), ready = std::move(ready)](const absl::Status& status) {
    if (weak.expired()) return;
    failure_ = status;
    ready(status.ok());
  });
}

std::shared_ptr<const envoysim::TlsServer> IstiodProcess::Tls() {
  const security::ServingCertificate* serving = istiod_->serving_certificate();
  if (serving == nullptr || serving->chain.empty()) return nullptr;
  if (tls_of_ != serving->chain.front().get()) {
    // Client certificates are verified when there is one; istiod asks for none.
    auto context = std::make_shared<envoysim::TlsContext>();
    context->alpn = {"h2"};
    auto tls = std::make_shared<envoysim::TlsServer>();
    tls->context = std::move(context);
    tls->certificate = envoysim::CertificateChain::Of(serving->chain);
    tls_ = std::move(tls);
    tls_of_ = serving->chain.front().get();
  }
  return tls_;
}

void IstiodProcess::OpenAds(const ChannelRef& channel, security::PeerCredentials peer, std::string address,
                            std::weak_ptr<AdsSink> client) {
  if (!istiod_->VerifyClient(peer.verified_chain).ok()) {
    return channel->Send(Channel::End::kServer, [client = std::move(client)] {
      if (const auto sink = client.lock(); sink != nullptr) sink->OnStreamClosed(ClientCertificateRefused());
    });
  }
  auto session = std::make_shared<AdsSession>(channel, std::move(client));
  channel->set_session(session);
  session->connection = istiod_->OpenAds(std::move(peer), std::move(address), *session);
  EndWithAge(channel);
}

// A connection of that age is told to go away (GOAWAY), which ends no stream; what has not ended when the grace is over
// is cut off, and a stream of ADS never ends by itself (grpc-go: internal/transport/http2_server.go, keepalive).
void IstiodProcess::EndWithAge(const ChannelRef& channel) {
  // The longest is none: what istiod calls infinite (istio: pkg/keepalive/options.go).
  if (age_.age <= Duration::zero() || age_.age == Duration::max()) return;
  const int64_t tenth = age_.age.count() / 10;
  const __int128 sum = static_cast<__int128>(age_.age.count()) + ages_.Between(-tenth, tenth) + age_.grace.count();
  const Duration left(static_cast<int64_t>(std::min<__int128>(sum, Duration::max().count())));
  host_.RunAfter(left, [weak = std::weak_ptr<Channel>(channel)] {
    if (const ChannelRef open = weak.lock(); open != nullptr && open->open()) open->Close(Channel::End::kServer);
  });
}

void IstiodProcess::AdsRequest(const ChannelRef& channel, DiscoveryRequest request) {
  const std::shared_ptr<ChannelSession> session = channel->session();
  if (session == nullptr) return;
  if (auto& connection = static_cast<AdsSession&>(*session).connection) connection->OnRequest(std::move(request));
}

void IstiodProcess::AdsDeltaRequest(const ChannelRef& channel, DeltaDiscoveryRequest request) {
  const std::shared_ptr<ChannelSession> session = channel->session();
  if (session == nullptr) return;
  if (auto& connection = static_cast<AdsSession&>(*session).connection) connection->OnDeltaRequest(std::move(request));
}

}  // namespace wavetank::sim
