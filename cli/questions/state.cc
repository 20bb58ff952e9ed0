#include <CLI/CLI.hpp>
#include <iostream>

#include "check/cause/instant.h"
#include "check/cause/yaml_text.h"
#include "cli/proxy_config.h"
#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/debug/pages.h"
#include "core/istiod/istiod.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "replay/secrets.h"
#include "scenarios/answers/pod_names.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

using Json = nlohmann::ordered_json;
using pilot::XdsType;

struct StateArguments {
  std::string log, at, proxy, output = "table";
};

// Secrets' data, keys and tokens stay where they are.
Json Shown(const kube::Object& object) {
  nlohmann::json body = replay::RedactedWithin(object.body);
  if (object.kind == "Secret") {
    for (const char* data : {"data", "stringData"}) {
      if (const auto it = body.find(data); it != body.end() && it->is_object()) {
        for (nlohmann::json& value : *it) value = "redacted";
      }
    }
  }
  return Json::parse(JsonText(body));
}

Json ApiServers(const check::Instant& instant) {
  Json out = Json::object();
  for (const auto& [cluster, kinds] : instant.kinds) {
    if (instant.world->FindSite(cluster) == nullptr) continue;
    Json& objects = out[cluster] = Json::object();
    for (const std::string& kind : kinds) {
      Json list = Json::array();
      for (const kube::ObjectRef& object : instant.world->cluster(cluster).api().List(kind))
        list.push_back(Shown(*object));
      if (!list.empty()) objects[kind] = std::move(list);
    }
  }
  return out;
}

Json Istiods(const check::Instant& instant) {
  Json out = Json::object();
  for (const sim::IstiodProcess* process : instant.world->Istiods()) {
    const pilot::Istiod& istiod = process->istiod();
    Json& pages = out[istiod.discovery().options().name] = {{"ready", istiod.Ready()}};
    if (!istiod.Ready()) continue;
    for (const char* page :
         {"endpointShardz", "networkz", "registryz", "configz", "push_status", "clusterz", "syncz"}) {
      const debug::Reply reply = debug::Page(istiod, std::string("/debug/") + page);
      const nlohmann::json body = ParseJson(reply.body);
      pages[page] = reply.status == 200 && !body.is_discarded() ? Json::parse(reply.body) : Json(reply.body);
    }
  }
  return out;
}

// As Envoy's admin interface prints it: a dump for each type, each resource under the name that the dump gives it.
absl::StatusOr<Json> ConfigDump(const scenario::XdsSnapshot& snapshot) {
  struct Dump {
    XdsType type;
    const char *name, *list, *item;
  };
  static constexpr Dump kDumps[] = {
      {XdsType::kCds, "ClustersConfigDump", "dynamic_active_clusters", "cluster"},
      {XdsType::kEds, "EndpointsConfigDump", "dynamic_endpoint_configs", "endpoint_config"},
      {XdsType::kLds, "ListenersConfigDump", "dynamic_listeners", "listener"},
      {XdsType::kRds, "RoutesConfigDump", "dynamic_route_configs", "route_config"},
      {XdsType::kEcds, "EcdsConfigDump", "ecds_filters", "ecds_filter"},
      {XdsType::kSds, "SecretsConfigDump", "dynamic_active_secrets", "secret"}};
  Json configs = Json::array();
  for (const Dump& dump : kDumps) {
    if (snapshot.of(dump.type).empty()) continue;
    const absl::StatusOr<std::string> text = AdminConfigJson(dump.type, snapshot);
    if (!text.ok()) return text.status();
    Json items = Json::array();
    for (Json& each : Json::parse(*text)) {
      Json resource = each.contains("resource") ? std::move(each["resource"]) : std::move(each);
      if (dump.type == XdsType::kLds) {
        items.push_back(
            {{"name", each["name"]},
             {"active_state", {{"version_info", snapshot.version(dump.type)}, {dump.item, std::move(resource)}}}});
      } else {
        items.push_back({{"version_info", snapshot.version(dump.type)}, {dump.item, std::move(resource)}});
      }
    }
    configs.push_back({{"@type", std::string("type.googleapis.com/envoy.admin.v3.") + dump.name},
                       {"version_info", snapshot.version(dump.type)},
                       {dump.list, std::move(items)}});
  }
  return Json{{"configs", std::move(configs)}};
}

// In the words of `istioctl proxy-status`.
std::string SyncOf(const pilot::Proxy& proxy, XdsType type) {
  const auto watched = proxy.watched_resources.find(type);
  if (watched == proxy.watched_resources.end() || watched->second.nonce_sent.empty()) return "NOT SENT";
  if (watched->second.nonce_sent == watched->second.nonce_acked) return "SYNCED";
  return watched->second.nonce_sent == watched->second.nonce_nacked ? "ERROR" : "STALE";
}

void PrintTables(const check::Instant& instant) {
  Rows rows = {{"API SERVER", "KIND", "OBJECTS"}};
  for (const auto& [cluster, kinds] : instant.kinds) {
    for (const std::string& kind : kinds) {
      const size_t count = instant.world->cluster(cluster).api().List(kind).size();
      if (count > 0) rows.push_back({cluster, kind, std::to_string(count)});
    }
  }
  PrintTable(rows);
  rows = {{"ISTIOD", "READY", "PUSHES", "SERVICES", "ENDPOINTS", "GATEWAYS", "REMOTE CLUSTERS", "PROXIES"}};
  Rows proxies = {{"PROXY", "ISTIOD", "CDS", "LDS", "EDS", "RDS"}};
  for (const sim::IstiodProcess* process : instant.world->Istiods()) {
    const pilot::Istiod& istiod = process->istiod();
    const std::string& name = istiod.discovery().options().name;
    if (!istiod.Ready()) {
      rows.push_back({name, "no", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    std::string clusters;
    for (const auto& state : istiod.registries().secrets().Clusters())
      clusters += (clusters.empty() ? "" : ", ") + state.id.str() + (state.stopped ? " (stopped)" : "");
    rows.push_back({name, "yes", std::to_string(istiod.discovery().pushes()),
                    std::to_string(istiod.registries().aggregate().Services().size()),
                    std::to_string(istiod.discovery().endpoints().EndpointCount()),
                    std::to_string(istiod.registries().networks().Gateways()->All().size()),
                    clusters.empty() ? "-" : clusters, std::to_string(istiod.discovery().Clients().size())});
    for (const pilot::Connection* connection : istiod.discovery().Clients()) {
      const pilot::Proxy& proxy = connection->proxy();
      proxies.push_back({proxy.id + "@" + proxy.cluster().str(), name, SyncOf(proxy, XdsType::kCds),
                         SyncOf(proxy, XdsType::kLds), SyncOf(proxy, XdsType::kEds), SyncOf(proxy, XdsType::kRds)});
    }
  }
  std::cout << "\n";
  PrintTable(rows);
  std::cout << "\n";
  PrintTable(proxies);
  for (const std::string& complaint : instant.world->Complaints()) std::cout << "note: " << complaint << "\n";
}

int PrintProxy(const StateArguments& a, const check::Instant& instant) {
  std::vector<scenario::PodName> names;
  for (const auto& [name, snapshot] : instant.proxies) {
    const sim::PodProcess* const pod = instant.world->FindPod(name);
    names.push_back(pod == nullptr ? scenario::PodNameOf(name) : scenario::PodNameOf(*pod));
  }
  const absl::StatusOr<std::string> found =
      scenario::FindOnePod("proxy that was sent anything", a.proxy, names, *instant.world);
  if (!found.ok()) return Complain(found.status());
  const scenario::XdsSnapshot& snapshot = instant.proxies.at(*found);
  if (a.output != "table") {
    const absl::StatusOr<Json> dump = ConfigDump(snapshot);
    if (!dump.ok()) return Complain(dump.status());
    std::cout << (a.output == "json" ? JsonText(*dump, 1) + "\n" : check::YamlText(*dump));
    return kOk;
  }
  for (const XdsType type : {XdsType::kCds, XdsType::kEds, XdsType::kLds, XdsType::kRds}) {
    const absl::StatusOr<Rows> rows = ProxyConfigTable(type, snapshot);
    if (!rows.ok()) return Complain(rows.status());
    if (type != XdsType::kCds) std::cout << "\n";
    PrintTable(*rows);
  }
  return kOk;
}

int PrintState(const StateArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<Time> at =
      a.at.empty() ? absl::StatusOr<Time>(story->end) : check::FindInstant("--at", a.at, *story);
  if (!at.ok()) return Complain(at.status());
  const absl::StatusOr<std::unique_ptr<check::Instant>> instant =
      check::GoTo(*story, *at, a.proxy.empty() ? check::Look::kWithoutProxies : check::Look::kProxiesToo);
  if (!instant.ok()) return Complain(instant.status());
  if (!a.proxy.empty()) {
    const int code = PrintProxy(a, **instant);
    return WithWholeness(code, a.log, story->whole);
  }
  if (a.output == "table") {
    std::cout << fmt::format("{} at {}\n", a.log, FormatDuration(*at - story->header.Beginning()));
    PrintTables(**instant);
  } else {
    const Json all = {{"log", a.log},
                      {"atNs", (*at - story->header.Beginning()).count()},
                      {"apiServers", ApiServers(**instant)},
                      {"istiods", Istiods(**instant)}};
    std::cout << (a.output == "json" ? JsonText(all, 1) + "\n" : check::YamlText(all));
  }
  return WithWholeness(kOk, a.log, story->whole);
}

}  // namespace

void AddState(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("state", "What API servers, istiods and proxies held at an instant of a log");
  auto a = std::make_shared<StateArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option("--at", a->at,
                   "30s since its beginning, 'input 41', 'input 41+2s', a step of its scenario (\"'scaled to 3'+2s\"), "
                   "or, of an imported log, 2024-05-06T07:08:09Z; "
                   "its end if left out");
  verb->add_option("--proxy", a->proxy, "This proxy's configuration: its config_dump as JSON or YAML");
  verb->add_option("-o,--output", a->output, "table, json or yaml")->check(CLI::IsMember({"table", "json", "yaml"}));
  verb->footer(
      "JSON and YAML hold objects as API servers have them, and istiod's pages as its port 15014 prints them "
      "(endpointShardz, networkz, registryz, configz). Secrets' data, keys and tokens are left out.");
  verb->callback([a, &outcome] { outcome.code = PrintState(*a); });
}

}  // namespace wavetank::cli
