// The ext_authz filters: which server they ask, about which requests, and what they make of the answer. What an answer
// leads to is said in ext_authz.cc. Envoy: source/extensions/filters/http/ext_authz/ext_authz.cc,
// filters/common/ext_authz
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/match/matchers.h"

namespace envoy::extensions::filters::http::ext_authz::v3 {
class ExtAuthz;
}
namespace envoy::extensions::filters::network::ext_authz::v3 {
class ExtAuthz;
}

namespace wavetank::envoysim {

class RequestEdit;
struct Reply;
struct RequestSpec;

struct ExtAuthzConfig {
  bool grpc = false;  // else HTTP
  // To the authorizer's cluster, with its timeout and without retries.
  RouteEntry route;
  std::string path_prefix;
  std::vector<std::pair<std::string, std::string>> headers_to_add;
  // Of the request's headers, those that are shown: of HTTP besides what always is, of gRPC all without such a list.
  std::optional<std::vector<StringMatch>> shown;
  // HTTP: of an answer that allows, these replace the request's or are appended to them, and these go to the client.
  std::vector<StringMatch> to_upstream, append_to_upstream, to_client_on_success;
  // HTTP: of an answer that denies, these go to the client, besides what always does; all without such a list.
  std::optional<std::vector<StringMatch>> to_client;
  bool clear_route_cache = false;
  bool failure_mode_allow = false;
  uint16_t status_on_error = 403;
  std::optional<MetadataMatch> enabled;  // only requests with such a note are asked about
  uint32_t enabled_per_million = 1'000'000;
  bool deny_at_disable = false;  // a client that is not asked about is denied
  std::string counters;          // "http.in.ext_authz."

  // `prefix`: "http.in.". InvalidArgument, of both: what Envoy says when it refuses the configuration.
  static absl::StatusOr<ExtAuthzConfig> Make(const envoy::extensions::filters::http::ext_authz::v3::ExtAuthz& message,
                                             const std::string& prefix);
  // Of connections; counters "ext_authz.PREFIX.".
  static absl::StatusOr<ExtAuthzConfig> Make(
      const envoy::extensions::filters::network::ext_authz::v3::ExtAuthz& message);
  bool AsksAbout(const DynamicMetadata& notes) const;
  // The request to the authorizer, about a request or, without one, about a connection. `principal`: the client's.
  std::shared_ptr<const RequestSpec> Check(const RequestSpec* request, std::string_view principal) const;
  // What its answer comes to.
  enum class Result : uint8_t { kAllowed, kDenied, kError };
  Result ResultOf(const Reply& reply) const;
  // What an answer that allows changes in the request; `headers` as Reply::headers.
  void Apply(std::string_view headers, RequestEdit* request) const;
  // The lines of an answer that the client sees as well.
  std::string ForClient(std::string_view headers, bool allowed) const;
};

}  // namespace wavetank::envoysim
