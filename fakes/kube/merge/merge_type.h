// How a value of an object merges under server-side apply, and what is known of the values within it: of Kubernetes'
// own kinds by their fields' names (core/kube/list_types.h), of custom resources by their definition's schema
// (x-kubernetes-list-type, x-kubernetes-list-map-keys, x-kubernetes-map-type; structured-merge-diff:
// schema/elements.go, apiextensions-apiserver: pkg/controller/openapi).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kube/list_types.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

class MergeType {
 public:
  // Of an object as a whole. `kind`: one of Kubernetes' own, else "". `schema`: an openAPIV3Schema, which must outlive
  // it; null: nothing is said.
  explicit MergeType(std::string_view kind, const nlohmann::json* schema = nullptr) : kind_(kind), schema_(schema) {}

  bool OfKubernetes() const { return !kind_.empty(); }
  // The value of a mapping's field; the names must outlive it.
  MergeType Field(std::string_view name) const;
  MergeType Element() const;  // of a list

  // A mapping that only changes as a whole.
  bool IsAtomicMapping() const;

  struct List {
    kube::ListType::Merge how = kube::ListType::Merge::kAtomic;
    // Of kMap, with what an element that leaves a key out means by that; null: it may not.
    std::vector<std::pair<std::string, nlohmann::json>> keys;
  };
  List AsList() const;

 private:
  std::string_view kind_, parent_, field_;
  const nlohmann::json* schema_;
};

}  // namespace wavetank::fakekube
