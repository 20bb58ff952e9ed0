#include "core/gateway_api/routes/http_rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/gateway_api/routes/backends.h"
#include "core/gateway_api/routes/http_filters.h"
#include "core/gateway_api/routes/http_matches.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;
using pilot::Change;

namespace {

// One rule with one match or none.
class HttpRule {
 public:
  HttpRule(const Inputs& in, const Grants* grants, const kube::Object& route)
      : in_(in), grants_(grants), route_(route) {}

  // Null: `error` says why.
  json Convert(const json& rule, size_t place, const json* match, std::optional<ConfigError>& error) const {
    std::string name = fmt::format("{}.{}.{}", route_.meta.ns, route_.meta.name, place);
    if (Has(Change::kGatewayApiRuleNames)) name = Text(rule, "name", name);
    json out = {{"name", std::move(name)}};
    if (match != nullptr) {
      out["match"] = json::array({Grpc() ? GrpcMatchOf(*match, error) : HttpMatchOf(*match, error)});
      if (error) return {};
    }
    std::optional<ConfigError> mirrors;
    for (const json& filter : Items(At(rule, "filters"))) {
      AddFilter(filter, out, error, mirrors);
      if (error) return {};
    }
    if (Has(Change::kGatewayApiRetries)) AddRetries(At(rule, "retry"), out);
    if (Has(Change::kGatewayApiTimeouts)) AddTimeouts(At(rule, "timeouts"), out);
    const json& backends = Items(At(rule, "backendRefs"));
    if (!HasWeight(backends) && !out.contains("redirect")) {
      // No backend at all is 404, but 500 if all have weight 0; of gRPC both are 500.
      out["directResponse"] = {{"status", backends.empty() && !Grpc() && Has(Change::kGatewayApiNotFound) ? 404 : 500}};
      error = mirrors;
      return out;
    }
    Destinations to = BuildDestinations(in_, grants_, route_, backends, true);
    if (to.failed) {
      error = std::move(to.failed);
      return {};
    }
    if (!to.list.empty()) out["route"] = std::move(to.list);
    error = std::move(to.invalid);
    JoinErrors(error, mirrors);
    return out;
  }

 private:
  bool Has(Change change) const { return in_.profile.Has(change); }
  bool Grpc() const { return route_.kind == "GRPCRoute"; }

  void AddFilter(const json& filter, json& out, std::optional<ConfigError>& error,
                 std::optional<ConfigError>& mirrors) const {
    const std::string type = Text(filter, "type");
    if (type == "RequestMirror") {
      json mirror = MirrorOf(At(filter, "requestMirror"), Has(Change::kGatewayApiErrorsJoined) ? mirrors : error);
      if (!mirror.is_null() && Has(Change::kSeveralMirrors)) {
        out["mirrors"].push_back(std::move(mirror));
      } else if (!mirror.is_null() && !out.contains("mirror")) {  // of several the first
        out["mirror"] = std::move(mirror["destination"]);
        if (mirror.contains("percentage")) out["mirrorPercentage"] = std::move(mirror["percentage"]);
      }
    } else if (type == "RequestRedirect" && !Grpc()) {
      out["redirect"] = RedirectOf(At(filter, "requestRedirect"), in_.profile);
    } else if (type == "URLRewrite" && !Grpc()) {
      if (json rewrite = RewriteOf(At(filter, "urlRewrite"), in_.profile); !rewrite.is_null())
        out["rewrite"] = std::move(rewrite);
    } else if (type == "CORS" && !Grpc() && Has(Change::kGatewayApiCors)) {
      out["corsPolicy"] = CorsOf(At(filter, "cors"));
    } else {
      error = AddHeaderFilter(filter, out);
    }
  }

  json MirrorOf(const json& filter, std::optional<ConfigError>& error) const {
    if (!filter.is_object()) return {};
    Destination to = BuildDestination(in_, grants_, route_, At(filter, "backendRef"));
    JoinErrors(error, to.failed ? to.failed : to.invalid);
    if (to.failed || to.invalid) return {};
    json out = {{"destination", std::move(to.value)}};
    if (!Has(Change::kGatewayApiMirrorShares)) return out;
    if (const json& fraction = At(filter, "fraction"); fraction.is_object()) {
      const auto of = static_cast<double>(std::max<int64_t>(1, Number(fraction, "denominator", 100)));
      out["percentage"] = {{"value", 100 * static_cast<double>(Number(fraction, "numerator")) / of}};
    } else if (const json& percent = At(filter, "percent"); percent.is_number_integer()) {
      out["percentage"] = {{"value", percent}};
    }
    return out;
  }

  static void AddRetries(const json& retry, json& out) {
    if (!retry.is_object()) return;
    std::string on = "connect-failure,refused-stream,unavailable,cancelled";
    for (const json& code : Items(At(retry, "codes"))) on += fmt::format(",{}", NumberOf(code));
    const int64_t attempts = Number(retry, "attempts", 2);
    json& retries = out["retries"] = {{"attempts", attempts}};
    if (attempts != 0) retries["retryOn"] = on;
    if (const std::string backoff = Text(retry, "backoff"); !backoff.empty()) retries["backoff"] = backoff;
  }

  static void AddTimeouts(const json& timeouts, json& out) {
    const auto take = [&](const char* name) -> std::string {
      const std::string text = Text(timeouts, name);
      const std::optional<Duration> read = ParseGoDuration(text);
      return read && *read != Duration::zero() ? text : std::string();
    };
    if (const std::string request = take("request"); !request.empty()) out["timeout"] = request;
    const std::string backend = take("backendRequest");
    if (backend.empty()) return;
    if (out.contains("retries")) {
      out["retries"]["perTryTimeout"] = backend;
    } else {
      out["timeout"] = backend;
    }
  }

  const Inputs& in_;
  const Grants* grants_;
  const kube::Object& route_;
};

// How much a match's path says, and how long it is.
std::pair<int, size_t> RankOf(const json& match) {
  const json& uri = At(match, "uri");
  for (const auto& [name, rank] : {std::pair("exact", 3), std::pair("prefix", 2), std::pair("regex", 1)}) {
    if (At(uri, name).is_string()) return {rank, At(uri, name).get_ref<const std::string&>().size()};
  }
  return {-1, 0};
}

// Where nothing is sent to: istiod knows no better way to refuse a connection.
json NoDestination() {
  return json::array(
      {{{"destination",
         {{"host", "internal.cluster.local"}, {"subset", "zero-weight"}, {"port", {{"number", 65535}}}}}}});
}

Rules ConvertL4(const Inputs& in, const Grants* grants, const kube::Object& route, const json& match) {
  Rules out;
  for (const json& rule : Items(At(route.body, {"spec", "rules"}))) {
    const json& backends = Items(At(rule, "backendRefs"));
    json one = json::object();
    const bool partly = in.profile.Has(Change::kGatewayApiL4Partly);
    if (!HasWeight(backends)) {
      if (!partly) return {};  // neither a route nor a word of it
      one["route"] = NoDestination();
    } else {
      Destinations to = BuildDestinations(in, grants, route, backends, false);
      if (to.failed) return {json::array(), std::move(to.failed)};
      if (to.invalid && !partly) return {json::array(), std::move(to.invalid)};
      if (to.invalid) out.error = std::move(to.invalid);
      if (!match.is_null()) one["match"] = match;
      one["route"] = std::move(to.list);
    }
    out.routes.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Rules ConvertHttpRules(const Inputs& in, const Grants* grants, const kube::Object& route) {
  Rules out;
  const HttpRule converter(in, grants, route);
  size_t place = 0;
  for (const json& rule : Items(At(route.body, {"spec", "rules"}))) {
    const json& matches = Items(At(rule, "matches"));
    for (size_t i = 0; i < std::max<size_t>(1, matches.size()); ++i) {
      std::optional<ConfigError> error;
      json made = converter.Convert(rule, place, matches.empty() ? nullptr : &matches[i], error);
      if (made.is_null()) return {json::array(), std::move(error)};
      if (error) out.error = std::move(error);
      out.routes.push_back(std::move(made));
    }
    ++place;
  }
  return out;
}

Rules ConvertTcpRules(const Inputs& in, const Grants* grants, const kube::Object& route) {
  return ConvertL4(in, grants, route, json());
}

Rules ConvertTlsRules(const Inputs& in, const Grants* grants, const kube::Object& route) {
  json hosts = Items(At(route.body, {"spec", "hostnames"}));
  if (hosts.empty()) hosts = {"*"};
  return ConvertL4(in, grants, route, json::array({{{"sniHosts", std::move(hosts)}}}));
}

void SortHttpRoutes(const pilot::Profile& profile, json& routes) {
  const bool by_method = profile.Has(Change::kGatewayApiMethodRanks);
  std::stable_sort(routes.begin(), routes.end(), [by_method](const json& a, const json& b) {
    const json &all_a = Items(At(a, "match")), &all_b = Items(At(b, "match"));
    if (all_a.empty()) return false;
    if (all_b.empty()) return true;
    const json &match_a = all_a[0], &match_b = all_b[0];
    const auto rank_a = RankOf(match_a), rank_b = RankOf(match_b);
    if (rank_a != rank_b) return rank_a > rank_b;
    const bool method_a = match_a.contains("method"), method_b = match_b.contains("method");
    if (by_method && method_a != method_b) return method_a;
    const size_t headers_a = At(match_a, "headers").size(), headers_b = At(match_b, "headers").size();
    if (headers_a != headers_b) return headers_a > headers_b;
    return At(match_a, "queryParams").size() > At(match_b, "queryParams").size();
  });
}

}  // namespace wavetank::gatewayapi
