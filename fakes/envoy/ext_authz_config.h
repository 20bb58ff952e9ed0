// The ext_authz filters: whom they ask, about which requests, and what they make of the answer. What an answer leads to
// is the router's (authorization.cc) and, of connections, not modelled.
// Envoy: source/extensions/filters/http/ext_authz/ext_authz.cc, filters/common/ext_authz
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/matchers.h"
#include "fakes/envoy/route_config.h"

namespace envoy::extensions::filters::http::ext_authz::v3 {
class ExtAuthz;
}

namespace wavetank::envoysim {

struct RequestSpec;

// What one filter notes for those behind it: dynamic metadata, as far as filters here write some.
struct MetadataNote {
  std::string_view filter, key, value;
};

struct ExtAuthzFilter {
  // Only requests with such a note are asked about.
  struct Enabled {
    std::string filter, key;
    StringMatch value;
    bool invert = false;
  };

  bool grpc = false;  // else HTTP
  // To the authorizer's cluster, with its timeout and without retries.
  RouteEntry route;
  std::string path_prefix;
  std::vector<std::pair<std::string, std::string>> headers_to_add;
  // Of the request's headers, those that are shown: of HTTP besides what always is, of gRPC all without such a list.
  std::optional<std::vector<StringMatch>> shown;
  std::vector<StringMatch> to_upstream;  // HTTP: of an answer that allows, these go on with the request
  bool failure_mode_allow = false;
  uint16_t status_on_error = 403;
  std::optional<Enabled> enabled;
  std::string counters;  // "http.in.ext_authz."

  // `prefix`: "http.in."
  static absl::StatusOr<ExtAuthzFilter> Make(const envoy::extensions::filters::http::ext_authz::v3::ExtAuthz& message,
                                             const std::string& prefix);
  bool AsksAbout(const std::vector<MetadataNote>& notes) const;
  // The request to the authorizer.
  std::shared_ptr<const RequestSpec> Check(const RequestSpec& request) const;
};

}  // namespace wavetank::envoysim
