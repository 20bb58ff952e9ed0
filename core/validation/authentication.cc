#include "absl/strings/numbers.h"
#include "core/base/json_access.h"
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

void CheckRequestAuthentication(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  Selector(Member(spec, "selector"), "matchLabels", "", "", out);
  for (const json& rule : Items(Member(spec, "jwtRules"))) CheckJwtRule(rule, out);
}

}  // namespace wavetank::validation
