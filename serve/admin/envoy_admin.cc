#include "serve/admin/envoy_admin.h"

#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "serve/admin/config_dump.h"
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

// Of what the simulated Envoy counts, what a probe or a person asks for.
std::string Stats(const sim::PodProcess& pod, bool prometheus) {
  std::string out;
  if (pod.envoy() == nullptr) return out;
  const envoysim::Envoy& envoy = *pod.envoy();
  const auto put = [&](const std::string& name, uint64_t value) {
    if (!prometheus) {
      out += fmt::format("{}: {}\n", name, value);
      return;
    }
    std::string metric = "envoy_" + name;
    for (char& c : metric) {
      if (c == '.') c = '_';
    }
    out += fmt::format("# TYPE {0} gauge\n{0}{{}} {1}\n", metric, value);
  };
  put("cluster_manager.active_clusters", envoy.ClusterNames().size());
  put("listener_manager.total_listeners_active", envoy.ListenerNames().size());
  put("server.live", envoy.live() ? 1 : 0);
  put("server.state", envoy.live() ? 0 : 2);
  return out;
}

}  // namespace

http::Response AdminAnswer(const sim::PodProcess& pod, const HeldConfig& held, const http::Request& request) {
  if (!pod.bootstrap().has_value() || pod.envoy() == nullptr) return Plain(503, "the proxy has not started\n");
  const std::string& path = request.path;
  if (request.method == "POST" && path == "/logging") return Plain(200, "active loggers:\n  all: warning\n");
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
  if (path == "/stats") return Plain(200, Stats(pod, request.query.find("format=prometheus") != std::string::npos));
  if (path == "/stats/prometheus") return Plain(200, Stats(pod, true));
  if (path == "/ready") return pod.envoy()->live() ? Plain(200, "LIVE\n") : Plain(503, "INITIALIZING\n");
  // envoy: source/server/admin/runtime_handler.cc; a simulated Envoy has no runtime values.
  if (path == "/runtime") return JsonPage({{"entries", Json::object()}, {"layers", Json::array()}});
  if (path == "/memory") return JsonPage({{"allocated", "0"}, {"heap_size", "0"}});
  return Plain(404,
               "invalid path. admin commands are:\n  /certs\n  /clusters\n  /config_dump\n  /listeners\n  /ready\n"
               "  /runtime\n  /server_info\n  /stats\n  /stats/prometheus\n");
}

}  // namespace wavetank::serve
