// An HTTP request as the simulation carries it, and what is known of it when it is over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/base/trace.h"
#include "fakes/envoy/tcp/address.h"
#include "fakes/envoy/tcp/network.h"
#include "fakes/envoy/tcp/response_flags.h"

namespace wavetank::envoysim {

enum class HttpProtocol : uint8_t { kHttp10, kHttp11, kHttp2 };
// As access logs, CEL and Lua call it. Envoy: Http::Utility::getProtocolString.
std::string_view HttpProtocolName(HttpProtocol protocol);

// How the body of a request comes after its head: its last byte `takes` later, in pieces with silences of `gap` between
// them, the first with the head.
struct BodyPace {
  Duration takes{}, gap{};
};

// What is asked. Immutable while any request uses it: one spec serves any number of requests, and Envoys remember
// routing decisions by its `id`.
struct RequestSpec {
  RequestSpec();  // gives it an id

  HttpProtocol protocol = HttpProtocol::kHttp11;
  std::string method = "GET";
  std::string authority;  // Host / :authority
  std::string path = "/";
  std::vector<std::pair<std::string, std::string>> headers;   // names in lower case
  std::vector<std::pair<std::string, std::string>> trailers;  // what comes behind its body, the same way
  BodyPace pace;                                              // at which its client sends its body; nothing: at once
  uint16_t depth = 0;  // how many applications' calls have led to it; nobody sees it on the wire

  uint64_t id() const { return id_; }
  // Of a copy that will differ: it may be routed otherwise.
  void TakeNewId();

 private:
  uint64_t id_;
};

// The value of a header or pseudo-header; nothing: there is none. `name` in lower case.
std::optional<std::string_view> FindHeader(const RequestSpec& spec, std::string_view name);

// Where there is no grpc-status.
inline constexpr uint16_t kNoGrpcStatus = 0xffff;

// How a check of ext_authz over gRPC carries the client's identity, in the model, where the message's fields are
// headers.
inline constexpr char kSourcePrincipal[] = "source.principal";

// One TCP hop of a request's way, in order from the client.
struct Hop {
  WorkloadId from{};
  WorkloadId to{};
  SocketAddress destination;  // as the accepting side sees it
  NameId proxy = kNoName;     // that accepted it; kNoName: an application
  std::string_view listener;  // its choice, empty for applications
  std::string_view filter_chain;
  std::string_view cluster;  // where a tcp_proxy sent it on; empty for others
  std::string_view sni;
  std::string_view alpn;             // negotiated; of a passed-through session the ALPN list's first
  bool tls = false;                  // TLS terminates at the accepting side
  bool client_verified = false;      // the accepting side verified the client's certificate
  bool server_verified = false;      // the connecting side verified the server's
  std::string_view client_identity;  // URI SAN presented
  std::string_view server_identity;
};

// A try that failed and was followed by another. The texts are static or kept (ConfigStore::Keep).
struct FailedTry {
  SocketAddress upstream;
  uint16_t code = 0;                   // 0: no HTTP answer
  ResponseFlags flags = kNoFlags;      // that it would have ended the request with
  std::string_view reason;             // of the reset, "remote connection failure"; empty: it was answered with `code`
  std::string_view transport_failure;  // %UPSTREAM_TRANSPORT_FAILURE_REASON%
  std::string_view tls_finding;        // TlsOutcome::finding
  std::string_view server_details;     // of the far sidecar, if it answered instead of the application
  Time at{};
};

// The end of a request, as its client's first proxy logged it (or the client itself, without one). The views are into
// shared configuration: valid during the callback that hands over the record.
struct RequestRecord {
  uint16_t code = 0;  // 0: no HTTP answer (connection refused or reset); of gRPC, what its status counts as
  uint16_t grpc_status = kNoGrpcStatus;
  ResponseFlags flags = kNoFlags;
  std::string_view details;            // %RESPONSE_CODE_DETAILS%, e.g. "via_upstream", "no_healthy_upstream"
  std::string_view transport_failure;  // %UPSTREAM_TRANSPORT_FAILURE_REASON%
  std::string_view tls_finding;        // TlsOutcome::finding
  std::string_view body;               // of a reply that Envoy itself made
  std::string_view headers;            // Reply::headers
  std::string_view trailers;           // Reply::trailers
  std::string_view listener;
  std::string_view filter_chain;
  std::string_view virtual_host;
  std::string_view route;
  std::string_view cluster;
  std::string_view route_config, cluster_config;         // the objects that gave them, as ConfigPath() has them
  SocketAddress upstream;                                // the host chosen last, as in EDS
  uint32_t attempts = 0;                                 // upstream tries; 1 = not retried
  const std::vector<FailedTry>* failed_tries = nullptr;  // all but the last; null: none
  NameId server = kNoName;                               // the application instance that answered
  ResponseFlags server_flags = kNoFlags;  // of the far sidecar, if it answered instead of the application
  std::string_view server_details;
  Duration latency{};
  ConnectionId upstream_connection{};  // for Fabric::DescribeHops(), while it lives
};

}  // namespace wavetank::envoysim
