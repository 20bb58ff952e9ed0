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
  bool credentials = false, private_network = false;
  bool forwards_strangers = true;  // preflights of origins that are not allowed
  uint32_t enabled_per_million = 1'000'000, shadow_per_million = 0;
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
  if (message.has_shadow_enabled()) {
    out->shadow_per_million = PartsPerMillion(message.shadow_enabled().default_value());
  }
  out->private_network = message.allow_private_network_access().value();
  if (message.has_forward_not_matching_preflights()) {
    out->forwards_strangers = message.forward_not_matching_preflights().value();
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
    const bool enabled = Holds(policy->enabled_per_million, stream);
    if (!enabled && !Holds(policy->shadow_per_million, stream)) return FilterStatus::kContinue;
    const bool allowed = std::any_of(policy->origins.begin(), policy->origins.end(),
                                     [&](const StringMatch& m) { return m.Matches("*") || m.Matches(origin); });
    ++stream.Counter(prefix_ + (allowed ? "cors.origin_valid" : "cors.origin_invalid"));
    if (!enabled) return FilterStatus::kContinue;
    const auto said = [&](std::string_view name) { return FindHeader(request, name).value_or(""); };
    const bool preflight = request.method == "OPTIONS" && !said("access-control-request-method").empty();
    if (!allowed && (!preflight || policy->forwards_strangers)) return FilterStatus::kContinue;
    std::string lines;
    if (allowed) AddHeaderLine("access-control-allow-origin", origin, &lines);
    if (policy->credentials) AddHeaderLine("access-control-allow-credentials", "true", &lines);
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!value.empty()) AddHeaderLine(name, value, &lines);
    };
    if (!preflight) {
      add("access-control-expose-headers", policy->exposed);
      stream.AddReplyHeaders(lines);
      return FilterStatus::kContinue;
    }
    // "*" is whatever the client asks for.
    add("access-control-allow-methods",
        policy->methods == "*" ? said("access-control-request-method") : std::string_view(policy->methods));
    add("access-control-allow-headers",
        policy->headers == "*" ? said("access-control-request-headers") : std::string_view(policy->headers));
    add("access-control-max-age", policy->max_age);
    if (policy->private_network && said("access-control-request-private-network") == "true") {
      add("access-control-allow-private-network", "true");
    }
    if (allowed) add("access-control-expose-headers", policy->exposed);  // by the filter's turn on the way back
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
  static bool Holds(uint32_t per_million, HttpStream& stream) {
    if (per_million >= 1'000'000) return true;
    return per_million > 0 && stream.random().Chance(per_million);
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
