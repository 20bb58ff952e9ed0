#include "core/gateway_api/routes/routes.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_replace.h"
#include "core/base/json_access.h"
#include "core/gateway_api/routes/http_rules.h"
#include "core/gateway_api/routes/parent_references.h"
#include "core/model/host_name.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

std::vector<std::string> TextsOf(const json& list) {
  std::vector<std::string> out;
  for (const json& one : Items(list)) out.push_back(TextOf(one));
  return out;
}

// What falls under both, the narrower of each pair.
std::vector<std::string> Intersect(const std::vector<std::string>& hosts, const std::string& with) {
  const pilot::HostList left(hosts.begin(), hosts.end());
  const std::vector<std::string> right = {with};
  std::vector<std::string> out;
  for (const std::string_view host : pilot::IntersectHosts(left, right)) out.emplace_back(host);
  return out;
}

// Of all routes' matches, the port.
void SetPorts(json& routes, const json& port) {
  if (!port.is_number_integer()) return;
  for (json& route : routes) {
    if (Items(At(route, "match")).empty()) {
      route["match"] = json::array({{{"port", port}}});
      continue;
    }
    for (json& match : route["match"]) match["port"] = port;
  }
}

class Converter {
 public:
  Converter(const Inputs& in, const Grants& grants, const Parents& parents)
      : in_(in), grants_(grants), parents_(parents) {}

  ConvertedRoutes Convert() {
    for (const char* kind : {"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute"}) {
      if (kind == std::string_view("GRPCRoute") && !in_.profile.Has(pilot::Change::kGatewayApiGrpcRoutes)) continue;
      if (kind == std::string_view("TCPRoute") && !in_.alpha) continue;
      const bool stable = in_.alpha || in_.profile.Has(pilot::Change::kGatewayApiTlsKinds);
      if (kind == std::string_view("TLSRoute") && !stable) continue;
      for (const kube::ObjectRef& route : in_.Of(kind)) AddRoute(*route);
    }
    Merge();
    return std::move(out_);
  }

 private:
  struct Base {
    const kube::Object* route = nullptr;
    std::string host, gateway;
    json http;
  };

  void AddRoute(const kube::Object& route) {
    const std::vector<ParentReference> references = ParentReferences(in_, parents_, route);
    const bool http = route.kind == "HTTPRoute" || route.kind == "GRPCRoute", tcp = route.kind == "TCPRoute";
    const auto convert = [&](const Grants* grants) {
      return http  ? ConvertHttpRules(in_, grants, route)
             : tcp ? ConvertTcpRules(in_, grants, route)
                   : ConvertTlsRules(in_, grants, route);
    };
    Rules mesh, gateway;
    const auto is_mesh = [](const ParentReference& r) { return r.IsMesh(); };
    if (std::any_of(references.begin(), references.end(), is_mesh))
      mesh = convert(in_.profile.Has(pilot::Change::kGatewayApiMeshUnchecked) ? nullptr : &grants_);
    if (!std::all_of(references.begin(), references.end(), is_mesh)) gateway = convert(&grants_);

    json status = At(route.body, "status");
    if (!status.is_object()) status = json::object();
    status["parents"] = RouteParentStatuses(in_, route, references, gateway.error, mesh.error);
    out_.statuses[{route.kind, route.meta.ns, route.meta.name}] = std::move(status);
    int count = 0;
    for (const ParentReference& parent : Taken(references)) {
      if (!parent.IsMesh()) ++out_.attachments[{parent.key, parent.section}];
      const Rules& rules = parent.IsMesh() ? mesh : gateway;
      if (http) {
        AddHttp(route, parent, rules.routes);
      } else if (rules.routes.empty() && !in_.profile.Has(pilot::Change::kGatewayApiL4Partly)) {
        continue;  // what it lacks took it with it (istiod 1.18: buildTLSVirtualService)
      } else if (tcp) {
        AddTcp(route, parent, rules.routes, count);
      } else {
        AddTls(route, parent, rules.routes, count);
      }
    }
  }

  // Hosts of a parent in the mesh.
  std::vector<std::string> MeshHosts(const ParentReference& parent) const {
    if (parent.key.kind == "Service") {
      return {fmt::format("{}.{}.svc.{}", parent.key.name, parent.key.ns, in_.domain_suffix)};
    }
    const kube::Object* entry = in_.Find("ServiceEntry", parent.key.ns, parent.key.name);
    return entry == nullptr ? std::vector<std::string>() : TextsOf(At(entry->body, {"spec", "hosts"}));
  }

  // Of a parent in the mesh; null: any.
  const json& PortOf(const ParentReference& parent) const {
    return At(parent.original, in_.profile.Has(pilot::Change::kGatewayApiMeshPorts) ? "port" : "");
  }

  static std::vector<std::string> OwnHosts(const kube::Object& route) {
    std::vector<std::string> hosts = TextsOf(At(route.body, {"spec", "hostnames"}));
    if (hosts.empty()) hosts = {"*"};
    return hosts;
  }

  void AddHttp(const kube::Object& route, const ParentReference& parent, json routes) {
    if (routes.empty()) return;
    std::string key = parent.internal_name;
    if (parent.IsMesh()) {
      const json& port = PortOf(parent);
      SetPorts(routes, port);
      key = route.meta.ns;
      if (port.is_number_integer()) key += fmt::format("/{}", NumberOf(port));
    }
    SortHttpRoutes(in_.profile, routes);
    for (const std::string& host : parent.IsMesh() ? MeshHosts(parent) : OwnHosts(route)) {
      if (parent.MayServe(host)) by_key_[key + "/" + host].push_back({&route, host, parent.internal_name, routes});
    }
  }

  void AddTcp(const kube::Object& route, const ParentReference& parent, json routes, int& count) {
    std::vector<std::string> hosts = {"*"};
    if (parent.IsMesh()) {
      SetPorts(routes, PortOf(parent));
      hosts = MeshHosts(parent);
    }
    for (const std::string& host : hosts) Add(route, parent, "tcp", count++, host, routes);
  }

  void AddTls(const kube::Object& route, const ParentReference& parent, json routes, int& count) {
    std::vector<std::string> hosts = OwnHosts(route);
    if (parent.IsMesh()) {
      hosts = MeshHosts(parent);
      for (json& one : routes) {
        if (Items(At(one, "match")).size() != 1) continue;
        json& match = one["match"][0];
        // Without host names of its own it is for its parent's.
        if (At(match, "sniHosts") == json::array({"*"})) match["sniHosts"] = hosts;
        if (const json& port = PortOf(parent); port.is_number_integer()) match["port"] = port;
      }
    } else if (!parent.hostname.empty()) {
      hosts = Intersect(hosts, parent.hostname);
      json kept = json::array();
      for (json& one : routes) {
        if (Items(At(one, "match")).empty()) {
          kept.push_back(one);
          continue;
        }
        json& match = one["match"][0];
        match["sniHosts"] = Intersect(TextsOf(At(match, "sniHosts")), parent.hostname);
        if (!match["sniHosts"].empty()) kept.push_back(one);
      }
      routes = std::move(kept);
    }
    for (const std::string& host : hosts) {
      json own = routes;
      if (parent.IsMesh()) KeepCompatible(host, own);
      Add(route, parent, "tls", count++, host, own);
    }
  }

  // Of several names those that fall under the parent's.
  static void KeepCompatible(const std::string& host, json& routes) {
    for (json& one : routes) {
      if (Items(At(one, "match")).size() != 1 || Items(At(one["match"][0], "sniHosts")).size() < 2) continue;
      json kept = json::array();
      for (const json& sni : one["match"][0]["sniHosts"]) {
        if (pilot::HostMatches(host, TextOf(sni))) kept.push_back(sni);
      }
      one["match"][0]["sniHosts"] = std::move(kept);
    }
  }

  void Add(const kube::Object& route, const ParentReference& parent, const char* kind, int number,
           const std::string& host, const json& routes) {
    const char* const between = in_.profile.Has(pilot::Change::kGatewayApiNames) ? "~" : "-";
    const std::string name =
        fmt::format("{}{}{}{}{}{}{}", route.meta.name, between, kind, between, number, between, kGeneratedMark);
    json spec = {{"hosts", {host}}, {"gateways", {parent.internal_name}}};
    spec[kind] = routes;
    out_.configs.push_back(
        MakeConfig("VirtualService", route.meta.ns, name, Annotations(ParentName(route)), route, spec));
  }

  static std::string ParentName(const kube::Object& route) {
    return fmt::format("{}/{}.{}", route.kind, route.meta.name, route.meta.ns);
  }
  static std::map<std::string, std::string> Annotations(const std::string& parents) {
    return {{std::string(kParents), parents}, {std::string(kRouteSemantics), "gateway"}};
  }

  // istiod: mergeHTTPRoutes.
  void Merge() {
    std::map<std::string, int> counts;
    for (auto& [key, bases] : by_key_) {
      std::stable_sort(bases.begin(), bases.end(), [](const Base& a, const Base& b) {
        const kube::ObjectMeta &x = a.route->meta, &y = b.route->meta;
        return std::tie(x.creation_unix_seconds, x.ns, x.name) < std::tie(y.creation_unix_seconds, y.ns, y.name);
      });
      const Base& first = bases.front();
      std::string parents = ParentName(*first.route);
      json http = first.http;
      for (size_t i = 1; i < bases.size(); ++i) {
        parents += "," + ParentName(*bases[i].route);
        for (const json& route : bases[i].http) http.push_back(route);
      }
      SortHttpRoutes(in_.profile, http);
      // Before 1.28 it was the first route's name, with a number.
      std::string name = absl::StrReplaceAll(key, {{"/", "~"}});
      if (!in_.profile.Has(pilot::Change::kGatewayApiNames)) {
        name = fmt::format("{}-{}-{}", first.route->meta.name, counts[ParentName(*first.route)]++, kGeneratedMark);
      }
      out_.configs.push_back(MakeConfig("VirtualService", first.route->meta.ns, name, Annotations(parents),
                                        *first.route,
                                        {{"hosts", {first.host}}, {"gateways", {first.gateway}}, {"http", http}}));
    }
  }

  const Inputs& in_;
  const Grants& grants_;
  const Parents& parents_;
  std::map<std::string, std::vector<Base>> by_key_;
  ConvertedRoutes out_;
};

}  // namespace

ConvertedRoutes ConvertRoutes(const Inputs& in, const Grants& grants, const Parents& parents) {
  return Converter(in, grants, parents).Convert();
}

}  // namespace wavetank::gatewayapi
