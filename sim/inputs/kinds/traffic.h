// Requests of applications: when a flow begins, and when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "sim/apps/app_tls.h"
#include "sim/apps/retry.h"
#include "sim/apps/token_issuers.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

struct StartTraffic {
  static constexpr std::string_view kKind = "traffic";
  // What each request brings besides. The token is minted when the traffic starts, and stands in no log.
  struct Token {
    TokenToMint mint;
    std::string header, param;  // its place; neither: authorization, after "Bearer "
  };

  std::string id, flow;
  std::string cluster, ns, app;  // of the clients
  std::string pod;               // this one alone; empty: all of the app
  std::string host;              // as the application writes it
  int64_t port = 80;
  std::string path = "/", method = "GET";
  std::map<std::string, std::string> headers, trailers;  // names in lower case
  int64_t body_bytes = 0, body_pieces = 0;               // TrafficSpec; no piece said: one
  Duration body_over{};
  bool keep_alive = false, tcp = false;
  std::string protocol;  // "http1.0", "http2", "grpc", "websocket"; empty: HTTP/1.1, or TCP
  int64_t requests = 0;  // 0: until StopTraffic
  Duration period = 10ms;
  Duration ramp{}, last_period{};  // TrafficSpec
  bool poisson = false;
  int64_t users = 0;
  Duration think{}, timeout{};
  RetryRule retry;
  std::optional<Token> token;
  std::optional<ClientTls> tls;  // nothing: plain text

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct StopTraffic {
  static constexpr std::string_view kKind = "stopTraffic";
  std::string id;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
