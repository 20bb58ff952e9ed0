// Lists of objects as kubectl prints them, told item by item before they are parsed, as one may hold a whole cluster.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/text/json_brackets.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {

struct ListItem {
  std::string_view text;  // in YAML with its dash
  size_t line = 0;
  bool ends = true;  // in JSON: whether the text does not end inside of it
};

struct ListText {
  nlohmann::json head;  // all but the items
  std::vector<ListItem> items;
  bool ends = true;
  bool separated = true;  // by one comma each; what is not so is no JSON
};

// `text`: one value of JSON, which begins at `line`; `ends`: whether it does. Nothing: it is no list of objects.
// O(text)
std::optional<ListText> JsonList(std::string_view text, bool ends, size_t line);

// `text`: one document of YAML in block style, its items behind "items:". Nothing: it is no such list. O(text).
std::optional<ListText> YamlList(std::string_view text, size_t line);
// An item of it as a document. InvalidArgument: it is no YAML; its lines are counted from the item's first.
absl::StatusOr<nlohmann::json> ParseYamlItem(const ListItem& item, const std::string& file);

// An item as an object: a typed list leaves its items' kinds out.
nlohmann::json WithKindOf(const nlohmann::json& list, nlohmann::json item);

// Objects and lists of JSON one behind the other: `each` gets the text of each, whether it ends, and its line; `other`
// what stands between two and is none, and its line. Behind a value that does not end, the next is the first object
// that begins a line. O(text)
template <typename Each, typename Other>
void EachJson(std::string_view text, const Each& each, const Other& other) {
  size_t line = 1;
  bool torn = false;  // one did not end: whether another does is not looked for beyond the next that begins a line
  const auto lines = [](std::string_view part) {
    return static_cast<size_t>(std::count(part.begin(), part.end(), '\n'));
  };
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '{' && text[at] != '[') {
      const std::string_view between = text.substr(at, std::min(text.find_first_of("{[", at), text.size()) - at);
      const size_t first = between.find_first_not_of(" \t\r\n,]}-\x1e");
      if (first != between.npos) other(between.substr(first), line + lines(between.substr(0, first)));
      line += lines(between);
      at += between.size();
      continue;
    }
    const size_t begins = text.find("\n{", at);
    const size_t bound = begins == text.npos ? text.size() : begins + 1;
    size_t end = EndOfJson(text.substr(0, bound), at);
    if (end == text.npos && bound < text.size() && !torn) end = EndOfJson(text, at);
    torn = torn || end == text.npos;
    const std::string_view value = text.substr(at, (end == text.npos ? bound : end) - at);
    each(value, end != text.npos, line);
    line += lines(value);
    at += value.size();
  }
}
template <typename Each>
void EachJson(std::string_view text, const Each& each) {
  EachJson(text, each, [](std::string_view, size_t) {});
}

}  // namespace wavetank::kube
