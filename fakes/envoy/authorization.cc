// The router's filters that decide whether a request goes on: RBAC at once, ext_authz after asking an authorizer, whose
// request is a stream of the router as any other, without a downstream connection.
// Envoy: source/extensions/filters/http/rbac/rbac_filter.cc, filters/http/ext_authz/ext_authz.cc
#include <algorithm>
#include <utility>

#include "fakes/envoy/envoy_impl.h"
#include "fakes/envoy/router.h"

namespace wavetank::envoysim {
namespace {

// What an authorizer's answer comes to. Envoy: filters/common/ext_authz/ext_authz_http_impl.cc, toResponse; of gRPC the
// verdict stands in the message, and whatever is no message is an error.
enum class CheckResult : uint8_t { kAllowed, kDenied, kError };

CheckResult ResultOf(const ExtAuthzFilter& filter, const Reply& reply) {
  if (filter.grpc) {
    if (reply.from_proxy || reply.code != 200 || reply.grpc_status != 0) return CheckResult::kError;
    return reply.check_denied == 0 ? CheckResult::kAllowed : CheckResult::kDenied;
  }
  if (reply.code == 0 || reply.code >= 500) return CheckResult::kError;
  return reply.code == 200 ? CheckResult::kAllowed : CheckResult::kDenied;
}

}  // namespace

void Router::RunFilters(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  const std::vector<AuthorizationFilter>& filters = s.manager->authorization;
  while (s.next_filter < filters.size()) {
    const AuthorizationFilter& filter = filters[s.next_filter++];
    if (const auto* rbac = std::get_if<RbacFilter>(&filter)) {
      RbacSubject subject = s.downstream->Subject();
      subject.request = s.spec;
      if (const std::optional<IpAddress> source = ForwardedFor(*s.manager, *s.spec)) subject.source = *source;
      std::string_view shadow;
      const RbacRules::Verdict verdict = s.downstream->Authorize(*rbac, subject, &shadow);
      if (!shadow.empty()) s.notes.push_back({"envoy.filters.http.rbac", rbac->shadow_policy_key, shadow});
      if (verdict.allowed) continue;
      Local(id, 403, kNoFlags, plane_.configs().Keep(RbacDenial(verdict.policy)), "RBAC: access denied", lead);
      return;
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

void Router::Ask(StreamId id, const ExtAuthzFilter& authorizer, Duration lead) {
  static const HttpConnectionManager kAsyncClient;  // no filter of the listener's
  const StreamId check_id = streams_.Allocate();
  Stream& s = *streams_.Get(id);
  Stream& check = *streams_.Get(check_id);
  check.envoy = s.envoy;
  check.manager = &kAsyncClient;
  check.own_spec = authorizer.Check(*s.spec);
  check.spec = check.own_spec.get();
  check.route = &authorizer.route;
  check.cluster = s.envoy->Cluster(authorizer.route.cluster);
  check.start = s.envoy->host().Now();
  check.asked_by = id;
  check.authorizer = &authorizer;
  s.check = check_id;
  Continue(check_id, lead);
}

void Router::Answered(StreamId id, const ExtAuthzFilter& authorizer, const Reply& reply, Duration lead) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->check = kNoStream;
  const auto count = [&](std::string_view what) { ++s->envoy->Counter(authorizer.counters + std::string(what)); };
  switch (ResultOf(authorizer, reply)) {
    case CheckResult::kAllowed:
      count("ok");
      return RunFilters(id, lead);
    case CheckResult::kDenied:
      count("denied");
      return Local(id, reply.check_denied != 0 ? reply.check_denied : reply.code, kUnauthorizedExternalService,
                   "ext_authz_denied", plane_.configs().Keep(std::string(reply.body)), lead);
    case CheckResult::kError:
      count("error");
      if (authorizer.failure_mode_allow) {
        count("failure_mode_allowed");
        return RunFilters(id, lead);
      }
      return Local(id, authorizer.status_on_error, kUnauthorizedExternalService, "ext_authz_error", "", lead);
  }
}

}  // namespace wavetank::envoysim
