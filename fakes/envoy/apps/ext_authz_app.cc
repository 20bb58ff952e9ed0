#include "fakes/envoy/apps/ext_authz_app.h"

namespace wavetank::envoysim {

AppReply AuthorizerReply(const RequestSpec& check, NameId server, bool always) {
  const bool allowed = always || FindHeader(check, "x-ext-authz").value_or("") == "allow" ||
                       FindHeader(check, kSourcePrincipal).value_or("").ends_with("/sa/a");
  AppReply out;
  out.server = server;
  const bool grpc = check.path == "/envoy.service.auth.v3.Authorization/Check";
  if (grpc && check.protocol != HttpProtocol::kHttp2) {
    out.unheard = true;
    return out;
  }
  if (!allowed) out.body = kExtAuthzDenial;
  out.headers = allowed ? "x-ext-authz-check-result: allowed\n" : "x-ext-authz-check-result: denied\n";
  if (grpc) {
    out.grpc_status = 0;
    out.check_denied = allowed ? 0 : 403;
  } else {
    out.code = allowed ? 200 : 403;
  }
  return out;
}

}  // namespace wavetank::envoysim
