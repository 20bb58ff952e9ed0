// EnvoyFilters whose patches reach nothing, or may not do what they seem to.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "absl/strings/numbers.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/debug/clients.h"
#include "core/debug/generated.h"
#include "core/gen/extensions/patch_match.h"
#include "core/model/service.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "re2/re2.h"

namespace wavetank::check {
namespace {

using config::EnvoyFilter;
using ApplyTo = EnvoyFilter::ApplyTo;
using Operation = EnvoyFilter::Operation;
using nlohmann::json;

template <class Fn>
void EachPatch(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    for (const config::EnvoyFilterRef& filter : cluster->configs.EnvoyFilters()) {
      for (size_t i = 0; i < filter->spec.config_patches.size(); ++i)
        fn(*cluster, *filter, filter->spec.config_patches[i], i + 1);
    }
  }
}

Operation OperationOf(const EnvoyFilter::ConfigPatch& patch) {
  return patch.patch ? patch.patch->operation : Operation::kInvalid;
}

// Proxies for which the filter counts, by namespace, selector and the patch's context.
std::vector<const sim::PodProcess*> Proxies(const Mesh& mesh, const MeshCluster& cluster,
                                            const config::TypedConfig<EnvoyFilter>& filter,
                                            const EnvoyFilter::ConfigPatch& patch) {
  std::vector<const sim::PodProcess*> out;
  for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
    if (pod->envoy() == nullptr) continue;
    if (!HoldsFor(cluster, filter.meta.ns, filter.spec.workload_selector, *pod)) continue;
    const auto context = patch.match.context;
    if (context == EnvoyFilter::Context::kGateway && !pod->router()) continue;
    if ((context == EnvoyFilter::Context::kSidecarInbound || context == EnvoyFilter::Context::kSidecarOutbound) &&
        pod->router())
      continue;
    out.push_back(pod);
  }
  return out;
}

// Releases that the cluster's proxies call themselves; without proxies, that which the profile installs.
std::set<std::string> ProxyVersions(const Mesh& mesh, const MeshCluster& cluster) {
  std::set<std::string> out;
  for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
    if (pod->bootstrap()) out.insert(Text(pod->node().metadata, "ISTIO_VERSION"));
  }
  if (out.empty()) out.emplace(mesh.world().profile().istio);
  return out;
}

bool VersionFits(const EnvoyFilter::Match& match, const std::set<std::string>& versions) {
  if (!match.proxy || match.proxy->proxy_version.empty()) return true;
  const re2::RE2 regex(match.proxy->proxy_version, re2::RE2::Quiet);
  return regex.ok() && std::any_of(versions.begin(), versions.end(),
                                   [&](const std::string& version) { return re2::RE2::PartialMatch(version, regex); });
}

bool ClusterFits(const EnvoyFilter::ClusterMatch& match, const std::string& name) {
  if (!match.name.empty()) return match.name == name;
  const auto key = pilot::ParseSubsetKey(name);
  if (!key) return false;
  if (!match.service.empty() && match.service != key->hostname) return false;
  if (!match.subset.empty() && match.subset != key->subset) return false;
  return match.port_number == 0 || static_cast<int>(match.port_number) == key->port;
}

// What the patch looks for and no proxy has; empty: some proxy has it.
std::string MissingCluster(const EnvoyFilter::ClusterMatch& match, const std::vector<std::string>& names) {
  if (match.name.empty() && match.service.empty() && match.subset.empty() && match.port_number == 0) return {};
  if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return ClusterFits(match, name); })) return {};
  return fmt::format("no proxy has a cluster {}{}{}", match.name, match.service,
                     match.subset.empty() ? "" : " subset " + match.subset) +
         (match.port_number == 0 ? "" : fmt::format(" port {}", match.port_number));
}

// How far into what istiod generates a patch's match leads, and what is missing there.
class Reach {
 public:
  // `depth`: so many parts of the match were found.
  void Fails(int depth, std::string what) {
    if (depth < depth_ || found_) return;
    depth_ = depth;
    missing_ = std::move(what);
  }
  void Found() { found_ = true; }
  std::string Missing() const { return found_ ? std::string() : missing_; }

 private:
  int depth_ = -1;
  bool found_ = false;
  std::string missing_;
};

bool InContextOf(const EnvoyFilter::Match& match, const sim::PodProcess& pod, bool inbound) {
  using Context = EnvoyFilter::Context;
  if (match.context == Context::kAny || pod.router()) return true;  // Proxies() has judged gateways
  return match.context == (inbound ? Context::kSidecarInbound : Context::kSidecarOutbound);
}

bool IsVirtual(const std::string& listener) { return listener == "virtualInbound" || listener == "virtualOutbound"; }

// As core/gen/extensions/patch_filters.cc judges (istiod: envoyfilter/listener_patch.go), in what came of it.
bool ChainFits(const EnvoyFilter::ListenerMatch& match, bool is_virtual, const json& chain) {
  const json& has = At(chain, "filterChainMatch");
  const int64_t port = Number(has, "destinationPort");
  if (is_virtual && match.port_number > 0 && port != match.port_number) return false;
  if (!match.filter_chain) return true;
  const EnvoyFilter::FilterChainMatch& wants = *match.filter_chain;
  const json& names = At(has, "serverNames");
  if (!wants.name.empty() && wants.name != Text(chain, "name")) return false;
  if (!wants.sni.empty() && std::find(names.begin(), names.end(), wants.sni) == names.end()) return false;
  if (!wants.transport_protocol.empty() && wants.transport_protocol != Text(has, "transportProtocol")) return false;
  return wants.destination_port == 0 || port == wants.destination_port;
}

std::string ChainText(const EnvoyFilter::ListenerMatch& match) {
  std::string out = "no filter chain of such a listener";
  if (match.port_number > 0) out += fmt::format(" for port {}", match.port_number);
  if (!match.filter_chain) return out;
  if (!match.filter_chain->name.empty()) out += fmt::format(" named {}", match.filter_chain->name);
  if (!match.filter_chain->sni.empty()) out += fmt::format(" with SNI {}", match.filter_chain->sni);
  if (!match.filter_chain->transport_protocol.empty())
    out += fmt::format(" of transport protocol {}", match.filter_chain->transport_protocol);
  if (match.filter_chain->destination_port != 0)
    out += fmt::format(" for destination port {}", match.filter_chain->destination_port);
  return out;
}

// The filter that the patch names is among `filters`, or what it puts in its place is.
bool HasNamed(const EnvoyFilter::ConfigPatch& patch, const json& filters, const std::string& name) {
  const Operation op = OperationOf(patch);
  const std::string put = op == Operation::kReplace ? Text(patch.patch->value, "name") : std::string();
  return std::any_of(filters.begin(), filters.end(), [&](const json& filter) {
    const std::string has = Text(filter, "name");
    return pilot::patch::NameMatches(name, has) || (!put.empty() && has == put);
  });
}

void LookAtChain(const EnvoyFilter::ConfigPatch& patch, const EnvoyFilter::ListenerMatch& match, const json& chain,
                 Reach& reach) {
  const json& filters = At(chain, "filters");
  const bool names = match.filter_chain && match.filter_chain->filter && !match.filter_chain->filter->name.empty();
  if (patch.apply_to == ApplyTo::kFilterChain || !names) return reach.Found();
  const EnvoyFilter::FilterMatch& wanted = *match.filter_chain->filter;
  const bool network = patch.apply_to == ApplyTo::kNetworkFilter;
  for (const json& filter : filters) {
    if (network || !pilot::patch::NameMatches(wanted.name, Text(filter, "name"))) continue;
    const json& http = At(At(filter, "typedConfig"), "httpFilters");
    if (!wanted.sub_filter || wanted.sub_filter->empty() || HasNamed(patch, http, *wanted.sub_filter))
      return reach.Found();
    reach.Fails(3, fmt::format("no HTTP filter of such a filter chain is called {}", *wanted.sub_filter));
  }
  if (network && HasNamed(patch, filters, wanted.name)) return reach.Found();
  reach.Fails(2, fmt::format("no filter of such a filter chain is called {}", wanted.name));
}

void LookAtListener(const EnvoyFilter::ConfigPatch& patch, const EnvoyFilter::ListenerMatch& match,
                    const json& listener, Reach& reach) {
  const std::string name = Text(listener, "name");
  const bool is_virtual = IsVirtual(name), of_listener = patch.apply_to == ApplyTo::kListener;
  const int64_t port = Number(At(At(listener, "address"), "socketAddress"), "portValue");
  const std::string wanted = match.name.empty() ? fmt::format("for port {}", match.port_number) : match.name;
  if (!match.name.empty() && match.name != name) return reach.Fails(0, "no proxy has a listener " + wanted);
  if ((of_listener || !is_virtual) && match.port_number != 0 && port != match.port_number)
    return reach.Fails(0, "no proxy has a listener " + wanted);
  if (of_listener) return reach.Found();
  if (patch.apply_to == ApplyTo::kListenerFilter) {
    if (match.listener_filter.empty() || HasNamed(patch, At(listener, "listenerFilters"), match.listener_filter))
      return reach.Found();
    return reach.Fails(1, fmt::format("no listener filter of such a listener is called {}", match.listener_filter));
  }
  if (patch.apply_to == ApplyTo::kFilterChain && OperationOf(patch) == Operation::kAdd) return reach.Found();
  const auto look = [&](const json& chain) {
    if (!ChainFits(match, is_virtual, chain)) return reach.Fails(1, ChainText(match));
    LookAtChain(patch, match, chain, reach);
  };
  for (const json& chain : At(listener, "filterChains")) look(chain);
  if (const json& chain = At(listener, "defaultFilterChain"); chain.is_object()) look(chain);
}

// istiod: envoyfilter/rc_patch.go. Ports of gateways' routes are left aside: they may be a Service's or the pods'.
void LookAtRoutes(const EnvoyFilter::ConfigPatch& patch, const EnvoyFilter::RouteConfigurationMatch& match,
                  const json& routes, bool gateway, Reach& reach) {
  const std::string name = Text(routes, "name");
  const std::string wanted = match.name.empty() ? fmt::format("for port {}", match.port_number) : match.name;
  if (!match.name.empty() && match.name != name) return reach.Fails(0, "no proxy has a route configuration " + wanted);
  if (!gateway && match.port_number != 0) {
    int port = 0;
    if (const auto key = pilot::ParseSubsetKey(name); name.starts_with("inbound") && key) {
      port = key->port;
    } else if (!absl::SimpleAtoi(name, &port)) {
      port = 0;
    }
    if (port != static_cast<int>(match.port_number))
      return reach.Fails(0, "no proxy has a route configuration " + wanted);
  }
  const Operation op = OperationOf(patch);
  const bool goes = patch.apply_to == ApplyTo::kVirtualHost && op == Operation::kReplace;
  const bool comes = patch.apply_to == ApplyTo::kVirtualHost && op == Operation::kAdd;
  if (patch.apply_to == ApplyTo::kRouteConfiguration || goes || comes || !match.vhost) return reach.Found();
  for (const json& host : At(routes, "virtualHosts")) {
    if (!match.vhost->name.empty() && match.vhost->name != Text(host, "name")) {
      reach.Fails(1, fmt::format("no virtual host of such a route configuration is called {}: they are HOST:PORT, with "
                                 "the host in full",
                                 match.vhost->name));
      continue;
    }
    if (patch.apply_to == ApplyTo::kVirtualHost || !match.vhost->route || match.vhost->route->name.empty())
      return reach.Found();
    for (const json& route : At(host, "routes")) {
      if (Text(route, "name") == match.vhost->route->name) return reach.Found();
    }
    reach.Fails(2, fmt::format("no route of such a virtual host is called {}", match.vhost->route->name));
  }
}

// What istiod would send to proxies now, with every EnvoyFilter applied; and before, which is what a patch that takes
// something away meets. Each is asked about once.
class Sending {
 public:
  struct Sent {
    const sim::PodProcess* pod;
    std::vector<json> listeners, routes;
    std::vector<std::string> clusters;
  };

  // Of replicas of one application the first, as they are sent the same; without those that are not connected.
  std::vector<const Sent*> To(const MeshCluster& cluster, const std::vector<const sim::PodProcess*>& proxies,
                              bool patched) {
    std::vector<const Sent*> out;
    std::set<std::pair<std::string, std::string>> alike;
    for (const sim::PodProcess* pod : proxies) {
      if (cluster.istiod == nullptr || !alike.emplace(pod->pod()->meta.ns, pod->app()).second) continue;
      const auto [sent, fresh] = sent_.try_emplace({pod->name(), patched});
      if (fresh) sent->second = Of(*cluster.istiod, *pod, patched);
      if (sent->second) out.push_back(&*sent->second);
    }
    return out;
  }

 private:
  std::optional<Sent> Of(const pilot::Istiod& istiod, const sim::PodProcess& pod, bool patched) {
    const pilot::Connection* connection =
        debug::FindConnection(istiod, fmt::format("{}.{}", pod.pod()->meta.name, pod.pod()->meta.ns));
    if (connection == nullptr) return std::nullopt;
    std::unique_ptr<debug::Unpatched>& before = before_[&istiod];
    if (!patched && before == nullptr) before = std::make_unique<debug::Unpatched>(istiod);
    const auto generate = [&](pilot::XdsType type) {
      return patched ? debug::Generate(istiod, *connection, type) : before->Generate(*connection, type);
    };
    Sent out{&pod, {}, {}, {}};
    for (debug::Generated& each : generate(pilot::XdsType::kLds)) out.listeners.emplace_back(each.json);
    for (debug::Generated& each : generate(pilot::XdsType::kRds)) out.routes.emplace_back(each.json);
    for (debug::Generated& each : generate(pilot::XdsType::kCds)) out.clusters.push_back(std::move(each.name));
    return out;
  }

  std::map<std::pair<std::string, bool>, std::optional<Sent>> sent_;  // by the pod's name
  std::map<const pilot::Istiod*, std::unique_ptr<debug::Unpatched>> before_;
};

std::string MissingIn(const EnvoyFilter::ConfigPatch& patch, const std::vector<const Sending::Sent*>& all) {
  if (const auto* match = std::get_if<EnvoyFilter::ClusterMatch>(&patch.match.object); match != nullptr) {
    std::vector<std::string> names;
    for (const Sending::Sent* sent : all) names.insert(names.end(), sent->clusters.begin(), sent->clusters.end());
    return all.empty() ? std::string() : MissingCluster(*match, names);
  }
  const auto* of_listener = std::get_if<EnvoyFilter::ListenerMatch>(&patch.match.object);
  const auto* of_routes = std::get_if<EnvoyFilter::RouteConfigurationMatch>(&patch.match.object);
  if (of_listener == nullptr && of_routes == nullptr) return {};
  Reach reach;
  for (const Sending::Sent* sent : all) {
    for (const json& listener : sent->listeners) {
      const bool inbound = Text(listener, "trafficDirection") == "INBOUND";
      if (!InContextOf(patch.match, *sent->pod, inbound)) continue;
      if (of_listener != nullptr) {
        LookAtListener(patch, *of_listener, listener, reach);
        continue;
      }
      for (const json& chain : At(listener, "filterChains")) {
        for (const json& filter : At(chain, "filters")) {
          const json& routes = At(At(filter, "typedConfig"), "routeConfig");
          if (routes.is_object()) LookAtRoutes(patch, *of_routes, routes, sent->pod->router(), reach);
        }
      }
    }
    if (of_routes == nullptr || !InContextOf(patch.match, *sent->pod, false)) continue;
    for (const json& routes : sent->routes) LookAtRoutes(patch, *of_routes, routes, sent->pod->router(), reach);
  }
  return reach.Missing();
}

// What another patch puts there for this one to take away.
bool PutByAnother(const MeshCluster& cluster, const EnvoyFilter::ConfigPatch& patch) {
  std::set<std::string> wanted;
  if (const auto* match = std::get_if<EnvoyFilter::ClusterMatch>(&patch.match.object)) wanted.insert(match->name);
  if (const auto* match = std::get_if<EnvoyFilter::ListenerMatch>(&patch.match.object)) {
    wanted.insert({match->name, match->listener_filter});
    if (match->filter_chain) wanted.insert(match->filter_chain->name);
    if (match->filter_chain && match->filter_chain->filter)
      wanted.insert({match->filter_chain->filter->name, match->filter_chain->filter->sub_filter.value_or("")});
  }
  if (const auto* match = std::get_if<EnvoyFilter::RouteConfigurationMatch>(&patch.match.object); match && match->vhost)
    wanted.insert(match->vhost->name);
  wanted.erase("");
  for (const config::EnvoyFilterRef& filter : cluster.configs.EnvoyFilters()) {
    for (const EnvoyFilter::ConfigPatch& other : filter->spec.config_patches) {
      const Operation op = OperationOf(other);
      if (op == Operation::kRemove || op == Operation::kMerge || op == Operation::kInvalid) continue;
      if (wanted.contains(Text(other.patch->value, "name"))) return true;
    }
  }
  return false;
}

std::string Missing(const MeshCluster& cluster, const EnvoyFilter::ConfigPatch& patch,
                    const std::vector<const sim::PodProcess*>& proxies, Sending& sending) {
  const Operation op = OperationOf(patch);
  const bool adds_listener = patch.apply_to == ApplyTo::kListener && op == Operation::kAdd;
  if (adds_listener || (op == Operation::kRemove && PutByAnother(cluster, patch))) return {};
  return MissingIn(patch, sending.To(cluster, proxies, op != Operation::kRemove));
}

// Node metadata that a patch asks for (istiod: pilot/pkg/model/envoyfilter.go, proxyMatch).
bool MetadataFits(const EnvoyFilter::Match& match, const sim::PodProcess& pod) {
  if (!match.proxy) return true;
  const json& metadata = pod.node().metadata;
  return std::all_of(match.proxy->metadata.begin(), match.proxy->metadata.end(), [&](const auto& wanted) {
    const json& has = At(metadata, wanted.first);
    return has.is_string() && TextOf(has) == wanted.second;
  });
}

// Names of extension configurations that filters of some EnvoyFilter ask the ADS stream for, and those that are given.
std::set<std::string> ExtensionsAsked(const json& value) {
  std::set<std::string> out;
  const json& source = At(At(value, "config_discovery"), "config_source");
  const json& camel = At(At(value, "configDiscovery"), "configSource");
  if (!At(source, "ads").is_null() || !At(camel, "ads").is_null()) out.insert(Text(value, "name"));
  return out;
}
std::set<std::string> ExtensionsGiven(const MeshCluster& cluster) {
  std::set<std::string> out;
  for (const config::EnvoyFilterRef& filter : cluster.configs.EnvoyFilters()) {
    for (const EnvoyFilter::ConfigPatch& patch : filter->spec.config_patches) {
      if (patch.apply_to == ApplyTo::kExtensionConfig && patch.patch) out.insert(Text(patch.patch->value, "name"));
    }
  }
  for (const config::WasmPluginRef& plugin : cluster.configs.WasmPlugins())
    out.insert(fmt::format("{}.{}", plugin->meta.ns, plugin->meta.name));
  return out;
}

// istiod: pilot/pkg/networking/core/v1alpha3/extension: ECDS answers for what some EnvoyFilter or WasmPlugin gives.
void ExtensionsMissing(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (!patch.patch || patch.apply_to == ApplyTo::kExtensionConfig) return;
    for (const std::string& name : ExtensionsAsked(patch.patch->value)) {
      if (ExtensionsGiven(cluster).contains(name)) continue;
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: its filter waits for the extension configuration {}, which no EnvoyFilter "
                               "(EXTENSION_CONFIG) and no WasmPlugin gives",
                               number, name));
    }
  });
}

// Clusters that filters of a patch ask services through: of gRPC (envoy: config/core/v3/grpc_service.proto), of HTTP
// (config/core/v3/http_uri.proto).
struct AskedClusters {
  std::set<std::string> all, by_grpc;

  explicit AskedClusters(const EnvoyFilter::ConfigPatch& patch) {
    if (!patch.patch || OperationOf(patch) == Operation::kRemove || patch.apply_to == ApplyTo::kBootstrap) return;
    Look(patch.patch->value);
  }

 private:
  void Look(const json& value) {
    if (value.is_array()) {
      for (const json& item : value) Look(item);
      return;
    }
    if (!value.is_object()) return;
    for (auto it = value.begin(); it != value.end(); ++it) {
      const std::string& key = it.key();
      const bool grpc = key == "envoy_grpc" || key == "envoyGrpc";
      std::string name;
      if (grpc) name = Text(*it, "cluster_name", Text(*it, "clusterName"));
      if (key == "http_uri" || key == "httpUri" || key == "server_uri" || key == "serverUri")
        name = Text(*it, "cluster");
      if (!name.empty()) all.insert(name);
      if (!name.empty() && grpc) by_grpc.insert(name);
      Look(*it);
    }
  }
};

// envoy: source/common/grpc/async_client_manager_impl.cc: what such a filter asks fails, whatever its filter makes of
// it.
void FilterAsksNobody(const Mesh& mesh, Findings& findings) {
  // Of every bootstrap (istiod: tools/packaging/common/envoy_bootstrap.json).
  static const std::set<std::string, std::less<>> of_bootstraps = {"xds-grpc", "sds-grpc", "agent", "prometheus_stats",
                                                                   "zipkin"};
  Sending sending;
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    const AskedClusters asked(patch);
    if (asked.all.empty()) return;
    const auto proxies = Proxies(mesh, cluster, filter, patch);
    for (const std::string& name : asked.all) {
      if (of_bootstraps.contains(name)) continue;
      bool there = proxies.empty();
      for (const Sending::Sent* sent : sending.To(cluster, proxies, true))
        there = there || std::find(sent->clusters.begin(), sent->clusters.end(), name) != sent->clusters.end();
      if (there) continue;
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: asks through cluster {}, which no proxy that it is for has", number, name));
      const auto key = pilot::ParseSubsetKey(name);
      if (!key) continue;
      const pilot::ServiceRef service = ServiceOf(cluster, key->hostname);
      findings.Explain(
          {}, service == nullptr
                  ? fmt::format("{} is no host that istiod knows: create the Service, or mend the name", key->hostname)
                  : fmt::format("{} is there: name a port and subset that it has", key->hostname));
    }
  });
}

// The EnvoyFilter whose patch adds a cluster of that name; null: none does.
config::EnvoyFilterRef WhoAdds(const MeshCluster& cluster, const std::string& name) {
  for (const config::EnvoyFilterRef& filter : cluster.configs.EnvoyFilters()) {
    for (const EnvoyFilter::ConfigPatch& patch : filter->spec.config_patches) {
      if (patch.apply_to == ApplyTo::kCluster && OperationOf(patch) == Operation::kAdd &&
          Text(patch.patch->value, "name") == name)
        return filter;
    }
  }
  return nullptr;
}

// What a Service's port says, where that is why its cluster is not of HTTP/2; empty: it is not.
std::string PortOfHttp1(const MeshCluster& cluster, const std::string& name) {
  const auto key = pilot::ParseSubsetKey(name);
  const pilot::ServiceRef service = key ? ServiceOf(cluster, key->hostname) : nullptr;
  const pilot::Port* port = service == nullptr ? nullptr : service->FindPort(key->port);
  if (port == nullptr || pilot::IsHttp2(port->protocol)) return {};
  return pilot::IsUnsupported(port->protocol) ? std::string("says no protocol")
                                              : fmt::format("is {}", pilot::ProtocolName(port->protocol));
}

// envoy: source/common/grpc/async_client_impl.cc: which HTTP it is the cluster says, and one that says nothing is of
// HTTP/1.1.
void FilterAsksByHttp1(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    const AskedClusters asked(patch);
    if (asked.by_grpc.empty()) return;
    const auto proxies = Proxies(mesh, cluster, filter, patch);
    for (const std::string& name : asked.by_grpc) {
      const auto pod = std::find_if(proxies.begin(), proxies.end(),
                                    [&](const sim::PodProcess* each) { return AsksByHttp1(*each, name); });
      if (pod == proxies.end()) continue;
      if (const config::EnvoyFilterRef adds = WhoAdds(cluster, name); adds != nullptr) {
        findings.Add(
            cluster, adds->meta,
            fmt::format("adds cluster {} without HTTP/2, and patch {} of EnvoyFilter {}/{} asks gRPC there: {} "
                        "asks it by HTTP/1.1",
                        name, number, filter.meta.ns, filter.meta.name, (*pod)->name()));
        continue;
      }
      const std::string port = PortOfHttp1(cluster, name);
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: asks gRPC through cluster {}, {}: {} asks it by HTTP/1.1", number, name,
                               port.empty() ? "which is not of HTTP/2" : "whose port " + port, (*pod)->name()));
      if (!port.empty()) findings.Explain({}, "name the Service's port grpc, or give it appProtocol: grpc");
    }
  });
}

// Configurations of the filter in a patch's value, wherever they stand in it. envoy: api/envoy/extensions/filters/http/
// local_ratelimit/v3/local_rate_limit.proto: filter_enabled and filter_enforced are 0 % unless they are said.
void LocalRateLimits(const json& value, std::vector<const json*>* out) {
  if (value.is_array()) {
    for (const json& item : value) LocalRateLimits(item, out);
    return;
  }
  if (!value.is_object()) return;
  constexpr std::string_view kType = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
  if (Text(value, "@type").ends_with(kType)) {
    out->push_back(&value);
  } else if (Text(value, "type_url").ends_with(kType) && At(value, "value").is_object()) {
    out->push_back(&At(value, "value"));
  }
  for (const auto& [key, inner] : value.items()) LocalRateLimits(inner, out);
}

void LocalRateLimitOff(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (!patch.patch || OperationOf(patch) == Operation::kRemove) return;
    std::vector<const json*> limits;
    LocalRateLimits(patch.patch->value, &limits);
    for (const json* limit : limits) {
      const auto says = [&](const char* field, const char* camel) {
        return limit->contains(field) || limit->contains(camel);
      };
      if (!says("token_bucket", "tokenBucket")) continue;
      const bool enabled = says("filter_enabled", "filterEnabled"),
                 enforced = says("filter_enforced", "filterEnforced");
      if (enabled && enforced) continue;
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: its local rate limit says no {}, which is 0 % then: no request is {}", number,
                               enabled ? "filter_enforced" : "filter_enabled", enabled ? "refused" : "counted"));
    }
  });
}

void WithoutEffect(const Mesh& mesh, Findings& findings) {
  Sending sending;
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (const auto versions = ProxyVersions(mesh, cluster); !VersionFits(patch.match, versions)) {
      return findings.Add(cluster, filter.meta,
                          fmt::format("patch {}: proxyVersion '{}' fits no proxy of this release ({})", number,
                                      patch.match.proxy->proxy_version, fmt::join(versions, ", ")));
    }
    auto proxies = Proxies(mesh, cluster, filter, patch);
    if (!proxies.empty()) {
      std::erase_if(proxies, [&](const sim::PodProcess* pod) { return !MetadataFits(patch.match, *pod); });
      if (proxies.empty()) {
        std::vector<std::string> wanted;
        for (const auto& [key, value] : patch.match.proxy->metadata) wanted.push_back(key + "=" + value);
        return findings.Add(
            cluster, filter.meta,
            fmt::format("patch {}: no proxy of its context has the metadata {}", number, fmt::join(wanted, ", ")));
      }
    }
    if (patch.apply_to == ApplyTo::kExtensionConfig) {
      const std::string name = patch.patch ? Text(patch.patch->value, "name") : std::string();
      bool asked = false;
      for (const config::EnvoyFilterRef& other : cluster.configs.EnvoyFilters()) {
        for (const EnvoyFilter::ConfigPatch& each : other->spec.config_patches)
          asked = asked || (each.patch && ExtensionsAsked(each.patch->value).contains(name));
      }
      if (!asked)
        findings.Add(cluster, filter.meta,
                     fmt::format("patch {}: no filter asks for the extension configuration {} (config_discovery)",
                                 number, name));
      return;
    }
    if (const auto* match = std::get_if<EnvoyFilter::ListenerMatch>(&patch.match.object);
        match != nullptr && match->filter_chain && !match->filter_chain->application_protocols.empty()) {
      // istiod: envoyfilter/listener_patch.go, filterChainMatch.
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: filterChain.applicationProtocols is read by no istiod: the patch holds for "
                               "chains of any",
                               number));
    }
    if (proxies.empty()) {
      // Without any pod for its selector at all it is IST0127.
      const auto pods = mesh.ServedPods(cluster);
      const bool selected =
          !filter.spec.workload_selector || std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
            return Selects(*filter.spec.workload_selector, pod->pod()->meta.labels);
          });
      if (selected)
        findings.Add(cluster, filter.meta, fmt::format("patch {}: no proxy of its context is selected", number));
      return;
    }
    if (const std::string missing = Missing(cluster, patch, proxies, sending); !missing.empty())
      findings.Add(cluster, filter.meta, fmt::format("patch {}: {}", number, missing));
  });
}

// istiod passes ADD and REMOVE over for these.
bool WithoutAddAndRemove(ApplyTo kind) { return kind == ApplyTo::kRouteConfiguration || kind == ApplyTo::kHttpRoute; }

bool IsRelative(const EnvoyFilter::ConfigPatch& patch) {
  switch (OperationOf(patch)) {
    case Operation::kInsertBefore:
    case Operation::kInsertAfter:
      return true;
    case Operation::kRemove:
      return !WithoutAddAndRemove(patch.apply_to);
    case Operation::kReplace:
      return patch.apply_to == ApplyTo::kHttpFilter || patch.apply_to == ApplyTo::kNetworkFilter;
    default:
      return false;
  }
}

// What a patch puts there, else what it is about.
std::string NameInPatch(const EnvoyFilter::ConfigPatch& patch) {
  if (!patch.patch || !patch.patch->value.is_object() || patch.patch->value.empty()) return {};
  if (const std::string name = Text(patch.patch->value, "name"); !name.empty()) return name;
  const auto* listener = std::get_if<EnvoyFilter::ListenerMatch>(&patch.match.object);
  if (listener == nullptr || !listener->filter_chain || !listener->filter_chain->filter) return {};
  return listener->filter_chain->filter->name;
}

// `of_release`: those whose name a patch before them has that is for proxies of some releases alone. istiod:
// pkg/config/analysis/analyzers/envoyfilter/envoyfilter.go
void RelativePatches(const Mesh& mesh, bool of_release, Findings& findings) {
  std::map<const MeshCluster*, std::set<std::string>> of_releases;
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (!patch.patch) return;
    const std::string name = NameInPatch(patch);
    if (IsRelative(patch) && filter.spec.priority == 0 && of_releases[&cluster].contains(name) == of_release) {
      findings.Add(cluster, filter.meta,
                   of_release ? fmt::format("patch {} is relative, the EnvoyFilter has no priority, and a patch before "
                                            "it has {} for proxies of some releases (proxyVersion)",
                                            number, name.empty() ? "as nameless a value" : name)
                              : fmt::format("patch {} is relative to what is there, and the EnvoyFilter has no "
                                            "priority: if that is added later, it is not there yet",
                                            number));
    }
    if (patch.match.proxy && !patch.match.proxy->proxy_version.empty()) of_releases[&cluster].insert(name);
  });
}

void RelativeOperation(const Mesh& mesh, Findings& findings) { RelativePatches(mesh, false, findings); }
void RelativeOperationOfRelease(const Mesh& mesh, Findings& findings) { RelativePatches(mesh, true, findings); }

void ReplaceMisused(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (OperationOf(patch) != Operation::kReplace) return;
    // istioctl names the first two alone; istiod replaces virtual hosts as well (rc_patch.go, patchVirtualHost).
    if (patch.apply_to == ApplyTo::kHttpFilter || patch.apply_to == ApplyTo::kNetworkFilter ||
        patch.apply_to == ApplyTo::kVirtualHost)
      return;
    findings.Add(cluster, filter.meta,
                 fmt::format("patch {}: REPLACE is for HTTP_FILTER, NETWORK_FILTER and VIRTUAL_HOST only", number));
  });
}

void AddMisused(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (OperationOf(patch) == Operation::kAdd && WithoutAddAndRemove(patch.apply_to))
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: ADD is ignored for ROUTE_CONFIGURATION and HTTP_ROUTE", number));
  });
}

void RemoveMisused(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (OperationOf(patch) == Operation::kRemove && WithoutAddAndRemove(patch.apply_to))
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: REMOVE is ignored for ROUTE_CONFIGURATION and HTTP_ROUTE", number));
  });
}

}  // namespace

const std::vector<Rule>& EnvoyFilterRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT743", "LocalRateLimitOff", Level::kWarning, "a limit that nothing switches on limits nothing",
       "write filter_enabled and filter_enforced, each {default_value: {numerator: 100}}", "envoyproxy/envoy#15851",
       LocalRateLimitOff, false},
      {"WT531", "EnvoyFilterWithoutEffect", Level::kWarning, "istiod passes such a patch over without a word",
       "mend the match: version, context, cluster, listener", "istio/istio#19185", WithoutEffect},
      {"WT594", "ExtensionConfigMissing", Level::kError,
       "a listener waits for all that its filters ask the ADS stream for, or answers 500 meanwhile",
       "add the EXTENSION_CONFIG, with the filter's name", "istio/istio#38313", ExtensionsMissing},
      {"WT599", "FilterAsksNobody", Level::kError,
       "what the filter asks fails, and it refuses or passes requests as it is told to for that case",
       "add the cluster by a patch of its own, or name one that istiod makes (outbound|PORT||HOST)",
       "envoyproxy/envoy#3259, #2785", FilterAsksNobody},
      {"WT756", "FilterAsksByHttp1", Level::kError,
       "gRPC is HTTP/2: no question is answered, and nothing that is told there arrives",
       "give the cluster typed_extension_protocol_options of HttpProtocolOptions with explicit_http_config: "
       "{http2_protocol_options: {}}",
       "envoyproxy/envoy#3388, #13192", FilterAsksByHttp1},
      {"IST0151", "EnvoyFilterUsesRelativeOperation", Level::kWarning, "EnvoyFilters are applied by priority, then age",
       "set a priority, or use INSERT_FIRST or ADD", "istio/istio#38214", RelativeOperation},
      {"IST0155", "EnvoyFilterUsesRelativeOperationWithProxyVersion", Level::kWarning,
       "while releases meet in an upgrade, what it is relative to may be there or not",
       "set a priority, or use INSERT_FIRST or ADD", "", RelativeOperationOfRelease},
      {"IST0152", "EnvoyFilterUsesReplaceOperationIncorrectly", Level::kError, "the patch does nothing",
       "use MERGE, or REMOVE and ADD", "istio/api#3034", ReplaceMisused},
      {"IST0153", "EnvoyFilterUsesAddOperationIncorrectly", Level::kError, "the patch does nothing",
       "use MERGE, or patch a VIRTUAL_HOST", "istio/istio.io#11727", AddMisused},
      {"IST0154", "EnvoyFilterUsesRemoveOperationIncorrectly", Level::kError, "the patch does nothing",
       "patch a VIRTUAL_HOST instead", "", RemoveMisused},
  };
  return *rules;
}

}  // namespace wavetank::check
