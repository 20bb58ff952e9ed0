#include "core/config/kinds/request_authentication.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {

void ReadMessage(ProtoJson& in, RequestAuthentication::FromHeader& out) {
  in.Field("name", out.name);
  in.Field("prefix", out.prefix);
}

void ReadMessage(ProtoJson& in, RequestAuthentication::ClaimToHeader& out) {
  in.Field("header", out.header);
  in.Field("claim", out.claim);
}

void ReadMessage(ProtoJson& in, RequestAuthentication::JwtRule& out) {
  in.Field("issuer", out.issuer);
  in.Field("audiences", out.audiences);
  in.Field("jwksUri", out.jwks_uri);
  in.Field("jwks", out.jwks);
  in.Field("fromHeaders", out.from_headers);
  in.Field("fromParams", out.from_params);
  in.Field("fromCookies", out.from_cookies);
  in.Field("spaceDelimitedClaims", out.space_delimited_claims);
  in.Field("outputPayloadToHeader", out.output_payload_to_header);
  in.Field("forwardOriginalToken", out.forward_original_token);
  in.Field("outputClaimToHeaders", out.output_claim_to_headers);
}

void ReadMessage(ProtoJson& in, RequestAuthentication& out) {
  ReadSelector(in, "selector", "matchLabels", out.selector);
  ReadTargets(in, out.targets);
  in.Field("jwtRules", out.jwt_rules);
}

}  // namespace wavetank::config
