#include "sim/inputs/kinds/kube_request.h"

#include <optional>
#include <utility>

#include "core/base/status.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/dressing.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
void KubeRequest::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("method", Need::kRequired, method);
  visitor.Visit("path", Need::kRequired, path);
  visitor.Visit("query", Need::kLenient, query);
  visitor.Visit("contentType", Need::kLenient, content_type);
  visitor.Visit("body", Need::kLenient, body);
}

absl::Status KubeRequest::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  fakekube::http::Request request;
  if (target.exchange != nullptr) request.accept = target.exchange->call.request->accept;
  request.method = method;
  request.path = path;
  request.query = query;
  request.content_type = content_type;
  request.parsed = body != nullptr ? body : std::make_shared<const nlohmann::json>();
  // What was read of it when it came is not read again.
  const fakekube::http::Call call = target.exchange != nullptr ? target.exchange->call.For(std::move(request))
                                                               : (*site)->rest().Open(std::move(request));
  if (!(*site)->rest().Changes(call)) {
    return absl::InvalidArgumentError(fmt::format("{} {} changes nothing", method, path));
  }
  fakekube::http::Response response = (*site)->rest().Execute(call);
  if (target.exchange != nullptr)
    target.exchange->answer = std::make_unique<fakekube::http::Response>(std::move(response));
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {

using fakekube::http::Response;

Response AskKube(World& world, std::string_view cluster, const fakekube::http::Request& request, bool of_real_istiod) {
  fakekube::http::RestApi* api = world.KubeApi(cluster);
  if (api == nullptr) return fakekube::http::NoSuchPath();
  const fakekube::http::Call call = api->Open(request);
  if (!api->Changes(call)) return api->Handle(call);
  if (std::optional<Response> refusal = api->Refuse(call)) return *std::move(refusal);
  absl::StatusOr<nlohmann::json> body = api->ParseBody(request);
  if (!body.ok()) return fakekube::http::BadRequest(Message(body.status()));
  // Who asks is no part of an input.
  auto written = std::make_shared<const nlohmann::json>(fakekube::http::WithCaller(call, *std::move(body)));
  Input input = inputs::KubeRequest{std::string(cluster), request.method,       request.path,
                                    request.query,        request.content_type, std::move(written)};
  input.of_real_istiod = of_real_istiod;
  KubeExchange exchange{call, nullptr};
  const absl::Status status = world.Do(input, &exchange);
  if (!status.ok()) return fakekube::http::Failure(500, "InternalError", Message(status));
  Response response = std::move(*exchange.answer);
  fakekube::http::Dress(call, api->server().release(), &response);
  response.delay = api->server().FateOf(fakekube::ApiCall::kWrite).delay;
  return response;
}

void RegisterKubeRequest(InputTable& table) { table.Add<inputs::KubeRequest>(); }
}  // namespace wavetank::sim
