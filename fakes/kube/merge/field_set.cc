#include "fakes/kube/merge/field_set.h"

#include <algorithm>
#include <array>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/list_types.h"

namespace wavetank::fakekube {
namespace {

using kube::ListType;
using nlohmann::json;

bool IsField(std::string_view element) { return element.starts_with("f:"); }

// The element's place in a list; the list's end if it is not there. An element that leaves a key out is named by what
// it means by that: one that says it comes first.
template <class List>
auto Place(List& list, const std::string& element) {
  const json wanted = ParseJson(std::string_view(element).substr(2));
  if (!element.starts_with("k:")) return std::find(list.begin(), list.end(), wanted);
  const auto find = [&](bool exactly) {
    return std::find_if(list.begin(), list.end(), [&](const json& item) {
      if (!wanted.is_object() || !item.is_object()) return false;
      for (const auto& [key, value] : wanted.items()) {
        const auto own = item.find(key);
        if (own == item.end() ? exactly : *own != value) return false;
      }
      return true;
    });
  };
  const auto exact = find(true);
  return exact == list.end() ? find(false) : exact;
}

bool EraseFrom(json& at, const FieldSet::Path& path, size_t depth) {
  const std::string& element = path[depth];
  const bool last = depth + 1 == path.size();
  if (IsField(element)) {
    if (!at.is_object()) return false;
    const auto it = at.find(element.substr(2));
    if (it == at.end()) return false;
    if (last || EraseFrom(*it, path, depth + 1)) at.erase(it);
    return at.empty();
  }
  if (!at.is_array()) return false;
  const auto it = Place(at, element);
  if (it == at.end()) return false;
  if (last || EraseFrom(*it, path, depth + 1)) at.erase(it);
  return at.empty();
}

}  // namespace

std::string ElementOf(const json& item, const MergeType::List& list) {
  if (list.how == ListType::Merge::kSet) return "v:" + JsonText(item);
  json out = json::object();
  for (const auto& [key, otherwise] : list.keys) {
    const json& value = At(item, key);
    out[key] = !value.is_null() ? value : otherwise.is_null() ? json("") : otherwise;
  }
  return "k:" + JsonText(out);
}

// Walks an object.
class FieldReader {
 public:
  static void Read(const json& value, const MergeType& type, FieldSet* out) {
    if (value.is_object() && !value.empty() && !type.IsAtomicMapping()) {
      for (const auto& [name, inner] : value.items()) Read(inner, type.Field(name), &out->children_["f:" + name]);
      return;
    }
    const MergeType::List list = value.is_array() ? type.AsList() : MergeType::List();
    if (list.how == ListType::Merge::kAtomic || value.empty()) {
      out->member_ = true;
      return;
    }
    for (const json& item : value) {
      FieldSet& element = out->children_[ElementOf(item, list)];
      element.member_ = true;
      if (list.how == ListType::Merge::kSet || !item.is_object()) continue;
      const MergeType of_item = type.Element();
      for (const auto& [name, inner] : item.items()) Read(inner, of_item.Field(name), &element.children_["f:" + name]);
    }
  }
  // `always`: the value is there whatever is said (a structure of Go's, not a pointer to one).
  static void ReadHolders(const json& value, const MergeType& type, bool always, FieldSet* out) {
    const MergeType::List list = value.is_array() ? type.AsList() : MergeType::List();
    const bool holds = value.is_object() ? !type.IsAtomicMapping() : list.how != ListType::Merge::kAtomic;
    if (!holds || value.empty()) return;
    out->member_ = !always;
    if (value.is_object()) {
      for (const auto& [name, inner] : value.items())
        ReadHolders(inner, type.Field(name), always && IsAlwaysThere(name), &out->children_["f:" + name]);
    }
    if (list.how != ListType::Merge::kMap) return;
    for (const json& item : value) {
      if (!item.is_object()) continue;
      FieldSet& element = out->children_[ElementOf(item, list)];
      const MergeType of_item = type.Element();
      for (const auto& [name, inner] : item.items())
        ReadHolders(inner, of_item.Field(name), false, &element.children_["f:" + name]);
    }
  }
  static bool IsAlwaysThere(std::string_view name) {
    constexpr std::array<std::string_view, 9> kStructures = {"spec",        "status",     "template",
                                                             "metadata",    "strategy",   "updateStrategy",
                                                             "jobTemplate", "containers", "loadBalancer"};
    return std::find(kStructures.begin(), kStructures.end(), name) != kStructures.end();
  }
  // All but what says which object it is, and what the server alone writes.
  static void ReadObject(const json& object, const MergeType& type, FieldSet* out) {
    constexpr std::array<std::string_view, 10> kOfServer = {
        "name",       "namespace", "uid",           "resourceVersion",   "creationTimestamp",
        "generation", "selfLink",  "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"};
    for (const auto& [name, inner] : object.items()) {
      if (name == "apiVersion" || name == "kind") continue;
      FieldSet& child = out->children_["f:" + name];
      if (name != "metadata" || !inner.is_object()) {
        Read(inner, type.Field(name), &child);
        continue;
      }
      for (const auto& [field, value] : inner.items()) {
        if (std::find(kOfServer.begin(), kOfServer.end(), field) != kOfServer.end()) continue;
        Read(value, type.Field("metadata").Field(field), &child.children_["f:" + field]);
      }
    }
  }
};

FieldSet FieldSet::Of(const json& object, const MergeType& type) {
  FieldSet out;
  if (object.is_object()) FieldReader::ReadObject(object, type, &out);
  out.Prune();
  return out;
}

FieldSet FieldSet::Holders(const json& object, const MergeType& type) {
  FieldSet out;
  if (!object.is_object()) return out;
  for (const auto& [name, inner] : object.items()) {
    const bool always = name == "metadata" || (type.OfKubernetes() && FieldReader::IsAlwaysThere(name));
    FieldReader::ReadHolders(inner, type.Field(name), always, &out.children_["f:" + name]);
  }
  out.Prune();
  return out;
}

FieldSet FieldSet::FromJson(const json& fields) {
  FieldSet out;
  if (!fields.is_object()) return out;
  if (fields.empty()) out.member_ = true;
  for (const auto& [name, value] : fields.items()) {
    if (name == ".") {
      out.member_ = true;
    } else if (name.size() > 1 && name[1] == ':') {
      out.children_[name] = FromJson(value);
    }
  }
  return out;
}

json FieldSet::ToJson() const {
  json out = json::object();
  if (member_ && !children_.empty()) out["."] = json::object();
  for (const auto& [name, child] : children_) out[name] = child.ToJson();
  return out;
}

bool FieldSet::Has(const Path& path) const {
  const FieldSet* at = this;
  for (const std::string& element : path) {
    const auto it = at->children_.find(element);
    if (it == at->children_.end()) return false;
    at = &it->second;
  }
  return at->member_;
}

bool FieldSet::Reaches(const Path& path) const {
  const FieldSet* at = this;
  for (const std::string& element : path) {
    const auto it = at->children_.find(element);
    if (it == at->children_.end()) return false;
    at = &it->second;
  }
  return !at->empty();
}

void FieldSet::Insert(const Path& path) {
  FieldSet* at = this;
  for (const std::string& element : path) at = &at->children_[element];
  at->member_ = true;
}

void FieldSet::Add(const FieldSet& other) {
  member_ = member_ || other.member_;
  for (const auto& [name, child] : other.children_) children_[name].Add(child);
}

void FieldSet::Subtract(const FieldSet& other) {
  if (other.member_) member_ = false;
  for (const auto& [name, child] : other.children_) {
    const auto it = children_.find(name);
    if (it == children_.end()) continue;
    it->second.Subtract(child);
    if (it->second.empty()) children_.erase(it);
  }
}

void FieldSet::ForEach(const std::function<void(const Path&)>& visit) const {
  Path path;
  const auto walk = [&](const auto& self, const FieldSet& at) -> void {
    if (at.member_) visit(path);
    for (const auto& [name, child] : at.children_) {
      path.push_back(name);
      self(self, child);
      path.pop_back();
    }
  };
  walk(walk, *this);
}

bool FieldSet::Prune() {
  for (auto it = children_.begin(); it != children_.end();) it = it->second.Prune() ? children_.erase(it) : ++it;
  return empty();
}

std::string PathText(const FieldSet::Path& path) {
  std::string out;
  for (const std::string& element : path) {
    if (IsField(element)) {
      out += "." + element.substr(2);
      continue;
    }
    if (element.starts_with("v:")) {
      out += "[=" + element.substr(2) + "]";
      continue;
    }
    const json keys = ParseJson(std::string_view(element).substr(2));
    std::string inside;
    if (keys.is_object()) {
      for (const auto& [key, value] : keys.items()) inside += (inside.empty() ? "" : ",") + key + "=" + JsonText(value);
    }
    out += "[" + inside + "]";
  }
  return out;
}

const json* ValueAt(const json& object, const FieldSet::Path& path) {
  const json* at = &object;
  for (const std::string& element : path) {
    if (IsField(element)) {
      if (!at->is_object()) return nullptr;
      const auto it = at->find(element.substr(2));
      if (it == at->end()) return nullptr;
      at = &*it;
      continue;
    }
    if (!at->is_array()) return nullptr;
    const auto it = Place(*at, element);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

void EraseAt(json& object, const FieldSet::Path& path) {
  if (!path.empty()) EraseFrom(object, path, 0);
}

}  // namespace wavetank::fakekube
