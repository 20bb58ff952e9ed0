#include "fakes/kube/http/rest/observability.h"

#include <fmt/format.h>

#include <string>

#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/discovery.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr const char* kIssuer = "https://kubernetes.default.svc.cluster.local";  // as tokens name it

// As Prometheus reads it. What is counted is what this server has: objects and their version.
Response Metrics(const ApiServer& server) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = fmt::format(
      "# HELP apiserver_storage_objects [STABLE] Number of stored objects at the time of last check split by kind.\n"
      "# TYPE apiserver_storage_objects gauge\n"
      "apiserver_storage_objects{{resource=\"all\"}} {}\n"
      "# HELP etcd_debugging_store_revision The version that the next write will follow.\n"
      "# TYPE etcd_debugging_store_revision gauge\n"
      "etcd_debugging_store_revision {}\n"
      "# HELP kubernetes_build_info [ALPHA] A metric with a constant '1' value labeled by version.\n"
      "# TYPE kubernetes_build_info gauge\n"
      "kubernetes_build_info{{git_version=\"{}\",major=\"{}\",minor=\"{}\"}} 1\n",
      server.objects(), server.resource_version(), server.release().git_version(), "1", server.release().minor());
  return response;
}

}  // namespace

std::optional<Response> Observability(const ApiServer& server, const kube::TokenAuthority* tokens,
                                      std::string_view path) {
  if (path == "/metrics") return Metrics(server);
  if (tokens == nullptr) return std::nullopt;
  // kubernetes: pkg/serviceaccount/openidmetadata.go.
  if (path == "/.well-known/openid-configuration") {
    return JsonResponse(200, {{"issuer", kIssuer},
                              {"jwks_uri", std::string(kIssuer) + "/openid/v1/jwks"},
                              {"response_types_supported", json::array({"id_token"})},
                              {"subject_types_supported", json::array({"public"})},
                              {"id_token_signing_alg_values_supported", json::array({"HS256"})}});
  }
  // Its key is symmetric (core/kube/credentials), and no secret is shown: reviews alone can judge its tokens.
  if (path == "/openid/v1/jwks") {
    Response response = JsonResponse(200, {{"keys", json::array()}});
    response.content_type = "application/jwk-set+json";
    return response;
  }
  return std::nullopt;
}

}  // namespace wavetank::fakekube::http
