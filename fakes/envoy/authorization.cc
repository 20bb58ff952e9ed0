// The router's filters that decide whether a request goes on, and what goes on: RBAC and jwt_authn at once, ext_authz
// after asking an authorizer, whose request is a stream of the router as any other, without a downstream connection.
// Envoy: source/extensions/filters/http/rbac/rbac_filter.cc, filters/http/ext_authz/ext_authz.cc,
// filters/http/jwt_authn/filter.cc
#include <algorithm>
#include <utility>

#include "core/x509/calendar.h"
#include "fakes/envoy/envoy_impl.h"
#include "fakes/envoy/request_edit.h"
#include "fakes/envoy/router.h"

namespace wavetank::envoysim {
void Router::RunFilters(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  const std::vector<AuthorizationFilter>& filters = s.manager->authorization;
  while (s.next_filter < filters.size()) {
    const AuthorizationFilter& filter = filters[s.next_filter++];
    if (const auto* rbac = std::get_if<RbacFilter>(&filter)) {
      RbacSubject subject = s.downstream->Subject();
      subject.request = s.spec;
      subject.metadata = &s.notes;
      if (const std::optional<IpAddress> source = ForwardedFor(*s.manager, *s.spec)) subject.source = *source;
      std::string_view shadow;
      const RbacRules::Verdict verdict = s.downstream->Authorize(*rbac, subject, &shadow);
      if (!shadow.empty()) s.notes.push_back({"envoy.filters.http.rbac", rbac->shadow_policy_key, shadow, nullptr});
      if (verdict.allowed) continue;
      Local(id, 403, kNoFlags, plane_.configs().Keep(RbacDenial(verdict.policy)), "RBAC: access denied", lead);
      return;
    }
    if (const auto* jwt = std::get_if<std::shared_ptr<const JwtAuthnFilter>>(&filter)) {
      if (!Authenticate(id, **jwt, lead)) return;
      continue;
    }
    if (const auto* authn = std::get_if<IstioAuthnFilter>(&filter)) {
      authn->Note(&s.notes);
      if (authn->clear_route_cache) Reroute(&s);
      continue;
    }
    const auto& authorizer = std::get<ExtAuthzFilter>(filter);
    if (s.route == nullptr) continue;  // Envoy: ext_authz.cc, getPerRouteFlags
    if (!authorizer.AsksAbout(s.notes)) {
      ++s.envoy->Counter(authorizer.counters + "disabled");
      continue;
    }
    Ask(id, authorizer, lead);
    return;
  }
  Authorized(id, lead);
}

bool Router::Authenticate(StreamId id, const JwtAuthnFilter& filter, Duration lead) {
  Stream& s = *streams_.Get(id);
  const auto now = static_cast<uint64_t>(x509::UnixSeconds(s.envoy->host().Now()));
  const RequestSpec& as_sent = *s.spec;
  const JwtOutcome& outcome = filter.Check(as_sent, now);
  s.notes.insert(s.notes.end(), outcome.notes.begin(), outcome.notes.end());
  if (outcome.preflight) ++s.envoy->Counter(filter.counters() + "cors_preflight_bypassed");
  if (outcome.status != JwtStatus::kOk) {
    ++s.envoy->Counter(filter.counters() + "denied");
    ConfigStore& texts = plane_.configs();
    const bool strip = filter.strips_answers();
    Local(id, JwtAuthnFilter::CodeOf(outcome.status), kNoFlags, texts.Keep(JwtAuthnFilter::DetailsOf(outcome.status)),
          strip ? std::string_view() : JwtStatusText(outcome.status), lead,
          strip ? std::string_view()
                : texts.Keep(JwtAuthnFilter::ChallengeOf(outcome.status, as_sent, s.downstream->tls())));
    return false;
  }
  ++s.envoy->Counter(filter.counters() + "allowed");
  if (outcome.changed != nullptr) {
    s.own_spec = outcome.changed;
    s.spec = s.own_spec.get();
  }
  if (outcome.clear_route_cache) Reroute(&s);
  return true;
}

StreamId Router::NewCheck(Envoy::Impl& envoy, const ExtAuthzFilter& authorizer,
                          std::shared_ptr<const RequestSpec> spec) {
  static const HttpConnectionManager kAsyncClient;  // no filter of the listener's
  const StreamId id = streams_.Allocate();
  Stream& check = *streams_.Get(id);
  check.envoy = &envoy;
  check.manager = &kAsyncClient;
  check.own_spec = std::move(spec);
  check.spec = check.own_spec.get();
  check.route = &authorizer.route;
  check.cluster = envoy.Cluster(authorizer.route.cluster);
  check.start = envoy.host().Now();
  check.authorizer = &authorizer;
  return id;
}

void Router::Ask(StreamId id, const ExtAuthzFilter& authorizer, Duration lead) {
  Stream& asking = *streams_.Get(id);
  const StreamId check =
      NewCheck(*asking.envoy, authorizer, authorizer.Check(asking.spec, asking.downstream->Subject().identity));
  streams_.Get(check)->asked_by = id;
  streams_.Get(id)->check = check;
  Continue(check, lead);
}

StreamId Router::AskAbout(DownstreamConnection& connection, const ExtAuthzFilter& authorizer) {
  const StreamId check =
      NewCheck(connection.envoy(), authorizer, authorizer.Check(nullptr, connection.Subject().identity));
  streams_.Get(check)->connection = &connection;
  Continue(check, Duration::zero());
  return check;
}

void Router::Answered(StreamId id, const ExtAuthzFilter& authorizer, const Reply& reply, Duration lead) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->check = kNoStream;
  const auto count = [&](std::string_view what) { ++s->envoy->Counter(authorizer.counters + std::string(what)); };
  using Result = ExtAuthzFilter::Result;
  switch (authorizer.ResultOf(reply)) {
    case Result::kAllowed: {
      count("ok");
      RequestEdit edit(*s->spec);
      authorizer.Apply(reply.headers, &edit);
      if (std::shared_ptr<const RequestSpec> changed = edit.Take()) {
        s->own_spec = std::move(changed);
        s->spec = s->own_spec.get();
        if (authorizer.clear_route_cache) Reroute(s);
      }
      if (const std::string shown = authorizer.ForClient(reply.headers, /*allowed=*/true); !shown.empty()) {
        s->response_headers = plane_.configs().Keep(std::string(s->response_headers) + shown);
      }
      return RunFilters(id, lead);
    }
    case Result::kDenied:
      count("denied");
      return Local(id, reply.check_denied != 0 ? reply.check_denied : reply.code, kUnauthorizedExternalService,
                   "ext_authz_denied", plane_.configs().Keep(std::string(reply.body)), lead,
                   plane_.configs().Keep(authorizer.ForClient(reply.headers, /*allowed=*/false)));
    case Result::kError:
      count("error");
      if (authorizer.failure_mode_allow) {
        count("failure_mode_allowed");
        return RunFilters(id, lead);
      }
      return Local(id, authorizer.status_on_error, kUnauthorizedExternalService, "ext_authz_error", "", lead);
  }
}

}  // namespace wavetank::envoysim
