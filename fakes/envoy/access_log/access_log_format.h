// The formats of access logs: text or JSON with command operators, compiled once per configuration.
// Envoy: source/common/formatter/substitution_formatter.cc, stream_info_formatter.cc, http_specific_formatter.cc
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/tcp/address.h"
#include "fakes/envoy/tcp/response_flags.h"

namespace google::protobuf {
class Struct;
}
namespace wavetank::x509 {
class Certificate;
}

namespace wavetank::envoysim {

struct PeerInfo;
struct RequestSpec;
class Extensions;

// One side's view of a TLS session: static words, empty without one, and certificates, null where none was shown.
struct LoggedSession {
  std::string_view version, cipher;
  const x509::Certificate *peer = nullptr, *own = nullptr;
  const std::vector<std::shared_ptr<const x509::Certificate>>* peer_chain = nullptr;  // the peer's leaf first
  uint64_t number = 0;  // of the session, which its id is made of; 0: it has none
};

// What is known at the end of a request, or of a connection that carries none for its proxy. Views and pointers are
// valid while lines are written.
struct AccessLogEntry {
  Time start{}, end{};
  Duration clock_ahead{};                // how wrong the proxy's own clock is
  const RequestSpec* request = nullptr;  // nullptr: of a connection
  bool http = false;                     // the connection speaks HTTP
  bool http2 = false;                    // ... in that version, of a request
  uint64_t request_id = 0;               // equal for all proxies that a request passes
  uint16_t code = 0;
  bool grpc = false;          // a call of gRPC
  uint16_t code_as_grpc = 0;  // the status that `code` stands for
  ResponseFlags flags = kNoFlags;
  bool flags_of_enum = false;     // ResponseFlagsOfEnum
  bool connection_flags = false;  // in a connection's order: ConnectionFlagsToString
  std::string_view details, termination, transport_failure;
  std::string_view response_headers;                           // lines, as Reply::headers
  std::string_view response_trailers;                          // the same
  std::string_view local_reply_body;                           // of a body that is about to be formatted
  bool text_body = false;                                      // a local reply with a body of its own
  std::optional<uint64_t> bytes_received = 0, bytes_sent = 0;  // nothing: not modelled
  std::optional<uint64_t> wire_received, wire_sent;            // of a connection: what a tcp_proxy passed on
  std::optional<Duration> response_after;                      // until the upstream's answer came
  Duration response_took{};                                    // from then to its last byte
  std::optional<Duration> service_time;                        // the same, counted from the router's beginning
  uint32_t attempts = 0;
  SocketAddress upstream_host, upstream_remote, upstream_local;  // empty: unknown
  std::string_view cluster, cluster_stat_name, virtual_host, route, filter_chain, server_name;
  SocketAddress downstream_local, downstream_remote, downstream_peer;
  uint64_t connection_id = 0;  // unlike all others of the world
  // As Envoy numbers its connections; 0: there was none upstream.
  uint64_t connection_number = 0, upstream_number = 0;
  bool tls = false, tls13 = false, client_certificate = false;
  bool principals_noted = false;  // by istio_authn
  // Metadata "istio" of what was chosen: "config" of route and cluster, "workload" of the host; empty: none.
  std::string_view route_config, cluster_config, host_workload;
  std::string_view client_uri, server_uri;  // SANs of the downstream session
  LoggedSession session, upstream_session;
  std::string_view upstream_protocol;  // of HTTP; empty: none was reached
  std::string_view upstream_name;      // of the host; empty: its address
  const DynamicMetadata* notes = nullptr;
  std::string_view hostname;
  // Whose proxies said that they are at the other ends; null: none did.
  const PeerInfo *downstream_peer_info = nullptr, *upstream_peer_info = nullptr;
};

// A request header as logs see it: with those that Envoy sets itself. `kept` holds what has to be made.
std::optional<std::string_view> LoggedRequestHeader(const AccessLogEntry& entry, std::string_view name,
                                                    std::string* kept);
std::optional<std::string_view> LoggedResponseHeader(const AccessLogEntry& entry, std::string_view name,
                                                     std::string* kept);

// What a certificate says, as Envoy prints it; empty: nothing. Envoy: source/common/tls/utility.cc
enum class CertificatePart : uint8_t {
  kSubject,
  kIssuer,
  kSerial,
  kUris,
  kDnsNames,
  kIpAddresses,
  kSha256,
  kSha1,
  kBegins,
  kEnds,
  kPem,  // in the form of a query
};
std::string PartOfCertificate(const x509::Certificate* certificate, CertificatePart part,
                              std::string_view time_format = {});

// strftime's specifiers, and %s, %f, %1f to %9f and %E3S as Envoy and absl have them. An empty format is Envoy's own.
std::string FormatLogTime(Time time, std::string_view format);

// `line` with every JSON Web Token in it masked.
void MaskTokens(std::string* line);

class AccessLogFormat {
 public:
  AccessLogFormat();  // Envoy's default
  ~AccessLogFormat();
  AccessLogFormat(AccessLogFormat&&) noexcept;
  AccessLogFormat& operator=(AccessLogFormat&&) noexcept;

  // InvalidArgument: an operator that no Envoy knows, or a bad argument, in Envoy's words. Operators that are not
  // simulated print nothing, and are noted.
  static absl::StatusOr<AccessLogFormat> MakeText(std::string_view format, bool omit_empty,
                                                  const Extensions& extensions);
  static absl::StatusOr<AccessLogFormat> MakeJson(const google::protobuf::Struct& format, bool omit_empty,
                                                  const Extensions& extensions);

  // Appends the line. O(its length).
  void Write(const AccessLogEntry& entry, std::string* out) const;

 private:
  struct Node;
  static void WriteNode(const Node& node, bool omit_empty, const AccessLogEntry& entry, std::string* out);

  std::unique_ptr<const Node> root_;
  bool omit_empty_ = false;
  bool line_end_ = false;  // JSON formats do not have one of their own
};

}  // namespace wavetank::envoysim
