#include "fakes/envoy/access_log/access_log_expression.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "core/base/cel/cel_expression.h"
#include "core/base/status.h"
#include "core/x509/calendar.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/peer.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

using cel::CelExpression;
using cel::CelList;
using cel::CelMap;
using cel::CelNull;
using cel::CelText;
using cel::CelValue;

constexpr int64_t kMostSteps = 100'000;  // without macros an expression takes one for each of its words

// What Envoy has and nothing here knows. Their names are told.
constexpr std::string_view kNotSimulated[] = {
    "request.headers_bytes",
    "request.total_size",
    "response.headers_bytes",
    "response.total_size",
    "response.backend_latency",
    "connection.id",
    "connection.peer_certificate",
    "connection.transport_failure_reason",
    "upstream.peer_certificate",
    "upstream.locality",
    "upstream.cx_pool_ready_duration",
    "upstream.num_endpoints",
    "xds.node",
    "xds.cluster_metadata",
    "xds.route_metadata",
    "xds.virtual_host_metadata",
    "xds.upstream_host_metadata",
    "xds.upstream_host_locality_metadata",
    "xds.listener_metadata",
    "xds.listener_direction",
};
constexpr std::string_view kVariablesNotSimulated[] = {"filter_state.", "upstream_filter_state.", "node."};

bool IsSimulated(const std::string& attribute) {
  return std::find(std::begin(kNotSimulated), std::end(kNotSimulated), attribute) == std::end(kNotSimulated) &&
         std::none_of(std::begin(kVariablesNotSimulated), std::end(kVariablesNotSimulated),
                      [&](std::string_view variable) { return attribute.starts_with(variable); });
}

CelValue CelTextOrMissing(std::string_view text) { return text.empty() ? CelValue{} : CelText(text); }
CelValue CelAddress(const SocketAddress& a) { return a.empty() ? CelValue{} : CelText(a.ToString()); }
CelValue CelPort(const SocketAddress& a) { return a.empty() ? CelValue{} : CelValue{int64_t{a.port}}; }
CelValue CelOptional(std::optional<std::string_view> text) { return text ? CelText(*text) : CelValue{}; }

// A map whose fields a function knows.
class FieldMap final : public CelMap {
 public:
  using Find = CelValue (*)(std::string_view name, const AccessLogEntry& entry);
  FieldMap(Find find, const AccessLogEntry& entry) : find_(find), entry_(entry) {}
  CelValue Get(const CelValue& key) const override {
    const auto* const name = key.As<std::string>();
    return name == nullptr ? CelValue{} : find_(*name, entry_);
  }
  std::optional<int64_t> size() const override { return std::nullopt; }

 private:
  const Find find_;
  const AccessLogEntry& entry_;
};

CelValue MapOf(FieldMap::Find find, const AccessLogEntry& entry) {
  return {std::shared_ptr<const CelMap>(std::make_shared<FieldMap>(find, entry))};
}

CelValue RequestHeader(std::string_view name, const AccessLogEntry& entry) {
  std::string kept;
  return CelOptional(LoggedRequestHeader(entry, absl::AsciiStrToLower(std::string(name)), &kept));
}
CelValue ResponseHeader(std::string_view name, const AccessLogEntry& entry) {
  std::string kept;
  return CelOptional(LoggedResponseHeader(entry, absl::AsciiStrToLower(std::string(name)), &kept));
}
CelValue ResponseTrailer(std::string_view name, const AccessLogEntry& entry) {
  return CelOptional(FindHeaderLine(entry.response_trailers, absl::AsciiStrToLower(std::string(name))));
}

CelValue RequestSize(const AccessLogEntry& entry) {
  const CelValue length = RequestHeader("content-length", entry);
  if (const auto* text = length.As<std::string>()) {
    int64_t bytes = 0;
    return absl::SimpleAtoi(*text, &bytes) ? CelValue{bytes} : CelValue{};
  }
  return entry.bytes_received ? CelValue{static_cast<int64_t>(*entry.bytes_received)} : CelValue{};
}

CelValue RequestField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "headers") return MapOf(RequestHeader, entry);
  if (name == "time") {
    const Time at = entry.start + entry.clock_ahead;
    const auto rest = (at - std::chrono::floor<std::chrono::seconds>(at)).count();
    return {absl::FromUnixSeconds(x509::UnixSeconds(at)) + absl::Nanoseconds(rest)};
  }
  if (name == "duration") return {absl::Nanoseconds((entry.end - entry.start).count())};
  if (name == "size") return RequestSize(entry);
  if (entry.request == nullptr) return {};
  if (name == "path") return RequestHeader(":path", entry);
  if (name == "host") return RequestHeader(":authority", entry);
  if (name == "method") return RequestHeader(":method", entry);
  if (name == "scheme") return RequestHeader(":scheme", entry);
  if (name == "referer") return RequestHeader("referer", entry);
  if (name == "useragent") return RequestHeader("user-agent", entry);
  if (name == "id") return RequestHeader("x-request-id", entry);
  if (name == "protocol") return CelText(HttpProtocolName(entry.request->protocol));
  const std::string_view path = entry.request->path;
  const size_t question = path.find('?');
  if (name == "url_path") return CelText(path.substr(0, question));
  if (name != "query") return {};
  if (question == path.npos) return CelText("");
  const std::string_view query = path.substr(question + 1);
  return CelText(query.substr(0, query.find('#')));
}

// Of gRPC, or what the code of HTTP stands for.
CelValue GrpcStatus(const AccessLogEntry& entry) {
  for (const CelValue& said : {ResponseTrailer("grpc-status", entry), ResponseHeader("grpc-status", entry)}) {
    const auto* const text = said.As<std::string>();
    int64_t status = 0;
    if (text != nullptr && absl::SimpleAtoi(*text, &status)) return {status};
  }
  return entry.code == 0 ? CelValue{} : CelValue{int64_t{entry.code_as_grpc}};
}

CelValue ResponseField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "headers") return MapOf(ResponseHeader, entry);
  if (name == "trailers") return MapOf(ResponseTrailer, entry);
  if (name == "code") return entry.code != 0 ? CelValue{int64_t{entry.code}} : CelValue{};
  if (name == "code_details") return CelTextOrMissing(entry.details);
  if (name == "flags") return {static_cast<int64_t>(LegacyResponseFlags(entry.flags))};
  if (name == "grpc_status") return GrpcStatus(entry);
  if (name == "size") return entry.bytes_sent ? CelValue{static_cast<int64_t>(*entry.bytes_sent)} : CelValue{};
  return {};
}

// What a session's certificates say, of either side of the proxy. Envoy:
// source/extensions/filters/common/expr/context.cc, SslExtractorsValues: of several names the first
CelValue SessionField(std::string_view name, const LoggedSession& session) {
  constexpr std::pair<std::string_view, CertificatePart> kParts[] = {{"subject", CertificatePart::kSubject},
                                                                     {"uri_san", CertificatePart::kUris},
                                                                     {"dns_san", CertificatePart::kDnsNames}};
  if (name == "tls_version") return CelTextOrMissing(session.version);
  if (name == "sha256_peer_certificate_digest") {
    return CelTextOrMissing(PartOfCertificate(session.peer, CertificatePart::kSha256));
  }
  for (const auto& [part, which] : kParts) {
    if (!name.starts_with(part)) continue;
    const std::string_view whose = name.substr(part.size());
    if (whose != "_local_certificate" && whose != "_peer_certificate") continue;
    const std::string said = PartOfCertificate(whose == "_local_certificate" ? session.own : session.peer, which);
    // A session has a subject, if an empty one.
    if (which == CertificatePart::kSubject) return session.version.empty() ? CelValue{} : CelText(said);
    return CelTextOrMissing(said.substr(0, said.find(',')));
  }
  return {};
}

CelValue ConnectionField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "mtls") return {entry.client_certificate};
  if (name == "requested_server_name") return CelText(absl::AsciiStrToLower(std::string(entry.server_name)));
  if (name == "tls_version") return entry.tls ? CelText(entry.tls13 ? "TLSv1.3" : "TLSv1.2") : CelValue{};
  if (name == "uri_san_peer_certificate") return CelTextOrMissing(entry.client_uri);
  if (name == "uri_san_local_certificate") return CelTextOrMissing(entry.server_uri);
  if (name == "termination_details") return CelTextOrMissing(entry.termination);
  return SessionField(name, entry.session);
}

CelValue SourceField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "address") return CelAddress(entry.downstream_remote);
  return name == "port" ? CelPort(entry.downstream_remote) : CelValue{};
}
CelValue DestinationField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "address") return CelAddress(entry.downstream_local);
  return name == "port" ? CelPort(entry.downstream_local) : CelValue{};
}

CelValue UpstreamField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "address") return CelAddress(entry.upstream_host);
  if (name == "port") return CelPort(entry.upstream_host);
  if (name == "local_address") return CelAddress(entry.upstream_local);
  if (name == "request_attempt_count") return {uint64_t{entry.attempts}};
  if (name != "transport_failure_reason") return SessionField(name, entry.upstream_session);
  if (entry.attempts == 0) return {};
  return CelText(entry.transport_failure);
}

CelValue XdsField(std::string_view name, const AccessLogEntry& entry) {
  if (name == "cluster_name") return CelTextOrMissing(entry.cluster);
  // A route may have no name; where there is none there is nothing. Envoy: expr/context.cc, XDSWrapper
  const bool routed = !entry.virtual_host.empty() && (entry.flags & kNoRouteFound) == 0;
  if (name == "route_name") return entry.route.empty() && !routed ? CelValue{} : CelText(entry.route);
  if (name == "virtual_host_name") return CelTextOrMissing(entry.virtual_host);
  if (name == "filter_chain_name") return CelText(entry.filter_chain);
  return {};
}

// A map by text whose values are there.
class ValueMap final : public CelMap {
 public:
  std::map<std::string, CelValue, std::less<>> values;
  CelValue Get(const CelValue& key) const override {
    const auto* const name = key.As<std::string>();
    const auto it = name == nullptr ? values.end() : values.find(*name);
    return it == values.end() ? CelValue{} : it->second;
  }
  std::optional<int64_t> size() const override { return static_cast<int64_t>(values.size()); }
};

// Of google.protobuf.Value: its numbers are doubles.
CelValue CelOfJson(const nlohmann::json& in) {
  if (in.is_string()) return CelText(in.get_ref<const std::string&>());
  if (in.is_boolean()) return {in.get<bool>()};
  if (in.is_number()) return {in.get<double>()};
  if (in.is_array()) {
    auto list = std::make_shared<CelList>();
    for (const nlohmann::json& one : in) list->push_back(CelOfJson(one));
    return {std::shared_ptr<const CelList>(std::move(list))};
  }
  if (!in.is_object()) return {CelNull{}};
  auto map = std::make_shared<ValueMap>();
  for (const auto& [key, value] : in.items()) map->values.emplace(key, CelOfJson(value));
  return {std::shared_ptr<const CelMap>(std::move(map))};
}

CelValue MetadataField(std::string_view name, const AccessLogEntry& entry) {
  if (name != "filter_metadata") return {};
  std::map<std::string, std::shared_ptr<ValueMap>> filters;
  if (entry.notes != nullptr) {
    for (const MetadataNote& note : *entry.notes) {
      std::shared_ptr<ValueMap>& filter = filters[std::string(note.filter)];
      if (filter == nullptr) filter = std::make_shared<ValueMap>();
      filter->values[std::string(note.key)] = note.tree != nullptr ? CelOfJson(*note.tree) : CelText(note.text);
    }
  }
  auto out = std::make_shared<ValueMap>();
  for (auto& [filter, values] : filters) out->values[filter] = {std::shared_ptr<const CelMap>(std::move(values))};
  return {std::shared_ptr<const CelMap>(std::move(out))};
}

constexpr std::pair<std::string_view, FieldMap::Find> kVariables[] = {
    {"request", RequestField}, {"response", ResponseField},       {"connection", ConnectionField},
    {"source", SourceField},   {"destination", DestinationField}, {"upstream", UpstreamField},
    {"xds", XdsField},         {"metadata", MetadataField}};

// Whose proxy is at the other end, as it says itself; nothing: it does not.
// istio/proxy: extensions/common/node_info.fbs, FlatNode
CelValue PeerField(std::string_view name, const PeerInfo* peer) {
  if (peer == nullptr) return {};
  if (name == "namespace") return CelText(peer->ns);
  if (name == "workload_name") return CelText(peer->workload);
  if (name == "cluster_id") return CelText(peer->cluster);
  if (name != "labels") return {};
  auto labels = std::make_shared<ValueMap>();
  for (const auto& [key, value] : peer->labels) {
    auto pair = std::make_shared<ValueMap>();
    pair->values = {{"key", CelText(key)}, {"value", CelText(value)}};
    labels->values[key] = {std::shared_ptr<const CelMap>(std::move(pair))};
  }
  return {std::shared_ptr<const CelMap>(std::move(labels))};
}
// istio/proxy since 1.24: extensions/common/metadata_object.h, WorkloadMetadataObject
CelValue NamedPeerField(std::string_view name, const PeerInfo* peer) {
  if (peer == nullptr) return {};
  const std::pair<std::string_view, const std::string&> fields[] = {
      {"workload", peer->workload},      {"namespace", peer->ns}, {"cluster", peer->cluster},
      {"service", peer->canonical_name}, {"app", peer->app},      {"revision", peer->canonical_revision},
      {"version", peer->version}};
  for (const auto& [field, value] : fields) {
    if (field == name) return CelTextOrMissing(value);
  }
  return {};
}
template <CelValue Field(std::string_view, const PeerInfo*)>
CelValue UpstreamPeerField(std::string_view name, const AccessLogEntry& entry) {
  return Field(name, entry.upstream_peer_info);
}
template <CelValue Field(std::string_view, const PeerInfo*)>
CelValue DownstreamPeerField(std::string_view name, const AccessLogEntry& entry) {
  return Field(name, entry.downstream_peer_info);
}
constexpr std::pair<std::string_view, FieldMap::Find> kPeers[] = {{"upstream_peer", UpstreamPeerField<PeerField>},
                                                                  {"downstream_peer", DownstreamPeerField<PeerField>}};
constexpr std::pair<std::string_view, FieldMap::Find> kNamedPeers[] = {
    {"upstream_peer", UpstreamPeerField<NamedPeerField>}, {"downstream_peer", DownstreamPeerField<NamedPeerField>}};
// Of Istio's peers before 1.24, and what is not known of them.
constexpr std::string_view kOfPeersNotSimulated[] = {"name",          "owner",        "platform_metadata", "mesh_id",
                                                     "istio_version", "instance_ips", "app_containers"};

bool IsOfUnknownPeer(std::string_view attribute) {
  for (const auto& [variable, find] : kPeers) {
    if (!attribute.starts_with(variable) || attribute.size() <= variable.size() + 1) continue;
    const std::string_view field = attribute.substr(variable.size() + 1);
    return std::find(std::begin(kOfPeersNotSimulated), std::end(kOfPeersNotSimulated), field) !=
           std::end(kOfPeersNotSimulated);
  }
  return false;
}

}  // namespace

LogExpression::LogExpression(cel::CelExpression expression, bool blind, Use use)
    : expression_(std::make_unique<const cel::CelExpression>(std::move(expression))), blind_(blind), use_(use) {}
LogExpression::~LogExpression() = default;

bool LogExpression::Blind(const cel::CelExpression& expression, Use use, const Extensions& extensions) {
  bool blind = false;
  for (const std::string& attribute : expression.Reads()) {
    if (IsSimulated(attribute) && (use == Use::kFilter || !IsOfUnknownPeer(attribute))) continue;
    blind = true;
    extensions.NoteWithoutEffect(
        use == Use::kFilter ? "attribute of an access log's filter" : "attribute of a metric's expression", attribute);
  }
  return blind;
}

absl::StatusOr<std::shared_ptr<const LogExpression>> LogExpression::Make(std::string_view text,
                                                                         const Extensions& extensions) {
  absl::StatusOr<CelExpression> made = CelExpression::Make(text, cel::kEnvoyCel);
  if (absl::IsFailedPrecondition(made.status())) {
    return absl::InvalidArgumentError(fmt::format("failed to create an expression: {}", Message(made.status())));
  }
  if (!made.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("Not able to parse filter expression: INVALID_ARGUMENT: {}", Message(made.status())));
  }
  const bool blind = Blind(*made, Use::kFilter, extensions);
  return std::shared_ptr<const LogExpression>(new LogExpression(*std::move(made), blind, Use::kFilter));
}

absl::StatusOr<std::shared_ptr<const LogExpression>> LogExpression::MakeOfMetric(std::string_view text,
                                                                                 const Extensions& extensions) {
  constexpr uint32_t kEnvoyOfIstio124 = 32;
  absl::StatusOr<CelExpression> made = CelExpression::Make(text, cel::kIstioMetricsCel);
  if (absl::IsFailedPrecondition(made.status())) {
    return absl::FailedPreconditionError(fmt::format("failed to create an expression: {}", Message(made.status())));
  }
  if (!made.ok()) return made.status();
  const Use use = extensions.release().minor < kEnvoyOfIstio124 ? Use::kMetric : Use::kMetricOfPeersByName;
  const bool blind = Blind(*made, use, extensions);
  return std::shared_ptr<const LogExpression>(new LogExpression(*std::move(made), blind, use));
}

CelValue LogExpression::Evaluate(const AccessLogEntry& entry) const {
  int64_t budget = kMostSteps;
  return expression_->Evaluate(
      [&](std::string_view name) {
        for (const auto& [variable, find] : kVariables) {
          if (variable == name) return MapOf(find, entry);
        }
        if (use_ == Use::kFilter) return CelValue{};
        for (const auto& [variable, find] : use_ == Use::kMetric ? kPeers : kNamedPeers) {
          if (variable == name) return MapOf(find, entry);
        }
        return CelValue{};
      },
      &budget);
}

bool LogExpression::Holds(const AccessLogEntry& entry) const {
  if (blind_) return true;
  const CelValue value = Evaluate(entry);
  const bool* const holds = value.As<bool>();
  return holds != nullptr && *holds;
}

// Envoy: source/extensions/filters/common/expr/evaluator.cc, print
std::optional<std::string> LogExpression::Text(const AccessLogEntry& entry) const {
  const CelValue value = blind_ ? CelValue{} : Evaluate(entry);
  if (value.failed()) return std::nullopt;
  if (const auto* text = value.As<std::string>()) return *text;
  if (const auto* bytes = value.As<cel::CelBytes>()) return bytes->bytes;
  if (const auto* is = value.As<bool>()) return *is ? "true" : "false";
  if (const auto* number = value.As<int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.As<uint64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.As<double>()) return fmt::format("{:g}", *number);
  if (const auto* span = value.As<absl::Duration>()) return absl::FormatDuration(*span);
  if (const auto* time = value.As<absl::Time>()) return absl::FormatTime(*time, absl::UTCTimeZone());
  if (value.As<CelNull>() != nullptr) return "NULL";
  const bool list = value.As<std::shared_ptr<const CelList>>() != nullptr;
  return list ? "CelList value" : value.As<cel::CelType>() != nullptr ? "CelType value" : "CelMap value";
}

}  // namespace wavetank::envoysim
