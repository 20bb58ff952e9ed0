#include "core/inject/strategic_merge.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// Field of a pod -> the key by which its elements merge; null: the list is replaced.
const char* MergeKey(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, const char*>, 10> kKeys = {{{"containers", "name"},
                                                                               {"initContainers", "name"},
                                                                               {"ephemeralContainers", "name"},
                                                                               {"volumes", "name"},
                                                                               {"imagePullSecrets", "name"},
                                                                               {"env", "name"},
                                                                               {"ports", "containerPort"},
                                                                               {"volumeMounts", "mountPath"},
                                                                               {"volumeDevices", "devicePath"},
                                                                               {"hostAliases", "ip"}}};
  for (const auto& [name, key] : kKeys) {
    if (name == field) return key;
  }
  return nullptr;
}

// The patched list in Kubernetes' order of merged lists: two runs, the patch's elements in its
// order and the target's other elements in theirs, zipped by the target's order as far as it knows both.
json MergeList(const json& target, const json& patch, const char* key) {
  const auto position = [&](const json& list, const json& item) -> size_t {
    const auto name = item.is_object() ? item.find(key) : item.end();
    if (!item.is_object() || name == item.end()) return list.size();
    for (size_t i = 0; i < list.size(); ++i) {
      const auto it = list[i].is_object() ? list[i].find(key) : list[i].end();
      if (list[i].is_object() && it != list[i].end() && *it == *name) return i;
    }
    return list.size();
  };
  struct Element {
    size_t in_target;  // target.size(): only the patch has it
    json value;
  };
  std::vector<Element> patched, others;
  for (const json& item : patch) {
    Element element{position(target, item), item};
    if (element.in_target < target.size()) {
      element.value = target[element.in_target];
      StrategicMerge(element.value, item);
    }
    patched.push_back(std::move(element));
  }
  for (size_t i = 0; i < target.size(); ++i) {
    if (position(patch, target[i]) == patch.size()) others.push_back({i, target[i]});
  }
  json out = json::array();
  size_t i = 0, j = 0;
  while (i < patched.size() || j < others.size()) {
    const bool take_patched = j == others.size() || (i < patched.size() && patched[i].in_target < others[j].in_target);
    out.push_back(std::move(take_patched ? patched[i++].value : others[j++].value));
  }
  return out;
}

}  // namespace

void StrategicMerge(json& target, const json& patch) {
  if (!target.is_object() || !patch.is_object()) {
    target = patch;
    return;
  }
  for (const auto& [field, value] : patch.items()) {
    if (value.is_null()) {
      target.erase(field);
      continue;
    }
    json& slot = target[field];
    const char* key = value.is_array() && slot.is_array() ? MergeKey(field) : nullptr;
    if (key != nullptr) {
      slot = MergeList(slot, value, key);
    } else {
      StrategicMerge(slot, value);
    }
  }
}

}  // namespace wavetank::pilot
