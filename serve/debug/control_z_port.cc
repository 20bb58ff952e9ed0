#include "serve/debug/control_z_port.h"

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/debug/control_z.h"
#include "core/settings/istiod_settings.h"
#include "fakes/kube/http/message/status.h"
#include "fmt/format.h"
#include "sim/inputs/input.h"
#include "sim/pod_process.h"
#include "sim/world.h"
#include "sim/world_site.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

const sim::World::Site::IstiodLog* LogIn(const sim::World& world, const ControlZPort& where) {
  const sim::World::Site* const site = world.FindSite(where.cluster);
  return site == nullptr ? nullptr : site->LogOf(fmt::format("{}.{}", where.pod, where.cluster));
}

debug::ControlZProcess ProcessOf(const sim::World& world, const ControlZPort& where, const MetricsPage& metrics) {
  debug::ControlZProcess out;
  out.pod = where.pod;
  out.version = world.profile().istio;
  out.now = world.Now();
  if (metrics) out.metrics = metrics(where.cluster);
  const sim::PodProcess* const pod = world.FindPod(fmt::format("{}.{}@{}", where.pod, where.ns, where.cluster));
  if (pod == nullptr) return out;
  const nlohmann::json& body = pod->pod()->body;
  out.ip = Text(At(body, "status"), "podIP");
  // Without its keys: what a Secret holds is shown to nobody.
  if (const auto said = pilot::ReadContainerSettings(body, "discovery", nullptr); said.ok()) {
    out.arguments = said->arguments;
    out.variables.insert(said->variables.begin(), said->variables.end());
  }
  out.user = Number(At(body, {"spec", "securityContext"}), "runAsUser", out.user);
  for (const nlohmann::json& container : Items(At(body, {"spec", "containers"}))) {
    if (Text(container, "name") == "discovery")
      out.user = Number(At(container, "securityContext"), "runAsUser", out.user);
  }
  return out;
}

}  // namespace

bool IsControlZ(const sim::World& world, const ControlZPort& where) {
  const sim::World::Site::IstiodLog* const log = LogIn(world, where);
  return log != nullptr && where.port != 0 && log->ctrlz_port == where.port;
}

std::optional<http::Response> ControlZAnswer(sim::World& world, const ControlZPort& where, const http::Request& request,
                                             const MetricsPage& metrics) {
  if (!IsControlZ(world, where)) return std::nullopt;
  const debug::LogScopes& scopes = *LogIn(world, where)->scopes;
  debug::ControlZReply answer =
      debug::AnswerControlZ(scopes, ProcessOf(world, where, metrics), request.method, request.path, request.body);
  if (answer.change) {
    nlohmann::json body = {{"cluster", where.cluster}, {"pod", where.pod}, {"scope", answer.change->scope}};
    if (answer.change->output) body["output"] = debug::LogLevelName(*answer.change->output);
    if (answer.change->stack_trace) body["stackTrace"] = debug::LogLevelName(*answer.change->stack_trace);
    if (answer.change->callers) body["callers"] = true;
    const absl::StatusOr<sim::Input> input = sim::Input::Parse("logLevel", body);
    const absl::Status status = input.ok() ? world.Do(*input) : input.status();
    if (!status.ok()) return http::PlainResponse(400, std::string(Message(status)));
  }
  http::Response out = http::PlainResponse(answer.reply.status, std::move(answer.reply.body));
  if (!answer.reply.content_type.empty()) out.content_type = std::move(answer.reply.content_type);
  if (out.code == 301) out.headers.emplace_back("Location", request.path + "/");
  return out;
}

}  // namespace wavetank::serve
