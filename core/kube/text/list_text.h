// Lists of objects as kubectl prints them, told item by item before they are parsed, as one may hold a whole cluster.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/text/json_brackets.h"
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

// Objects and lists of JSON one behind the other: `each` gets the text of each, whether it ends, and its line.
template <typename Each>
void EachJson(std::string_view text, const Each& each) {
  size_t line = 1;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '{' && text[at] != '[') {
      line += text[at] == '\n' ? 1 : 0;
      ++at;
      continue;
    }
    const size_t end = EndOfJson(text, at);
    const std::string_view value = text.substr(at, end == text.npos ? text.npos : end - at);
    each(value, end != text.npos, line);
    if (end == text.npos) return;
    line += static_cast<size_t>(std::count(value.begin(), value.end(), '\n'));
    at = end;
  }
}

}  // namespace wavetank::kube
