#include "serve/pods/pod_pages.h"

#include <fmt/format.h>

#include "core/base/json_access.h"
#include "fakes/envoy/envoy.h"
#include "fakes/kube/http/message/status.h"
#include "serve/admin/envoy_admin.h"
#include "serve/agent/tap.h"
#include "serve/debug/debug_ports.h"
#include "serve/grpc/status_answer.h"
#include "sim/istiod_process.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

const sim::PodProcess* Find(const sim::World& world, const PodPort& where) {
  return world.FindPod(where.pod + "." + where.ns + "@" + where.cluster);
}

// The agent: readiness, and its Envoy's statistics (istiod: pilot/cmd/pilot-agent/status/server.go).
std::optional<http::Response> AgentAnswer(const sim::PodProcess& pod, const HeldConfig& held,
                                          const http::Request& request) {
  if (request.path == "/healthz/ready")
    return http::PlainResponse(pod.envoy() != nullptr && pod.envoy()->live() ? 200 : 503, "");
  if (request.path == "/stats/prometheus" || request.path == "/metrics") {
    http::Request stats = request;
    stats.path = "/stats/prometheus";
    return AdminAnswer(pod, held, stats);
  }
  return http::NoSuchPath();
}

// The agent's port for istiod's debug pages, with the pod's own identity (serve/agent/tap.h).
http::Response TapAnswer(const sim::World& world, const sim::PodProcess& pod, const PodPort& where,
                         const http::Request& request) {
  TapQuestion question = ReadTap(request);
  if (!question.ask) return std::move(question.refusal);
  if (pod.envoy() == nullptr || !pod.envoy()->ads_connected())
    return TapResponse(absl::UnavailableError("proxy not connected to Istiod"));
  const std::string identity = fmt::format("spiffe://cluster.local/ns/{}/sa/{}", where.ns,
                                           Text(At(pod.pod()->body, "spec"), "serviceAccountName", "default"));
  const auto response =
      StatusOfIstiod(world, where.cluster, question.ask->type_url, question.ask->resource_names, identity);
  // What istiod refuses ends the stream, and the agent waits for an answer in vain.
  if (!response.ok()) return TapResponse(absl::DeadlineExceededError(""));
  return TapResponse(TapJson(*response));
}

}  // namespace

bool IsIstiod(const sim::World& world, const PodPort& where) {
  const sim::PodProcess* const pod = Find(world, where);
  return pod != nullptr && pod->app() == "istiod";
}

bool ListensInPod(const sim::World& world, const PodPort& where) {
  if (IsIstiod(world, where)) {
    return where.port == 8080 || where.port == 15014 || where.port == 15010 || where.port == 15012;
  }
  const sim::PodProcess* const pod = Find(world, where);
  return pod != nullptr && pod->bootstrap().has_value() &&
         (where.port == 15000 || where.port == 15004 || where.port == 15020 || where.port == 15021 ||
          where.port == 15090);
}

std::optional<http::Response> AnswerInPod(const sim::World& world, const HeldConfig& held, const PodPort& where,
                                          const http::Request& request, const PodMetrics& metrics) {
  if (!ListensInPod(world, where)) return std::nullopt;
  if (IsIstiod(world, where)) {
    if (where.port != 8080 && where.port != 15014) return std::nullopt;
    return DebugAnswer(world, where.cluster, request, metrics);
  }
  const sim::PodProcess& pod = *Find(world, where);
  if (where.port == 15004) return TapAnswer(world, pod, where, request);
  return where.port == 15000 || where.port == 15090 ? AdminAnswer(pod, held, request) : AgentAnswer(pod, held, request);
}

}  // namespace wavetank::serve
