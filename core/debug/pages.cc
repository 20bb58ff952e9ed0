#include "core/debug/pages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_split.h"
#include "core/base/text/go_url.h"
#include "core/base/text/percent.h"
#include "core/debug/clients.h"
#include "core/debug/config.h"
#include "core/debug/generated.h"
#include "core/debug/go_text.h"
#include "core/debug/registry.h"
#include "core/istiod/istiod.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"

namespace wavetank::debug {
namespace {

using Json = nlohmann::ordered_json;
using pilot::Change;
using pilot::Connection;
using pilot::Istiod;
using pilot::XdsType;

std::vector<std::string> Split(std::string_view text, char at) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), at, absl::SkipEmpty());
}

struct Request {
  std::string path;
  std::map<std::string, std::string> query;  // the first value of each

  explicit Request(std::string_view target) {
    const size_t question = target.find('?');
    path = target.substr(0, question);
    if (question == target.npos) return;
    for (const std::string& part : Split(target.substr(question + 1), '&')) {
      const size_t equals = part.find('=');
      const std::string value = equals == part.npos ? "" : part.substr(equals + 1);
      query.emplace(PercentDecodedLoosely(part.substr(0, equals), true), PercentDecodedLoosely(value, true));
    }
  }
  bool Has(const std::string& name) const { return query.contains(name); }
  std::string Get(const std::string& name) const { return Has(name) ? query.at(name) : ""; }
};

Reply Plain(int status, std::string body) { return {status, "text/plain; charset=utf-8", std::move(body)}; }

Reply WriteJson(const Json& json, const Request& request) {
  return {200, "application/json", GoText(json, request.Has("pretty") ? 4 : -1)};
}

// The connection that the query names; else what istiod answers without one.
struct Asked {
  const Connection* connection = nullptr;
  Reply refusal;
};
Reply NotConnected() {
  return Plain(404, "Proxy not connected to this Pilot instance. It may be connected to another instance.\n");
}
Asked ConnectionOf(const Istiod& istiod, const Request& request) {
  const std::string id = request.Get("proxyID");
  if (id.empty()) return {nullptr, Plain(400, "You must provide a proxyID in the query string\n")};
  const Connection* const connection = FindConnection(istiod, id);
  return {connection, connection == nullptr ? NotConnected() : Reply()};
}

Reply Changes(const char* what) {
  return Plain(501, fmt::format("{} is not available: pages of a simulated istiod only show its state\n", what));
}

using Handler = Reply (*)(const Istiod&, const Request&);

template <Json (*page)(const Istiod&)>
Reply Whole(const Istiod& istiod, const Request& request) {
  return WriteJson(page(istiod), request);
}

template <Reply (*page)(const Istiod&, const Connection&, const Request&)>
Reply OfProxy(const Istiod& istiod, const Request& request) {
  if (!request.Get("push").empty()) return Changes("push");
  const Asked asked = ConnectionOf(istiod, request);
  return asked.connection == nullptr ? asked.refusal : page(istiod, *asked.connection, request);
}

Reply AdszPage(const Istiod& istiod, const Request& request) {
  if (!request.Get("push").empty()) return Changes("push");
  const std::string id = request.Get("proxyID");
  const Connection* const connection = id.empty() ? nullptr : FindConnection(istiod, id);
  if (!id.empty() && connection == nullptr) return NotConnected();
  return WriteJson(Adsz(istiod, connection), request);
}

Reply EndpointzPage(const Istiod& istiod, const Request& request) {
  if (istiod.options().profile.Has(Change::kShardsForEndpointz)) return WriteJson(EndpointShardz(istiod), request);
  if (request.Has("brief")) return Plain(200, BriefEndpointz(istiod));
  return WriteJson(Endpointz(istiod), request);
}

Reply CachezPage(const Istiod& istiod, const Request& request) {
  if (!request.Get("clear").empty()) return Changes("clear");
  return WriteJson(request.Get("sizes").empty() ? Cachez(istiod) : CacheSizes(istiod), request);
}

std::optional<XdsType> TypeOfShortName(const std::string& name);
Reply ConfigDumpPage(const Istiod& istiod, const Connection& connection, const Request& request);

// istiod from 1.25 on: typedConfigDumpHandler.
Reply DumpOfOneType(const Istiod& istiod, const Connection& connection, Request request, const char* type) {
  request.query["types"] = type;
  return ConfigDumpPage(istiod, connection, request);
}

Reply EcdszPage(const Istiod& istiod, const Connection& connection, const Request& request) {
  if (istiod.options().profile.Has(Change::kTypedDumps)) return DumpOfOneType(istiod, connection, request, "ecds");
  const std::vector<Generated> extensions = Generate(istiod, connection, XdsType::kEcds);
  if (extensions.empty()) return Plain(404, "");
  Json out = Json::array();
  for (const Generated& one : extensions) out.push_back({{"name", one.name}, {"resource", one.json}});
  return WriteJson(out, request);
}

Reply EdszPage(const Istiod& istiod, const Connection& connection, const Request& request) {
  if (istiod.options().profile.Has(Change::kTypedDumps)) return DumpOfOneType(istiod, connection, request, "eds");
  Json out = DumpOfType(istiod, connection, XdsType::kEds);
  for (Json& assignment : out) assignment.erase("@type");
  return WriteJson(out, request);
}

Reply NdszPage(const Istiod& istiod, const Connection& connection, const Request& request) {
  if (istiod.options().profile.Has(Change::kTypedDumps)) return DumpOfOneType(istiod, connection, request, "nds");
  if (!connection.proxy().metadata.dns_capture) return Plain(400, "DNS capture is not enabled in the proxy\n");
  const Json table = Ndsz(istiod, connection);
  return table.is_null() ? Reply() : WriteJson(table, request);
}

Reply SidecarzPage(const Istiod&, const Connection& connection, const Request& request) {
  return WriteJson(Sidecarz(connection), request);
}

// istiod: pilot/pkg/xds/v3/model.go, GetResourceType; longer names pass as they are.
std::optional<XdsType> TypeOfShortName(const std::string& name) {
  static const auto* const kTypes = new std::map<std::string, XdsType>{
      {"CDS", XdsType::kCds}, {"LDS", XdsType::kLds}, {"RDS", XdsType::kRds},  {"EDS", XdsType::kEds},
      {"SDS", XdsType::kSds}, {"NDS", XdsType::kNds}, {"ECDS", XdsType::kEcds}};
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  const auto it = kTypes->find(upper);
  return it == kTypes->end() ? pilot::ParseTypeUrl(name) : it->second;
}

Reply ConfigDumpPage(const Istiod& istiod, const Connection& connection, const Request& request) {
  const std::string types = request.Get("types");
  const bool include_eds = istiod.options().profile.Has(Change::kTypedDumps) ? request.Has("include_eds")
                                                                             : request.Get("include_eds") == "true";
  if (types.empty()) return WriteJson(ConfigDump(istiod, connection, include_eds), request);
  std::set<XdsType> asked;
  for (const std::string& name : Split(types, ',')) {
    if (const auto type = TypeOfShortName(name)) asked.insert(*type);
  }
  Json configs = Json::array();
  for (const XdsType type : asked) {
    for (Json& resource : DumpOfType(istiod, connection, type)) configs.push_back(std::move(resource));
  }
  return WriteJson(configs.empty() ? Json::object() : Json{{"configs", std::move(configs)}}, request);
}

Reply PushStatusPage(const Istiod& istiod, const Request&) {
  return {200, "application/json", GoText(PushStatus(istiod), 4)};
}

Reply DistributionPage(const Istiod&, const Request&) {
  return Plain(409,
               "Pilot Version tracking is disabled. It may be enabled by setting the "
               "PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING environment variable to true.");
}

// No ztunnel is told anything here: ambient is not simulated.
Reply AmbientzPage(const Istiod&, const Request& request) {
  return WriteJson({{"workloads", nullptr}, {"services", nullptr}, {"policies", nullptr}}, request);
}

// istiod from 1.19 on: telemetryz.
Reply TelemetryzPage(const Istiod& istiod, const Request& request) {
  const std::string id = request.Get("proxyID");
  if (id.empty() || !istiod.options().profile.Has(Change::kTelemetryOfProxy)) {
    return WriteJson(Telemetryz(istiod), request);
  }
  const Connection* const connection = FindConnection(istiod, id);
  return connection == nullptr ? NotConnected() : WriteJson(TelemetryzOf(istiod, *connection), request);
}

// What it would print is internal to istiod. In most meshes it prints nothing: what it meets on the way cannot be
// written as JSON. istiod: pilot/pkg/xds/debug.go, writeJSON; pkg/config/mesh/meshwatcher/collection.go,
// NewNetworksCollection (no meshNetworks: a nil message); pkg/kube/multicluster/cluster.go, SyncedCh (a channel, of
// each remote cluster). Seen with a real 1.30.3.
Reply KrtzPage(const Istiod& istiod, const Request&) {
  const auto fails = [](std::string_view why) {
    return Reply{500, "application/json",
                 fmt::format("json: error calling MarshalJSON for type *krt.DebugHandler: json: error calling "
                             "MarshalJSON for type krt.DebugCollection: json: {}",
                             why)};
  };
  if (istiod.Ready()) {
    const pilot::PushContextRef& push = istiod.discovery().last_push_context();
    if (push != nullptr && push->env().networks == nullptr)
      return fails("error calling MarshalJSON for type meshwatcher.MeshNetworksResource: Marshal called with nil");
    if (istiod.options().profile.Has(Change::kGracefulSecretUpdate) &&
        !istiod.registries().secrets().Clusters().empty())
      return fails("unsupported type: chan struct {}");
  }
  return Plain(501,
               "krtz is not available: a simulated istiod computes without krt collections. What they hold is at "
               "/debug/configz (configurations), /debug/registryz (services), /debug/endpointShardz (endpoints), "
               "/debug/clusterz (clusters and whether they are read)\n");
}

Reply ResourceszPage(const Istiod&, const Request& request) { return WriteJson(Resourcesz(), request); }
Reply DisconnectPage(const Istiod&, const Request&) { return Changes("force_disconnect"); }

Reply ListPage(const Istiod& istiod, const Request& request) {
  Json out = Json::array();
  for (const PageName& page : Pages(istiod.options().profile)) {
    if (const auto name = page.path.substr(7); name != "list") out.push_back(name);
  }
  return WriteJson(out, request);
}

struct Entry {
  PageName name;
  Handler handler;  // null: of the entry without its query
  std::optional<Change> since = std::nullopt, until = std::nullopt;

  bool Of(const pilot::Profile& profile) const {
    return (!since || profile.Has(*since)) && (!until || !profile.Has(*until));
  }
};

const std::vector<Entry>& Table() {
  static const auto* const table = new std::vector<Entry>{
      {{"/debug/adsz", "Status and debug interface for ADS"}, AdszPage},
      {{"/debug/adsz?push=true", "Initiates push of the current state to all connected endpoints"}, nullptr},
      {{"/debug/ambientz", "Debug support for ambient"}, AmbientzPage, Change::kAmbientPage},
      {{"/debug/authorizationz", "Internal authorization policies"}, Whole<Authorizationz>},
      {{"/debug/cachez", "Info about the internal XDS caches"}, CachezPage},
      {{"/debug/cachez?clear=true", "Clear the XDS caches"}, nullptr},
      {{"/debug/cachez?sizes=true", "Info about the size of the internal XDS caches"}, nullptr},
      {{"/debug/clusterz", "List remote clusters where istiod reads endpoints"}, Whole<Clusterz>},
      {{"/debug/config_distribution", "Version status of all Envoys connected to this Pilot instance"},
       DistributionPage,
       std::nullopt,
       Change::kNoDistributionPage},
      {{"/debug/config_dump", "ConfigDump in the form of the Envoy admin config dump API for passed in proxyID"},
       OfProxy<ConfigDumpPage>},
      {{"/debug/configz", "Debug support for config"}, Whole<Configz>},
      {{"/debug/connections", "Info about the connected XDS clients"}, Whole<Connections>},
      {{"/debug/ecdsz", "Status and debug interface for ECDS"}, OfProxy<EcdszPage>},
      {{"/debug/edsz", "Status and debug interface for EDS"}, OfProxy<EdszPage>},
      {{"/debug/endpointShardz", "Info about the endpoint shards"}, Whole<EndpointShardz>},
      {{"/debug/endpointz", "Debug support for endpoints"}, EndpointzPage},
      {{"/debug/force_disconnect", "Disconnects a proxy from this Pilot"}, DisconnectPage},
      {{"/debug/inject", "Active inject template"}, Whole<Inject>},
      {{"/debug/instancesz", "Debug support for service instances"}, Whole<Instancesz>},
      {{"/debug/krtz", "Debug support for krt (internal state)"}, KrtzPage, Change::kKrtPage},
      {{"/debug/list", "List all supported debug commands in json"}, ListPage},
      {{"/debug/mcsz", "List information about Kubernetes MCS services"}, Whole<Mcsz>},
      {{"/debug/mesh", "Active mesh config"}, Whole<Mesh>},
      {{"/debug/ndsz", "Status and debug interface for NDS"}, OfProxy<NdszPage>},
      {{"/debug/networkz", "List cross-network gateways"}, Whole<Networkz>},
      {{"/debug/push_status", "Last PushContext Details"}, PushStatusPage},
      {{"/debug/pushcontext", "Debug support for current push context"}, Whole<PushContextz>},
      {{"/debug/registryz", "Debug support for registry"}, Whole<Registryz>},
      {{"/debug/resourcesz", "Debug support for watched resources"}, ResourceszPage},
      {{"/debug/sidecarz", "Debug sidecar scope for a proxy"}, OfProxy<SidecarzPage>},
      {{"/debug/syncz", "Synchronization status of all Envoys connected to this Pilot instance"}, Whole<Syncz>},
      {{"/debug/telemetryz", "Debug Telemetry configuration"}, TelemetryzPage}};
  return *table;
}

Reply Index(const pilot::Profile& profile) {
  std::string out =
      "<html>\n<head><title>Pilot Debug Console</title></head>\n<body>\n<table id=\"endpoints\">\n"
      "<tr><th>Endpoint</th><th>Description</th></tr>\n";
  for (const PageName& page : Pages(profile)) {
    out += fmt::format("<tr><td><a href='{0}'>{0}</a></td><td>{1}</td></tr>\n", page.path, page.help);
  }
  return {200, "text/html; charset=utf-8", out + "</table>\n</body>\n</html>\n"};
}

}  // namespace

std::vector<PageName> Pages(const pilot::Profile& profile) {
  std::vector<PageName> out;
  for (const Entry& entry : Table()) {
    if (entry.Of(profile)) out.push_back(entry.name);
  }
  return out;
}

Reply Page(const Istiod& istiod, std::string_view target) {
  const Request request(target);
  const pilot::Profile& profile = istiod.options().profile;
  // Go's net/http, ServeMux: istioctl asks for //version, and follows.
  if (std::string clean = CleanPath(request.path); clean != request.path) {
    const std::string_view query = target.substr(std::min(target.size(), request.path.size()));
    return {301, "text/html; charset=utf-8", fmt::format("<a href=\"{0}\">Moved Permanently</a>.\n\n", clean),
            fmt::format("{}{}", clean, query)};
  }
  if (request.path == "/ready") return {istiod.Ready() ? 200 : 503, "", ""};
  if (request.path == "/version") return Plain(200, fmt::format("{}-simulated-Clean", profile.istio));
  // Before that there are no registries to look at.
  if (!istiod.Ready()) return Plain(503, "istiod is not ready\n");
  if (request.path == "/debug" || request.path == "/debug/") return Index(profile);
  for (const Entry& entry : Table()) {
    if (entry.handler != nullptr && entry.Of(profile) && entry.name.path == request.path)
      return entry.handler(istiod, request);
  }
  return Plain(404, "404 page not found\n");
}

}  // namespace wavetank::debug
