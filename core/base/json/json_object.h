// JSON objects from their members, for what is made often.
#pragma once

#include <utility>

#include "nlohmann/json.hpp"

namespace wavetank {
namespace json_object {

inline void Add(nlohmann::json::object_t&) {}
template <class Value, class... Rest>
void Add(nlohmann::json::object_t& to, const char* name, Value&& value, Rest&&... rest) {
  to.emplace(name, std::forward<Value>(value));
  Add(to, std::forward<Rest>(rest)...);
}

}  // namespace json_object

// JsonObject("kind", "Pod", "name", name) is {{"kind", "Pod"}, {"name", name}} in a third of the allocations: the
// library makes a list of two of each pair first.
template <class... NamesAndValues>
nlohmann::json JsonObject(NamesAndValues&&... members) {
  static_assert(sizeof...(members) % 2 == 0, "names and values in turn");
  nlohmann::json::object_t out;
  json_object::Add(out, std::forward<NamesAndValues>(members)...);
  return out;
}

}  // namespace wavetank
