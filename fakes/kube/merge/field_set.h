// Sets of fields of an object, as managedFields names them (fieldsV1): "f:spec" of a mapping, "k:{...}" the element of
// a list by its keys, "v:..." the element of a set by its value, "." the thing itself. structured-merge-diff:
// fieldpath/serialize.go, typed/typed.go.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/merge/merge_type.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

class FieldSet {
 public:
  using Path = std::vector<std::string>;  // elements as fieldsV1 writes them

  // What an object of that type says: its leaves (scalars, lists and mappings that only
  // change as a whole, empty mappings) and the elements of lists that merge. Without what says which object it is
  // (apiVersion, kind, name, ...) and what the server alone writes.
  static FieldSet Of(const nlohmann::json& object, const MergeType& type);
  // The mappings and lists in an object that hold what merges, but for those that every object of Kubernetes' own kinds
  // has, said or not: a write that brings one manages it, too, unlike an apply (structured-merge-diff:
  // typed/compare.go).
  static FieldSet Holders(const nlohmann::json& object, const MergeType& type);
  static FieldSet FromJson(const nlohmann::json& fields_v1);
  nlohmann::json ToJson() const;

  bool empty() const { return !member_ && children_.empty(); }
  bool Has(const Path& path) const;
  // The path, or anything below it.
  bool Reaches(const Path& path) const;
  void Insert(const Path& path);
  void Add(const FieldSet& other);
  void Subtract(const FieldSet& other);
  // Members in order.
  void ForEach(const std::function<void(const Path&)>& visit) const;

  friend bool operator==(const FieldSet&, const FieldSet&) = default;

 private:
  bool Prune();  // true: nothing is left

  bool member_ = false;
  std::map<std::string, FieldSet, std::less<>> children_;

  friend class FieldReader;
};

// ".spec.ports[port=80,protocol="TCP"].name", as messages name a path.
std::string PathText(const FieldSet::Path& path);

// The value at a path in an object; null pointer if it is not there.
const nlohmann::json* ValueAt(const nlohmann::json& object, const FieldSet::Path& path);
// Removes it, and the mappings that this leaves empty. Nothing happens if it is not there.
void EraseAt(nlohmann::json& object, const FieldSet::Path& path);

// The name of a list's element, by its keys, with defaults for what it leaves out: k:{"port":80,"protocol":"TCP"}; or
// by its value.
std::string ElementOf(const nlohmann::json& item, const MergeType::List& list);
}  // namespace wavetank::fakekube
