#include "fakes/envoy/ext_authz_app.h"

#include "fakes/envoy/route_config.h"

namespace wavetank::envoysim {

AppReply AuthorizerReply(const RequestSpec& check, NameId server) {
  const bool allowed = FindHeader(check, "x-ext-authz").value_or("") == "allow";
  AppReply out;
  out.server = server;
  if (!allowed) out.body = kExtAuthzDenial;
  if (check.protocol == HttpProtocol::kHttp2 && check.path == "/envoy.service.auth.v3.Authorization/Check") {
    out.grpc_status = 0;
    out.check_denied = allowed ? 0 : 403;
  } else {
    out.code = allowed ? 200 : 403;
  }
  return out;
}

}  // namespace wavetank::envoysim
