#include "fakes/envoy/filters/jwt_filter.h"

#include <memory>
#include <string>
#include <utility>

#include "core/x509/calendar.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "fakes/envoy/filters/jwt_authn.h"

namespace wavetank::envoysim {
namespace {

class JwtFilter final : public HttpFilter {
 public:
  explicit JwtFilter(std::shared_ptr<const JwtAuthn> authn) : authn_(std::move(authn)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto now = static_cast<uint64_t>(x509::UnixSeconds(stream.wall_clock()));
    const JwtOutcome& outcome = authn_->Check(stream.request(), now);
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
    LocalReply reply{JwtAuthn::CodeOf(status), kNoFlags, stream.Keep(JwtAuthn::DetailsOf(status)), {}};
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
  return type;
}

}  // namespace wavetank::envoysim
