#include "absl/strings/numbers.h"
#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/validation/jwks_text.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

// istiod: pkg/config/security, ParseJwksURI.
std::string JwksUriProblem(const std::string& uri) {
  const UrlParts url = ParseUrl(uri);
  if (!url.error.empty()) return url.error;
  if (url.scheme != "http" && url.scheme != "https") {
    return fmt::format("URI scheme {} is not supported", Quoted(url.scheme));
  }
  int64_t port = 0;
  return url.port.empty() ? "" : NumberError(url.port, &port);
}

void CheckJwtRule(const json& rule, Problems& out) {
  if (MemberText(rule, "issuer").empty()) out.AddToList("issuer must be set");
  for (const json& audience : Items(Member(rule, "audiences"))) {
    if (TextOf(audience).empty()) out.AddToList("audience must be non-empty string");
  }
  const auto list = [&](const std::string& text) {
    if (!text.empty()) out.AddToList(text);
  };
  if (const std::string uri = MemberText(rule, "jwksUri"); !uri.empty()) list(JwksUriProblem(uri));
  if (const std::string jwks = MemberText(rule, "jwks"); !jwks.empty()) {
    const std::string error = KeySetError(jwks);
    if (!error.empty()) list("jwks parse error: " + error);
  }
  for (const json& header : Items(Member(rule, "fromHeaders"))) {
    if (MemberText(header, "name").empty()) list("location header name must be non-empty string");
  }
  for (const json& parameter : Items(Member(rule, "fromParams"))) {
    if (TextOf(parameter).empty()) list("location query must be non-empty string");
  }
  if (out.Has(pilot::Change::kTokensInCookies)) {
    for (const json& cookie : Items(Member(rule, "fromCookies"))) {
      if (TextOf(cookie).empty()) list("cookie name must be non-empty string");
    }
  }
  for (const json& output : Items(Member(rule, "outputClaimToHeaders"))) {
    const std::string header = MemberText(output, "header");
    if (MemberText(output, "claim").empty() || header.empty()) {
      list("outputClaimToHeaders header and claim value must be non-empty string");
    } else {
      list(HeaderValue(header));
    }
  }
}

}  // namespace

void CheckPeerAuthentication(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  const json& selector = Member(spec, "selector");
  const json& ports = Member(spec, "portLevelMtls");
  if (Mapping(Member(selector, "matchLabels")).empty() && !Mapping(ports).empty()) {
    out.Add("mesh/namespace peer authentication cannot have port level mTLS");
  }
  if (ports.is_object() && ports.empty()) out.Add("port level mTLS, if defined, must have at least one element");
  for (const auto& [port, mtls] : Mapping(ports).items()) {
    int64_t number = 0;
    if (absl::SimpleAtoi(port, &number) && number == 0) out.Add("port cannot be 0");
  }
  Selector(selector, "matchLabels", "", "", out);
}

// istiod: validateOneOfSelectorType, validatePolicyTargetReference.
void CheckTargets(const json& spec, Problems& out) {
  if (!out.Has(pilot::Change::kPolicyTargets)) return;
  const json &one = Member(spec, "targetRef"), &several = Items(Member(spec, "targetRefs"));
  const bool selector = !Member(spec, "selector").is_null() || !Member(spec, "workloadSelector").is_null();
  if (selector + one.is_object() + !several.empty() > 1) {
    out.Add("only one of targetRefs or workloadSelector can be set");
  }
  const auto check = [&](const json& target) {
    if (MemberText(target, "name").empty()) out.Add("targetRef name must be set");
    if (!MemberText(target, "namespace").empty()) {
      out.Add("targetRef namespace must not be set; cross namespace referencing is not supported");
    }
    const std::string group = MemberText(target, "group"), kind = MemberText(target, "kind");
    const std::string whole = (group.empty() ? "core" : group) + "/" + kind;
    if (whole == "core/Service" || whole == "networking.istio.io/ServiceEntry" ||
        whole == "gateway.networking.k8s.io/Gateway" || whole == "gateway.networking.k8s.io/GatewayClass") {
      return;
    }
    out.Add(
        fmt::format("targetRef must be to one of [core/v1/Service networking.istio.io/v1/ServiceEntry "
                    "gateway.networking.k8s.io/v1/Gateway gateway.networking.k8s.io/v1/GatewayClass] but was {}/{}",
                    group, kind));
  };
  if (one.is_object()) check(one);
  for (const json& target : several) check(target);
}

void CheckRequestAuthentication(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  CheckTargets(spec, out);
  Selector(Member(spec, "selector"), "matchLabels", "", "", out);
  for (const json& rule : Items(Member(spec, "jwtRules"))) CheckJwtRule(rule, out);
}

}  // namespace wavetank::validation
