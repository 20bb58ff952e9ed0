// Paths and hosts as routes rewrite them, and where redirects lead.
// Envoy: source/common/router/config_impl.cc (RouteEntryImplBase), source/common/http/utility.cc
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace re2 {
class RE2;
}
namespace envoy::config::route::v3 {
class RedirectAction;
class RouteAction;
}  // namespace envoy::config::route::v3
namespace envoy::type::matcher::v3 {
class RegexMatchAndSubstitute;
}

namespace wavetank::envoysim {

struct RequestSpec;
class RequestEdit;

// Everything that a pattern finds is replaced.
class RegexRewrite {
 public:
  // InvalidArgument: RE2 does not take the pattern, or not what is put in its place.
  static absl::StatusOr<RegexRewrite> Make(const envoy::type::matcher::v3::RegexMatchAndSubstitute& message);
  std::string Of(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> regex_;
  std::string substitution_;
};

// What of the path a route matched: its prefix, or all of it.
struct MatchedPath {
  std::optional<std::string> prefix;  // nothing: all but the query
};

class PathRewrite {
 public:
  // From a RouteAction or a RedirectAction. InvalidArgument as of RegexRewrite.
  template <typename Message>
  static absl::StatusOr<PathRewrite> Make(const Message& message) {
    PathRewrite out;
    out.prefix_ = message.prefix_rewrite();
    if (message.has_regex_rewrite()) {
      absl::StatusOr<RegexRewrite> regex = RegexRewrite::Make(message.regex_rewrite());
      if (!regex.ok()) return regex.status();
      out.regex_ = *std::move(regex);
    }
    return out;
  }
  bool empty() const { return prefix_.empty() && !regex_.has_value(); }
  std::string Of(std::string_view path, const MatchedPath& matched) const;

 private:
  std::string prefix_;
  std::optional<RegexRewrite> regex_;
};

struct HostRewrite {
  std::string literal, header;
  std::optional<RegexRewrite> path;
  bool of_host = false;  // auto_host_rewrite: the chosen host's name, once there is one
  bool append_forwarded_host = false;

  // InvalidArgument as of RegexRewrite.
  static absl::StatusOr<HostRewrite> Make(const envoy::config::route::v3::RouteAction& action);
  bool empty() const { return literal.empty() && header.empty() && !path.has_value() && !of_host; }
  // All but `of_host`.
  void Apply(RequestEdit* request) const;
  void Set(std::string_view host, RequestEdit* request) const;
};

struct Redirect {
  bool https = false, strip_query = false;
  std::string scheme, host, path;
  uint32_t port = 0;
  PathRewrite rewrite;

  // InvalidArgument as of RegexRewrite.
  static absl::StatusOr<Redirect> Make(const envoy::config::route::v3::RedirectAction& action);
  // `from`: the request's own scheme.
  std::string LocationOf(const RequestSpec& request, std::string_view from, const MatchedPath& matched) const;
};

// Of a virtual host that requires TLS.
std::string HttpsLocationOf(const RequestSpec& request);

}  // namespace wavetank::envoysim
