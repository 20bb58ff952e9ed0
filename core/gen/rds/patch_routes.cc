#include "core/gen/rds/patch_routes.h"

#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/envoyapi/any.h"
#include "core/envoyapi/merge.h"
#include "core/gen/extensions/patch_match.h"
#include "core/gen/rds/patch_route_list.h"
#include "core/model/gateway.h"
#include "core/model/service.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"

namespace wavetank::pilot {

struct PatchableHost {
  ::envoy::config::route::v3::VirtualHost host;  // without routes
  patch::RouteList routes;
};

namespace patch {
namespace {

using config::EnvoyFilter;
using Route = ::envoy::config::route::v3::Route;
using RoutesPb = ::envoy::config::route::v3::RouteConfiguration;
using HostPb = ::envoy::config::route::v3::VirtualHost;
using ConfigurationMatch = EnvoyFilter::RouteConfigurationMatch;

// 0 for what is no number.
int NumberOf(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Of "http.8080" and "https.443.port.gateway.namespace". istiod: ParseGatewayRDSRouteName.
struct GatewayRouteName {
  explicit GatewayRouteName(const std::string& name) {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (name.starts_with("http.")) {
      port = NumberOf(parts[1]);
    } else if (name.starts_with("https.") && parts.size() >= 5) {
      port = NumberOf(parts[1]);
      port_name = parts[2];
      gateway = parts[4] + "/" + parts[3];
    }
  }
  int port = 0;
  std::string port_name, gateway;
};

using HostRef = std::shared_ptr<PatchableHost>;

RoutePtr Copy(const Route& route) { return std::make_shared<const Route>(route); }

// With a list of routes of its own.
HostRef MakeHost(HostPb host) {
  std::vector<RoutePtr> routes;
  for (const Route& route : host.routes()) routes.push_back(Copy(route));
  host.clear_routes();
  return std::make_shared<PatchableHost>(PatchableHost{std::move(host), RouteList(std::move(routes), 0)});
}

class RoutePatcher {
 public:
  // `routes`: without virtual hosts, which are `hosts`.
  RoutePatcher(const EnvoyPatches& patches, Context context, const Proxy& proxy, RoutesPb& routes,
               std::vector<HostRef>& hosts)
      : patches_(patches), context_(context), proxy_(proxy), routes_(routes), hosts_(hosts) {}

  void Patch() {
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kRouteConfiguration)) {
      if (patch->operation != Operation::kMerge || !Concerns(*patch)) continue;
      MergeEnvoyMessage(ValueOf<RoutesPb>(*patch), routes_);
      for (HostPb& host : *routes_.mutable_virtual_hosts()) hosts_.push_back(MakeHost(std::move(host)));
      routes_.clear_virtual_hosts();
    }
    std::set<std::string> removed;
    for (HostRef& host : hosts_) {
      if (!Patch(host)) removed.insert(host->host.name());
    }
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kVirtualHost)) {
      if (patch->operation == Operation::kAdd && Concerns(*patch)) hosts_.push_back(MakeHost(ValueOf<HostPb>(*patch)));
    }
    std::erase_if(hosts_, [&](const HostRef& host) { return removed.count(host->host.name()) != 0; });
  }

 private:
  static const EnvoyFilter::VirtualHostMatch* HostMatchOf(const EnvoyPatch& patch) {
    const auto* match = MatchOf<ConfigurationMatch>(patch);
    return match == nullptr || !match->vhost ? nullptr : &*match->vhost;
  }
  static bool MatchesHost(const EnvoyPatch& patch, const HostPb& host) {
    const auto* match = HostMatchOf(patch);
    if (match == nullptr) return true;
    if (!match->name.empty() && match->name != host.name()) return false;
    // istiod: rc_patch.go, virtualHostMatch.
    if (match->domain_name.empty() || !patch.by_domain) return true;
    return std::find(host.domains().begin(), host.domains().end(), match->domain_name) != host.domains().end();
  }
  static bool NamesRoute(const EnvoyPatch& patch) {
    const auto* match = HostMatchOf(patch);
    return match != nullptr && match->route.has_value();
  }
  static bool MatchesRoute(const EnvoyPatch& patch, const RoutePtr& route) {
    using Action = EnvoyFilter::RouteMatch::Action;
    if (!NamesRoute(patch)) return true;
    if (route == nullptr) return false;
    const EnvoyFilter::RouteMatch& match = *HostMatchOf(patch)->route;
    if (!match.name.empty() && match.name != route->name()) return false;
    if (match.action == Action::kAny) return true;
    switch (route->action_case()) {
      case Route::kRoute:
        return match.action == Action::kRoute;
      case Route::kRedirect:
        return match.action == Action::kRedirect;
      case Route::kDirectResponse:
        return match.action == Action::kDirectResponse;
      default:
        return true;
    }
  }

  bool Concerns(const EnvoyPatch& patch) const { return InContext(patch, context_) && MatchesConfiguration(patch); }

  bool MatchesConfiguration(const EnvoyPatch& patch) const {
    const auto* match = MatchOf<ConfigurationMatch>(patch);
    if (match == nullptr) return true;
    const std::string& name = routes_.name();
    if (!match->name.empty() && match->name != name) return false;
    const int wanted = static_cast<int>(match->port_number);
    if (context_ != Context::kGateway) {
      if (wanted == 0) return true;
      const int port = name.starts_with("inbound") ? ParseSubsetKey(name).value_or(SubsetKey{}).port : NumberOf(name);
      return wanted == port;
    }
    const GatewayRouteName parts(name);
    return (wanted == 0 || IsPort(parts.port, wanted)) &&
           (match->port_name.empty() || match->port_name == parts.port_name) &&
           (match->gateway.empty() || match->gateway == parts.gateway);
  }

  // A route's name says where the gateway's pods listen, a patch asks for the port of its Service. istiod:
  // anyPortMatches.
  bool IsPort(int number, int wanted) const {
    if (proxy_.merged_gateway == nullptr) return number == wanted;
    const auto ports = proxy_.merged_gateway->port_map.find(number);
    return ports == proxy_.merged_gateway->port_map.end() ? number == wanted : ports->second.count(wanted) != 0;
  }

  // False: removed.
  bool Patch(HostRef& host) {
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kVirtualHost)) {
      if (!Concerns(*patch) || !MatchesHost(*patch, host->host)) continue;
      if (patch->operation == Operation::kRemove) return false;
      if (patch->operation == Operation::kReplace) host = MakeHost(ValueOf<HostPb>(*patch));
      if (patch->operation == Operation::kMerge) {
        MergeEnvoyMessage(ValueOf<HostPb>(*patch), host->host);
        for (const Route& route : host->host.routes()) host->routes.Append(Copy(route));
        host->host.clear_routes();
      }
    }
    PatchRoutesOf(*host);
    return true;
  }

  void PatchRoutesOf(PatchableHost& host) {
    bool removed = false;
    for (size_t i = 0, all = host.routes.size(); i < all; ++i) removed |= !PatchRoute(host, i);
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kHttpRoute)) {
      if (Concerns(*patch) && MatchesHost(*patch, host.host)) Place(*patch, host.routes);
    }
    if (removed) host.routes.Trim();
  }

  // False: removed.
  bool PatchRoute(PatchableHost& host, size_t i) const {
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kHttpRoute)) {
      RoutePtr& route = host.routes[i];
      if (!Concerns(*patch) || !MatchesHost(*patch, host.host) || !MatchesRoute(*patch, route)) continue;
      if (patch->operation == Operation::kRemove) {
        route = nullptr;
        return false;
      }
      if (patch->operation == Operation::kMerge) {
        if (route == nullptr) throw Panic();  // one that another host has removed
        auto merged = std::make_shared<Route>(*route);
        MergeEnvoyMessage(ValueOf<Route>(*patch), *merged);
        route = std::move(merged);
      }
    }
    return true;
  }

  // ADD and INSERT_*. A place next to a route that is not there is none; "first" is first if it is there.
  static void Place(const EnvoyPatch& patch, RouteList& routes) {
    const bool named = NamesRoute(patch);
    switch (patch.operation) {
      case Operation::kAdd:
        return routes.Append(Copy(ValueOf<Route>(patch)));
      case Operation::kInsertAfter:
        if (!named) return routes.Append(Copy(ValueOf<Route>(patch)));
        break;
      case Operation::kInsertBefore:
      case Operation::kInsertFirst:
        if (!named) return routes.Prepend(Copy(ValueOf<Route>(patch)));
        break;
      default:
        return;
    }
    size_t at = 0;
    while (at < routes.size() && !MatchesRoute(patch, routes[at])) ++at;
    if (at == routes.size()) return;
    if (patch.operation == Operation::kInsertFirst) at = 0;
    if (patch.operation == Operation::kInsertAfter) ++at;
    routes.InsertAt(at, Copy(ValueOf<Route>(patch)));
  }

  const EnvoyPatches& patches_;
  const Context context_;
  const Proxy& proxy_;
  RoutesPb& routes_;
  std::vector<HostRef>& hosts_;
};

RoutesPb Decode(std::string_view encoded) {
  RoutesPb out;
  out.ParseFromArray(encoded.data(), static_cast<int>(encoded.size()));
  return out;
}

}  // namespace
}  // namespace patch

bool PatchesRoutes(const EnvoyPatches* patches) {
  if (patches == nullptr) return false;
  return !patches->Of(patch::ApplyTo::kRouteConfiguration).empty() ||
         !patches->Of(patch::ApplyTo::kVirtualHost).empty() || !patches->Of(patch::ApplyTo::kHttpRoute).empty();
}

PatchableHosts MakePatchable(const std::vector<VirtualHost>& hosts) {
  pilot::RouteConfiguration all;
  all.virtual_hosts = hosts;
  patch::RoutesPb decoded = patch::Decode(EncodeRouteConfiguration(all));
  PatchableHosts out;
  std::map<std::pair<const EncodedRoute*, size_t>, patch::RouteList> lists;
  for (size_t i = 0; i < hosts.size(); ++i) {
    patch::HostRef host = patch::MakeHost(std::move(*decoded.mutable_virtual_hosts(static_cast<int>(i))));
    if (!hosts[i].routes.empty()) {
      const auto [list, fresh] = lists.try_emplace({hosts[i].routes.front().get(), hosts[i].routes.size()});
      if (fresh) {
        std::vector<patch::RoutePtr> routes;
        for (size_t r = 0; r < host->routes.size(); ++r) routes.push_back(host->routes[r]);
        list->second = patch::RouteList(std::move(routes), hosts[i].room_for_routes);
      }
      host->routes = list->second;
    }
    out[hosts[i].name] = std::move(host);
  }
  return out;
}

std::string PatchRoutes(const EnvoyPatches& patches, patch::Context context, const Proxy& proxy,
                        std::string_view encoded, const PatchableHosts& known) {
  patch::RoutesPb routes = patch::Decode(encoded);
  std::vector<patch::HostRef> hosts;
  for (patch::HostPb& host : *routes.mutable_virtual_hosts()) {
    const auto found = known.find(host.name());
    if (found == known.end()) {
      hosts.push_back(patch::MakeHost(std::move(host)));
    } else {
      if (host.domains_size() == 1 && host.domains(0) == "*") *found->second->host.mutable_domains() = host.domains();
      hosts.push_back(found->second);
    }
  }
  routes.clear_virtual_hosts();
  try {
    patch::RoutePatcher(patches, context, proxy, routes, hosts).Patch();
  } catch (const patch::Panic&) {
  }
  for (const patch::HostRef& host : hosts) {
    patch::HostPb& out = *routes.add_virtual_hosts();
    out = host->host;
    for (size_t i = 0; i < host->routes.size(); ++i) {
      patch::Route& route = *out.add_routes();
      if (host->routes[i] != nullptr) route = *host->routes[i];  // else istiod sends an empty one
    }
  }
  return Serialize(routes);
}

std::string PatchRoutes(const EnvoyPatches& patches, patch::Context context, const Proxy& proxy,
                        std::string_view encoded) {
  return PatchRoutes(patches, context, proxy, encoded, {});
}

std::string RouteConfigurationName(std::string_view encoded) { return patch::Decode(encoded).name(); }

}  // namespace wavetank::pilot
