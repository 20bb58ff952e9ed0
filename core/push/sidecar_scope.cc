#include "core/push/sidecar_scope.h"
#include "core/model/selection.h"

#include <algorithm>
#include <memory>

#include "core/model/proxy.h"
#include "core/profile/changes.h"
#include "core/push/host_match.h"
#include "core/push/sidecar_scope_builder.h"
#include "xxhash.h"

namespace wavetank::pilot {

uint64_t ConfigHash(ConfigKind kind, std::string_view name, std::string_view ns) {
  const uint64_t of_name = XXH3_64bits_withSeed(name.data(), name.size(), static_cast<uint64_t>(kind));
  return XXH3_64bits_withSeed(ns.data(), ns.size(), of_name);
}

bool SidecarScope::HasIngressListener() const { return sidecar != nullptr && !sidecar->spec.ingress.empty(); }

const std::vector<ServiceRef>& SidecarScope::services() const { return view_->services; }

ServiceRef SidecarScope::GetService(std::string_view hostname) const {
  const auto it = view_->by_hostname.find(MapKey(hostname));
  return it == view_->by_hostname.end() ? nullptr : it->second;
}

const EgressListener* SidecarScope::GetEgressListenerForRds(int port, std::string_view bind) const {
  for (const EgressListener& e : egress_listeners) {
    if (e.listener == nullptr || !e.listener->port) return &e;
    if (static_cast<int>(e.listener->port->number) != port) continue;
    if (port != 0 || e.listener->bind == bind) return &e;
  }
  return nullptr;
}

ConsolidatedDestRuleRef SidecarScope::DestinationRule(TrafficDirection direction, const Proxy& proxy,
                                                      std::string_view hostname) const {
  if (destination_rules_.empty()) return nullptr;
  const auto it = destination_rules_.find(MapKey(hostname));
  if (it == destination_rules_.end()) return nullptr;
  ConsolidatedDestRuleRef catch_all;
  for (const ConsolidatedDestRuleRef& rule : it->second) {
    const auto& selector = rule->rule->spec.workload_selector;
    if (!selector) {
      catch_all = rule;
    } else if (ns == rule->rule->meta.ns && direction == TrafficDirection::kOutbound &&
               Selects(*selector, proxy.labels)) {
      return rule;
    }
  }
  return catch_all;
}

std::optional<std::string> SidecarScope::HostOfRule(const ConfigKey& rule) const {
  for (const auto& [host, rules] : destination_rules_) {  // order: all that one rule is merged into have its host
    for (const ConsolidatedDestRuleRef& known : rules) {
      const bool from = std::any_of(known->from.begin(), known->from.end(),
                                    [&](const ConfigKey& key) { return key.name == rule.name && key.ns == rule.ns; });
      if (from) return known->rule->spec.host;
    }
  }
  return std::nullopt;
}

std::vector<ServiceRef> SidecarScope::ServicesFor(std::string_view host) const {
  std::vector<ServiceRef> out;
  if (!host.starts_with('*')) {
    if (ServiceRef service = GetService(host)) out.push_back(std::move(service));
    return out;
  }
  for (const ServiceRef& service : services()) {
    if (HostMatches(host, service->hostname)) out.push_back(service);
  }
  return out;
}

bool SidecarScope::DependsOnConfig(const ConfigKey& key) const {
  switch (key.kind) {
    // Those of the root and of the own namespace hold for every proxy.
    case ConfigKind::kEnvoyFilter:
    case ConfigKind::kAuthorizationPolicy:
    case ConfigKind::kRequestAuthentication:
    case ConfigKind::kWasmPlugin:
      return key.ns == root_namespace || key.ns == ns;
    case ConfigKind::kServiceEntry:
    case ConfigKind::kVirtualService:
    case ConfigKind::kDestinationRule:
    case ConfigKind::kSidecar: {
      const uint64_t hash = ConfigHash(key);
      return view_->dependencies.contains(hash) || dependencies_.contains(hash);
    }
    case ConfigKind::kPeerAuthentication:
      return !knows_peer_authentications_ || key.ns == root_namespace || key.ns == ns ||
             view_->namespaces.contains(MapKey(key.ns));
    default:
      return true;
  }
}

bool IsServiceVisible(const Service& service, std::string_view ns, const ExportToDefaults& defaults) {
  const ExportTo& to = service.attributes.export_to;
  if (to.empty()) {
    if (defaults.service.is_private) return service.attributes.ns == ns;
    return defaults.service.is_public;
  }
  return to.is_public || (to.is_private && service.attributes.ns == ns) || to.namespaces.contains(ns);
}

namespace {

constexpr std::string_view kDefaultSidecar = "default-sidecar";

// The service with the listener's port alone; null if it has no such port.
ServiceRef WithListenerPort(const ServiceRef& service, const EgressListener& listener) {
  const Port* port = service->FindPortOfAnyProtocol(static_cast<int>(listener.listener->port->number));
  if (port == nullptr) return nullptr;
  auto out = std::make_shared<Service>(*service);
  out->ports = {*port};
  return out;
}

// The service with the ports that routes name; null if it has none of them.
ServiceRef WithRoutedPorts(const ServiceRef& service, const std::set<int>& ports) {
  if (ports.empty() || ports.contains(0)) return service;
  std::vector<Port> found;
  for (const Port& port : service->ports) {
    if (ports.contains(port.port)) found.push_back(port);
  }
  if (found.size() == service->ports.size()) return service;
  if (found.empty()) return nullptr;
  auto out = std::make_shared<Service>(*service);
  out->ports = std::move(found);
  return out;
}

using HostsByNamespace = std::map<std::string, std::vector<std::string>, std::less<>>;

// "namespace/dnsName" with "." for the proxies' own namespace; others are ignored.
HostsByNamespace ParseHosts(const std::vector<std::string>& hosts, const std::string& ns) {
  HostsByNamespace out;
  for (const std::string& host : hosts) {
    const size_t slash = host.find('/');
    if (slash == std::string::npos) continue;
    const std::string where = host.substr(0, slash);
    out[where == "." ? ns : where].push_back(host.substr(slash + 1));
  }
  return out;
}

// istiod: matchingAliasService.
ServiceRef WithImportedAliases(const std::vector<std::string>& imported, const ServiceRef& service) {
  std::vector<kube::NamespacedName> found;
  for (const kube::NamespacedName& alias : service->attributes.aliases) {
    const bool match = std::any_of(imported.begin(), imported.end(),
                                   [&](const std::string& host) { return HostSubsetOf(alias.name, host); });
    if (match) found.push_back(alias);
  }
  if (found.size() == service->attributes.aliases.size()) return service;
  auto out = std::make_shared<Service>(*service);
  out->attributes.aliases = std::move(found);
  return out;
}

ServiceRef Matching(const std::vector<std::string>& imported, const ServiceRef& service,
                    const EgressListener& listener) {
  const bool match = std::any_of(imported.begin(), imported.end(),
                                 [&](const std::string& host) { return HostSubsetOf(service->hostname, host); });
  if (!match) return nullptr;
  const ServiceRef seen = listener.match_port ? WithListenerPort(service, listener) : service;
  return seen == nullptr || seen->attributes.aliases.empty() ? seen : WithImportedAliases(imported, seen);
}

bool OfKubernetes(const Service& service) { return service.attributes.registry == Provider::kKubernetes; }

// istiod: selectServices. Of several services with one host name that of the proxies' namespace stays, else the first
// one's namespace decides, or the first of Kubernetes' (`kubernetes_first`).
std::vector<ServiceRef> SelectServices(const std::vector<ServiceRef>& services, const HostsByNamespace& hosts,
                                       const EgressListener& listener, const std::string& config_namespace,
                                       bool kubernetes_first) {
  std::vector<ServiceRef> imported;
  const auto anywhere = hosts.find("*");
  for (const ServiceRef& service : services) {
    ServiceRef match;
    if (const auto it = hosts.find(service->attributes.ns); it != hosts.end()) {
      match = Matching(it->second, service, listener);
    }
    if (match == nullptr && anywhere != hosts.end()) match = Matching(anywhere->second, service, listener);
    if (match != nullptr) imported.push_back(std::move(match));
  }
  absl::flat_hash_map<std::string, ServiceRef> valid;
  for (const ServiceRef& service : imported) {
    const auto [it, added] = valid.try_emplace(service->hostname, service);
    if (added) continue;
    const Service& chosen = *it->second;
    const bool own = service->attributes.ns == config_namespace;
    const bool better =
        kubernetes_first && !OfKubernetes(chosen) && OfKubernetes(*service) && chosen.attributes.ns != config_namespace;
    if (own || better) it->second = service;
  }
  std::erase_if(imported, [&](const ServiceRef& s) { return valid[s->hostname]->attributes.ns != s->attributes.ns; });
  return imported;
}

// istiod: canMergeServices.
bool CanMerge(const Service& a, const Service& b) {
  const ServiceAttributes &x = a.attributes, &y = b.attributes;
  return x.ns == y.ns && a.resolution == b.resolution && x.registry == y.registry && x.labels == y.labels &&
         x.label_selectors == y.label_selectors && x.export_to == y.export_to;
}

}  // namespace

std::shared_ptr<SidecarScope> SidecarScopeBuilder::New(const std::string& ns) const {
  auto scope = std::make_shared<SidecarScope>();
  scope->ns = ns;
  scope->version = version_;
  scope->root_namespace = mesh_.root_namespace;
  scope->outbound_traffic_policy.mode = mesh_.outbound_traffic_policy;
  scope->knows_peer_authentications_ = profile_.Has(Change::kPeerAuthenticationsInScopes);
  return scope;
}

void SidecarScopeBuilder::AddDestinationRules(SidecarScope& scope, const std::vector<ServiceRef>& services) const {
  for (const ServiceRef& service : services) {
    const DestinationRuleIndex::Rules* rules =
        destination_rules_.Find(scope.ns, service->hostname, service->attributes.ns);
    if (rules != nullptr) scope.destination_rules_[service->hostname] = *rules;
  }
  for (const auto& [host, rules] : scope.destination_rules_) {  // order: fills a set, raises a flag
    for (const ConsolidatedDestRuleRef& rule : rules) {
      scope.selects_workloads_ |= rule->rule->spec.workload_selector.has_value();
      for (const ConfigKey& key : rule->from) scope.dependencies_.insert(ConfigHash(key));
    }
  }
}

void SidecarScopeBuilder::AddVirtualServiceDependencies(SidecarScope& scope, const EgressListener& listener) const {
  for (const config::VirtualServiceRef& vs : listener.virtual_services) {
    scope.dependencies_.insert(ConfigHash(ConfigKind::kVirtualService, vs->meta.name, vs->meta.ns));
    for (const ConfigKey& key : virtual_services_.DelegatesOf(vs->meta)) {
      scope.dependencies_.insert(ConfigHash(key));
    }
  }
}

// istiod: pickFirstVisibleNamespace, pickBestVisibleNamespace. Of several Kubernetes Services istiod takes any.
ServiceRef SidecarScopeBuilder::VisibleOf(const std::map<std::string, ServiceRef, std::less<>>& by_namespace,
                                          const std::string& ns) const {
  ServiceRef best;
  for (const auto& [where, candidate] : by_namespace) {
    if (!IsServiceVisible(*candidate, ns, defaults_)) continue;
    if (OfKubernetes(*candidate) || !profile_.Has(Change::kBestNamespace)) return candidate;
    if (best == nullptr || candidate->creation_unix_seconds < best->creation_unix_seconds) best = candidate;
  }
  return best;
}

std::vector<ServiceRef> SidecarScopeBuilder::Destinations(const EgressListener& listener, const std::string& ns) const {
  std::vector<ServiceRef> out;
  for (const config::VirtualServiceRef& vs : listener.virtual_services) {
    const std::string_view source = profile_.Has(Change::kDestinationsBySource) ? ns : std::string_view();
    for (const auto& [host, ports] :
         VirtualServiceDestinations(vs->spec, profile_.Has(Change::kSeveralMirrors), source)) {
      const auto* by_namespace = services_.ByNamespace(host);
      if (by_namespace == nullptr) continue;
      ServiceRef service;
      if (const auto own = by_namespace->find(ns); own != by_namespace->end()) {
        service = own->second;
      } else {
        service = VisibleOf(*by_namespace, ns);
      }
      if (service == nullptr) continue;
      out.push_back(listener.match_port ? WithListenerPort(service, listener) : WithRoutedPorts(service, ports));
    }
  }
  return out;
}

SidecarScopeRef SidecarScopeBuilder::Default(const std::string& ns, bool router) const {
  std::shared_ptr<SidecarScope> scope = New(ns);
  scope->name = std::string(kDefaultSidecar);
  scope->view_ = services_.DefaultView(ns);
  if (scope->view_->by_hostname.size() != scope->view_->services.size()) {
    if (!router && profile_.Has(Change::kOneScope)) return Convert(nullptr, ns);
    if (profile_.Has(Change::kServicesOfHostMerged)) scope->view_ = Merged(scope->view_->services);
  }
  EgressListener& listener = scope->egress_listeners.emplace_back();
  listener.services = std::shared_ptr<const std::vector<ServiceRef>>(scope->view_, &scope->view_->services);
  listener.virtual_services = virtual_services_.ForGateway(ns, kMeshGateway);
  if (ruled_.view != scope->view_) {
    ruled_ = {scope->view_, {}};
    for (const ServiceRef& service : scope->view_->accepted) {
      if (destination_rules_.Mentions(service->hostname)) ruled_.services.push_back(service);
    }
  }
  AddDestinationRules(*scope, ruled_.services);
  AddVirtualServiceDependencies(*scope, listener);
  // Also of namespaces without Sidecar.
  if (!router && profile_.Has(Change::kDestinationsImported)) ImportDestinations(*scope, listener);
  return scope;
}

EgressListener SidecarScopeBuilder::Listener(const config::SidecarEgressListener* listener,
                                             const std::vector<std::string>& hosts, const std::string& ns) const {
  EgressListener out;
  out.listener = listener;
  // A listener with a port imports services that have this port, unless it is an HTTP proxy.
  out.match_port = listener != nullptr && listener->port && listener->port->number != 0 &&
                   ParseProtocol(listener->port->protocol) != Protocol::kHttpProxy;
  const HostsByNamespace by_namespace = ParseHosts(hosts, ns);
  out.virtual_services = virtual_services_.Select(ns, by_namespace);
  out.services = SelectServices(services_.ExportedTo(ns), by_namespace, out, ns, profile_.Has(Change::kOneScope));
  return out;
}

// The services of all egress listeners and of their VirtualServices' destinations, each host name once: the first
// namespace wins, and ports of the same service seen at other listeners are added to it. `merged`: Kubernetes' Services
// win, and ports of services that are alike are added (istiod: appendSidecarServices).
class SidecarScopeBuilder::Import {
 public:
  explicit Import(bool merged) : merged_(merged) {}
  void Add(const ServiceRef& service) {
    if (service == nullptr) return;
    const auto [it, added] = index_.try_emplace(service->hostname, view->services.size());
    if (added) {
      view->services.push_back(service);
      return;
    }
    ServiceRef& found = view->services[it->second];
    if (merged_) {
      if (!OfKubernetes(*found) && OfKubernetes(*service)) {
        found = service;
        return;
      }
      if (!CanMerge(*found, *service)) return;
    } else if (found->attributes.ns != service->attributes.ns) {
      return;
    }
    std::vector<Port> missing;
    for (const Port& port : service->ports) {
      if (found->FindPortOfAnyProtocol(port.port) == nullptr) missing.push_back(port);
    }
    if (missing.empty()) return;
    auto merged = std::make_shared<Service>(*found);
    merged->ports.insert(merged->ports.end(), missing.begin(), missing.end());
    found = std::move(merged);
  }

  std::shared_ptr<ServiceView> Take() {
    for (const ServiceRef& service : view->services) {
      view->by_hostname[service->hostname] = service;
      view->Count(*service);
    }
    view->accepted = view->services;
    return std::move(view);
  }

 private:
  const bool merged_;
  std::shared_ptr<ServiceView> view = std::make_shared<ServiceView>();
  absl::flat_hash_map<std::string, size_t> index_;
};

void SidecarScopeBuilder::ImportDestinations(SidecarScope& scope, const EgressListener& listener) const {
  Import missing(profile_.Has(Change::kServicesOfHostMerged));
  for (const ServiceRef& service : Destinations(listener, scope.ns)) {
    if (service != nullptr && !scope.view_->by_hostname.contains(service->hostname)) missing.Add(service);
  }
  const std::shared_ptr<const ServiceView> imported = missing.Take();
  if (imported->services.empty()) return;
  auto view = std::make_shared<ServiceView>(*scope.view_);
  for (const ServiceRef& service : imported->services) {
    view->by_hostname[service->hostname] = service;
    view->services.push_back(service);
    view->Count(*service);
  }
  scope.view_ = std::move(view);
  AddDestinationRules(scope, imported->services);
}

std::shared_ptr<const ServiceView> SidecarScopeBuilder::Merged(const std::vector<ServiceRef>& services) const {
  Import import(true);
  for (const ServiceRef& service : services) import.Add(service);
  return import.Take();
}

SidecarScopeRef SidecarScopeBuilder::Convert(const config::SidecarRef& sidecar, const std::string& ns) const {
  std::shared_ptr<SidecarScope> scope = New(ns);
  scope->name = std::string(kDefaultSidecar);
  static const std::vector<config::SidecarEgressListener>* const none =
      new std::vector<config::SidecarEgressListener>();
  const std::vector<config::SidecarEgressListener>& written = sidecar == nullptr ? *none : sidecar->spec.egress;
  if (sidecar != nullptr) {
    scope->name = sidecar->meta.name;
    scope->sidecar = sidecar;
    scope->dependencies_.insert(ConfigHash(ConfigKind::kSidecar, sidecar->meta.name, sidecar->meta.ns));
  }
  if (written.empty()) scope->egress_listeners.push_back(Listener(nullptr, {"*/*"}, ns));
  for (const config::SidecarEgressListener& egress : written) {
    scope->egress_listeners.push_back(Listener(&egress, egress.hosts, ns));
  }

  Import import(profile_.Has(Change::kServicesOfHostMerged));
  for (const EgressListener& listener : scope->egress_listeners) {
    for (const ServiceRef& service : listener.services) import.Add(service);
    AddVirtualServiceDependencies(*scope, listener);
    // Where routes lead is imported too, even if no host of the listener names it.
    for (const ServiceRef& service : Destinations(listener, ns)) import.Add(service);
  }
  scope->view_ = import.Take();
  AddDestinationRules(*scope, scope->view_->services);
  if (sidecar != nullptr && sidecar->spec.outbound_traffic_policy)
    scope->outbound_traffic_policy = *sidecar->spec.outbound_traffic_policy;
  return scope;
}

}  // namespace wavetank::pilot
