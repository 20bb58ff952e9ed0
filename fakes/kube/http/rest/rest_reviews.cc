// The part of the REST API that answers questions about rights and issues tokens.
#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/status.h"
#include "core/kube/time_format.h"
#include "core/kube/yaml.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/http/api/protobuf_body.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/discovery.h"
#include "fakes/kube/http/rest/openapi.h"
#include "fakes/kube/http/rest/preconditions.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/http/rest/reviews.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

Response RestApi::Review(const Call& call) {
  absl::StatusOr<json> body = ParseBody(*call.request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  if (!body->is_object()) return BadRequest("the object provided is unrecognized: the body must be an object");
  const Resource& resource = *call.target.resource;
  json spec = body->value("spec", json::object());
  if (!spec.is_object()) return Invalid(resource, "", "spec: Invalid value: must be an object");
  json out = *body;
  out["kind"] = resource.kind;
  out["apiVersion"] = resource.ApiVersion();
  if (!out.contains("metadata") || !out["metadata"].is_object()) out["metadata"] = json::object();
  out["metadata"]["creationTimestamp"] = nullptr;
  absl::StatusOr<Caller> caller = call.caller;
  if (!caller.ok()) return Unauthorized();
  if (resource.kind == "SelfSubjectReview") {
    out["status"] = {{"userInfo", UserInfo(*caller)}};
  } else if (resource.kind == "TokenReview") {
    out["status"] = ReviewToken(server_, options_.tokens, spec);
  } else if (resource.kind == "SelfSubjectRulesReview") {
    const json ns = spec.value("namespace", json(""));
    out["status"] = RulesOf(server_, *caller, ns.is_string() ? ns.get<std::string>() : "");
  } else {
    if (resource.kind != "SelfSubjectAccessReview") {
      const json user = spec.value("user", json(""));
      *caller = Caller();
      caller->user = user.is_string() ? user.get<std::string>() : "";
      caller->checked = true;
      for (const json& group : spec.value("groups", json::array())) {
        if (group == kMasters) caller->admin = true;
        if (group.is_string()) caller->groups.push_back(group.get<std::string>());
      }
      if (caller->user == kAdminUser) caller->admin = true;
    }
    const bool allowed = MayDo(server_, *caller, spec);
    out["status"] = {{"allowed", allowed}};
    if (caller->admin) out["status"]["reason"] = "RBAC: allowed by the group system:masters";
  }
  return JsonResponse(201, out);
}

Response RestApi::IssueToken(const Call& call) {
  if (server_.Get(call.target.resource->StoreKind(), {call.target.ns, call.target.name}) == nullptr)
    return NotFound(*call.target.resource, call.target.name);
  if (options_.tokens == nullptr) return Failure(501, "NotImplemented", "this cluster issues no tokens");
  absl::StatusOr<json> body = ParseBody(*call.request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  json spec = body->is_object() ? body->value("spec", json::object()) : json::object();
  if (!spec.is_object()) spec = json::object();
  constexpr int64_t kShortest = 600, kLongest = 1LL << 32;  // seconds, as the TokenRequest API has it
  int64_t seconds = 3600;
  if (const auto it = spec.find("expirationSeconds"); it != spec.end() && it->is_number_integer())
    seconds = it->get<int64_t>();
  if (seconds < kShortest || seconds > kLongest) {
    Resource review = *call.target.resource;
    review.kind = "TokenRequest";
    review.group = "authentication.k8s.io";
    return Invalid(review, "",
                   fmt::format("spec.expirationSeconds: Invalid value: {}: may not specify a duration {}", seconds,
                               seconds < kShortest ? "less than 10 minutes" : "larger than 2^32 seconds"));
  }
  kube::TokenClaims claims;
  claims.ns = call.target.ns;
  claims.service_account = call.target.name;
  for (const json& audience : spec.value("audiences", json::array())) {
    if (audience.is_string()) claims.audiences.push_back(audience.get<std::string>());
  }
  claims.issued = server_.host().Now();
  claims.expires = claims.issued + std::chrono::seconds(seconds);
  if (const json bound = spec.value("boundObjectRef", json());
      bound.is_object() && bound.value("kind", json()) == "Pod") {
    const json name = bound.value("name", json(""));
    claims.pod_name = name.is_string() ? name.get<std::string>() : "";
    const ObjectRef pod = server_.Get("Pod.", {call.target.ns, claims.pod_name});
    if (pod == nullptr) return NotFound(*resources_.Find("", "v1", "pods"), claims.pod_name);
    claims.pod_uid = pod->meta.uid;
  }
  spec["expirationSeconds"] = seconds;
  return JsonResponse(201, {{"kind", "TokenRequest"},
                            {"apiVersion", "authentication.k8s.io/v1"},
                            {"metadata", {{"name", call.target.name}, {"namespace", call.target.ns}}},
                            {"spec", spec},
                            {"status",
                             {{"token", options_.tokens->Issue(claims)},
                              {"expirationTimestamp", kube::FormatRfc3339(server_.UnixNow() + seconds)}}}});
}

}  // namespace wavetank::fakekube::http
