#include "serve/admin/envoy_admin.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/profile/releases.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "serve/admin/config_dump.h"
#include "serve/admin/envoy_stats.h"
#include "serve/admin/loggers.h"
#include "sim/pod_process.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;
using Json = nlohmann::ordered_json;

http::Response Plain(int code, std::string body) {
  http::Response out;
  out.code = code;
  out.content_type = "text/plain; charset=UTF-8";
  out.body = std::move(body);
  return out;
}
http::Response JsonPage(const Json& json) {
  http::Response out;
  out.body = JsonText(json, 1) + "\n";
  return out;
}

bool Has(const std::string& query, std::string_view name) {
  for (size_t at = query.find(name); at != std::string::npos; at = query.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || query[at - 1] == '&') && (end == query.size() || query[end] == '&' || query[end] == '='))
      return true;
  }
  return false;
}

Json ServerInfo(const sim::PodProcess& pod) {
  const bool live = pod.envoy() != nullptr && pod.envoy()->live();
  const pilot::ProxyBootstrap& bootstrap = *pod.bootstrap();
  return {{"version", "simulated/" + Text(bootstrap.metadata, "ISTIO_VERSION") + "/Clean/RELEASE/none"},
          {"state", live ? "LIVE" : "INITIALIZING"},
          {"command_line_options",
           {{"concurrency", bootstrap.concurrency},
            {"service_cluster", bootstrap.node_cluster},
            {"service_node", bootstrap.node_id}}},
          {"node",
           {{"id", bootstrap.node_id}, {"cluster", bootstrap.node_cluster}, {"metadata", Json(bootstrap.metadata)}}}};
}

std::string Listeners(const sim::PodProcess& pod) {
  std::string out;
  if (pod.envoy() == nullptr) return out;
  for (const std::string& name : pod.envoy()->ListenerNames()) {
    const size_t underscore = name.rfind('_');
    const std::string address =
        underscore == std::string::npos ? name : name.substr(0, underscore) + ":" + name.substr(underscore + 1);
    out += name + "::" + address + "\n";
  }
  return out;
}

// Envoy: source/server/admin/stats_handler.cc
http::Response Stats(const sim::PodProcess& pod, const std::string& query, bool prometheus) {
  StatsQuery asked;
  asked.used_only = Has(query, "usedonly");
  if (prometheus || query.find("format=prometheus") != std::string::npos) {
    asked.format = StatsQuery::Format::kPrometheus;
  } else if (query.find("format=json") != std::string::npos) {
    asked.format = StatsQuery::Format::kJson;
  }
  for (const absl::string_view part : absl::StrSplit(query, '&')) {
    if (!absl::StartsWith(part, "filter=")) continue;
    absl::StatusOr<std::string> filter = http::PercentDecode({part.data() + 7, part.size() - 7}, /*plus=*/true);
    if (!filter.ok()) return Plain(400, std::string(filter.status().message()) + "\n");
    asked.filter = *std::move(filter);
  }
  absl::StatusOr<std::string> page = StatsPage(pod.envoy()->AllStats(), asked);
  if (!page.ok()) return Plain(400, std::string(page.status().message()) + "\n");
  http::Response out = Plain(200, *std::move(page));
  if (asked.format == StatsQuery::Format::kJson) out.content_type = "application/json";
  return out;
}

}  // namespace

http::Response AdminAnswer(const sim::PodProcess& pod, const HeldConfig& held, const http::Request& request) {
  if (!pod.bootstrap().has_value() || pod.envoy() == nullptr) return Plain(503, "the proxy has not started\n");
  const std::string& path = request.path;
  if (request.method == "POST" && path == "/logging" && request.query.empty()) {
    return Plain(200, ActiveLoggers(*pod.pod(), pilot::ReleaseOf(pod.site().commons->profile).envoy));
  }
  if (request.method != "GET") {
    return Plain(501, path + " is not available: the admin interface of a simulated Envoy only shows its state\n");
  }
  if (path == "/config_dump") {
    return JsonPage(ProxyConfigDump(pod, held.Of(pod.name()), Has(request.query, "include_eds")));
  }
  if (path == "/clusters") {
    return request.query.find("format=json") != std::string::npos ? JsonPage(ProxyClusters(pod))
                                                                  : Plain(200, ProxyClustersText(pod));
  }
  if (path == "/certs") return JsonPage(ProxyCerts(pod));
  if (path == "/server_info") return JsonPage(ServerInfo(pod));
  if (path == "/listeners") return Plain(200, Listeners(pod));
  if (path == "/stats") return Stats(pod, request.query, false);
  if (path == "/stats/prometheus") return Stats(pod, request.query, true);
  if (path == "/ready") return pod.envoy()->live() ? Plain(200, "LIVE\n") : Plain(503, "INITIALIZING\n");
  // envoy: source/server/admin/runtime_handler.cc; a simulated Envoy has no runtime values.
  if (path == "/runtime") return JsonPage({{"entries", Json::object()}, {"layers", Json::array()}});
  if (path == "/memory") return JsonPage({{"allocated", "0"}, {"heap_size", "0"}});
  return Plain(404,
               "invalid path. admin commands are:\n  /certs\n  /clusters\n  /config_dump\n  /listeners\n  /ready\n"
               "  /runtime\n  /server_info\n  /stats\n  /stats/prometheus\n");
}

}  // namespace wavetank::serve
