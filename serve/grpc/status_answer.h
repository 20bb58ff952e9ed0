// Answers over ADS about istiod itself: types below istio.io/ (core/debug/status.h). They are made beside the world's
// streams: who looks is no client of the world, and changes nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/observers.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "serve/grpc/frontend.h"

namespace wavetank::pilot {
struct Node;
}

namespace wavetank::serve {

// Every answer's nonce begins so.
inline constexpr std::string_view kStatusNonce = "status-";

struct StatusQuestion {
  std::string cluster;  // whose istiod is asked
  TransportPeer peer;
  std::string type_url;
  std::vector<std::string> names;
};

// What the istiod of `cluster` says to whom `identity` (a SPIFFE ID; empty: nobody) names. On the loop's thread.
absl::StatusOr<envoy::service::discovery::v3::DiscoveryResponse> StatusOfIstiod(const sim::World& world,
                                                                                std::string_view cluster,
                                                                                std::string_view type_url,
                                                                                const std::vector<std::string>& names,
                                                                                std::string_view identity);

// The same of a question, encoded; the status that ends the stream otherwise. On the loop's thread.
absl::StatusOr<std::string> AnswerStatus(const sim::World& world, const StatusQuestion& question);

// The DiscoveryResponse with its bootstrap, encoded, for the agent of `node` (core/istiod/bootstrap_answer.h); the
// status that ends the stream otherwise. On the loop's thread.
absl::StatusOr<std::string> AnswerBootstrap(const sim::World& world, std::string_view cluster, const pilot::Node& node);

// From now on `tell` gets a DiscoveryResponse, encoded, for each event of the type that is asked for, until the
// subscription or that istiod's process ends. Inactive: the type has none. On the loop's thread.
Subscription FollowStatus(sim::World& world, const StatusQuestion& question,
                          std::function<void(const std::string& response)> tell);

}  // namespace wavetank::serve
