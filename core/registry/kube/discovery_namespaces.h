// Which namespaces of a cluster the registry reads: meshConfig.discoverySelectors (istiod:
// pkg/kube/namespace/filter.go).
//
// Without selectors all are. With some, a namespace is read if one of them matches its labels; what lies in the others
// (Services, EndpointSlices, Pods) does not exist for this istiod. Of Istio's own configuration the same is true since
// 1.22 (Change::kSelectorsScopeConfiguration; core/istiod/discovery_scope.h).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/kube/label_selector.h"
#include "core/kube/object.h"

namespace wavetank::pilot {

class DiscoveryNamespaces {
 public:
  // Sorted.
  struct Change {
    std::vector<std::string> selected, deselected;
  };

  // Is what lies in this namespace read?
  bool Contains(std::string_view ns) const { return selectors_.empty() || members_.count(ns) != 0; }
  // There are selectors.
  bool limited() const { return !selectors_.empty(); }

  // InvalidArgument names the selector that is none. With such a one from the start istiod 1.18.2 ends in a panic (no
  // filter is made, and the first namespace writes to a map that is nil).
  static absl::Status Check(const nlohmann::json& selectors);

  // `selectors`: a JSON list of Kubernetes' LabelSelectors, or null. One that is invalid leaves all as it was.
  // `namespaces`: all that there are.
  Change SetSelectors(const nlohmann::json& selectors, const std::vector<kube::ObjectRef>& namespaces);
  // Whether the new namespace is read.
  bool Added(const kube::Object& ns);
  // What came and what went: one of them or nothing.
  Change Updated(const kube::Object& ns);
  void Deleted(const kube::Object& ns);

 private:
  bool Selected(const kube::Object& ns) const;

  std::vector<kube::LabelSelector> selectors_;
  std::set<std::string, std::less<>> members_;
};

}  // namespace wavetank::pilot
