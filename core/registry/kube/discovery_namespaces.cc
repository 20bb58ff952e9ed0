#include "core/registry/kube/discovery_namespaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/status.h"

namespace wavetank::pilot {

absl::Status DiscoveryNamespaces::Check(const nlohmann::json& selectors) {
  if (!selectors.is_array()) return absl::OkStatus();
  for (size_t i = 0; i < selectors.size(); ++i) {
    const absl::Status status = kube::LabelSelector::FromJson(selectors[i]).status();
    if (!status.ok()) {
      return absl::InvalidArgumentError(fmt::format("mesh.discoverySelectors[{}]: {}", i, Message(status)));
    }
  }
  return absl::OkStatus();
}

DiscoveryNamespaces::Change DiscoveryNamespaces::SetSelectors(const nlohmann::json& selectors,
                                                              const std::vector<kube::ObjectRef>& namespaces) {
  std::vector<kube::LabelSelector> parsed;
  if (selectors.is_array()) {
    for (const nlohmann::json& selector : selectors) {
      absl::StatusOr<kube::LabelSelector> one = kube::LabelSelector::FromJson(selector);
      if (!one.ok()) return {};
      parsed.push_back(*std::move(one));
    }
  }
  selectors_ = std::move(parsed);
  std::set<std::string, std::less<>> members;
  for (const kube::ObjectRef& ns : namespaces) {
    if (Selected(*ns)) members.insert(ns->meta.name);
  }
  Change change;
  std::set_difference(members.begin(), members.end(), members_.begin(), members_.end(),
                      std::back_inserter(change.selected));
  std::set_difference(members_.begin(), members_.end(), members.begin(), members.end(),
                      std::back_inserter(change.deselected));
  members_ = std::move(members);
  return change;
}

bool DiscoveryNamespaces::Added(const kube::Object& ns) {
  if (!Selected(ns)) return false;
  members_.insert(ns.meta.name);
  return true;
}

DiscoveryNamespaces::Change DiscoveryNamespaces::Updated(const kube::Object& ns) {
  Change change;
  if (Selected(ns)) {
    if (members_.insert(ns.meta.name).second) change.selected.push_back(ns.meta.name);
  } else if (members_.erase(ns.meta.name) != 0) {
    change.deselected.push_back(ns.meta.name);
  }
  return change;
}

void DiscoveryNamespaces::Deleted(const kube::Object& ns) {
  if (Selected(ns)) members_.erase(ns.meta.name);
}

bool DiscoveryNamespaces::Selected(const kube::Object& ns) const {
  return selectors_.empty() ||
         std::any_of(selectors_.begin(), selectors_.end(),
                     [&ns](const kube::LabelSelector& selector) { return selector.Matches(ns.meta.labels); });
}

}  // namespace wavetank::pilot
