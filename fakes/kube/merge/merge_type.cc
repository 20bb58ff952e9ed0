#include "fakes/kube/merge/merge_type.h"

#include "core/base/json_access.h"

namespace wavetank::fakekube {

using kube::ListType;
using nlohmann::json;

MergeType MergeType::Field(std::string_view name) const {
  MergeType out(kind_);
  out.parent_ = field_;
  out.field_ = name;
  // What every object has is Kubernetes' own, whatever a definition says of it.
  const bool metadata = field_.empty() && parent_.empty() && name == "metadata";
  if (schema_ == nullptr || metadata) return out;
  const json& property = At(At(*schema_, "properties"), name);
  out.schema_ = property.is_object() ? &property : &At(*schema_, "additionalProperties");
  return out;
}

MergeType MergeType::Element() const {
  if (schema_ == nullptr) return *this;  // its fields are the list's
  MergeType out = *this;
  out.schema_ = &At(*schema_, "items");
  return out;
}

bool MergeType::IsAtomicMapping() const {
  if (schema_ != nullptr) return Text(*schema_, "x-kubernetes-map-type") == "atomic";
  return kube::AtomicMapping(kind_, parent_, field_);
}

MergeType::List MergeType::AsList() const {
  List out;
  if (schema_ == nullptr) {
    const ListType type = kube::ListTypeOf(kind_, parent_, field_);
    out.how = type.apply;
    for (const std::string_view key : type.apply_keys) {
      if (key.empty()) continue;
      const std::string otherwise(kube::DefaultOfKey(key));
      out.keys.emplace_back(key, otherwise.empty() ? json() : json(otherwise));
    }
    return out;
  }
  const std::string type = Text(*schema_, "x-kubernetes-list-type");
  if (type == "set") out.how = ListType::Merge::kSet;
  if (type != "map") return out;
  const json& items = At(*schema_, "items");
  for (const json& key : Items(At(*schema_, "x-kubernetes-list-map-keys"))) {
    if (key.is_string()) {
      out.keys.emplace_back(key.get<std::string>(),
                            At(At(At(items, "properties"), key.get_ref<const std::string&>()), "default"));
    }
  }
  if (!out.keys.empty()) out.how = ListType::Merge::kMap;
  return out;
}

}  // namespace wavetank::fakekube
