#include "sim/outside_clients.h"

#include <utility>

#include "core/x509/x509.h"
#include "sim/istiod_process.h"

namespace wavetank::sim {

using pilot::DeltaDiscoveryRequest;
using pilot::DeltaDiscoveryResponse;
using pilot::DiscoveryRequest;
using pilot::DiscoveryResponse;

class OutsideClients::Stream final : public pilot::AdsStream {
 public:
  Stream(OutsideClients& owner, uint64_t client, const IstiodProcess* server)
      : istiod(server), owner_(owner), client_(client) {}

  void Send(std::shared_ptr<const DiscoveryResponse> response) override {
    if (owner_.listener_ != nullptr) owner_.listener_->OnResponse(client_, std::move(response));
  }
  void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse> response) override {
    if (owner_.listener_ != nullptr) owner_.listener_->OnDeltaResponse(client_, std::move(response));
  }
  void Close(const absl::Status& status) override {
    if (owner_.listener_ != nullptr) owner_.listener_->OnClosed(client_, status);
    // Not from inside the server's call.
    owner_.host_.Post([&owner = owner_, client = client_, alive = std::weak_ptr<int>(owner_.alive_)] {
      if (!alive.expired()) owner.streams_.erase(client);
    });
  }

  const IstiodProcess* istiod;
  std::unique_ptr<pilot::AdsConnection> connection;

 private:
  OutsideClients& owner_;
  const uint64_t client_;
};

OutsideClients::OutsideClients(Host& host, IssueToken issue) : host_(host), issue_(std::move(issue)) {}
OutsideClients::~OutsideClients() = default;

absl::StatusOr<security::PeerCredentials> OutsideClients::CredentialsOf(const OutsidePeer& peer) const {
  security::PeerCredentials out;
  out.tls = peer.tls;
  out.cluster_id = peer.cluster_id;
  if (!peer.certificate_pem.empty()) {
    absl::StatusOr<x509::CertificateRef> leaf =
        x509::Certificate::FromPem(peer.certificate_pem, "the client's certificate");
    if (!leaf.ok()) return leaf.status();
    out.verified_chain.push_back(*std::move(leaf));
  }
  if (peer.token == OutsidePeer::Token::kUnknown) out.bearer_token = "unknown";  // no cluster issued it
  if (peer.token == OutsidePeer::Token::kIssued) {
    absl::StatusOr<std::string> token = issue_(peer.issuer, peer.claims);
    if (!token.ok()) return token.status();
    out.bearer_token = *std::move(token);
  }
  return out;
}

void OutsideClients::Refuse(uint64_t client, absl::Status status) {
  host_.Post([this, client, status = std::move(status), alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired() && listener_ != nullptr) listener_->OnClosed(client, status);
  });
}

absl::Status OutsideClients::Open(uint64_t client, const OutsidePeer& peer, const std::string& address,
                                  IstiodProcess* istiod) {
  if (streams_.contains(client)) return absl::InvalidArgumentError("a client's number is used twice");
  absl::StatusOr<security::PeerCredentials> credentials = CredentialsOf(peer);
  if (!credentials.ok()) return credentials.status();
  if (istiod == nullptr) {
    Refuse(client, absl::UnavailableError("no istiod runs in this cluster"));
    return absl::OkStatus();
  }
  auto stream = std::make_unique<Stream>(*this, client, istiod);
  stream->connection = istiod->istiod().OpenAds(*std::move(credentials), address, *stream);
  streams_[client] = std::move(stream);
  return absl::OkStatus();
}

void OutsideClients::Request(uint64_t client, const DiscoveryRequest& request) {
  const auto it = streams_.find(client);
  if (it != streams_.end()) it->second->connection->OnRequest(request);
}

void OutsideClients::DeltaRequest(uint64_t client, const DeltaDiscoveryRequest& request) {
  const auto it = streams_.find(client);
  if (it != streams_.end()) it->second->connection->OnDeltaRequest(request);
}

void OutsideClients::Close(uint64_t client) { streams_.erase(client); }

absl::Status OutsideClients::RequestCertificate(uint64_t client, const OutsidePeer& peer,
                                                const security::CertificateRequestMessage& request,
                                                IstiodProcess* istiod) {
  absl::StatusOr<security::PeerCredentials> credentials = CredentialsOf(peer);
  if (!credentials.ok()) return credentials.status();
  const auto answer = [this, client,
                       alive = std::weak_ptr<int>(alive_)](absl::StatusOr<std::vector<std::string>> chain) {
    if (!alive.expired() && listener_ != nullptr) listener_->OnCertificate(client, std::move(chain));
  };
  if (istiod == nullptr) {
    host_.Post([answer] { answer(absl::UnavailableError("no istiod runs in this cluster")); });
    return absl::OkStatus();
  }
  istiod->istiod().CreateCertificate(*std::move(credentials), request, answer);
  return absl::OkStatus();
}

void OutsideClients::IstiodGone(const IstiodProcess* istiod) {
  for (auto it = streams_.begin(); it != streams_.end();) {
    if (it->second->istiod != istiod) {
      ++it;
      continue;
    }
    const uint64_t client = it->first;
    it = streams_.erase(it);
    if (listener_ != nullptr) listener_->OnClosed(client, absl::UnavailableError("istiod has ended"));
  }
}

}  // namespace wavetank::sim
