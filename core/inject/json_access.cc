#include "core/inject/json_access.h"

#include <algorithm>

#include "core/base/json_text.h"

namespace wavetank::pilot {

using nlohmann::json;

const json& AtPath(const json& object, std::string_view dotted) {
  const json* here = &object;
  while (!dotted.empty()) {
    const size_t dot = dotted.find('.');
    here = &At(*here, dotted.substr(0, dot));
    dotted = dot == std::string_view::npos ? std::string_view() : dotted.substr(dot + 1);
  }
  return *here;
}

std::string Print(const json& scalar) {
  if (scalar.is_null()) return {};
  return scalar.is_string() ? scalar.get<std::string>() : JsonText(scalar);
}

kube::Labels TextMap(const json& mapping) {
  kube::Labels out;
  if (!mapping.is_object()) return out;
  for (const auto& [name, value] : mapping.items()) {
    if (value.is_string()) out.emplace(name, value.get<std::string>());
  }
  return out;
}

const json* FindNamed(const json& list, std::string_view name) {
  if (!list.is_array()) return nullptr;
  const auto it = std::find_if(list.begin(), list.end(), [&](const json& item) { return Text(item, "name") == name; });
  return it == list.end() ? nullptr : &*it;
}

json* FindNamed(json& list, std::string_view name) {
  return const_cast<json*>(FindNamed(static_cast<const json&>(list), name));
}

const json* FindProxyContainer(const json& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (const json* container = FindNamed(At(spec, list), "istio-proxy")) return container;
  }
  return nullptr;
}

json* FindProxyContainer(json& spec) { return const_cast<json*>(FindProxyContainer(static_cast<const json&>(spec))); }

}  // namespace wavetank::pilot
