#include "fakes/envoy/http/rewrites.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/type/matcher/v3/regex.pb.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::envoysim {
namespace {

// Where a path's query or fragment begins.
size_t PathEnd(std::string_view path) { return std::min(path.find_first_of("?#"), path.size()); }

// Where ":80" begins in "host:80"; npos if there is none.
size_t PortOf(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon == host.npos || (bracket != host.npos && colon < bracket)) return host.npos;
  return colon;
}

}  // namespace

absl::StatusOr<RegexRewrite> RegexRewrite::Make(const envoy::type::matcher::v3::RegexMatchAndSubstitute& message) {
  RegexRewrite out;
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_shared<re2::RE2>(message.pattern().regex(), options);
  if (!regex->ok()) return absl::InvalidArgumentError(regex->error());
  out.substitution_ = message.substitution();
  std::string error;
  if (!regex->CheckRewriteString(out.substitution_, &error)) return absl::InvalidArgumentError(error);
  out.regex_ = std::move(regex);
  return out;
}

std::string RegexRewrite::Of(std::string_view text) const {
  std::string out(text);
  re2::RE2::GlobalReplace(&out, *regex_, substitution_);
  return out;
}

std::string PathRewrite::Of(std::string_view path, const MatchedPath& matched) const {
  const size_t end = PathEnd(path);
  if (regex_.has_value()) return regex_->Of(path.substr(0, end)) + std::string(path.substr(end));
  const size_t replaced = matched.prefix ? std::min(matched.prefix->size(), path.size()) : end;
  return prefix_ + std::string(path.substr(replaced));
}

absl::StatusOr<HostRewrite> HostRewrite::Make(const envoy::config::route::v3::RouteAction& action) {
  HostRewrite out;
  out.literal = action.host_rewrite_literal();
  out.header = absl::AsciiStrToLower(action.host_rewrite_header());
  out.of_host = action.auto_host_rewrite().value();
  out.append_forwarded_host = action.append_x_forwarded_host();
  if (action.has_host_rewrite_path_regex()) {
    absl::StatusOr<RegexRewrite> regex = RegexRewrite::Make(action.host_rewrite_path_regex());
    if (!regex.ok()) return regex.status();
    out.path = *std::move(regex);
  }
  return out;
}

void HostRewrite::Set(std::string_view host, RequestEdit* request) const {
  if (append_forwarded_host && !request->now().authority.empty()) {
    request->Append("x-forwarded-host", request->now().authority);
  }
  request->Set(":authority", host);
}

void HostRewrite::Apply(RequestEdit* request) const {
  if (!literal.empty()) return Set(literal, request);
  if (!header.empty()) {
    const std::optional<std::string_view> value = FindHeader(request->now(), header);
    if (value && !value->empty()) Set(std::string(*value), request);
    return;
  }
  if (path.has_value()) Set(path->Of(request->now().path.substr(0, PathEnd(request->now().path))), request);
}

absl::StatusOr<Redirect> Redirect::Make(const envoy::config::route::v3::RedirectAction& action) {
  Redirect out;
  out.https = action.https_redirect();
  out.scheme = action.scheme_redirect();
  out.host = action.host_redirect();
  out.path = action.path_redirect();
  out.port = action.port_redirect();
  out.strip_query = action.strip_query();
  absl::StatusOr<PathRewrite> rewrite = PathRewrite::Make(action);
  if (!rewrite.ok()) return rewrite.status();
  out.rewrite = *std::move(rewrite);
  return out;
}

std::string Redirect::LocationOf(const RequestSpec& request, std::string_view from, const MatchedPath& matched) const {
  const std::string_view to_scheme = !scheme.empty() ? std::string_view(scheme) : https ? "https" : from;
  std::string to_host = host;
  if (host.empty()) {
    to_host = request.authority;
    const size_t colon = PortOf(to_host);
    if (colon != to_host.npos) {
      const std::string_view its = std::string_view(to_host).substr(colon);
      const bool default_port = (from == "http" && its == ":80") || (from == "https" && its == ":443");
      if (port != 0 || (to_scheme != from && default_port)) to_host.resize(colon);
    }
  }
  if (port != 0) to_host += fmt::format(":{}", port);
  const std::string_view query =
      std::string_view(request.path).substr(std::min(request.path.find('?'), request.path.size()));
  std::string to_path = request.path;
  bool own_query = false;
  if (!path.empty()) {
    own_query = path.find('?') != std::string::npos;
    to_path = own_query ? path : path + std::string(query);
  } else if (!rewrite.empty()) {
    to_path = rewrite.Of(request.path, matched);
  }
  if (strip_query && !own_query) to_path.resize(std::min(to_path.find('?'), to_path.size()));
  return fmt::format("{}://{}{}", to_scheme, to_host, to_path);
}

std::string HttpsLocationOf(const RequestSpec& request) { return "https://" + request.authority + request.path; }

}  // namespace wavetank::envoysim
