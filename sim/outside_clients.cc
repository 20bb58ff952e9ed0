#include "sim/outside_clients.h"

#include <utility>

#include "core/x509/x509.h"
#include "sim/istiod_process.h"

namespace wavetank::sim {

using nlohmann::json;
using pilot::DeltaDiscoveryRequest;
using pilot::DeltaDiscoveryResponse;
using pilot::DiscoveryRequest;
using pilot::DiscoveryResponse;

namespace {

json ToJson(const kube::TokenClaims& claims, const std::string& issuer) {
  return {{"issuer", issuer},
          {"namespace", claims.ns},
          {"serviceAccount", claims.service_account},
          {"pod", claims.pod_name},
          {"podUid", claims.pod_uid},
          {"audiences", claims.audiences},
          {"issuedNs", claims.issued.time_since_epoch().count()},
          {"expiresNs", claims.expires.time_since_epoch().count()}};
}

json ToJson(const pilot::Node& node) {
  json out = {{"id", node.id},
              {"locality", {node.locality.region, node.locality.zone, node.locality.sub_zone}},
              {"metadata", node.metadata}};
  if (!node.cluster.empty()) out["cluster"] = node.cluster;
  return out;
}

// Fields that every request has; empty ones are left out, as most are.
template <class Request>
json Common(uint64_t client, const Request& request) {
  json out = {{"client", client}, {"type", std::string(pilot::TypeUrl(request.type))}};
  if (!request.response_nonce.empty()) out["nonce"] = request.response_nonce;
  if (request.node != nullptr) out["node"] = ToJson(*request.node);
  if (request.error_detail) {
    out["error"] = {{"code", request.error_detail->code}, {"message", request.error_detail->message}};
  }
  return out;
}

// Throws json::exception for a body of another form.
template <class Request>
absl::Status ReadCommon(const json& body, Request* out) {
  const std::optional<pilot::XdsType> type = pilot::ParseTypeUrl(body.at("type").get_ref<const std::string&>());
  if (!type) return absl::InvalidArgumentError("unknown type URL");
  out->type = *type;
  out->response_nonce = body.value("nonce", "");
  if (const auto it = body.find("node"); it != body.end()) {
    auto node = std::make_shared<pilot::Node>();
    node->id = it->at("id").get<std::string>();
    node->cluster = it->value("cluster", "");
    const json& locality = it->at("locality");
    node->locality = {locality.at(0).get<std::string>(), locality.at(1).get<std::string>(),
                      locality.at(2).get<std::string>()};
    node->metadata = it->at("metadata");
    out->node = std::move(node);
  }
  if (const auto it = body.find("error"); it != body.end()) {
    out->error_detail = pilot::ErrorDetail{it->at("code").get<int32_t>(), it->at("message").get<std::string>()};
  }
  return absl::OkStatus();
}

std::vector<std::string> Names(const json& body, const char* key) {
  const auto it = body.find(key);
  return it == body.end() ? std::vector<std::string>() : it->get<std::vector<std::string>>();
}

// Exceptions of the JSON library end here.
template <class Fn>
absl::Status Read(Fn fn) {
  try {
    return fn();
  } catch (const json::exception& e) {
    return absl::InvalidArgumentError(std::string("the input's body cannot be read: ") + e.what());
  }
}

}  // namespace

json OutsidePeer::ToJson() const {
  json out = {{"tls", tls}};
  if (!certificate_pem.empty()) out["certificate"] = certificate_pem;
  if (token == Token::kUnknown) out["token"] = "unknown";
  if (token == Token::kIssued) out["token"] = sim::ToJson(claims, issuer);
  if (!cluster_id.empty()) out["clusterId"] = cluster_id;
  return out;
}

json OutsideBody(uint64_t client, const DiscoveryRequest& request) {
  json out = Common(client, request);
  if (!request.version_info.empty()) out["version"] = request.version_info;
  if (!request.resource_names.empty()) out["names"] = request.resource_names;
  return out;
}

json OutsideBody(uint64_t client, const DeltaDiscoveryRequest& request) {
  json out = Common(client, request);
  if (!request.resource_names_subscribe.empty()) out["subscribe"] = request.resource_names_subscribe;
  if (!request.resource_names_unsubscribe.empty()) out["unsubscribe"] = request.resource_names_unsubscribe;
  if (!request.initial_resource_versions.empty()) out["versions"] = request.initial_resource_versions;
  return out;
}

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

absl::StatusOr<security::PeerCredentials> OutsideClients::ReadPeer(const json& body) const {
  const json& peer = body.at("peer");
  security::PeerCredentials out;
  out.tls = peer.at("tls").get<bool>();
  out.cluster_id = peer.value("clusterId", "");
  if (const auto it = peer.find("certificate"); it != peer.end()) {
    absl::StatusOr<x509::CertificateRef> leaf =
        x509::Certificate::FromPem(it->get_ref<const std::string&>(), "the client's certificate");
    if (!leaf.ok()) return leaf.status();
    out.verified_chain.push_back(*std::move(leaf));
  }
  if (const auto it = peer.find("token"); it != peer.end()) {
    out.bearer_token = "unknown";  // nobody issued it
    if (it->is_object()) {
      kube::TokenClaims claims;
      claims.ns = it->at("namespace").get<std::string>();
      claims.service_account = it->at("serviceAccount").get<std::string>();
      claims.pod_name = it->at("pod").get<std::string>();
      claims.pod_uid = it->at("podUid").get<std::string>();
      claims.audiences = it->at("audiences").get<std::vector<std::string>>();
      claims.issued = Time(Duration(it->at("issuedNs").get<int64_t>()));
      claims.expires = Time(Duration(it->at("expiresNs").get<int64_t>()));
      absl::StatusOr<std::string> token = issue_(it->at("issuer").get<std::string>(), claims);
      if (!token.ok()) return token.status();
      out.bearer_token = *std::move(token);
    }
  }
  return out;
}

void OutsideClients::Refuse(uint64_t client, absl::Status status) {
  host_.Post([this, client, status = std::move(status), alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired() && listener_ != nullptr) listener_->OnClosed(client, status);
  });
}

absl::Status OutsideClients::Open(const json& body, IstiodProcess* istiod) {
  return Read([&]() -> absl::Status {
    const auto client = body.at("client").get<uint64_t>();
    if (streams_.contains(client)) return absl::InvalidArgumentError("a client's number is used twice");
    absl::StatusOr<security::PeerCredentials> peer = ReadPeer(body);
    if (!peer.ok()) return peer.status();
    const auto address = body.at("address").get<std::string>();
    if (istiod == nullptr) {
      Refuse(client, absl::UnavailableError("no istiod runs in this cluster"));
      return absl::OkStatus();
    }
    auto stream = std::make_unique<Stream>(*this, client, istiod);
    stream->connection = istiod->istiod().OpenAds(*std::move(peer), address, *stream);
    streams_[client] = std::move(stream);
    return absl::OkStatus();
  });
}

absl::Status OutsideClients::Request(const json& body) {
  return Read([&]() -> absl::Status {
    DiscoveryRequest request;
    if (absl::Status status = ReadCommon(body, &request); !status.ok()) return status;
    request.version_info = body.value("version", "");
    request.resource_names = Names(body, "names");
    // A stream that has just been closed by its istiod is no error of the client's.
    const auto it = streams_.find(body.at("client").get<uint64_t>());
    if (it != streams_.end()) it->second->connection->OnRequest(std::move(request));
    return absl::OkStatus();
  });
}

absl::Status OutsideClients::DeltaRequest(const json& body) {
  return Read([&]() -> absl::Status {
    DeltaDiscoveryRequest request;
    if (absl::Status status = ReadCommon(body, &request); !status.ok()) return status;
    request.resource_names_subscribe = Names(body, "subscribe");
    request.resource_names_unsubscribe = Names(body, "unsubscribe");
    if (const auto it = body.find("versions"); it != body.end()) {
      request.initial_resource_versions = it->get<std::map<std::string, std::string>>();
    }
    const auto it = streams_.find(body.at("client").get<uint64_t>());
    if (it != streams_.end()) it->second->connection->OnDeltaRequest(std::move(request));
    return absl::OkStatus();
  });
}

absl::Status OutsideClients::Close(const json& body) {
  return Read([&] {
    streams_.erase(body.at("client").get<uint64_t>());
    return absl::OkStatus();
  });
}

absl::Status OutsideClients::RequestCertificate(const json& body, IstiodProcess* istiod) {
  return Read([&]() -> absl::Status {
    const auto client = body.at("client").get<uint64_t>();
    absl::StatusOr<security::PeerCredentials> peer = ReadPeer(body);
    if (!peer.ok()) return peer.status();
    security::CertificateRequestMessage request;
    request.csr = body.at("csr").get<std::string>();
    request.validity_seconds = body.at("validitySeconds").get<int64_t>();
    request.impersonated_identity = body.value("impersonatedIdentity", "");
    const auto answer = [this, client,
                         alive = std::weak_ptr<int>(alive_)](absl::StatusOr<std::vector<std::string>> chain) {
      if (!alive.expired() && listener_ != nullptr) listener_->OnCertificate(client, std::move(chain));
    };
    if (istiod == nullptr) {
      host_.Post([answer] { answer(absl::UnavailableError("no istiod runs in this cluster")); });
      return absl::OkStatus();
    }
    istiod->istiod().CreateCertificate(*std::move(peer), std::move(request), answer);
    return absl::OkStatus();
  });
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
