// A case of envoy-diff: xDS resources, backends, and what is done to them. A case file is JSON:
//
//   {"cases": [{"name": "...", "protocol": "sotw" | "delta", "compare": "exact" | "about" | "statistical",
//      "answers": false,  // that no request is answered is what the case shows
//      "backends": {"a": "127.77.0.11:9000", ...},
//      "grpc_authorizers": ["a"],  // backends that speak gRPC and answer what is asked by ext_authz
//      "grpc_backends": ["g"],     // backends that speak gRPC and answer any call with an empty message (health
//                                  // checks with SERVING) and their status
//      "rate_limiters": {"r": [{"descriptor": [[KEY, VALUE], ...], "requests": 2, "window": 60, "name": NAME}, ...]},
//                                  // backends that are a rate limit service (fakes/envoy/apps/rate_limiter.h)
//      "resources": {"clusters": [...], "endpoints": [...], "listeners": [...], "routes": [...],
//                    "extensions": [...]},   // by ECDS
//      "redirect": {"127.77.0.200": 15001},  // connections from there end at that port, as by Istio's iptables rules
//      "dns": {"a.example": "127.77.0.11", "b.example": {"ms": 100, "ttl": 1, "answer": ["127.77.0.11", ...] |
//              "nxdomain" | "empty" | "servfail" | "silent"}},   // name_server.h; all other names are unknown
//      "secrets": {"default": {"san": "spiffe://..."}, "ROOTCA": {"roots": ["mesh"]}},  // secrets.h; served over SDS
//      "steps": [{"requests": {"to": "127.77.0.1:10000", "count": 10, "parallel": 1, "keep_alive": true,
//                              "from": "127.77.0.200", "method": "GET",
//                              "host": "x", "path": "/", "headers": {"a": "b" | ["b", "c"]},
//                              "body": 100,         // bytes, after a content-length
//                              "body_ms": 400,      // until the last of them, half with the head
//                              "body_pieces": 4,    // so many behind the first, HTTP/1.1 only
//                              "trailers": {"x-a": "b"},   // behind the body, which comes in chunks; HTTP/1.1 in
//                                                          // clear text only
//                              "http2": true,       // in clear text, or by ALPN
//                              "http10": true,      // each over a connection of its own
//                              "tls": {"sni": NAME, "alpn": [NAME, ...], "certificate": SECRET, "root": SECRET,
//                                      "versions": [MIN, MAX]},   // each key optional; {} for TLS alone
//                              "upgrade": "websocket",  // with the first request on a connection, and those behind
//                                  // it are messages if the answer was 101: what logs say of such a connection is
//                                  // compared by logs of the case's own; HTTP/1.1 in clear text only
//                              "grpc": true,        // a call with an empty message; its status is compared
//                              "proxy_protocol": {"version": 1, "source": ADDRESS, "destination": ADDRESS} | 1,
//                                                   // a number: of nobody (UNKNOWN, LOCAL)
//                              "background": true,  // goes on beside the steps that follow, until "join" or the end
//                              "interval_ms": 20, "jitter_ms": 10,  // between requests of each of the parallel flows
//                              "anonymous": true,   // without the header by which the runner knows them again in logs
//                              "show": ["x-a"]}},   // headers and trailers of the answers that are compared too
//                {"join": true},                      // waits for all that goes on in the background
//                {"push": {"clusters": [...], "remove": {"clusters": ["c"]}, "secrets": {...}}},
//                {"backend": {"name": "a", "up": false, "code": 503, "delay_ms": 100}},   // code 0: resets connections
//                {"backend": {"name": "a", "silent": true}},      // answers no SYN
//                {"dns": {...}},                                  // names that answer otherwise from now on
//                {"backend": {"name": "a", "authorizer": true,    // allows what has the header x-ext-authz: allow
//                             "headers": {"x-a": "b"}}},           // what it says besides
//                {"backend": {"name": "a", "allow": true}},       // it allows everything
//                {"backend": {"name": "a", "upgrade": true}},     // it answers 101 to a request for an upgrade
//                {"backend": {"name": "a", "body": 5000}},        // bytes of its answers, at least
//                {"backend": {"name": "a", "body_ms": 400}},      // until the last of them, half with the head
//                {"backend": {"name": "g", "grpc_status": 14, "grpc_message": "gone"}},   // of a gRPC backend
//                {"backend": {"name": "g", "trailers": {"x-a": "b"}}},    // behind its bodies, then in chunks; of a
//                                                                         // gRPC backend beside its status
//                {"backend": {"name": "a", "echo": [":path", "x-a"]}},  // its answer's body tells what it was sent;
//                                  // ":proxy": the addresses that the PROXY protocol named, ":bytes": of the
//                                  // request's body, "trailer:x-a": what came behind that
//                {"wait_ms": 500}],
//      "keys": {...}, "tokens": {...},  // tokens.h
//      "draws": 20,  // where chance decides: agree with one of so many seeds, or with some by turns
//      "stats": ["cluster.c.upstream_rq_total"]}]}
//
// What access logs that write to "/logs/NAME" say is compared (access_logs.h).
//
// Resources are Envoy's own messages as JSON, or one of these short forms (further keys are merged into the result):
//   cluster   {"static": NAME, "hosts": [HOST, ...]} or {"eds": NAME}
//   endpoints {"eds": NAME, "hosts": [HOST, ...], "locality_weights": {"a": 1}}
//   listener  {"http": NAME, "at": ADDRESS, "to": CLUSTER | "virtual_hosts": [...] | "rds": NAME,
//              "route": {...}, "filters": [...], "manager": {...}} or {"tcp": NAME, "at": ADDRESS, "cluster": CLUSTER}
//   "mtls": {"certificate": SECRET, "root": SECRET, "sans": [URI, ...], "alpn": [...], "sni": NAME, "versions": [MIN,
//   MAX], "ciphers": [NAME, ...], "curves": [NAME, ...], "validation": {...}} in a cluster or listener, each key of it
//   optional: a TLS transport socket as Istio makes it, of the listener's filter chains or of the cluster; {"require":
//   false} in a listener takes clients without a certificate too; "validation" is of CertificateValidationContext
// Texts like "{certificate_hash SECRET}" and "{crl CA SECRET}" stand for what is made of the secrets (secrets.h).
// HOST is "IP:PORT" followed by any of "w3" (weight), "p1" (priority), "@a" (locality) and "UNHEALTHY", "DRAINING",
// "DEGRADED". All addresses lie in 127.77.0.0/24, which stands for a loopback network of the runner's choice, so that
// several runners do not meet.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/apps/rate_limiter.h"
#include "fakes/envoy/process/xds_type.h"
#include "nlohmann/json_fwd.hpp"
#include "oracles/envoy/peers/name_server.h"
#include "oracles/envoy/secrets.h"
#include "oracles/envoy/tokens.h"

namespace wavetank::envoydiff {

// Serialised resources by type and name.
using World = std::map<envoysim::XdsType, std::map<std::string, std::string>>;

// How a client speaks TLS: names are those of secrets.
struct ClientTls {
  std::string sni, certificate, root;
  std::vector<std::string> alpn;
  int lowest_version = 2, highest_version = 3;  // 1.x
};

struct ClientProxyProtocol {
  int version = 1;
  std::string source, destination;  // empty: of nobody
};

struct Requests {
  std::string to;
  std::string from;  // empty: wherever
  int count = 1;
  int parallel = 1;
  bool keep_alive = true;
  bool http10 = false, http2 = false, grpc = false;
  std::optional<ClientTls> tls;
  std::optional<ClientProxyProtocol> proxy_protocol;
  bool background = false, anonymous = false;
  int interval_ms = 0, jitter_ms = 0;
  int body_ms = 0, body_pieces = 1;
  std::string method = "GET", host = "x", path = "/";
  std::string upgrade;  // empty: none is asked for
  std::vector<std::pair<std::string, std::string>> headers, trailers;
  int chunk = 0;  // bytes of the body that comes before trailers
  std::vector<std::string> show;
};

struct Push {
  World upserts;
  std::vector<std::pair<envoysim::XdsType, std::string>> removals;
  Secrets secrets;
};

struct BackendState {
  std::string name;
  bool up = true;
  bool silent = false;
  int code = 200;
  int delay_ms = 0;
  bool authorizer = false;  // it answers as fakes/envoy/apps/ext_authz_app.h does
  bool allow = false;       // an authorizer that allows whatever it is asked
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> echo;
  int body = 0;  // bytes of its answers at least
  int body_ms = 0;
  int grpc_status = 0;
  std::string grpc_message;
  std::vector<std::pair<std::string, std::string>> trailers;
  bool upgrade = false;
};

struct Step {
  enum class Kind { kRequests, kPush, kBackend, kNames, kWait, kJoin };
  Kind kind = Kind::kWait;
  Requests requests;
  Push push;
  BackendState backend;
  Names names;
  int wait_ms = 0;
};

struct Case {
  std::string file, name;
  bool delta = false;
  bool statistical = false;    // counts are compared as distributions
  bool answers = true;         // false: that none of its requests is answered is what it shows
  bool counts_about = false;   // a random start decides more than who answers: counts may differ by one
  bool compare_ads = true;     // message sequences
  bool compare_errors = true;  // texts of NACKs, not only that there are some
  int draws = 1;               // where above 1, chance is searched for the real one's (envoydiff.cc)
  World resources;
  Secrets secrets;
  bool any_secret = false;   // names that `secrets` lacks get SecretForAnyName
  bool own_network = false;  // the real one, its backends and its clients are in a network namespace of their own
  bool binds_every_address = false;  // a listener at 0.0.0.0: what another runner's at the same port would answer for
  std::map<std::string, int> redirect;          // source address -> port; needs a network of one's own
  std::optional<Names> names;                   // nothing: no name server but the machine's
  std::string name_server = "127.0.0.1:10053";  // where theirs is
  std::map<std::string, std::string> backends;  // name -> address
  std::set<std::string> grpc_authorizers;       // of them
  std::set<std::string> grpc_backends;
  std::map<std::string, std::vector<envoysim::ServiceLimit>> rate_limiters;
  CaseTokens tokens;
  std::vector<Step> steps;
  std::vector<std::string> stats;
};

// The headers by which a client asks for an upgrade.
std::vector<std::pair<std::string, std::string>> UpgradeHeaders(const std::string& type);

// What a backend's body is made of: its text, followed by as many bytes as are wanted.
std::string PaddedBody(std::string text, int bytes);
// What a gRPC client sends: one message without a byte in it.
inline constexpr std::string_view kEmptyMessage{"\0\0\0\0\0", 5};
// What a gRPC backend whose status is 0 says to kHealthMethod: HealthCheckResponse{status: SERVING}.
inline constexpr std::string_view kHealthMethod = "/grpc.health.v1.Health/Check";
inline constexpr std::string_view kServing{"\x08\x01", 2};

// Before the names of trailers of requests that it echoes.
inline constexpr std::string_view kTrailerEcho = "trailer:";

// The body of a backend's answer. `values`: of the headers it echoes, in their order, those of one name after
// commas; "-" stands for one that is not there.
std::string EchoBody(const std::string& name, const std::vector<std::string>& echo,
                     const std::vector<std::optional<std::string>>& values);

// All cases of a file, or of the *.json files of a folder in order of their names, with "127.77.0." replaced by
// `network`. Errors name the file and the case.
absl::StatusOr<std::vector<Case>> LoadCases(const std::string& path, const std::string& network);
// The same of a list of cases that are in no file; errors name `source`.
absl::StatusOr<std::vector<Case>> MakeCases(const nlohmann::json& cases, const std::string& source,
                                            const std::string& network);

}  // namespace wavetank::envoydiff
