// What an API server tells of itself beside its resources: /metrics, and the discovery of its issuer of tokens
// (/.well-known/openid-configuration, /openid/v1/jwks).
#pragma once

#include <optional>
#include <string_view>

#include "core/kube/credentials/service_account_token.h"
#include "fakes/kube/http/message/message.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube::http {

// nullopt: the path is none of these. `tokens` null: there is no issuer, and its paths are not there.
std::optional<Response> Observability(const ApiServer& server, const kube::TokenAuthority* tokens,
                                      std::string_view path);

}  // namespace wavetank::fakekube::http
