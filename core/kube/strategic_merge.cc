#include "core/kube/strategic_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_text.h"
#include "core/kube/list_types.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

constexpr std::string_view kPatch = "$patch", kRetainKeys = "$retainKeys", kOrder = "$setElementOrder/",
                           kDelete = "$deleteFromPrimitiveList/";

bool IsDirective(std::string_view field) {
  return field == kPatch || field == kRetainKeys || field.starts_with(kOrder) || field.starts_with(kDelete);
}

// "" if there is none.
absl::Status ReadDirective(const json& patch, std::string* out) {
  out->clear();
  const auto it = patch.is_object() ? patch.find(kPatch) : patch.end();
  if (!patch.is_object() || it == patch.end()) return absl::OkStatus();
  if (it->is_string()) *out = it->get<std::string>();
  if (*out == "merge") out->clear();
  if (!it->is_string() || (!out->empty() && *out != "delete" && *out != "replace")) {
    return absl::InvalidArgumentError(
        fmt::format("unknown patch type {}; it is replace, merge or delete", it->is_string() ? *out : JsonText(*it)));
  }
  return absl::OkStatus();
}

// A part of a patch that meets nothing in the target: without its directives, and without nulls in mappings.
json Plain(const json& patch) {
  if (patch.is_array()) {
    json out = json::array();
    for (const json& item : patch) {
      if (!item.is_object() || !item.contains(kPatch)) out.push_back(Plain(item));
    }
    return out;
  }
  if (!patch.is_object()) return patch;
  json out = json::object();
  for (const auto& [field, value] : patch.items()) {
    if (!value.is_null() && !IsDirective(field)) out[field] = Plain(value);
  }
  return out;
}

// Elements of a list are compared by their key, or, for scalars (no key), by themselves.
class ListMerger {
 public:
  ListMerger(std::string_view kind, std::string_view field, const ListType& type)
      : kind_(kind), field_(field), key_(type.patch_key) {}

  bool Same(const json& a, const json& b) const {
    if (key_.empty()) return a == b;
    if (!a.is_object() || !b.is_object()) return false;
    const auto left = a.find(key_), right = b.find(key_);
    return left != a.end() && right != b.end() && *left == *right;
  }

  // Null: not there.
  const json* Find(const json& list, const json& item) const {
    const auto it = std::find_if(list.begin(), list.end(), [&](const json& other) { return Same(other, item); });
    return it == list.end() ? nullptr : &*it;
  }

  absl::Status CheckKeys(const json& list) const {
    for (const json& item : list) {
      if (key_.empty() ? item.is_structured() : !item.is_object() || !item.contains(key_)) {
        return absl::InvalidArgumentError(
            key_.empty() ? fmt::format("{}: an element is no scalar", field_)
                         : fmt::format("{}: map does not contain declared merge key: {}", field_, key_));
      }
    }
    return absl::OkStatus();
  }

  // `target` and the patch's `values` (null: none) become one list, in `order` (null: the values' own).
  absl::Status Merge(json& target, const json* values, const json* removed, const json* order) const;

 private:
  absl::Status MergeValues(json& merged, const json& values) const;

  std::string_view kind_, field_, key_;
};

absl::Status StrategicMergeAt(json& target, const json& patch, std::string_view kind, std::string_view parent);

absl::Status ListMerger::MergeValues(json& merged, const json& values) const {
  if (key_.empty()) {
    if (absl::Status status = CheckKeys(values); !status.ok()) return status;
    for (const json& value : values) {
      if (Find(merged, value) == nullptr) merged.push_back(value);
    }
    return absl::OkStatus();
  }
  for (const json& value : values) {
    std::string directive;
    if (absl::Status status = ReadDirective(value, &directive); !status.ok()) return status;
    if (directive == "replace") {
      // The element that says so only marks the patch: its other elements are the list.
      merged = Plain(values);
      return CheckKeys(merged);
    }
  }
  if (absl::Status status = CheckKeys(values); !status.ok()) return status;
  for (const json& value : values) {
    std::string directive;
    ReadDirective(value, &directive).IgnoreError();
    const auto found =
        std::find_if(merged.begin(), merged.end(), [&](const json& other) { return Same(other, value); });
    if (directive == "delete") {
      if (found != merged.end()) merged.erase(found);
    } else if (found == merged.end()) {
      merged.push_back(Plain(value));
    } else if (absl::Status status = StrategicMergeAt(*found, value, kind_, field_); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ListMerger::Merge(json& target, const json* values, const json* removed, const json* order) const {
  const json live = target;
  if (removed != nullptr && removed->is_array()) {
    json left = json::array();
    for (json& item : target) {
      if (std::find(removed->begin(), removed->end(), item) == removed->end()) left.push_back(std::move(item));
    }
    target = std::move(left);
  }
  if (values != nullptr) {
    if (absl::Status status = MergeValues(target, *values); !status.ok()) return status;
  }
  if (order == nullptr) order = values;
  if (order == nullptr || !order->is_array()) return absl::OkStatus();

  // Two runs, what the order names and what it does not, zipped by the target's former order as far as it knows both
  // (strategicpatch: patch.go, mergeSortedSlice).
  std::vector<const json*> named, others;
  for (const json& item : *order) {
    const json* at = Find(target, item);
    if (at != nullptr && std::find(named.begin(), named.end(), at) == named.end()) named.push_back(at);
  }
  for (const json& item : target) {
    if (std::find(named.begin(), named.end(), &item) == named.end()) others.push_back(&item);
  }
  const auto comes_first = [&](const json& a, const json& b) {
    const json *left = Find(live, a), *right = Find(live, b);
    return left != nullptr && right != nullptr && left < right;
  };
  json out = json::array();
  size_t i = 0, j = 0;
  while (i < named.size() || j < others.size()) {
    const bool take_other = i == named.size() || (j < others.size() && comes_first(*others[j], *named[i]));
    out.push_back(take_other ? *others[j++] : *named[i++]);
  }
  target = std::move(out);
  return absl::OkStatus();
}

absl::Status StrategicMergeAt(json& target, const json& patch, std::string_view kind, std::string_view parent) {
  if (!target.is_object() || !patch.is_object()) {
    target = Plain(patch);
    return absl::OkStatus();
  }
  std::string directive;
  if (absl::Status status = ReadDirective(patch, &directive); !status.ok()) return status;
  if (!directive.empty()) {
    target = directive == "replace" ? Plain(patch) : json::object();
    return absl::OkStatus();
  }
  if (const auto retain = patch.find(kRetainKeys); retain != patch.end() && retain->is_array()) {
    json kept = json::object();
    for (auto& [field, value] : target.items()) {
      if (std::find(retain->begin(), retain->end(), json(field)) != retain->end()) kept[field] = std::move(value);
    }
    target = std::move(kept);
  }
  // Lists that only a directive names come first: afterwards their values are in `target` alone.
  for (const auto& [name, value] : patch.items()) {
    const std::string_view text = name;
    const bool order = text.starts_with(kOrder);
    if (!order && !text.starts_with(kDelete)) continue;
    const std::string field(text.substr(order ? kOrder.size() : kDelete.size()));
    if (patch.contains(field)) continue;
    if (order && patch.contains(std::string(kDelete) + field)) continue;  // told together with that
    const auto slot = target.find(field);
    if (slot == target.end() || !slot->is_array()) continue;
    const ListMerger merger(kind, field, ListTypeOf(kind, parent, field));
    const auto ordered = patch.find(std::string(kOrder) + field);
    absl::Status status =
        merger.Merge(*slot, nullptr, order ? nullptr : &value, ordered == patch.end() ? nullptr : &*ordered);
    if (!status.ok()) return status;
  }
  for (const auto& [field, value] : patch.items()) {
    if (IsDirective(field)) continue;
    if (value.is_null()) {
      target.erase(field);
      continue;
    }
    const auto slot = target.find(field);
    if (slot == target.end()) {
      target[field] = Plain(value);
      continue;
    }
    absl::Status status;
    const ListType type = value.is_array() && slot->is_array() ? ListTypeOf(kind, parent, field) : ListType();
    if (type.patch != ListType::Merge::kAtomic) {
      const auto removed = patch.find(std::string(kDelete) + field), order = patch.find(std::string(kOrder) + field);
      status = ListMerger(kind, field, type)
                   .Merge(*slot, &value, removed == patch.end() ? nullptr : &*removed,
                          order == patch.end() ? nullptr : &*order);
    } else {
      status = StrategicMergeAt(*slot, value, kind, field);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StrategicMerge(json& target, const json& patch, std::string_view kind) {
  return StrategicMergeAt(target, patch, kind, "");
}

}  // namespace wavetank::kube
