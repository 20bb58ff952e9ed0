#include "fakes/envoy/filters/cors.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/extensions/filters/http/cors/v3/cors.pb.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/match/proto_time.h"
#include "fakes/envoy/tcp/header_lines.h"

namespace wavetank::envoysim {
namespace {

struct CorsPolicy final : RouteFilterConfig {
  std::vector<StringMatch> origins;
  std::string methods, headers, exposed, max_age;
  bool credentials = false;
  uint32_t enabled_per_million = 1'000'000;
};

// From either message that says it.
template <typename Message>
absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> CompilePolicy(const google::protobuf::Any& config) {
  Message message;
  if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
  auto out = std::make_shared<CorsPolicy>();
  for (const auto& origin : message.allow_origin_string_match()) {
    absl::StatusOr<StringMatch> match = StringMatch::Make(origin);
    if (!match.ok()) return match.status();
    out->origins.push_back(*std::move(match));
  }
  out->methods = message.allow_methods();
  out->headers = message.allow_headers();
  out->exposed = message.expose_headers();
  out->max_age = message.max_age();
  out->credentials = message.allow_credentials().value();
  if (message.has_filter_enabled()) {
    out->enabled_per_million = PartsPerMillion(message.filter_enabled().default_value());
  }
  return out;
}

class CorsFilter final : public HttpFilter {
 public:
  explicit CorsFilter(std::string prefix) : prefix_(std::move(prefix)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto* const policy = static_cast<const CorsPolicy*>(stream.RouteConfig());
    const RequestSpec& request = stream.request();
    const std::string origin(FindHeader(request, "origin").value_or(""));
    if (policy == nullptr || origin.empty() || AnswersItself(*stream.route())) return FilterStatus::kContinue;
    if (!Enabled(*policy, stream)) return FilterStatus::kContinue;
    const bool allowed = std::any_of(policy->origins.begin(), policy->origins.end(),
                                     [&](const StringMatch& m) { return m.Matches(origin); });
    ++stream.Counter(prefix_ + (allowed ? "cors.origin_valid" : "cors.origin_invalid"));
    if (!allowed) return FilterStatus::kContinue;
    std::string lines;
    AddHeaderLine("access-control-allow-origin", origin, &lines);
    if (policy->credentials) AddHeaderLine("access-control-allow-credentials", "true", &lines);
    const bool preflight =
        request.method == "OPTIONS" && !FindHeader(request, "access-control-request-method").value_or("").empty();
    const auto add = [&](std::string_view name, const std::string& value) {
      if (!value.empty()) AddHeaderLine(name, value, &lines);
    };
    if (!preflight) {
      add("access-control-expose-headers", policy->exposed);
      stream.AddReplyHeaders(lines);
      return FilterStatus::kContinue;
    }
    add("access-control-allow-methods", policy->methods);
    add("access-control-allow-headers", policy->headers);
    add("access-control-max-age", policy->max_age);
    add("access-control-expose-headers", policy->exposed);  // by the filter's turn on the way back
    // Envoy: cors_filter.cc, decodeHeaders: encodeHeaders() in the place of a local reply.
    LocalReply reply{200, kNoFlags, "cors_response", "", stream.Keep(lines)};
    reply.edited = false;
    stream.Answer(reply, lead);
    return FilterStatus::kStop;
  }

 private:
  // Measured: what leads to no upstream has no policy. Envoy: cors_filter.cc, initializeCorsPolicies
  static bool AnswersItself(const RouteEntry& route) {
    return route.action == RouteEntry::Action::kDirect || route.action == RouteEntry::Action::kRedirect;
  }
  static bool Enabled(const CorsPolicy& policy, HttpStream& stream) {
    if (policy.enabled_per_million >= 1'000'000) return true;
    return policy.enabled_per_million > 0 && stream.random().Chance(policy.enabled_per_million);
  }

  const std::string prefix_;
};

}  // namespace

HttpFilterType CorsFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.cors.v3.Cors";
  type.name = "envoy.filters.http.cors";
  type.make = [](const google::protobuf::Any&,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    return std::make_shared<CorsFilter>(std::string(context.stat_prefix));
  };
  type.route_message = "envoy.extensions.filters.http.cors.v3.CorsPolicy";
  type.make_for_route = [](const google::protobuf::Any& config, const Extensions&) {
    return ConfigType(config) == "envoy.config.route.v3.CorsPolicy"
               ? CompilePolicy<envoy::config::route::v3::CorsPolicy>(config)
               : CompilePolicy<envoy::extensions::filters::http::cors::v3::CorsPolicy>(config);
  };
  return type;
}

}  // namespace wavetank::envoysim
