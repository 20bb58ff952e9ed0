#include "fakes/envoy/access_log/access_log_format.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/base/text/token_text.h"
#include "core/x509/calendar.h"
#include "core/x509/x509.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/query_parameters.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"
#include "fmt/format.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

constexpr std::string_view kDefaultFormat =
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% "
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "
    "\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\"\n";

enum class LogCommand : uint8_t {
  kLiteral,
  kUnmodelled,
  kRequestHeader,
  kRequestHeaderWithoutQuery,
  kResponseHeader,
  kStartTime,
  kEmitTime,
  kProtocol,
  kResponseCode,
  kResponseFlags,
  kResponseCodeDetails,
  kConnectionId,
  kUpstreamConnectionId,
  kTerminationDetails,
  kTransportFailure,
  kBytesReceived,
  kBytesSent,
  kDuration,
  kRequestDuration,
  kResponseDuration,
  kResponseTxDuration,
  kAttempts,
  kUpstreamHost,
  kUpstreamCluster,
  kUpstreamClusterRaw,
  kUpstreamRemote,
  kUpstreamLocal,
  kDownstreamLocal,
  kDownstreamRemote,
  kDownstreamPeer,
  kServerName,
  kRouteName,
  kFilterChain,
  kHostname,
  kTlsVersion,
  kPeerUri,
  kLocalUri,
  kLogType,
  kDynamicMetadata,
  kTrailer,
  kGrpcStatus,
  kGrpcStatusNumber,
  kFlagsLong,
  kPath,
  kQueryParam,
  kLocalReplyBody,
  kTlsCipher,
  kCertificate,
  kUpstreamProtocol,
  kUpstreamTlsVersion,
  kUpstreamTlsCipher,
  kUpstreamName,
  kSessionId,
  kWireBytesReceived,  // of connections
  kWireBytesSent,
  kStreamId,
  kUniqueId,
  kZero,
  kNothing,
  kChain,
  kFilterState,
  kMetadata,
};

enum class LogPart : uint8_t { kWhole, kAddress, kPort };  // of a socket address
// Which certificate of a connection.
enum class LogParty : uint8_t { kClient, kOwn, kUpstream, kOwnUpstream };

struct KnownLogCommand {
  std::string_view name;
  LogCommand command;
  LogPart part = LogPart::kWhole;
  LogParty party = LogParty::kClient;
  CertificatePart certificate = CertificatePart::kSubject;
};

// Envoy: stream_info_formatter.cc, getKnownStreamInfoFormatterProviders; http_specific_formatter.cc, getKnownFormatters
constexpr KnownLogCommand kLogCommands[] = {
    {"REQ", LogCommand::kRequestHeader},
    {"REQ_WITHOUT_QUERY", LogCommand::kRequestHeaderWithoutQuery},
    {"RESP", LogCommand::kResponseHeader},
    {"START_TIME", LogCommand::kStartTime},
    {"EMIT_TIME", LogCommand::kEmitTime},
    {"PROTOCOL", LogCommand::kProtocol},
    {"RESPONSE_CODE", LogCommand::kResponseCode},
    {"RESPONSE_FLAGS", LogCommand::kResponseFlags},
    {"RESPONSE_CODE_DETAILS", LogCommand::kResponseCodeDetails},
    {"CONNECTION_TERMINATION_DETAILS", LogCommand::kTerminationDetails},
    {"UPSTREAM_TRANSPORT_FAILURE_REASON", LogCommand::kTransportFailure},
    {"BYTES_RECEIVED", LogCommand::kBytesReceived},
    {"BYTES_SENT", LogCommand::kBytesSent},
    {"CONNECTION_ID", LogCommand::kConnectionId},
    {"UPSTREAM_CONNECTION_ID", LogCommand::kUpstreamConnectionId},
    {"DURATION", LogCommand::kDuration},
    {"REQUEST_DURATION", LogCommand::kRequestDuration},
    {"RESPONSE_DURATION", LogCommand::kResponseDuration},
    {"RESPONSE_TX_DURATION", LogCommand::kResponseTxDuration},
    {"UPSTREAM_REQUEST_ATTEMPT_COUNT", LogCommand::kAttempts},
    {"UPSTREAM_HOST", LogCommand::kUpstreamHost},
    {"UPSTREAM_CLUSTER", LogCommand::kUpstreamCluster},
    {"UPSTREAM_CLUSTER_RAW", LogCommand::kUpstreamClusterRaw},
    {"UPSTREAM_REMOTE_ADDRESS", LogCommand::kUpstreamRemote},
    {"UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", LogCommand::kUpstreamRemote, LogPart::kAddress},
    {"UPSTREAM_REMOTE_PORT", LogCommand::kUpstreamRemote, LogPart::kPort},
    {"UPSTREAM_LOCAL_ADDRESS", LogCommand::kUpstreamLocal},
    {"UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", LogCommand::kUpstreamLocal, LogPart::kAddress},
    {"UPSTREAM_LOCAL_PORT", LogCommand::kUpstreamLocal, LogPart::kPort},
    {"DOWNSTREAM_LOCAL_ADDRESS", LogCommand::kDownstreamLocal},
    {"DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", LogCommand::kDownstreamLocal, LogPart::kAddress},
    {"DOWNSTREAM_LOCAL_PORT", LogCommand::kDownstreamLocal, LogPart::kPort},
    {"DOWNSTREAM_REMOTE_ADDRESS", LogCommand::kDownstreamRemote},
    {"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", LogCommand::kDownstreamRemote, LogPart::kAddress},
    {"DOWNSTREAM_REMOTE_PORT", LogCommand::kDownstreamRemote, LogPart::kPort},
    {"DOWNSTREAM_DIRECT_REMOTE_ADDRESS", LogCommand::kDownstreamPeer},
    {"DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT", LogCommand::kDownstreamPeer, LogPart::kAddress},
    {"DOWNSTREAM_DIRECT_REMOTE_PORT", LogCommand::kDownstreamPeer, LogPart::kPort},
    {"REQUESTED_SERVER_NAME", LogCommand::kServerName},
    {"ROUTE_NAME", LogCommand::kRouteName},
    {"FILTER_CHAIN_NAME", LogCommand::kFilterChain},
    {"HOSTNAME", LogCommand::kHostname},
    {"DOWNSTREAM_TLS_VERSION", LogCommand::kTlsVersion},
    {"DOWNSTREAM_PEER_URI_SAN", LogCommand::kPeerUri},
    {"DOWNSTREAM_LOCAL_URI_SAN", LogCommand::kLocalUri},
    {"ACCESS_LOG_TYPE", LogCommand::kLogType},
    {"DYNAMIC_METADATA", LogCommand::kDynamicMetadata},
    {"TRAILER", LogCommand::kTrailer},
    {"GRPC_STATUS", LogCommand::kGrpcStatus},
    {"GRPC_STATUS_NUMBER", LogCommand::kGrpcStatusNumber},
    {"RESPONSE_FLAGS_LONG", LogCommand::kFlagsLong},
    {"PATH", LogCommand::kPath},
    {"QUERY_PARAM", LogCommand::kQueryParam},
    {"LOCAL_REPLY_BODY", LogCommand::kLocalReplyBody},
    {"DOWNSTREAM_TLS_CIPHER", LogCommand::kTlsCipher},
    {"UPSTREAM_PROTOCOL", LogCommand::kUpstreamProtocol},
    {"UPSTREAM_TLS_VERSION", LogCommand::kUpstreamTlsVersion},
    {"UPSTREAM_TLS_CIPHER", LogCommand::kUpstreamTlsCipher},
    {"UPSTREAM_HOST_NAME", LogCommand::kUpstreamName},
    {"UPSTREAM_HOST_NAME_WITHOUT_PORT", LogCommand::kUpstreamName, LogPart::kAddress},
    // Of a downstream connection what comes in is what goes on upstream, and the other way round.
    {"DOWNSTREAM_WIRE_BYTES_RECEIVED", LogCommand::kWireBytesReceived},
    {"UPSTREAM_WIRE_BYTES_SENT", LogCommand::kWireBytesReceived},
    {"DOWNSTREAM_WIRE_BYTES_SENT", LogCommand::kWireBytesSent},
    {"UPSTREAM_WIRE_BYTES_RECEIVED", LogCommand::kWireBytesSent},
    {"STREAM_ID", LogCommand::kStreamId},
    {"UNIQUE_ID", LogCommand::kUniqueId},
    {"START_TIME_LOCAL", LogCommand::kStartTime},  // containers know no other zone than UTC
    {"BYTES_RETRANSMITTED", LogCommand::kZero},    // QUIC's alone
    {"PACKETS_RETRANSMITTED", LogCommand::kZero},
    {"ROUNDTRIP_DURATION", LogCommand::kNothing},    // QUIC's alone
    {"VIRTUAL_CLUSTER_NAME", LogCommand::kNothing},  // Istio writes none
    {"TLS_JA3_FINGERPRINT", LogCommand::kNothing},   // unless an inspector takes them, which is noted
    {"TLS_JA4_FINGERPRINT", LogCommand::kNothing},
    {"FILTER_STATE", LogCommand::kFilterState},
    {"METADATA", LogCommand::kMetadata},
    {"CLUSTER_METADATA", LogCommand::kMetadata},
    {"UPSTREAM_METADATA", LogCommand::kMetadata},
    {"DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256", LogCommand::kChain, {}, LogParty::kClient, CertificatePart::kSha256},
    {"DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1", LogCommand::kChain, {}, LogParty::kClient, CertificatePart::kSha1},
    {"DOWNSTREAM_PEER_CHAIN_SERIALS", LogCommand::kChain, {}, LogParty::kClient, CertificatePart::kSerial},
    {"DOWNSTREAM_PEER_CERT", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kPem},
    {"UPSTREAM_PEER_CERT", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kPem},
    {"DOWNSTREAM_PEER_IP_SAN", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kIpAddresses},
    {"DOWNSTREAM_LOCAL_IP_SAN", LogCommand::kCertificate, {}, LogParty::kOwn, CertificatePart::kIpAddresses},
    {"DOWNSTREAM_TLS_SESSION_ID", LogCommand::kSessionId, {}, LogParty::kClient},
    {"UPSTREAM_TLS_SESSION_ID", LogCommand::kSessionId, {}, LogParty::kUpstream},
    {"DOWNSTREAM_PEER_SUBJECT", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kSubject},
    {"DOWNSTREAM_PEER_ISSUER", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kIssuer},
    {"DOWNSTREAM_PEER_SERIAL", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kSerial},
    {"DOWNSTREAM_PEER_DNS_SAN", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kDnsNames},
    {"DOWNSTREAM_PEER_FINGERPRINT_256", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kSha256},
    {"DOWNSTREAM_PEER_FINGERPRINT_1", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kSha1},
    {"DOWNSTREAM_PEER_CERT_V_START", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kBegins},
    {"DOWNSTREAM_PEER_CERT_V_END", LogCommand::kCertificate, {}, LogParty::kClient, CertificatePart::kEnds},
    {"DOWNSTREAM_LOCAL_SUBJECT", LogCommand::kCertificate, {}, LogParty::kOwn, CertificatePart::kSubject},
    {"DOWNSTREAM_LOCAL_DNS_SAN", LogCommand::kCertificate, {}, LogParty::kOwn, CertificatePart::kDnsNames},
    {"UPSTREAM_PEER_SUBJECT", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kSubject},
    {"UPSTREAM_PEER_ISSUER", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kIssuer},
    {"UPSTREAM_PEER_URI_SAN", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kUris},
    {"UPSTREAM_PEER_DNS_SAN", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kDnsNames},
    {"UPSTREAM_PEER_CERT_V_START", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kBegins},
    {"UPSTREAM_PEER_CERT_V_END", LogCommand::kCertificate, {}, LogParty::kUpstream, CertificatePart::kEnds},
    {"UPSTREAM_LOCAL_URI_SAN", LogCommand::kCertificate, {}, LogParty::kOwnUpstream, CertificatePart::kUris},
    {"UPSTREAM_LOCAL_DNS_SAN", LogCommand::kCertificate, {}, LogParty::kOwnUpstream, CertificatePart::kDnsNames},
};

// That Envoy has and the simulation has nothing to say about.
constexpr std::string_view kUnmodelledLogCommands[] = {
    "COMMON_DURATION",
    "CUSTOM_FLAGS",
    "DOWNSTREAM_DETECTED_CLOSE_TYPE",
    "DOWNSTREAM_HEADER_BYTES_RECEIVED",
    "DOWNSTREAM_HEADER_BYTES_SENT",
    "DOWNSTREAM_LOCAL_CLOSE_REASON",
    "DOWNSTREAM_LOCAL_EMAIL_SAN",
    "DOWNSTREAM_LOCAL_OTHERNAME_SAN",
    "DOWNSTREAM_PEER_EMAIL_SAN",
    "DOWNSTREAM_PEER_OTHERNAME_SAN",
    "DOWNSTREAM_TRANSPORT_FAILURE_REASON",
    "ENVIRONMENT",
    "REQUEST_HEADERS_BYTES",
    "REQUEST_TX_DURATION",
    "RESPONSE_HEADERS_BYTES",
    "RESPONSE_TRAILERS_BYTES",
    "TRACE_ID",
    "UPSTREAM_CONNECTION_POOL_READY_DURATION",
    "UPSTREAM_DETECTED_CLOSE_TYPE",
    "UPSTREAM_FILTER_STATE",
    "UPSTREAM_HEADER_BYTES_RECEIVED",
    "UPSTREAM_HEADER_BYTES_SENT",
    "UPSTREAM_LOCAL_CLOSE_REASON",
};

constexpr std::string_view kPeerPrincipal = "io.istio.peer_principal", kLocalPrincipal = "io.istio.local_principal";

// Whose values are secrets as a whole.
constexpr std::string_view kSecretHeaders[] = {"authorization", "cookie", "proxy-authorization", "set-cookie"};
constexpr std::string_view kMask = "redacted";

struct LogOperator {
  LogCommand command = LogCommand::kLiteral;
  LogPart part = LogPart::kWhole;
  LogParty party = LogParty::kClient;
  CertificatePart certificate = CertificatePart::kSubject;
  std::string text;               // a literal, a header, a time format, a metadata namespace
  std::string other;              // the header in its absence
  std::vector<std::string> path;  // in dynamic metadata
  std::optional<size_t> max_length;
};
using LogOperators = std::vector<LogOperator>;

// What an operator has to say. Numbers stay numbers in JSON.
struct LogValue {
  enum class Kind : uint8_t { kNone, kText, kNumber, kJson };
  Kind kind = Kind::kNone;
  std::string_view text;
};

LogValue LogText(std::string_view text) { return {text.empty() ? LogValue::Kind::kNone : LogValue::Kind::kText, text}; }

LogValue LogNumber(uint64_t number, std::string* kept) {
  *kept = std::to_string(number);
  return {LogValue::Kind::kNumber, *kept};
}

LogValue LogMillis(Duration d, std::string* kept) {
  return LogNumber(static_cast<uint64_t>(std::max<int64_t>(d.count() / 1'000'000, 0)), kept);
}

LogValue LogAddress(const SocketAddress& address, LogPart part, std::string* kept) {
  if (address.empty()) return {};
  if (part == LogPart::kPort) return LogNumber(address.port, kept);
  *kept = part == LogPart::kWhole ? address.ToString() : address.ip.ToString();
  return {LogValue::Kind::kText, *kept};
}

LogValue LogMetadata(const LogOperator& op, const AccessLogEntry& entry, std::string* kept) {
  if (entry.notes == nullptr) return {};
  const auto note = std::find_if(entry.notes->rbegin(), entry.notes->rend(), [&](const MetadataNote& n) {
    return n.filter == op.text && (op.path.empty() || n.key == op.path.front());
  });
  if (note == entry.notes->rend() || op.path.empty()) return {};
  if (note->tree == nullptr) return op.path.size() == 1 ? LogText(note->text) : LogValue{};
  const nlohmann::json* at = note->tree.get();
  for (size_t i = 1; i < op.path.size(); ++i) {
    if (!at->is_object()) return {};
    const auto next = at->find(op.path[i]);
    if (next == at->end()) return {};
    at = &*next;
  }
  if (at->is_string()) return LogText(*kept = at->get<std::string>());
  *kept = JsonText(*at);
  return {LogValue::Kind::kJson, *kept};
}

// CANCELLED of Canceled, INVALID_ARGUMENT of InvalidArgument.
std::string InCapitals(std::string_view camel) {
  if (camel == "OK") return "OK";
  if (camel == "Canceled") return "CANCELLED";
  std::string out;
  for (const char c : camel) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !out.empty()) out += '_';
    out += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  return out;
}

// Of gRPC's calls alone: their trailers say it, else their headers, else the HTTP code stands for one.
// Envoy: source/common/grpc/common.cc, getGrpcStatus; source/common/formatter/http_specific_formatter.cc,
// GrpcStatusFormatter
LogValue LogGrpcStatus(const LogOperator& op, const AccessLogEntry& entry, std::string* kept) {
  if (!entry.grpc) return {};
  std::optional<std::string_view> said;
  for (const std::string_view lines : {entry.response_trailers, entry.response_headers}) {
    if (const auto value = FindHeaderLine(lines, "grpc-status"); !said && value && !value->empty()) said = value;
  }
  uint64_t status = entry.code_as_grpc;
  if (said && !absl::SimpleAtoi(absl::string_view(said->data(), said->size()), &status)) return LogText("-1");
  const std::string_view name = GrpcStatusName(static_cast<uint16_t>(std::min<uint64_t>(status, kNoGrpcStatus)));
  if (op.command == LogCommand::kGrpcStatusNumber || op.text == "NUMBER" || name.empty())
    return LogNumber(status, kept);
  return LogText(*kept = op.text == "SNAKE_STRING" ? InCapitals(name) : std::string(name));
}

LogValue LogHeader(const LogOperator& op, const AccessLogEntry& entry, bool request, std::string* kept) {
  const auto find = [&](std::string_view name) -> std::optional<std::string_view> {
    if (name.empty()) return std::nullopt;
    const auto value = op.command == LogCommand::kTrailer ? FindHeaderLine(entry.response_trailers, name)
                       : request                          ? LoggedRequestHeader(entry, name, kept)
                                                          : LoggedResponseHeader(entry, name, kept);
    const bool secret =
        std::find(std::begin(kSecretHeaders), std::end(kSecretHeaders), name) != std::end(kSecretHeaders);
    return value && secret ? kMask : value;
  };
  std::optional<std::string_view> value = find(op.text);
  if (!value) value = find(op.other);
  if (!value) return {};
  if (op.command == LogCommand::kRequestHeaderWithoutQuery) value = value->substr(0, value->find('?'));
  return {LogValue::Kind::kText, *value};
}

// %PATH(X:Y)%: with the query or without it (NQ); as it came if it was rewritten (ORIG_OR_PATH), that alone (ORIG), as
// it is (PATH). Envoy: source/common/formatter/http_specific_formatter.cc, PathFormatter
LogValue LogPath(const LogOperator& op, const AccessLogEntry& entry) {
  if (entry.request == nullptr) return {};
  std::optional<std::string_view> path = FindHeader(*entry.request, "x-envoy-original-path");
  if (op.other == "PATH" || (!path && op.other != "ORIG")) path = entry.request->path;
  if (!path) return {};
  return LogText(op.text == "NQ" ? path->substr(0, path->find('?')) : *path);
}

std::string RequestIdText(uint64_t id) {
  const uint64_t a = Mix64(id), b = Mix64(a);
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, a >> 16 & 0xffff, a & 0xfff,
                     (b >> 48 & 0x3fff) | 0x8000, b & 0xffffffffffff);
}

// Who istio_authn found at either end. istio/proxy: source/extensions/filters/network/istio_authn/config.cc
LogValue LogPrincipal(const LogOperator& op, const AccessLogEntry& entry, std::string* kept) {
  constexpr std::string_view kSpiffe = "spiffe://";
  const std::string_view who = op.text == kPeerPrincipal ? entry.client_uri : entry.server_uri;
  if (op.other.empty() || !entry.principals_noted || !who.starts_with(kSpiffe)) return {};
  if (op.other == "PLAIN") return LogText(who);
  *kept = JsonText(nlohmann::json(std::string(who)));
  return {LogValue::Kind::kJson, *kept};
}

LogValue EvaluateLog(const LogOperator& op, const AccessLogEntry& entry, std::string* kept) {
  switch (op.command) {
    case LogCommand::kLiteral:
      return {LogValue::Kind::kText, op.text};
    case LogCommand::kUnmodelled:
      return {};
    case LogCommand::kRequestHeader:
    case LogCommand::kRequestHeaderWithoutQuery:
      return LogHeader(op, entry, true, kept);
    case LogCommand::kResponseHeader:
    case LogCommand::kTrailer:
      return LogHeader(op, entry, false, kept);
    case LogCommand::kGrpcStatus:
    case LogCommand::kGrpcStatusNumber:
      return LogGrpcStatus(op, entry, kept);
    case LogCommand::kStartTime:
      return LogText(*kept = FormatLogTime(entry.start + entry.clock_ahead, op.text));
    case LogCommand::kEmitTime:
      return LogText(*kept = FormatLogTime(entry.end, op.text));
    case LogCommand::kProtocol:
      if (entry.request != nullptr) return LogText(HttpProtocolName(entry.request->protocol));
      return entry.http ? LogText(entry.http2 ? "HTTP/2" : "HTTP/1.1") : LogValue{};
    case LogCommand::kResponseCode:
      return LogNumber(entry.code, kept);
    case LogCommand::kResponseFlags:
      return LogText(*kept = entry.flags_of_enum      ? ResponseFlagsOfEnum(entry.flags)
                             : entry.connection_flags ? ConnectionFlagsToString(entry.flags)
                                                      : ResponseFlagsToString(entry.flags));
    case LogCommand::kFlagsLong:
      return LogText(*kept = LongResponseFlags(entry.flags));
    case LogCommand::kPath:
      return LogPath(op, entry);
    case LogCommand::kQueryParam: {
      if (entry.request == nullptr) return {};
      const QueryParameters parameters = QueryParametersOf(entry.request->path);
      const auto found = parameters.find(op.text);
      if (found == parameters.end()) return {};
      return {LogValue::Kind::kText, *kept = found->second.front()};
    }
    case LogCommand::kLocalReplyBody:
      return {LogValue::Kind::kText, entry.local_reply_body};
    case LogCommand::kResponseCodeDetails:
      return LogText(entry.details);
    case LogCommand::kTerminationDetails:
      return LogText(entry.termination);
    case LogCommand::kTransportFailure:
      return LogText(entry.transport_failure);
    case LogCommand::kBytesReceived:
      return entry.bytes_received ? LogNumber(*entry.bytes_received, kept) : LogValue{};
    case LogCommand::kBytesSent:
      return entry.bytes_sent ? LogNumber(*entry.bytes_sent, kept) : LogValue{};
    case LogCommand::kDuration:
      return LogMillis(entry.end - entry.start, kept);
    case LogCommand::kRequestDuration:
      return entry.request != nullptr ? LogNumber(0, kept) : LogValue{};
    case LogCommand::kResponseDuration:
      return entry.response_after ? LogMillis(*entry.response_after, kept) : LogValue{};
    case LogCommand::kResponseTxDuration:
      return entry.response_after ? LogMillis(entry.response_took, kept) : LogValue{};
    case LogCommand::kAttempts:
      return LogNumber(entry.attempts, kept);
    case LogCommand::kUpstreamHost:
      return LogAddress(entry.upstream_host, op.part, kept);
    case LogCommand::kUpstreamCluster:
      return LogText(entry.cluster_stat_name.empty() ? entry.cluster : entry.cluster_stat_name);
    case LogCommand::kUpstreamClusterRaw:
      return LogText(entry.cluster);
    case LogCommand::kUpstreamRemote:
      return LogAddress(entry.upstream_remote, op.part, kept);
    case LogCommand::kUpstreamLocal:
      return LogAddress(entry.upstream_local, op.part, kept);
    case LogCommand::kDownstreamLocal:
      return LogAddress(entry.downstream_local, op.part, kept);
    case LogCommand::kDownstreamRemote:
      return LogAddress(entry.downstream_remote, op.part, kept);
    case LogCommand::kDownstreamPeer:
      return LogAddress(entry.downstream_peer, op.part, kept);
    case LogCommand::kServerName:
      return LogText(*kept = absl::AsciiStrToLower(std::string(entry.server_name)));
    case LogCommand::kRouteName:
      return LogText(entry.route);
    case LogCommand::kFilterChain:
      return LogText(entry.filter_chain);
    case LogCommand::kHostname:
      return LogText(entry.hostname);
    case LogCommand::kTlsVersion:
      return entry.tls ? LogText(entry.tls13 ? "TLSv1.3" : "TLSv1.2") : LogValue{};
    case LogCommand::kPeerUri:
      return entry.tls ? LogText(entry.client_uri) : LogValue{};
    case LogCommand::kLocalUri:
      return entry.tls ? LogText(entry.server_uri) : LogValue{};
    case LogCommand::kLogType:
      return LogText(entry.request != nullptr ? "DownstreamEnd" : "TcpConnectionEnd");
    case LogCommand::kDynamicMetadata:
      return LogMetadata(op, entry, kept);
    case LogCommand::kTlsCipher:
      return LogText(entry.session.cipher);
    case LogCommand::kCertificate: {
      const x509::Certificate* const of[] = {entry.session.peer, entry.session.own, entry.upstream_session.peer,
                                             entry.upstream_session.own};
      return LogText(*kept = PartOfCertificate(of[static_cast<size_t>(op.party)], op.certificate, op.text));
    }
    case LogCommand::kWireBytesReceived:
    case LogCommand::kWireBytesSent: {
      // What a request has on the wire depends on headers that nobody carries here.
      const std::optional<uint64_t>& bytes =
          op.command == LogCommand::kWireBytesSent ? entry.wire_sent : entry.wire_received;
      return bytes ? LogNumber(*bytes, kept) : LogValue{};
    }
    case LogCommand::kStreamId:
      if (entry.request != nullptr) {
        const auto id = LoggedRequestHeader(entry, "x-request-id", kept);
        return id ? LogText(*kept = std::string(*id)) : LogValue{};
      }
      return LogText(*kept = RequestIdText(Mix64(entry.connection_id)));
    case LogCommand::kUniqueId:
      return LogText(*kept = RequestIdText(Mix64(entry.connection_id) ^ Mix64(entry.request_id)));
    case LogCommand::kConnectionId:
      return LogNumber(entry.connection_number, kept);
    case LogCommand::kUpstreamConnectionId:
      return LogNumber(entry.upstream_number, kept);
    case LogCommand::kZero:
      return LogNumber(0, kept);
    case LogCommand::kNothing:
      return {};
    case LogCommand::kChain:
      if (entry.session.peer_chain == nullptr) return {};
      kept->clear();
      for (const auto& certificate : *entry.session.peer_chain)
        *kept += (kept->empty() ? "" : ",") + PartOfCertificate(certificate.get(), op.certificate);
      return LogText(*kept);
    case LogCommand::kFilterState:
      return LogPrincipal(op, entry, kept);
    case LogCommand::kMetadata:
      return LogText(op.text == "ROUTE"     ? entry.route_config
                     : op.text == "CLUSTER" ? entry.cluster_config
                     : op.text == "HOST"    ? entry.host_workload
                                            : std::string_view());
    case LogCommand::kSessionId: {
      const uint64_t number = op.party == LogParty::kClient ? entry.session.number : entry.upstream_session.number;
      if (number == 0) return {};
      kept->clear();
      // 32 bytes, which nobody can tell from others. BoringSSL: SSL3_SESSION_ID_SIZE
      for (uint64_t part = 0; part < 4; ++part) *kept += fmt::format("{:016x}", Mix64(number + part));
      return LogText(*kept);
    }
    case LogCommand::kUpstreamProtocol:
      return LogText(entry.upstream_protocol);
    case LogCommand::kUpstreamTlsVersion:
      return LogText(entry.upstream_session.version);
    case LogCommand::kUpstreamTlsCipher:
      return LogText(entry.upstream_session.cipher);
    case LogCommand::kUpstreamName:
      if (entry.upstream_name.empty()) return LogAddress(entry.upstream_host, op.part, kept);
      return LogText(entry.upstream_host.empty() ? std::string_view() : entry.upstream_name);
  }
  return {};
}

// %METADATA(TYPE:...)%, %CLUSTER_METADATA(...)%, %UPSTREAM_METADATA(...)%: what a filter noted, and what istiod writes
// into its resources. False: what is asked for is not simulated.
// Envoy: source/extensions/formatter/metadata/metadata.cc
bool ReadMetadata(std::string_view name, std::string_view argument, LogOperator* out) {
  std::vector<std::string> path = absl::StrSplit(std::string(argument), ':');
  std::string type = name == "CLUSTER_METADATA" ? "CLUSTER" : "UPSTREAM_HOST";
  if (name == "METADATA") {
    type = path.front();
    path.erase(path.begin());
  }
  if (path.empty()) return false;
  if (type == "DYNAMIC") {
    out->command = LogCommand::kDynamicMetadata;
    out->text = path.front();
    out->path.assign(path.begin() + 1, path.end());
    return true;
  }
  const bool config = path.size() == 2 && path[0] == "istio" && path[1] == "config";
  const bool workload = path.size() == 2 && path[0] == "istio" && path[1] == "workload";
  if (config && (type == "ROUTE" || type == "CLUSTER")) out->text = type;
  if (workload && type == "UPSTREAM_HOST") out->text = "HOST";
  return !out->text.empty();
}

// %FILTER_STATE(KEY:PLAIN)%; without a form it is a message, which principals were not before Istio 1.24 (Envoy 1.32).
bool ReadFilterState(std::string_view argument, uint32_t minor, LogOperator* out) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(argument), ':');
  out->text = parts.front();
  if (out->text != kPeerPrincipal && out->text != kLocalPrincipal) return false;
  const std::string form = parts.size() > 1 ? parts[1] : "TYPED";
  if (form == "PLAIN" || (form == "TYPED" && minor >= 32)) out->other = form;
  return form == "PLAIN" || form == "TYPED";
}

absl::Status RefusedFormat(std::string message) { return absl::InvalidArgumentError(message); }

// `token`: what stands between two %.
absl::StatusOr<LogOperator> ParseLogCommand(std::string_view token, const Extensions& extensions) {
  LogOperator out;
  std::string_view name = token.substr(0, token.find_first_of("(:"));
  std::string_view rest = token.substr(name.size()), argument;
  if (rest.starts_with('(')) {
    const size_t close = rest.rfind(')');
    if (close == rest.npos) return RefusedFormat(fmt::format("Incorrect formatter command: {}", token));
    argument = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
  }
  if (rest.starts_with(':')) {
    size_t length = 0;
    if (!absl::SimpleAtoi(std::string(rest.substr(1)), &length)) {
      return RefusedFormat(fmt::format("Length must be an integer, given: {}", rest.substr(1)));
    }
    out.max_length = length;
  }
  const auto known = std::find_if(std::begin(kLogCommands), std::end(kLogCommands),
                                  [&](const KnownLogCommand& c) { return c.name == name; });
  if (known == std::end(kLogCommands)) {
    const bool real = std::find(std::begin(kUnmodelledLogCommands), std::end(kUnmodelledLogCommands), name) !=
                      std::end(kUnmodelledLogCommands);
    if (!real) return RefusedFormat(fmt::format("Not supported field in StreamInfo: {}", name));
    extensions.NoteWithoutEffect("format operator", std::string(name));
    out.command = LogCommand::kUnmodelled;
    return out;
  }
  out.command = known->command;
  out.part = known->part;
  out.party = known->party;
  out.certificate = known->certificate;
  switch (out.command) {
    case LogCommand::kRequestHeader:
    case LogCommand::kRequestHeaderWithoutQuery:
    case LogCommand::kResponseHeader:
    case LogCommand::kTrailer: {
      const std::vector<std::string> names = absl::StrSplit(absl::AsciiStrToLower(std::string(argument)), '?');
      if (names.size() > 2)
        return RefusedFormat(fmt::format("More than 1 alternative header specified in token: {}", argument));
      out.text = names[0];
      if (names.size() == 2) out.other = names[1];
      break;
    }
    case LogCommand::kStartTime:
    case LogCommand::kEmitTime:
    case LogCommand::kCertificate:
    case LogCommand::kQueryParam:
      out.text = argument;
      break;
    case LogCommand::kPath: {
      const std::vector<std::string> parts = absl::StrSplit(std::string(argument), ':');
      out.text = parts[0];
      if (parts.size() > 1) out.other = parts[1];
      break;
    }
    case LogCommand::kGrpcStatus:
      if (!argument.empty() && argument != "CAMEL_STRING" && argument != "SNAKE_STRING" && argument != "NUMBER")
        return RefusedFormat(
            fmt::format("GrpcStatusFormatter only supports CAMEL_STRING, SNAKE_STRING or NUMBER. Got: {}", argument));
      out.text = argument;
      break;
    case LogCommand::kMetadata:
      if (!ReadMetadata(name, argument, &out))
        extensions.NoteWithoutEffect("format operator", fmt::format("{}({})", name, argument));
      break;
    case LogCommand::kFilterState:
      if (!ReadFilterState(argument, extensions.release().minor, &out))
        extensions.NoteWithoutEffect("format operator", fmt::format("{}({})", name, argument));
      break;
    case LogCommand::kDynamicMetadata: {
      out.path = absl::StrSplit(std::string(argument), ':');
      out.text = out.path.front();
      out.path.erase(out.path.begin());
      break;
    }
    default:
      break;
  }
  return out;
}

absl::StatusOr<LogOperators> ParseLogFormat(std::string_view format, const Extensions& extensions) {
  LogOperators out;
  const auto literal = [&](std::string_view text) {
    if (text.empty()) return;
    if (out.empty() || out.back().command != LogCommand::kLiteral) out.emplace_back();
    out.back().text += text;
  };
  while (!format.empty()) {
    const size_t percent = format.find('%');
    literal(format.substr(0, percent));
    if (percent == format.npos) break;
    format.remove_prefix(percent + 1);
    if (format.starts_with('%')) {
      literal("%");
      format.remove_prefix(1);
      continue;
    }
    // A time format's own percent signs stand between parentheses.
    size_t end = format.find_first_of("(%");
    if (end != format.npos && format[end] == '(') {
      const size_t close = format.find(')', end);
      end = close == format.npos ? close : format.find('%', close);
    }
    if (end == format.npos) return RefusedFormat(fmt::format("Incorrect formatter command: %{}", format));
    absl::StatusOr<LogOperator> op = ParseLogCommand(format.substr(0, end), extensions);
    if (!op.ok()) return op.status();
    out.push_back(*std::move(op));
    format.remove_prefix(end + 1);
  }
  return out;
}

std::string_view TruncatedTo(const LogOperator& op, std::string_view text) {
  return op.max_length ? text.substr(0, *op.max_length) : text;
}

void AppendText(const LogOperators& operators, bool omit_empty, const AccessLogEntry& entry, std::string* out) {
  std::string kept;
  for (const LogOperator& op : operators) {
    const LogValue value = EvaluateLog(op, entry, &kept);
    if (value.kind != LogValue::Kind::kNone) {
      out->append(TruncatedTo(op, value.text));
    } else if (!omit_empty) {
      out->push_back('-');
    }
  }
}

}  // namespace

std::optional<std::string_view> LoggedRequestHeader(const AccessLogEntry& entry, std::string_view name,
                                                    std::string* kept) {
  if (entry.request == nullptr) return std::nullopt;
  const bool scheme = name == ":scheme";
  const std::optional<std::string_view> sent = scheme ? std::nullopt : FindHeader(*entry.request, name);
  if (sent) return sent;
  if (name == "x-request-id") return *kept = RequestIdText(entry.request_id);
  // The first proxy on the way notes it; whoever has a certificate in a mesh is one itself.
  if (scheme || name == "x-forwarded-proto") return entry.tls && !entry.client_certificate ? "https" : "http";
  return std::nullopt;
}

std::optional<std::string_view> LoggedResponseHeader(const AccessLogEntry& entry, std::string_view name,
                                                     std::string* kept) {
  if (entry.request == nullptr) return std::nullopt;
  if (name == ":status")
    return entry.code != 0 ? std::optional<std::string_view>(*kept = std::to_string(entry.code)) : std::nullopt;
  if (name == "x-envoy-upstream-service-time") {
    if (!entry.service_time) return std::nullopt;
    return *kept = std::to_string(std::max<int64_t>(entry.service_time->count() / 1'000'000, 0));
  }
  const std::optional<std::string_view> found = FindHeaderLine(entry.response_headers, name);
  if (!found && name == "content-type" && entry.text_body) return "text/plain";
  return found;
}

std::string PartOfCertificate(const x509::Certificate* certificate, CertificatePart part,
                              std::string_view time_format) {
  if (certificate == nullptr) return {};
  // RFC 2253: the last part of a name first.
  const auto name = [](const std::string& text) {
    std::vector<std::string> parts = absl::StrSplit(text, ", ");
    std::reverse(parts.begin(), parts.end());
    return absl::StrJoin(parts, ",");
  };
  const auto hex = [](const unsigned char* bytes, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += fmt::format("{:02x}", bytes[i]);
    return out;
  };
  const auto* const der = reinterpret_cast<const unsigned char*>(certificate->der().data());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  switch (part) {
    case CertificatePart::kSubject:
      return name(certificate->subject());
    case CertificatePart::kIssuer:
      return name(certificate->issuer());
    case CertificatePart::kSerial:
      return (certificate->serial().size() % 2 == 0 ? "" : "0") + certificate->serial();
    case CertificatePart::kUris:
      return absl::StrJoin(certificate->sans().uris, ",");
    case CertificatePart::kDnsNames:
      return absl::StrJoin(certificate->sans().dns_names, ",");
    case CertificatePart::kIpAddresses:
      return absl::StrJoin(certificate->sans().ip_addresses, ",");
    case CertificatePart::kPem: {
      const std::string base64 = absl::Base64Escape(certificate->der());
      std::string pem = "-----BEGIN CERTIFICATE-----\n";
      for (size_t at = 0; at < base64.size(); at += 64) pem += base64.substr(at, 64) + "\n";
      return absl::StrReplaceAll(pem + "-----END CERTIFICATE-----\n",
                                 {{"\n", "%0A"}, {" ", "%20"}, {"+", "%2B"}, {"/", "%2F"}, {"=", "%3D"}});
    }
    case CertificatePart::kSha256:
      SHA256(der, certificate->der().size(), digest.data());
      return hex(digest.data(), SHA256_DIGEST_LENGTH);
    case CertificatePart::kSha1:
      SHA1(der, certificate->der().size(), digest.data());
      return hex(digest.data(), SHA_DIGEST_LENGTH);
    case CertificatePart::kBegins:
      return FormatLogTime(certificate->not_before(), time_format);
    case CertificatePart::kEnds:
      return FormatLogTime(certificate->not_after(), time_format);
  }
  return {};
}

std::string FormatLogTime(Time time, std::string_view format) {
  const absl::Time at = absl::FromUnixSeconds(x509::UnixSeconds(time)) +
                        absl::Nanoseconds((time - std::chrono::floor<std::chrono::seconds>(time)).count());
  if (format.empty()) format = "%Y-%m-%dT%H:%M:%E3SZ";
  // Envoy: source/common/common/utility.cc, DateFormatter: %f has nine digits, %3f three of them.
  const std::string fraction = absl::FormatTime("%E9f", at, absl::UTCTimeZone());
  std::string rest;
  for (size_t i = 0; i < format.size(); ++i) {
    rest.push_back(format[i]);
    if (format[i] != '%' || i + 1 == format.size()) continue;
    const char next = format[++i];
    const bool digits = next >= '1' && next <= '9' && i + 1 < format.size() && format[i + 1] == 'f';
    if (next == 'f' || digits) {
      rest.pop_back();
      rest += fraction.substr(0, digits ? static_cast<size_t>(next - '0') : fraction.npos);
      i += digits ? 1 : 0;
    } else {
      rest.push_back(next);
    }
  }
  return absl::FormatTime(rest, at, absl::UTCTimeZone());
}

void MaskTokens(std::string* line) {
  for (auto token = FindToken(*line); token; token = FindToken(*line, token->begin + kMask.size()))
    line->replace(token->begin, token->end - token->begin, kMask);
}

struct AccessLogFormat::Node {
  enum class Kind : uint8_t { kText, kValue, kLiteral, kObject, kList };
  Kind kind = Kind::kText;
  std::string key;             // of a child of kObject, quoted
  LogOperators operators;      // kText: a line of them; kValue: a JSON value
  std::string literal;         // kLiteral: JSON
  std::vector<Node> children;  // kObject, sorted by key; kList

  static absl::StatusOr<Node> Make(const google::protobuf::Value& value, const Extensions& extensions);
  static absl::StatusOr<Node> Make(const google::protobuf::Struct& object, const Extensions& extensions);
};

absl::StatusOr<AccessLogFormat::Node> AccessLogFormat::Node::Make(const google::protobuf::Struct& object,
                                                                  const Extensions& extensions) {
  Node out;
  out.kind = Kind::kObject;
  for (const auto& [key, value] : object.fields()) {
    absl::StatusOr<Node> child = Make(value, extensions);
    if (!child.ok()) return child.status();
    child->key = JsonText(nlohmann::json(key));
    out.children.push_back(*std::move(child));
  }
  std::sort(out.children.begin(), out.children.end(), [](const Node& a, const Node& b) { return a.key < b.key; });
  return out;
}

absl::StatusOr<AccessLogFormat::Node> AccessLogFormat::Node::Make(const google::protobuf::Value& value,
                                                                  const Extensions& extensions) {
  using Proto = google::protobuf::Value;
  Node out;
  out.kind = Kind::kLiteral;
  switch (value.kind_case()) {
    case Proto::kStringValue: {
      absl::StatusOr<LogOperators> operators = ParseLogFormat(value.string_value(), extensions);
      if (!operators.ok()) return operators.status();
      out.kind = Kind::kValue;
      out.operators = *std::move(operators);
      break;
    }
    case Proto::kStructValue:
      return Make(value.struct_value(), extensions);
    case Proto::kListValue:
      out.kind = Kind::kList;
      for (const auto& element : value.list_value().values()) {
        absl::StatusOr<Node> child = Make(element, extensions);
        if (!child.ok()) return child.status();
        out.children.push_back(*std::move(child));
      }
      break;
    case Proto::kNumberValue:
      out.literal = fmt::format("{}", value.number_value());
      break;
    case Proto::kBoolValue:
      out.literal = value.bool_value() ? "true" : "false";
      break;
    default:
      out.literal = "null";
      break;
  }
  return out;
}

void AccessLogFormat::WriteNode(const Node& node, bool omit_empty, const AccessLogEntry& entry, std::string* out) {
  switch (node.kind) {
    case Node::Kind::kText:
      return AppendText(node.operators, omit_empty, entry, out);
    case Node::Kind::kLiteral:
      *out += node.literal;
      return;
    case Node::Kind::kValue: {
      std::string kept;
      // A command alone keeps its type; in a text everything is one.
      if (node.operators.size() == 1) {
        const LogOperator& op = node.operators.front();
        const LogValue value = EvaluateLog(op, entry, &kept);
        switch (value.kind) {
          case LogValue::Kind::kNone:
            *out += "null";
            return;
          case LogValue::Kind::kText:
            out->append(JsonText(nlohmann::json(TruncatedTo(op, value.text))));
            return;
          case LogValue::Kind::kNumber:
          case LogValue::Kind::kJson:
            *out += value.text;
            return;
        }
      }
      AppendText(node.operators, omit_empty, entry, &kept);
      out->append(JsonText(nlohmann::json(kept)));
      return;
    }
    case Node::Kind::kObject:
    case Node::Kind::kList: {
      const bool object = node.kind == Node::Kind::kObject;
      out->push_back(object ? '{' : '[');
      const size_t begin = out->size();
      for (const Node& child : node.children) {
        const size_t before = out->size();
        if (before > begin) out->push_back(',');
        if (object) out->append(child.key).push_back(':');
        const size_t value = out->size();
        WriteNode(child, omit_empty, entry, out);
        if (omit_empty && out->compare(value, out->npos, "null") == 0) out->resize(before);
      }
      out->push_back(object ? '}' : ']');
      return;
    }
  }
}

AccessLogFormat::AccessLogFormat() {
  auto root = std::make_unique<Node>();
  root->operators = *ParseLogFormat(kDefaultFormat, Extensions(ExtensionSet::kStock));
  root_ = std::move(root);
}
AccessLogFormat::~AccessLogFormat() = default;
AccessLogFormat::AccessLogFormat(AccessLogFormat&&) noexcept = default;
AccessLogFormat& AccessLogFormat::operator=(AccessLogFormat&&) noexcept = default;

absl::StatusOr<AccessLogFormat> AccessLogFormat::MakeText(std::string_view format, bool omit_empty,
                                                          const Extensions& extensions) {
  absl::StatusOr<LogOperators> operators = ParseLogFormat(format, extensions);
  if (!operators.ok()) return operators.status();
  auto root = std::make_unique<Node>();
  root->operators = *std::move(operators);
  AccessLogFormat out;
  out.root_ = std::move(root);
  out.omit_empty_ = omit_empty;
  return out;
}

absl::StatusOr<AccessLogFormat> AccessLogFormat::MakeJson(const google::protobuf::Struct& format, bool omit_empty,
                                                          const Extensions& extensions) {
  absl::StatusOr<Node> root = Node::Make(format, extensions);
  if (!root.ok()) return root.status();
  AccessLogFormat out;
  out.root_ = std::make_unique<const Node>(*std::move(root));
  out.omit_empty_ = omit_empty;
  out.line_end_ = true;
  return out;
}

void AccessLogFormat::Write(const AccessLogEntry& entry, std::string* out) const {
  WriteNode(*root_, omit_empty_, entry, out);
  if (line_end_) out->push_back('\n');
  MaskTokens(out);
}

}  // namespace wavetank::envoysim
