#include "core/push/service_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/profile/changes.h"
#include "core/push/host_match.h"

namespace wavetank::pilot {
namespace {

// Whether "name.namespace" of `a` comes before that of `b`.
bool NameBefore(const ServiceAttributes& a, const ServiceAttributes& b) {
  if (a.name == b.name) return a.ns < b.ns;
  const bool prefix = a.name.starts_with(b.name) || b.name.starts_with(a.name);
  return prefix ? a.name + "." + a.ns < b.name + "." + b.ns : a.name < b.name;
}

// istiod: pkg/spiffe, ExpandWithTrustDomains. What is no identity of a service account stays alone.
std::vector<std::string> ExpandWithTrustDomains(const std::set<std::string>& identities,
                                                const std::vector<std::string>& aliases) {
  std::set<std::string> out = identities;
  constexpr std::string_view kPrefix = "spiffe://";
  for (const std::string& identity : identities) {
    if (aliases.empty() || !identity.starts_with(kPrefix)) continue;
    const std::string_view rest = std::string_view(identity).substr(kPrefix.size());
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view path = rest.substr(slash);
    if (!path.starts_with("/ns/")) continue;
    const size_t sa = path.find("/sa/", 4);
    if (sa == std::string_view::npos || path.substr(4, sa - 4).find('/') != std::string_view::npos ||
        path.substr(sa + 4).find('/') != std::string_view::npos) {
      continue;
    }
    for (const std::string& alias : aliases) out.insert(fmt::format("{}{}{}", kPrefix, alias, path));
  }
  return {out.begin(), out.end()};
}

}  // namespace

ServiceIndex::ServiceIndex(const Environment& env, const ExportToDefaults& defaults,
                           const std::vector<std::string>& trust_aliases)
    : discovery_(env.discovery),
      index_(env.profile != nullptr && env.profile->Has(Change::kInstancesOfIndex) ? env.endpoints : nullptr),
      oldest_stays_(env.profile != nullptr && env.profile->Has(Change::kOldestServiceStays)) {
  if (discovery_ == nullptr) return;
  std::vector<ServiceRef> services = discovery_->Services();
  // istiod: SortServicesByCreationTime.
  const bool name_first = env.profile != nullptr && env.profile->Has(Change::kNameBeforeNamespace);
  std::stable_sort(services.begin(), services.end(), [&](const ServiceRef& a, const ServiceRef& b) {
    if (a->creation_unix_seconds != b->creation_unix_seconds)
      return a->creation_unix_seconds < b->creation_unix_seconds;
    const ServiceAttributes &x = a->attributes, &y = b->attributes;
    return name_first ? std::tie(x.name, x.ns) < std::tie(y.name, y.ns) : NameBefore(x, y);
  });
  ResolveAliases(services);
  by_hostname_.reserve(services.size());
  accounts_.reserve(services.size());
  public_.reserve(services.size());
  for (const ServiceRef& service : services) {
    const std::string& ns = service->attributes.ns;
    const ExportTo& given = service->attributes.export_to;
    ServiceRef& known = by_hostname_[service->hostname][ns];
    if (known == nullptr) {
      known = service;
    } else {
      std::vector<ServiceRef> all = {service, known};
      if (const auto more = several_.find(known.get()); more != several_.end()) {
        all.pop_back();
        all.insert(all.end(), more->second.begin(), more->second.end());
        several_.erase(more);
      }
      const bool kubernetes = service->attributes.registry == Provider::kKubernetes;
      if (!oldest_stays_ || (kubernetes && known->attributes.registry != Provider::kKubernetes)) known = service;
      several_[known.get()] = std::move(all);
    }

    std::set<std::string> accounts(service->service_accounts.begin(), service->service_accounts.end());
    if (const EndpointShards* shards =
            env.endpoints == nullptr ? nullptr : env.endpoints->Find(service->hostname, ns)) {
      accounts.insert(shards->service_accounts.begin(), shards->service_accounts.end());
    }
    Accounts& entry = accounts_[service.get()];
    if (!accounts.empty()) entry.accounts = ExpandWithTrustDomains(accounts, trust_aliases);
    entry.ports.reserve(service->ports.size());
    for (const Port& port : service->ports) {
      if (port.protocol != Protocol::kUdp) entry.ports.push_back(port.port);
      // istiod takes the instances of every port here. Those of a service that the client balances are read only when
      // a DestinationRule makes it a pass-through one; they are taken at that time.
      if (service->resolution != Resolution::kClientSideLb) {
        instances_[service.get()][port.port] = InstancesOf(service, port.port);
      }
    }

    if (given.empty()) {
      if (defaults.service.is_private) {
        private_by_namespace_[ns].push_back(service);
      } else if (defaults.service.is_public) {
        public_.push_back(service);
      }
    } else if (given.is_public) {
      public_.push_back(service);
    } else if (!given.is_none) {
      if (given.is_private) private_by_namespace_[ns].push_back(service);
      for (const std::string& to : given.namespaces) {
        (to == ns ? private_by_namespace_[ns] : exported_to_namespace_[to]).push_back(service);
      }
    }
  }
  for (const auto& [ns, list] : private_by_namespace_) all_.insert(all_.end(), list.begin(), list.end());
  all_.insert(all_.end(), public_.begin(), public_.end());
}

void ServiceIndex::ResolveAliases(std::vector<ServiceRef>& services) {
  std::map<kube::NamespacedName, std::string> targets;
  std::map<std::string_view, std::string_view> by_name;  // an external name knows no namespace
  for (const ServiceRef& service : services) {
    if (service->resolution != Resolution::kAlias) continue;
    targets[{service->attributes.ns, service->hostname}] = service->attributes.external_name;
    by_name[service->hostname] = service->attributes.external_name;
  }
  if (targets.empty()) return;
  std::map<std::string, std::vector<kube::NamespacedName>, std::less<>> aliases;  // by what they stand for at last
  for (const auto& [alias, first] : targets) {
    std::string_view target = first;
    std::set<std::string_view> seen = {alias.name, target};
    auto next = by_name.find(target);
    // A loop leads nowhere, as in Kubernetes' DNS.
    while (next != by_name.end() && seen.insert(next->second).second) {
      target = next->second;
      next = by_name.find(target);
    }
    if (next == by_name.end()) aliases[std::string(target)].push_back(alias);
  }
  for (ServiceRef& service : services) {
    const auto it = aliases.find(service->hostname);
    if (it == aliases.end()) continue;
    auto known = std::make_shared<Service>(*service);
    known->attributes.aliases = it->second;
    for (const kube::NamespacedName& alias : it->second) {
      concrete_of_.push_back({{ConfigKind::kServiceEntry, alias.name, alias.ns},
                              {ConfigKind::kServiceEntry, known->hostname, known->attributes.ns}});
    }
    service = std::move(known);
  }
}

void ServiceIndex::AddConcrete(std::set<ConfigKey>& configs_updated) const {
  for (const auto& [alias, concrete] : concrete_of_) {
    if (configs_updated.contains(alias)) configs_updated.insert(concrete);
  }
}

std::vector<ServiceRef> ServiceIndex::ExportedTo(std::string_view ns) const {
  std::vector<ServiceRef> out;
  if (const auto it = private_by_namespace_.find(ns); it != private_by_namespace_.end()) out = it->second;
  if (const auto it = exported_to_namespace_.find(ns); it != exported_to_namespace_.end()) {
    out.insert(out.end(), it->second.begin(), it->second.end());
  }
  out.insert(out.end(), public_.begin(), public_.end());
  return out;
}

std::shared_ptr<const ServiceView> ServiceIndex::MakeView(std::vector<ServiceRef> services) {
  auto view = std::make_shared<ServiceView>();
  view->services = std::move(services);
  view->by_hostname.reserve(view->services.size());
  view->dependencies.reserve(view->services.size());
  view->accepted.reserve(view->services.size());
  for (const ServiceRef& service : view->services) {
    ServiceRef& existing = view->by_hostname[service->hostname];
    // A Kubernetes Service takes precedence over a ServiceEntry of the same host; else the first wins.
    if (existing != nullptr && !(existing->attributes.registry != Provider::kKubernetes &&
                                 service->attributes.registry == Provider::kKubernetes)) {
      continue;
    }
    existing = service;
    view->accepted.push_back(service);
    view->Count(*service);
  }
  return view;
}

std::shared_ptr<const ServiceView> ServiceIndex::DefaultView(std::string_view ns) const {
  if (!private_by_namespace_.contains(ns) && !exported_to_namespace_.contains(ns)) {
    if (public_view_ == nullptr) public_view_ = MakeView(public_);
    return public_view_;
  }
  std::shared_ptr<const ServiceView>& view = views_[std::string(ns)];
  if (view == nullptr) view = MakeView(ExportedTo(ns));
  return view;
}

const std::map<std::string, ServiceRef, std::less<>>* ServiceIndex::ByNamespace(std::string_view hostname) const {
  const auto it = by_hostname_.find(MapKey(hostname));
  return it == by_hostname_.end() ? nullptr : &it->second;
}

ServiceRef ServiceIndex::Find(std::string_view hostname, std::string_view ns) const {
  const auto* by_namespace = ByNamespace(hostname);
  if (by_namespace == nullptr) return nullptr;
  const auto it = by_namespace->find(ns);
  return it == by_namespace->end() ? nullptr : it->second;
}

ServiceRef ServiceIndex::LatestWith(std::string_view hostname, std::string_view ns,
                                    absl::FunctionRef<bool(const Service&)> has_port) const {
  const ServiceRef known = Find(hostname, ns);
  const auto several = known == nullptr ? several_.end() : several_.find(known.get());
  if (several == several_.end()) return known == nullptr || has_port(*known) ? known : nullptr;
  const auto found =
      std::find_if(several->second.begin(), several->second.end(), [&](const ServiceRef& s) { return has_port(*s); });
  return found == several->second.end() ? nullptr : *found;
}

const std::vector<ServiceInstance>& ServiceIndex::Instances(const Service& service, int port) const {
  static const std::vector<ServiceInstance>* const none = new std::vector<ServiceInstance>();
  const ServiceRef known = LatestWith(service.hostname, service.attributes.ns,
                                      [&](const Service& s) { return s.FindPort(port) != nullptr; });
  if (known == nullptr) return *none;
  InstancesByPort& by_port = instances_[known.get()];
  if (const auto it = by_port.find(port); it != by_port.end()) return it->second;
  return by_port[port] = InstancesOf(known, port);
}

// istiod: push_context.go, initServiceRegistry; endpointshards.go, CopyEndpoints: before 1.20 env.InstancesByPort. The
// order of shards is a Go map's there.
std::vector<ServiceInstance> ServiceIndex::InstancesOf(const ServiceRef& service, int port) const {
  if (index_ == nullptr) return discovery_->InstancesByPort(*service, port);
  std::vector<ServiceInstance> out;
  const EndpointShards* const shards = index_->Find(service->hostname, service->attributes.ns);
  const Port* const wanted = service->FindPort(port);
  if (shards == nullptr || wanted == nullptr) return out;
  for (const auto& [key, list] : shards->shards) {
    for (const IstioEndpoint& endpoint : *list) {
      const int entry_port = endpoint.p().entry_port;
      if (entry_port != 0 ? entry_port == port : endpoint.p().service_port_name == wanted->name)
        out.push_back({service, *wanted, endpoint});
    }
  }
  return out;
}

const std::vector<std::string>& ServiceIndex::ServiceAccounts(std::string_view hostname, std::string_view ns,
                                                              int port) const {
  static const std::vector<std::string>* const none = new std::vector<std::string>();
  // Since the oldest stays, accounts are kept by host and namespace alone.
  const ServiceRef known = LatestWith(hostname, ns, [&](const Service& s) {
    if (oldest_stays_) return true;
    const std::vector<int>& ports = accounts_.find(&s)->second.ports;
    return std::find(ports.begin(), ports.end(), port) != ports.end();
  });
  return known == nullptr ? *none : accounts_.find(known.get())->second.accounts;
}

}  // namespace wavetank::pilot
