#include "fakes/envoy/filters/cors.h"

#include <algorithm>
#include <memory>
#include <optional>
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

// What it leaves out the next level says.
struct CorsPolicy final : RouteFilterConfig {
  std::vector<StringMatch> origins;
  std::string methods, headers, exposed, max_age;
  std::optional<bool> credentials, private_network;
  std::optional<bool> forwards_strangers;  // preflights of origins that are not allowed; true where nobody says
  uint32_t enabled_per_million = 1'000'000, shadow_per_million = 0;
};

// Of all levels, the most specific first; not empty. Envoy: cors_filter.cc, allowOrigins() and those after it
class CorsPolicies {
 public:
  // The field `cors` counts where no level says it in typed_per_filter_config. Envoy: initializeCorsPolicies
  explicit CorsPolicies(const HttpStream& stream) : levels_(stream.RouteConfigs()) {
    if (levels_.empty()) levels_ = stream.RouteConfigs(kCorsField);
  }
  bool empty() const { return levels_.empty(); }
  const CorsPolicy& first() const { return Policy(levels_.front()); }

  template <typename T>
  const T& Said(T CorsPolicy::*field) const {
    static const T nothing{};
    for (const RouteFilterConfig* level : levels_) {
      if (const T& value = Policy(level).*field; !IsNothing(value)) return value;
    }
    return nothing;
  }

 private:
  static const CorsPolicy& Policy(const RouteFilterConfig* level) { return *static_cast<const CorsPolicy*>(level); }
  template <typename T>
  static bool IsNothing(const T& value) {
    return value.empty();
  }
  static bool IsNothing(const std::optional<bool>& value) { return !value.has_value(); }

  std::vector<const RouteFilterConfig*> levels_;
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
  if (message.has_allow_credentials()) out->credentials = message.allow_credentials().value();
  if (message.has_filter_enabled()) {
    out->enabled_per_million = PartsPerMillion(message.filter_enabled().default_value());
  }
  if (message.has_shadow_enabled()) {
    out->shadow_per_million = PartsPerMillion(message.shadow_enabled().default_value());
  }
  if (message.has_allow_private_network_access()) {
    out->private_network = message.allow_private_network_access().value();
  }
  if (message.has_forward_not_matching_preflights()) {
    out->forwards_strangers = message.forward_not_matching_preflights().value();
  }
  return out;
}

class CorsFilter final : public HttpFilter {
 public:
  explicit CorsFilter(std::string prefix) : prefix_(std::move(prefix)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const RequestSpec& request = stream.request();
    const std::string origin(FindHeader(request, "origin").value_or(""));
    if (origin.empty() || stream.route() == nullptr || AnswersItself(*stream.route())) return FilterStatus::kContinue;
    const CorsPolicies policies(stream);
    if (policies.empty()) return FilterStatus::kContinue;
    const bool enabled = Holds(policies.first().enabled_per_million, stream);
    if (!enabled && !Holds(policies.first().shadow_per_million, stream)) return FilterStatus::kContinue;
    const std::vector<StringMatch>& origins = policies.Said(&CorsPolicy::origins);
    const bool allowed = std::any_of(origins.begin(), origins.end(),
                                     [&](const StringMatch& m) { return m.Matches("*") || m.Matches(origin); });
    ++stream.Counter(prefix_ + (allowed ? "cors.origin_valid" : "cors.origin_invalid"));
    if (!enabled) return FilterStatus::kContinue;
    const auto said = [&](std::string_view name) { return FindHeader(request, name).value_or(""); };
    const bool preflight = request.method == "OPTIONS" && !said("access-control-request-method").empty();
    if (!allowed && (!preflight || policies.Said(&CorsPolicy::forwards_strangers).value_or(true))) {
      return FilterStatus::kContinue;
    }
    std::string lines;
    if (allowed) AddHeaderLine("access-control-allow-origin", origin, &lines);
    if (policies.Said(&CorsPolicy::credentials).value_or(false))
      AddHeaderLine("access-control-allow-credentials", "true", &lines);
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!value.empty()) AddHeaderLine(name, value, &lines);
    };
    const std::string& exposed = policies.Said(&CorsPolicy::exposed);
    if (!preflight) {
      add("access-control-expose-headers", exposed);
      stream.AddReplyHeaders(lines);
      return FilterStatus::kContinue;
    }
    // "*" is whatever the client asks for.
    const std::string_view methods = policies.Said(&CorsPolicy::methods), headers = policies.Said(&CorsPolicy::headers);
    add("access-control-allow-methods", methods == "*" ? said("access-control-request-method") : methods);
    add("access-control-allow-headers", headers == "*" ? said("access-control-request-headers") : headers);
    add("access-control-max-age", policies.Said(&CorsPolicy::max_age));
    if (policies.Said(&CorsPolicy::private_network).value_or(false) &&
        said("access-control-request-private-network") == "true") {
      add("access-control-allow-private-network", "true");
    }
    if (allowed) add("access-control-expose-headers", exposed);  // by the filter's turn on the way back
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
