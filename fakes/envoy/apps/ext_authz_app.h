// An authorizer as Istio's sample (samples/extauthz) is one: it allows what has the header x-ext-authz: allow and,
// over gRPC, whatever a ServiceAccount `a` sends, says so in x-ext-authz-check-result, and speaks HTTP and gRPC, that
// in HTTP/2 alone.
#pragma once

#include "fakes/envoy/apps/app.h"
#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {

inline constexpr char kExtAuthzDenial[] =
    "denied by ext_authz for not found header `x-ext-authz: allow` in the request";

// `server`: the instance that answers. `always`: it allows whatever it is asked.
AppReply AuthorizerReply(const RequestSpec& check, NameId server, bool always = false);

}  // namespace wavetank::envoysim
