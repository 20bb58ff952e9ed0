#include "core/push/destination_rule_index.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wavetank::pilot {
namespace {

ConsolidatedDestRuleRef Alone(const config::DestinationRuleRef& rule, const ExportTo& export_to) {
  auto out = std::make_shared<ConsolidatedDestRule>();
  out->export_to = export_to;
  out->rule = rule;
  out->from = {{ConfigKind::kDestinationRule, rule->meta.name, rule->meta.ns}};
  return out;
}

// Subsets that the older rule does not name are added; the first traffic policy stays.
ConsolidatedDestRuleRef MergeInto(const ConsolidatedDestRule& older, const config::DestinationRuleRef& rule) {
  auto out = std::make_shared<ConsolidatedDestRule>(older);
  out->from.push_back({ConfigKind::kDestinationRule, rule->meta.name, rule->meta.ns});
  auto merged = std::make_shared<config::TypedConfig<config::DestinationRule>>(*older.rule);
  std::set<std::string_view> names;
  for (const config::Subset& subset : older.rule->spec.subsets) names.insert(subset.name);
  for (const config::Subset& subset : rule->spec.subsets) {
    if (!names.contains(subset.name)) merged->spec.subsets.push_back(subset);
  }
  if (!merged->spec.traffic_policy) merged->spec.traffic_policy = rule->spec.traffic_policy;
  out->rule = std::move(merged);
  return out;
}

// Whether `all` has everything that `some` has.
bool Includes(const ExportTo& all, const ExportTo& some) {
  return (all.is_public || !some.is_public) && (all.is_private || !some.is_private) && (all.is_none || !some.is_none) &&
         std::includes(all.namespaces.begin(), all.namespaces.end(), some.namespaces.begin(), some.namespaces.end());
}

bool IsFor(const ExportTo& to, std::string_view client_ns) {
  return to.empty() || to.is_public || to.namespaces.contains(client_ns);
}

}  // namespace

void DestinationRuleIndex::Consolidated::Merge(const config::DestinationRuleRef& rule, const std::string& host,
                                               const ExportTo& export_to, bool by_export) {
  const bool known = hosts.contains(host);
  Host& entry = hosts[host];
  if (!known) {
    entry.rules = {Alone(rule, export_to)};
    entry.export_to = export_to;
    return;
  }
  const auto& selector = rule->spec.workload_selector;
  bool add = true;
  for (ConsolidatedDestRuleRef& existing : entry.rules) {
    if (by_export) {
      // The last rule that it is compared with decides whether it stands for itself, too.
      add = export_to != existing->export_to;
      // It joins those that are exported to no one else; exported to all of theirs and others, both.
      if (add && (existing->export_to.empty() || !Includes(export_to, existing->export_to))) continue;
    }
    const auto& other = existing->rule->spec.workload_selector;
    const bool same = selector.value_or(Labels{}) == other.value_or(Labels{});
    if (by_export && selector && other && !same) add = true;
    if (selector && other && !same) continue;
    if ((!selector && !other) || (selector && same)) add = false;
    // A rule with and one without selector are merged as well, and the newer one stands for itself besides.
    existing = MergeInto(*existing, rule);
    if (entry.export_to.empty() && !export_to.empty()) entry.export_to = export_to;
  }
  if (add) entry.rules.push_back(Alone(rule, export_to));
}

DestinationRuleIndex::DestinationRuleIndex(const std::vector<config::DestinationRuleRef>& sorted,
                                           const ExportToDefaults& defaults, std::string root_namespace,
                                           std::string_view domain_suffix, Ways ways)
    : root_namespace_(std::move(root_namespace)), ways_(ways) {
  std::vector<config::DestinationRuleRef> in_order = sorted;
  if (ways.selectors_first) {
    // istiod: sortConfigBySelectorAndCreationTime.
    std::stable_partition(in_order.begin(), in_order.end(), [](const config::DestinationRuleRef& rule) {
      return rule->spec.workload_selector.has_value();
    });
  }
  for (const config::DestinationRuleRef& given : in_order) {
    const std::string& ns = given->meta.ns;
    const std::string host = ResolveShortnameToFqdn(given->spec.host, ns, domain_suffix);
    all_hosts_[host] = true;
    config::DestinationRuleRef rule = given;
    if (host != given->spec.host) {
      auto resolved = std::make_shared<config::TypedConfig<config::DestinationRule>>(*given);
      resolved->spec.host = host;
      rule = std::move(resolved);
    }
    // A rule for chosen workloads holds in its own namespace only.
    ExportTo export_to;
    if (given->spec.workload_selector) {
      export_to.is_private = true;
    } else {
      export_to = ParseExportTo(given->spec.export_to);
    }
    const bool own = export_to.namespaces.contains(ns);
    if (export_to.empty() || export_to.is_public || export_to.is_private || own) {
      namespace_local_[ns].Merge(rule, host, export_to, ways.by_export);
    }
    const size_t targets = export_to.namespaces.size() + export_to.is_public + export_to.is_private + export_to.is_none;
    const bool private_only =
        targets == 0 ? defaults.destination_rule.is_private : targets == 1 && (export_to.is_private || own);
    if (!private_only) {
      exported_by_namespace_[ns].Merge(rule, host, export_to, ways.by_export);
    } else if (ns == root_namespace_) {
      root_namespace_local_.Merge(rule, host, export_to, ways.by_export);
    }
  }
}

const DestinationRuleIndex::Rules* DestinationRuleIndex::Exported(std::string_view owner, std::string_view hostname,
                                                                  std::string_view client_ns) const {
  const auto it = exported_by_namespace_.find(owner);
  if (it == exported_by_namespace_.end()) return nullptr;
  const Consolidated::Host* host = it->second.hosts.MostSpecific(hostname);
  if (host == nullptr) return nullptr;
  if (!ways_.by_export) return IsFor(host->export_to, client_ns) ? &host->rules : nullptr;
  const auto for_client = [&](const ConsolidatedDestRuleRef& rule) { return IsFor(rule->export_to, client_ns); };
  if (std::all_of(host->rules.begin(), host->rules.end(), for_client)) return &host->rules;
  if (std::none_of(host->rules.begin(), host->rules.end(), for_client)) return nullptr;
  const auto [known, added] =
      exported_.try_emplace(absl::StrCat(std::string(owner), "/", std::string(hostname), "/", std::string(client_ns)));
  if (added) std::copy_if(host->rules.begin(), host->rules.end(), std::back_inserter(known->second), for_client);
  return &known->second;
}

const DestinationRuleIndex::Rules* DestinationRuleIndex::Find(std::string_view client_ns, std::string_view hostname,
                                                              std::string_view service_ns) const {
  const Consolidated* local = nullptr;
  if (client_ns == root_namespace_) {
    local = &root_namespace_local_;
  } else if (const auto it = namespace_local_.find(client_ns); it != namespace_local_.end()) {
    local = &it->second;
  }
  if (local != nullptr) {
    if (const Consolidated::Host* host = local->hosts.MostSpecific(hostname)) return &host->rules;
  }
  if (!service_ns.empty()) {
    if (const Rules* rules = Exported(service_ns, hostname, client_ns)) return rules;
  }
  return Exported(root_namespace_, hostname, client_ns);
}

}  // namespace wavetank::pilot
