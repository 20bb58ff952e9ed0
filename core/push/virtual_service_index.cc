#include "core/push/virtual_service_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "absl/strings/string_view.h"
#include "core/push/delegates.h"
#include "core/push/host_match.h"

namespace wavetank::pilot {

std::string ResolveGatewayName(std::string_view name, std::string_view ns) {
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    return name.substr(0, slash) == "." ? fmt::format("{}{}", ns, name.substr(slash)) : std::string(name);
  }
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return fmt::format("{}/{}", ns, name);
  // A host name, as old configurations have it: the namespace is its second label.
  const std::string_view rest = name.substr(dot + 1);
  return fmt::format("{}/{}", rest.substr(0, rest.find('.')), name.substr(0, dot));
}

namespace {

// Calls one of them for each name of a host or a gateway in the rule.
template <typename Spec, typename Host, typename Gateway>
void ForEachName(Spec& spec, const Host& host, const Gateway& gateway) {
  const auto routes = [&](auto& all) {
    for (auto& route : all) {
      for (auto& match : route.match) {
        for (auto& name : match.gateways) gateway(name);
      }
      for (auto& weighted : route.route) {
        if (weighted.has_destination) host(weighted.destination.host);
      }
    }
  };
  for (auto& name : spec.hosts) host(name);
  for (auto& name : spec.gateways) gateway(name);
  routes(spec.http);
  routes(spec.tcp);
  routes(spec.tls);
  for (auto& route : spec.http) {
    if (route.mirror) host(route.mirror->host);
    for (auto& mirror : route.mirrors) {
      if (mirror.destination) host(mirror.destination->host);
    }
  }
}

// Of its matches that name a source namespace one names this one, or the last that names any does not.
bool IsForOthers(const config::HttpRoute& route, std::string_view source) {
  bool others = false;
  for (const config::HttpMatchRequest& match : route.match) {
    if (match.source_namespace.empty()) continue;
    if (match.source_namespace == source) return false;
    others = true;
  }
  return others;
}

// Some name may not be in full: a rule with full names alone need not be copied.
bool HasShortNames(const config::VirtualService& spec) {
  bool out = false;
  ForEachName(
      spec,
      [&](const std::string& host) { out |= !host.empty() && host != "*" && host.find('.') == std::string::npos; },
      [&](const std::string& name) {
        out |= name != kMeshGateway && (name.find('/') == std::string::npos || name.starts_with("./"));
      });
  return out;
}

}  // namespace

bool OfGatewayApi(const config::TypedConfig<config::VirtualService>& rule) {
  const auto it = rule.meta.annotations.find("internal.istio.io/route-semantics");
  return it != rule.meta.annotations.end() && it->second == "gateway";
}

void ResolveShortnames(config::VirtualService& spec, std::string_view ns, std::string_view domain_suffix) {
  ForEachName(
      spec, [&](std::string& name) { name = ResolveShortnameToFqdn(name, ns, domain_suffix); },
      [&](std::string& name) {
        if (name != kMeshGateway) name = ResolveGatewayName(name, ns);
      });
}

std::map<std::string, std::set<int>> VirtualServiceDestinations(const config::VirtualService& spec, bool mirrors,
                                                                std::string_view source) {
  std::map<std::string, std::set<int>> out;
  const auto add = [&](const config::Destination& to) { out[to.host].insert(static_cast<int>(to.port)); };
  const auto add_route = [&](const auto& route) {
    for (const auto& weighted : route.route) {
      if (weighted.has_destination) add(weighted.destination);
    }
  };
  std::for_each(spec.tcp.begin(), spec.tcp.end(), add_route);
  std::for_each(spec.tls.begin(), spec.tls.end(), add_route);
  for (const config::HttpRoute& route : spec.http) {
    if (!source.empty() && IsForOthers(route, source)) continue;
    add_route(route);
    if (route.mirror) add(*route.mirror);
    for (const config::HttpMirrorPolicy& mirror : route.mirrors) {
      if (mirrors && mirror.destination) add(*mirror.destination);
    }
  }
  return out;
}

VirtualServiceIndex::VirtualServiceIndex(const List& sorted, const ExportToDefaults& defaults,
                                         std::string_view domain_suffix, OwnFirst own_first,
                                         const std::set<std::string>* provider_hosts)
    : own_first_(own_first) {
  List resolved;
  resolved.reserve(sorted.size());
  for (const config::VirtualServiceRef& vs : sorted) {
    if (OfGatewayApi(*vs) || !HasShortNames(vs->spec)) {
      resolved.push_back(vs);
      continue;
    }
    auto copy = std::make_shared<config::TypedConfig<config::VirtualService>>(*vs);
    ResolveShortnames(copy->spec, vs->meta.ns, domain_suffix);
    resolved.push_back(std::move(copy));
  }
  MergedVirtualServices merged = MergeDelegates(resolved, defaults.virtual_service);
  delegates_ = std::move(merged.delegates);
  for (const config::VirtualServiceRef& vs : merged.list) {
    Add(vs, defaults);
    if (provider_hosts == nullptr) continue;
    for (const std::string& gateway : vs->spec.gateways) {
      if (gateway == kMeshGateway) continue;
      std::set<std::string, std::less<>>& hosts = destinations_by_gateway_[gateway];
      for (const auto& [host, ports] : VirtualServiceDestinations(vs->spec, /*mirrors=*/true)) hosts.insert(host);
      hosts.insert(provider_hosts->begin(), provider_hosts->end());
    }
  }
}

bool VirtualServiceIndex::LeadsTo(std::string_view gateway, std::string_view hostname) const {
  const auto it = destinations_by_gateway_.find(gateway);
  return it != destinations_by_gateway_.end() && it->second.contains(hostname);
}

void VirtualServiceIndex::Add(const config::VirtualServiceRef& vs, const ExportToDefaults& defaults) {
  const auto bind = [&](ByGateway& index) {
    if (vs->spec.gateways.empty()) index[std::string(kMeshGateway)].push_back(vs);
    for (const std::string& gateway : vs->spec.gateways) index[gateway].push_back(vs);
  };
  const std::string& ns = vs->meta.ns;
  const bool silent = vs->spec.export_to.empty();
  if (silent && !defaults.virtual_services_as_said) {
    if (defaults.virtual_service.is_private) {
      bind(private_by_namespace_[ns]);
    } else if (defaults.virtual_service.is_public) {
      bind(public_by_gateway_);
    }
    return;
  }
  const ExportTo to = silent ? defaults.virtual_service : ParseExportTo(vs->spec.export_to);
  if (to.is_public) {
    bind(public_by_gateway_);
  } else if (!to.is_none) {
    if (to.is_private) bind(private_by_namespace_[ns]);
    for (const std::string& target : to.namespaces) {
      if (target == ns && to.is_private && silent) continue;  // it is there already
      bind(target == ns ? private_by_namespace_[ns] : exported_to_namespace_[target]);
    }
  }
}

VirtualServiceIndex::List VirtualServiceIndex::Bound(std::string_view ns, std::string_view gateway, First first) const {
  List out;
  const auto own = [&](const config::VirtualServiceRef& vs) { return vs->meta.ns == ns && OfGatewayApi(*vs); };
  const auto take = [&](const ByGateway& index, bool own_first) {
    const auto it = index.find(absl::string_view(gateway.data(), gateway.size()));
    if (it == index.end()) return;
    const auto before = static_cast<List::difference_type>(out.size());
    out.insert(out.end(), it->second.begin(), it->second.end());
    if (own_first && std::any_of(out.begin() + before, out.end(), own))
      std::stable_partition(out.begin() + before, out.end(), own);
  };
  const bool each = first == First::kInEach;
  if (const auto it = private_by_namespace_.find(ns); it != private_by_namespace_.end()) take(it->second, each);
  if (const auto it = exported_to_namespace_.find(ns); it != exported_to_namespace_.end()) take(it->second, each);
  take(public_by_gateway_, first != First::kNowhere);
  return out;
}

VirtualServiceIndex::List VirtualServiceIndex::ForGateway(std::string_view ns, std::string_view gateway) const {
  // Sidecars without a Sidecar are as those with one that imports all (istiod: UnifiedSidecarScoping).
  if (gateway == kMeshGateway && own_first_.for_sidecars) return Bound(ns, gateway, First::kInEach);
  return Bound(ns, gateway, own_first_.in_public ? First::kInPublic : First::kNowhere);
}

VirtualServiceIndex::List VirtualServiceIndex::Select(
    std::string_view ns, const std::map<std::string, std::vector<std::string>, std::less<>>& hosts) const {
  List out;
  std::set<std::pair<std::string, std::string>> seen;
  for (const config::VirtualServiceRef& vs :
       Bound(ns, kMeshGateway, own_first_.for_sidecars ? First::kInEach : First::kNowhere)) {
    const std::pair<std::string, std::string> key(vs->meta.ns, vs->meta.name);
    for (const std::string_view where : {std::string_view(vs->meta.ns), std::string_view("*")}) {
      const auto imported = hosts.find(where);
      if (imported == hosts.end() || seen.contains(key)) continue;
      // Routes of the Gateway API match as services do: one of *.com does not come with an import of a.com.
      const bool exact = OfGatewayApi(*vs);
      const bool match = std::any_of(imported->second.begin(), imported->second.end(), [&](const std::string& wanted) {
        return std::any_of(vs->spec.hosts.begin(), vs->spec.hosts.end(), [&](const std::string& host) {
          return exact ? HostSubsetOf(host, wanted) : HostMatches(host, wanted);
        });
      });
      if (!match) continue;
      out.push_back(vs);
      seen.insert(key);
    }
  }
  return out;
}

const std::vector<ConfigKey>& VirtualServiceIndex::DelegatesOf(const config::ConfigMeta& root) const {
  static const std::vector<ConfigKey>* const none = new std::vector<ConfigKey>();
  const auto it = delegates_.find({root.ns, root.name});
  return it == delegates_.end() ? *none : it->second;
}

}  // namespace wavetank::pilot
