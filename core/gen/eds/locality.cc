#include "core/gen/eds/locality.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/model/labels.h"

namespace wavetank::pilot {
namespace {

// Envoy wants priorities 0..n without gaps: the k-th smallest value in use becomes k.
void CloseGaps(std::vector<LocalityLbEndpoints>& localities) {
  std::vector<uint32_t> used;
  for (const LocalityLbEndpoints& group : localities) used.push_back(group.priority);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (LocalityLbEndpoints& group : localities) {
    group.priority = static_cast<uint32_t>(std::lower_bound(used.begin(), used.end(), group.priority) - used.begin());
  }
}

// The first rule whose `from` matches the proxy decides; localities that none of its targets matches lose their
// endpoints. istiod: applyLocalityWeight. Its arithmetic is of uint32 and wraps.
void Distribute(const config::LocalityLbSetting& setting, const LocalityParts& proxy, LoadAssignment& assignment) {
  std::vector<LocalityLbEndpoints>& localities = assignment.localities;
  for (const config::LocalityLbSetting::Distribute& rule : setting.distribute) {
    if (!LocalityMatches(proxy, rule.from)) continue;
    std::vector<bool> matched(localities.size());
    for (const auto& [target, share] : rule.to) {
      std::vector<std::pair<size_t, uint32_t>> weights;  // of the localities that this target takes
      uint32_t total = 0;
      for (size_t i = 0; i < localities.size(); ++i) {
        if (matched[i] || !LocalityMatches(SplitLocality(localities[i].locality), target)) continue;
        matched[i] = true;
        weights.emplace_back(i, localities[i].weight.value_or(1));
        total += weights.back().second;
      }
      if (total == 0) continue;
      for (const auto& [i, weight] : weights) {
        const uint64_t part = weight * share;  // uint32, wraps
        if (part != 0) localities[i].weight = static_cast<uint32_t>((part + total - 1) / total);
      }
    }
    for (size_t i = 0; i < localities.size(); ++i) {
      if (!matched[i]) localities[i].endpoints.clear();
    }
    return;
  }
}

// istiod: applyLocalityFailover.
void Failover(const config::LocalityLbSetting& setting, const LocalityParts& proxy, LoadAssignment& assignment) {
  const auto rule = std::find_if(setting.failover.begin(), setting.failover.end(),
                                 [&](const auto& failover) { return failover.from == proxy.region; });
  for (LocalityLbEndpoints& group : assignment.localities) {
    const LocalityParts parts = SplitLocality(group.locality);
    group.priority = LbPriority(proxy, parts);
    const bool other_region = group.priority == 3;
    if (other_region && rule != setting.failover.end() && parts.region != rule->to) group.priority = 4;
  }
  CloseGaps(assignment.localities);
}

struct PriorityLabel {
  std::string_view name, wanted;  // wanted: the value asked for, else the proxy's own
};

std::vector<PriorityLabel> PriorityLabels(const std::vector<std::string>& setting, const Labels& proxy_labels) {
  std::vector<PriorityLabel> out;
  std::map<std::string_view, std::string_view> overrides;
  for (const std::string& entry : setting) {
    const std::string_view text = entry;
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    out.push_back({name, {}});
    // "label=value"; what has two equals signs or more is no override.
    if (equals != text.npos && text.find('=', equals + 1) == text.npos) overrides[name] = text.substr(equals + 1);
  }
  for (PriorityLabel& label : out) {
    if (const auto it = overrides.find(label.name); it != overrides.end()) {
      label.wanted = it->second;
    } else if (const auto own = proxy_labels.find(label.name); own != proxy_labels.end()) {
      label.wanted = own->second;
    }
  }
  return out;
}

// Number of labels left when the first one differs; 0 if all are equal.
uint32_t PriorityOf(const std::vector<PriorityLabel>& wanted, const Labels* labels) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string_view value;
    if (labels != nullptr) {
      if (const auto it = labels->find(wanted[i].name); it != labels->end()) value = it->second;
    }
    if (value != wanted[i].wanted) return static_cast<uint32_t>(wanted.size() - i);
  }
  return 0;
}

// Splits each locality by priority; one without endpoints disappears. istiod: applyPriorityFailover.
void FailoverByLabels(const config::LocalityLbSetting& setting, const Labels& proxy_labels,
                      LoadAssignment& assignment) {
  const std::vector<PriorityLabel> wanted = PriorityLabels(setting.failover_priority, proxy_labels);
  std::vector<uint32_t> priorities;
  priorities.reserve(assignment.shapes.size());
  for (const EndpointShape& shape : assignment.shapes) priorities.push_back(PriorityOf(wanted, shape.labels));
  std::vector<LocalityLbEndpoints> split;
  for (LocalityLbEndpoints& group : assignment.localities) {
    std::map<uint32_t, std::vector<LbEndpoint>> by_priority;
    for (const LbEndpoint& e : group.endpoints) by_priority[priorities[e.shape]].push_back(e);
    for (auto& [priority, endpoints] : by_priority) {
      LocalityLbEndpoints part{group.locality, std::nullopt, priority, std::move(endpoints)};
      part.weight = part.SumOfWeights();
      split.push_back(std::move(part));
    }
  }
  CloseGaps(split);
  assignment.localities = std::move(split);
}

}  // namespace

LocalityParts SplitLocality(std::string_view locality) {
  LocalityParts out;
  for (std::string_view* part : {&out.region, &out.zone, &out.sub_zone}) {
    const size_t slash = locality.find('/');
    *part = locality.substr(0, slash);
    if (slash == locality.npos) break;
    locality.remove_prefix(slash + 1);
  }
  return out;
}

LocalityParts PartsOf(const ProxyLocality& locality) { return {locality.region, locality.zone, locality.sub_zone}; }

bool LocalityMatches(const LocalityParts& locality, std::string_view rule) {
  const LocalityParts parts = SplitLocality(rule);
  return (parts.region == "*" || parts.region == locality.region) &&
         (parts.zone == "*" || parts.zone.empty() || parts.zone == locality.zone) &&
         (parts.sub_zone == "*" || parts.sub_zone.empty() || parts.sub_zone == locality.sub_zone);
}

uint32_t LbPriority(const LocalityParts& proxy, const LocalityParts& endpoints) {
  if (proxy.region != endpoints.region) return 3;
  if (proxy.zone != endpoints.zone) return 2;
  return proxy.sub_zone == endpoints.sub_zone ? 0 : 1;
}

const config::LocalityLbSetting* EffectiveLocalityLb(const config::LocalityLbSetting* mesh,
                                                     const config::LocalityLbSetting* rule) {
  const config::LocalityLbSetting* setting = rule != nullptr ? rule : mesh;
  return setting != nullptr && setting->enabled.value_or(true) ? setting : nullptr;
}

ServiceLocalityLb EffectiveLocalityLb(const config::LocalityLbSetting* mesh, const config::LocalityLbSetting* rule,
                                      const Service& service) {
  const TrafficDistribution wanted = service.attributes.traffic_distribution;
  if (rule != nullptr || wanted == TrafficDistribution::kAny) return {EffectiveLocalityLb(mesh, rule), false};
  using Names = std::vector<std::string_view>;
  static const auto by = [](const Names& labels) {
    auto* setting = new config::LocalityLbSetting();
    setting->enabled = true;
    setting->failover_priority.assign(labels.begin(), labels.end());
    return setting;
  };
  static const auto* const close = by({kNetworkLabel, kRegionLabel, kZoneLabel, kSubzoneLabel});
  static const auto* const zone = by({kNetworkLabel, kRegionLabel, kZoneLabel});
  static const auto* const node = by({kNetworkLabel, kRegionLabel, kZoneLabel, kSubzoneLabel, kHostnameLabel});
  return {wanted == TrafficDistribution::kPreferClose      ? close
          : wanted == TrafficDistribution::kPreferSameZone ? zone
                                                           : node,
          true};
}

LocalityLbMode ModeOf(const config::LocalityLbSetting* setting, bool outlier_detection) {
  if (setting == nullptr) return LocalityLbMode::kOff;
  if (!setting->distribute.empty()) return LocalityLbMode::kDistribute;
  if (!outlier_detection) return LocalityLbMode::kOff;
  return setting->failover_priority.empty() ? LocalityLbMode::kFailover : LocalityLbMode::kFailoverPriority;
}

bool UsesFailoverPriority(const config::LocalityLbSetting* setting, bool outlier_detection) {
  return ModeOf(setting, outlier_detection) == LocalityLbMode::kFailoverPriority;
}

void ApplyLocalityLb(const config::LocalityLbSetting& setting, bool outlier_detection, const LocalityParts& proxy,
                     const Labels& proxy_labels, bool endpoint_labels, LoadAssignment& assignment) {
  switch (ModeOf(&setting, outlier_detection)) {
    case LocalityLbMode::kOff:
      return;
    case LocalityLbMode::kDistribute:
      return Distribute(setting, proxy, assignment);
    case LocalityLbMode::kFailover:
      return Failover(setting, proxy, assignment);
    case LocalityLbMode::kFailoverPriority:
      const bool possible = !proxy_labels.empty() && endpoint_labels && !assignment.localities.empty();
      if (possible) FailoverByLabels(setting, proxy_labels, assignment);
  }
}

}  // namespace wavetank::pilot
