#include "sim/inputs/kinds/outside.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

using nlohmann::json;

void VisitTime(FieldVisitor& visitor, std::string_view name, Time& time) {
  Duration since = time.time_since_epoch();
  visitor.Visit(name, Need::kRequired, since);
  time = Time(since);
}

void VisitToken(FieldVisitor& visitor, OutsidePeer& peer) {
  visitor.Visit("issuer", Need::kRequired, peer.issuer);
  visitor.Visit("namespace", Need::kRequired, peer.claims.ns);
  visitor.Visit("serviceAccount", Need::kRequired, peer.claims.service_account);
  visitor.Visit("pod", Need::kRequired, peer.claims.pod_name);
  visitor.Visit("podUid", Need::kRequired, peer.claims.pod_uid);
  visitor.Visit("audiences", Need::kRequired, peer.claims.audiences);
  VisitTime(visitor, "issuedNs", peer.claims.issued);
  VisitTime(visitor, "expiresNs", peer.claims.expires);
}

// `token` is the claims of a token that a cluster of this world issued, or "unknown".
void VisitPeer(FieldVisitor& visitor, OutsidePeer& peer) {
  using Token = OutsidePeer::Token;
  visitor.Visit("tls", Need::kRequired, peer.tls);
  visitor.Visit("certificate", Need::kSparse, peer.certificate_pem);
  visitor.Visit("clusterId", Need::kSparse, peer.cluster_id);
  json token;
  if (peer.token == Token::kUnknown) token = "unknown";
  if (peer.token == Token::kIssued) token = PrintFields([&](FieldVisitor& v) { VisitToken(v, peer); });
  visitor.Visit("token", Need::kSparse, token);
  if (!visitor.reading() || token.is_null()) return;
  peer.token = token == "unknown" ? Token::kUnknown : Token::kIssued;
  if (peer.token == Token::kUnknown) return;
  const absl::Status status = ReadFields("token", token, [&](FieldVisitor& v) { VisitToken(v, peer); });
  if (!status.ok()) visitor.Refuse("token", std::string("cannot be read: ") + std::string(Message(status)));
}

void VisitPeerOf(FieldVisitor& visitor, OutsidePeer& peer) {
  bool present = true;
  visitor.Mapping("peer", &present, [&](FieldVisitor& v) { VisitPeer(v, peer); });
  if (!present) visitor.Refuse("peer", "is missing");
}

void VisitNode(FieldVisitor& visitor, pilot::Node& node) {
  visitor.Visit("id", Need::kRequired, node.id);
  visitor.Visit("cluster", Need::kSparse, node.cluster);
  std::vector<std::string> locality;
  if (!visitor.reading()) locality = {node.locality.region, node.locality.zone, node.locality.sub_zone};
  visitor.Visit("locality", Need::kRequired, locality);
  if (locality.size() != 3) return visitor.Refuse("locality", "is not [region, zone, subzone]");
  node.locality = {locality[0], locality[1], locality[2]};
  visitor.Visit("metadata", Need::kRequired, node.metadata);
}

// What requests of both protocols have; what is empty is left out, as most is.
template <class Request>
void VisitCommon(FieldVisitor& visitor, uint64_t& client, Request& request) {
  visitor.Visit("client", Need::kRequired, client);
  std::string type(pilot::TypeUrl(request.type));
  visitor.Visit("type", Need::kRequired, type);
  const std::optional<pilot::XdsType> parsed = pilot::ParseTypeUrl(type);
  if (!parsed) return visitor.Refuse("type", "is an unknown type URL");
  request.type = *parsed;
  visitor.Visit("nonce", Need::kSparse, request.response_nonce);
  bool has_node = request.node != nullptr, has_error = request.error_detail.has_value();
  visitor.Mapping("node", &has_node, [&](FieldVisitor& v) {
    auto node =
        request.node == nullptr ? std::make_shared<pilot::Node>() : std::make_shared<pilot::Node>(*request.node);
    VisitNode(v, *node);
    if (v.reading()) request.node = std::move(node);
  });
  visitor.Mapping("error", &has_error, [&](FieldVisitor& v) {
    if (v.reading()) request.error_detail.emplace();
    int64_t code = request.error_detail->code;
    v.Visit("code", Need::kRequired, code);
    if (code < INT32_MIN || code > INT32_MAX) return v.Refuse("code", "is no code of gRPC");
    request.error_detail->code = static_cast<int32_t>(code);
    v.Visit("message", Need::kRequired, request.error_detail->message);
  });
}

}  // namespace

void XdsOpen::Fields(FieldVisitor& visitor) {
  visitor.Visit("client", Need::kRequired, client);
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("address", Need::kRequired, address);
  VisitPeerOf(visitor, peer);
}

absl::Status XdsOpen::Apply(InputTarget& target) const {
  return target.outside.Open(client, peer, address, target.world.IstiodOf(cluster));
}

void XdsRequest::Fields(FieldVisitor& visitor) {
  VisitCommon(visitor, client, request);
  visitor.Visit("version", Need::kSparse, request.version_info);
  std::vector<std::string> names;
  if (!visitor.reading()) names = request.resource_names.list();
  visitor.Visit("names", Need::kSparse, names);
  if (visitor.reading()) request.resource_names = std::move(names);
}

absl::Status XdsRequest::Apply(InputTarget& target) const {
  target.outside.Request(client, request);
  return absl::OkStatus();
}

void XdsDeltaRequest::Fields(FieldVisitor& visitor) {
  VisitCommon(visitor, client, request);
  visitor.Visit("subscribe", Need::kSparse, request.resource_names_subscribe);
  visitor.Visit("unsubscribe", Need::kSparse, request.resource_names_unsubscribe);
  visitor.Visit("versions", Need::kSparse, request.initial_resource_versions);
}

absl::Status XdsDeltaRequest::Apply(InputTarget& target) const {
  target.outside.DeltaRequest(client, request);
  return absl::OkStatus();
}

void XdsClose::Fields(FieldVisitor& visitor) { visitor.Visit("client", Need::kRequired, client); }

absl::Status XdsClose::Apply(InputTarget& target) const {
  target.outside.Close(client);
  return absl::OkStatus();
}

void CertificateRequest::Fields(FieldVisitor& visitor) {
  visitor.Visit("client", Need::kRequired, client);
  visitor.Visit("cluster", Need::kRequired, cluster);
  VisitPeerOf(visitor, peer);
  visitor.Visit("csr", Need::kRequired, request.csr);
  visitor.Visit("validitySeconds", Need::kRequired, request.validity_seconds);
  visitor.Visit("impersonatedIdentity", Need::kSparse, request.impersonated_identity);
  visitor.Visit("certSigner", Need::kSparse, request.cert_signer);
}

absl::Status CertificateRequest::Apply(InputTarget& target) const {
  return target.outside.RequestCertificate(client, peer, request, target.world.IstiodOf(cluster));
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterOutside(InputTable& table) {
  table.Add<inputs::XdsOpen>();
  table.Add<inputs::XdsRequest>();
  table.Add<inputs::XdsDeltaRequest>();
  table.Add<inputs::XdsClose>();
  table.Add<inputs::CertificateRequest>();
}
}  // namespace wavetank::sim
