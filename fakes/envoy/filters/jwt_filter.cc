#include "fakes/envoy/filters/jwt_filter.h"

#include <memory>
#include <string>
#include <utility>

#include "core/x509/calendar.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "fakes/envoy/filters/jwt_authn.h"

namespace wavetank::envoysim {
namespace {

using PerRouteConfig = envoy::extensions::filters::http::jwt_authn::v3::PerRouteConfig;

struct JwtOfRoute final : RouteFilterConfig {
  std::string requirement;  // of the filter's, by name; empty: none
};

class JwtFilter final : public HttpFilter {
 public:
  explicit JwtFilter(std::shared_ptr<const JwtAuthn> authn) : authn_(std::move(authn)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto now = static_cast<uint64_t>(x509::UnixSeconds(stream.wall_clock()));
    // The most specific level of routes alone counts. Envoy: jwt_authn/filter.cc, decodeHeaders
    const auto* const of_route = static_cast<const JwtOfRoute*>(stream.RouteConfig());
    const bool routed = of_route != nullptr && !authn_->IsExempt(stream.request());
    if (routed && of_route->requirement.empty()) {
      ++stream.Counter(authn_->counters() + "allowed");
      return FilterStatus::kContinue;
    }
    if (routed && !authn_->Has(of_route->requirement)) {
      ++stream.Counter(authn_->counters() + "denied");
      const std::string why = authn_->WrongName(of_route->requirement);
      stream.Answer(LocalReply{403, kNoFlags, stream.Keep(JwtAuthn::DetailsOf(why)),
                               authn_->strips_answers() ? "" : stream.Keep("Failed JWT authentication: " + why)},
                    lead);
      return FilterStatus::kStop;
    }
    const JwtOutcome& outcome = authn_->Check(stream.request(), now, routed ? &of_route->requirement : nullptr);
    for (const MetadataNote& note : outcome.notes) stream.Note(note);
    if (outcome.preflight) ++stream.Counter(authn_->counters() + "cors_preflight_bypassed");
    if (outcome.status != JwtStatus::kOk) {
      ++stream.Counter(authn_->counters() + "denied");
      Refuse(stream, outcome.status, lead);
      return FilterStatus::kStop;
    }
    ++stream.Counter(authn_->counters() + "allowed");
    if (outcome.changed != nullptr) stream.Replace(outcome.changed);
    if (outcome.clear_route_cache) stream.ClearRouteCache();
    return FilterStatus::kContinue;
  }

 private:
  void Refuse(HttpStream& stream, JwtStatus status, Duration lead) const {
    LocalReply reply{
        JwtAuthn::CodeOf(status), kNoFlags, stream.Keep(JwtAuthn::DetailsOf(std::string(JwtStatusText(status)))), {}};
    if (!authn_->strips_answers()) {
      reply.body = JwtStatusText(status);
      reply.headers = stream.Keep(JwtAuthn::ChallengeOf(status, stream.request(), stream.connection().tls));
    }
    stream.Answer(reply, lead);
  }

  const std::shared_ptr<const JwtAuthn> authn_;
};

}  // namespace

HttpFilterType JwtFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication";
  type.name = "envoy.filters.http.jwt_authn";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    envoy::extensions::filters::http::jwt_authn::v3::JwtAuthentication message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    absl::StatusOr<std::shared_ptr<const JwtAuthn>> made =
        JwtAuthn::Make(message, std::string(context.stat_prefix), context.extensions);
    if (!made.ok()) return made.status();
    return std::make_shared<JwtFilter>(*std::move(made));
  };
  type.route_message = PerRouteConfig::descriptor()->full_name();
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    PerRouteConfig message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    if (message.requirement_specifier_case() == PerRouteConfig::REQUIREMENT_SPECIFIER_NOT_SET) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"requirement_specifier\", reason: is required)");
    }
    if (message.has_disabled() && !message.disabled()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (PerRouteConfigValidationError.Disabled: value must equal true)");
    }
    if (message.has_requirement_name() && message.requirement_name().empty()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (PerRouteConfigValidationError.RequirementName: value length must be at "
          "least 1 characters)");
    }
    auto out = std::make_shared<JwtOfRoute>();
    out->requirement = message.requirement_name();
    return out;
  };
  return type;
}

}  // namespace wavetank::envoysim
