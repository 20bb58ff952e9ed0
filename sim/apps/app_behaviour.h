// How applications behave: how long they take, what they answer, and whether they are ready. Rules are matched by what
// a pod is (its cluster, namespace, app and version), so that versions can differ; without one an application answers
// 200 at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "fakes/envoy/apps/app.h"
#include "sim/apps/app_tls.h"
#include "sim/apps/retry.h"

namespace wavetank::sim {

// An answer other than 200: to requests with a header of that value, or to a share of all.
struct AppAnswer {
  uint16_t code = 503;
  bool reset = false;             // instead of an answer the connection is reset
  int64_t share_ppm = 1'000'000;  // of the requests that have the header
  std::string header, value;      // no header: every request
};

// A request to another service that an application sends before it answers.
struct AppCall {
  std::string host;  // as the application writes it
  int64_t port = 80;
  std::string path = "/", method = "GET";
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string on_path;                                       // only for requests whose path begins so; empty: for all
  int64_t share_ppm = 1'000'000;                             // of those
  Duration timeout{};                                        // of an attempt; zero: none
  RetryRule retry;
  bool optional = false;  // its failure is not the application's
};

struct AppBehaviour {
  // Time of service: below the first point it grows evenly from nothing, between two points evenly, beyond the last it
  // is that one's. None: at once.
  struct Quantile {
    int64_t share_ppm = 0;
    Duration time{};
  };
  std::vector<Quantile> latency;   // in order of their shares
  std::vector<AppAnswer> answers;  // the first that fits is given
  bool ready = true;
  // From the head of an answer to its last byte, in so many pieces after the first.
  Duration body_over{};
  int64_t body_pieces = 1;
  std::vector<std::pair<std::string, std::string>> trailers;  // behind the bodies of its answers; names in lower case
  // Not zero: it is ready and unready in turn, beginning with `ready`.
  Duration ready_for{}, unready_for{};
  // A pod that has just started takes `slow_factor` times as long, and evenly less until `slow_start` is over.
  Duration slow_start{};
  int64_t slow_factor = 1;
  // Once the time of service is over, and the answer is to be 200: one after the other, or all at once.
  std::vector<AppCall> calls;
  std::optional<AppTls> tls;  // nothing: all its ports speak plain text
  bool parallel = false;
  uint16_t call_failed = 502;  // the answer when a call failed that is not optional
};

// Answers as `behaviour` wants; `age`: since the pod started. Draws from `random` only what is left to chance.
void Behave(const AppBehaviour& behaviour, const envoysim::InboundCall& call, Duration age, RandomStream& random,
            envoysim::AppReply* reply);

// Those of its calls that are due for a request. Draws from `random` only what is left to chance.
std::vector<size_t> DueCalls(const AppBehaviour& behaviour, const envoysim::RequestSpec& request, RandomStream& random);

class AppBehaviours {
 public:
  // Of pods that match every given part; empty ones match all. The latest rule for a pod is in force.
  struct Rule {
    std::string cluster, ns, app, version;
    AppBehaviour behaviour;
  };
  // Takes the place of a rule for the same pods.
  void Set(Rule rule);
  // Null: none was set.
  const AppBehaviour* Of(std::string_view cluster, std::string_view ns, std::string_view app,
                         std::string_view version) const;
  bool empty() const { return rules_.empty(); }

 private:
  std::vector<Rule> rules_;
};

}  // namespace wavetank::sim
