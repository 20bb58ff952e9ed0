#include "fakes/kube/merge/field_set.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/list_types.h"

namespace wavetank::fakekube {
namespace {

using kube::ListType;
using nlohmann::json;

bool IsField(std::string_view element) { return element.starts_with("f:"); }

// The element's place in a list; the list's end if it is not there.
template <class List>
auto Place(List& list, const std::string& element) {
  const bool by_key = element.starts_with("k:");
  const json wanted = ParseJson(std::string_view(element).substr(2));
  return std::find_if(list.begin(), list.end(), [&](const json& item) {
    if (!by_key) return item == wanted;
    if (!wanted.is_object() || !item.is_object()) return false;
    for (const auto& [key, value] : wanted.items()) {
      const auto own = item.find(key);
      const json shown = own == item.end() ? json(std::string(kube::DefaultOfKey(key))) : *own;
      if (shown != value) return false;
    }
    return true;
  });
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

std::string ElementByKeys(const json& item, const std::array<std::string_view, 2>& keys) {
  json out = json::object();
  for (const std::string_view key : keys) {
    if (key.empty()) continue;
    const json& value = At(item, key);
    out[std::string(key)] = value.is_null() ? json(std::string(kube::DefaultOfKey(key))) : value;
  }
  return "k:" + JsonText(out);
}

std::string ElementByValue(const json& item) { return "v:" + JsonText(item); }

// Walks an object.
class FieldReader {
 public:
  explicit FieldReader(std::string_view kind) : kind_(kind) {}

  void Read(const json& value, std::string_view parent, std::string_view field, FieldSet* out) const {
    if (value.is_object() && !value.empty() && !kube::AtomicMapping(kind_, parent, field)) {
      for (const auto& [name, inner] : value.items()) {
        if (!Identity(parent, field, name)) Read(inner, field, name, &out->children_["f:" + name]);
      }
      return;
    }
    const ListType type = value.is_array() ? kube::ListTypeOf(kind_, parent, field) : ListType();
    if (type.apply == ListType::Merge::kAtomic || value.empty()) {
      out->member_ = true;
      return;
    }
    for (const json& item : value) {
      if (type.apply == ListType::Merge::kSet) {
        out->children_[ElementByValue(item)].member_ = true;
        continue;
      }
      FieldSet& element = out->children_[ElementByKeys(item, type.apply_keys)];
      element.member_ = true;
      if (!item.is_object()) continue;
      for (const auto& [name, inner] : item.items()) Read(inner, field, name, &element.children_["f:" + name]);
    }
  }

 private:
  static bool Identity(std::string_view parent, std::string_view field, std::string_view name) {
    if (field.empty()) return name == "apiVersion" || name == "kind";
    if (!parent.empty() || field != "metadata") return false;
    constexpr std::array<std::string_view, 10> kOfServer = {
        "name",       "namespace", "uid",           "resourceVersion",   "creationTimestamp",
        "generation", "selfLink",  "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"};
    return std::find(kOfServer.begin(), kOfServer.end(), name) != kOfServer.end();
  }

  std::string_view kind_;
};

FieldSet FieldSet::Of(const json& object, std::string_view kind) {
  FieldSet out;
  if (object.is_object() && !object.empty()) FieldReader(kind).Read(object, "", "", &out);
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
