#include "core/inject/strategic_merge.h"

#include <array>
#include <string_view>

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

void MergeList(json& target, const json& patch, const char* key) {
  for (const json& item : patch) {
    json* found = nullptr;
    if (item.is_object() && item.contains(key)) {
      for (json& have : target) {
        if (have.is_object() && have.contains(key) && have[key] == item[key]) {
          found = &have;
          break;
        }
      }
    }
    if (found == nullptr) {
      target.push_back(item);
    } else {
      StrategicMerge(*found, item);
    }
  }
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
      MergeList(slot, value, key);
    } else {
      StrategicMerge(slot, value);
    }
  }
}

}  // namespace wavetank::pilot
