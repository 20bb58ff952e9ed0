#include "core/gen/cds/istiod_panics.h"

#include <algorithm>
#include <set>

#include "core/config/store/store.h"
#include "core/gen/eds/locality.h"
#include "core/gen/view/dynamic_names.h"
#include "core/model/endpoint_index.h"
#include "core/model/host_name.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using config::LoadBalancerSettings;
using config::TrafficPolicy;

bool ByDns(const Service& service) {
  return service.resolution == Resolution::kDnsLb || service.resolution == Resolution::kDnsRoundRobinLb;
}

bool InSeveralLocalities(const Service& service, const EndpointIndex& endpoints) {
  const EndpointShards* shards = endpoints.Find(service.hostname, service.attributes.ns);
  if (shards == nullptr) return false;
  std::set<std::string_view> localities;
  for (const auto& [shard, list] : shards->shards) {
    for (const IstioEndpoint& endpoint : *list) localities.insert(endpoint.p().locality.label);
  }
  return localities.size() > 1;
}

// Of the rule itself or of a port of the service's, as ports go by numbers.
bool Ejects(const config::DestinationRule& rule, const Service& service) {
  const auto counts = [](const std::optional<config::OutlierDetection>& outlier) {
    return outlier.has_value() && outlier->min_health_percent >= 0;
  };
  if (!rule.traffic_policy) return false;
  if (counts(rule.traffic_policy->outlier_detection)) return true;
  const auto& ports = rule.traffic_policy->port_level_settings;
  return std::any_of(ports.begin(), ports.end(), [&](const auto& port) {
    return counts(port.outlier_detection) &&
           std::any_of(service.ports.begin(), service.ports.end(),
                       [&](const Port& each) { return each.port == static_cast<int>(port.port); });
  });
}

class Search {
 public:
  Search(const PushContext& push, const Service& service) : service_(service) {
    const auto& of_mesh = push.mesh().locality_lb_setting;
    if (of_mesh) of_mesh_ = &*of_mesh;
  }

  bool Panics(const LoadBalancerSettings* lb, bool outlier_detection) const {
    const config::LocalityLbSetting* of_rule =
        lb == nullptr || !lb->locality_lb_setting ? nullptr : &*lb->locality_lb_setting;
    const auto [setting, forced] = EffectiveLocalityLb(of_mesh_, of_rule, service_);
    return UsesFailoverPriority(setting, forced || outlier_detection);
  }

  // Of a policy over another one, for each of its ports.
  bool Panics(const TrafficPolicy* top, const TrafficPolicy* own) const {
    const auto lb = [](const TrafficPolicy* policy) {
      return policy == nullptr || !policy->load_balancer ? nullptr : &*policy->load_balancer;
    };
    const auto ejects = [](const TrafficPolicy* policy) {
      return policy != nullptr && policy->outlier_detection.has_value();
    };
    if (Panics(lb(own) == nullptr ? lb(top) : lb(own), ejects(top) || ejects(own))) return true;
    for (const TrafficPolicy* policy : {top, own}) {
      if (policy == nullptr) continue;
      for (const auto& port : policy->port_level_settings) {
        const bool known = std::any_of(service_.ports.begin(), service_.ports.end(),
                                       [&](const Port& each) { return each.port == static_cast<int>(port.port); });
        if (known && Panics(port.load_balancer ? &*port.load_balancer : nullptr, port.outlier_detection.has_value()))
          return true;
      }
    }
    return false;
  }

  bool Panics(const config::DestinationRule& rule) const {
    const TrafficPolicy* top = rule.traffic_policy ? &*rule.traffic_policy : nullptr;
    return Panics(top, nullptr) ||
           std::any_of(rule.subsets.begin(), rule.subsets.end(), [&](const config::Subset& subset) {
             return subset.traffic_policy && Panics(top, &*subset.traffic_policy);
           });
  }

 private:
  const Service& service_;
  const config::LocalityLbSetting* of_mesh_ = nullptr;
};

// As istiod completes it.
std::string FullHost(const std::string& host, const std::string& ns) {
  return host.find('.') == std::string::npos && !host.starts_with('*')
             ? fmt::format("{}.{}.svc.cluster.local", host, ns)
             : host;
}

}  // namespace

std::vector<IstiodPanic> IstiodPanics(const PushContext& push) {
  std::vector<IstiodPanic> out;
  const EndpointIndex* const endpoints = push.env().endpoints;
  const auto rules_of = [&](const Service& service, auto fn) {
    for (const config::DestinationRuleRef& rule : push.env().configs->DestinationRules()) {
      const std::string host = FullHost(rule->spec.host, rule->meta.ns);
      if (service.hostname == host || HostSubsetOf(service.hostname, host)) fn(*rule);
    }
  };
  for (const ServiceRef& service : push.GetAllServices()) {
    if (!IsDynamic(*service)) continue;
    rules_of(*service, [&](const auto& rule) {
      if (!Ejects(rule.spec, *service)) return;
      out.push_back(
          {service->hostname, &rule.meta, fmt::format("DestinationRule {}/{}", rule.meta.ns, rule.meta.name), true});
    });
  }
  if (!push.profile().Has(Change::kDnsFailoverPriority) || endpoints == nullptr) return out;
  for (const ServiceRef& service : push.GetAllServices()) {
    if (!ByDns(*service) || !InSeveralLocalities(*service, *endpoints)) continue;
    const Search search(push, *service);
    rules_of(*service, [&](const auto& rule) {
      if (!search.Panics(rule.spec)) return;
      out.push_back(
          {service->hostname, &rule.meta, fmt::format("DestinationRule {}/{}", rule.meta.ns, rule.meta.name)});
    });
    if (!search.Panics(nullptr, false)) continue;  // the service itself, by its annotation
    for (const config::ServiceEntryRef& entry : push.env().configs->ServiceEntries()) {
      if (entry->meta.ns != service->attributes.ns ||
          std::find(entry->spec.hosts.begin(), entry->spec.hosts.end(), service->hostname) == entry->spec.hosts.end())
        continue;
      out.push_back(
          {service->hostname, &entry->meta, fmt::format("ServiceEntry {}/{}", entry->meta.ns, entry->meta.name)});
    }
  }
  return out;
}

std::string Describe(const IstiodPanic& panic) {
  if (panic.ejects_names) {
    return fmt::format(
        "{}: istiod of this release panics (nil pointer, applyOutlierDetection) at its outlierDetection for {}, whose "
        "names proxies look up: it ends as soon as a proxy asks; here it goes on",
        panic.by, panic.host);
  }
  return fmt::format(
      "{}: istiod of this release panics (index out of range, applyFailoverPriorityPerLocality) at the priorities of "
      "{}, "
      "whose endpoints are resolved by name and of several localities: it ends as soon as a proxy asks; here it goes "
      "on",
      panic.by, panic.host);
}

}  // namespace wavetank::pilot
