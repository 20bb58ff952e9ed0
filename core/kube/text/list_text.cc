#include "core/kube/text/list_text.h"

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

constexpr std::string_view kItems = "items:\n";

size_t LinesOf(std::string_view text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

bool HasAnchor(std::string_view text) {
  for (size_t at = text.find(" &"); at != text.npos; at = text.find(" &", at + 1)) {
    const bool named = at + 2 < text.size() && absl::ascii_isalnum(static_cast<unsigned char>(text[at + 2]));
    if (named && at > 0 && (text[at - 1] == ':' || text[at - 1] == '-')) return true;
  }
  return false;
}

}  // namespace

std::optional<ListText> JsonList(std::string_view text, bool ends, size_t line) {
  const size_t list = text.starts_with('[') ? 0 : ListMember(text, 0, "items");
  if (list == text.npos) return std::nullopt;
  const size_t end = EndOfJson(text, list);
  ListText out;
  out.ends = ends;
  out.head = json::object();
  if (list > 0) {
    const std::string rest = end == text.npos ? "]}" : std::string(text.substr(end - 1));
    out.head = ParseJson(std::string(text.substr(0, list + 1)) + rest);
    // kubectl writes the kind behind the items, where a text that does not end has none.
    const std::string kind = Text(out.head, "kind");
    if (!kind.ends_with("List") && (ends || !kind.empty())) return std::nullopt;
  }
  line += LinesOf(text.substr(0, list + 1));
  const std::string_view items = text.substr(list + 1, end == text.npos ? text.npos : end - list - 2);
  size_t commas = 0;  // since the item before
  for (size_t at = 0; at < items.size();) {
    const char c = items[at];
    if (c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      line += c == '\n' ? 1 : 0;
      commas += c == ',' ? 1 : 0;
      ++at;
      continue;
    }
    out.separated = out.separated && commas == (out.items.empty() ? 0 : 1);
    commas = 0;
    const bool brackets = c == '{' || c == '[';
    const size_t after = brackets ? EndOfJson(items, at) : std::min(items.find(',', at), items.size());
    ListItem item{items.substr(at, after == items.npos ? items.npos : after - at), line, after != items.npos};
    line += LinesOf(item.text);
    at = item.ends ? after : items.size();
    out.items.push_back(item);
  }
  out.separated = out.separated && (commas == 0 || !ends);
  return out;
}

std::optional<ListText> YamlList(std::string_view text, size_t line) {
  const size_t at = text.starts_with(kItems) ? 0 : text.find("\n" + std::string(kItems));
  if (at == text.npos || HasAnchor(text)) return std::nullopt;  // which may be of another item
  const size_t first = text.find(kItems, at) + kItems.size();
  const size_t dash = text.find_first_not_of(' ', first);
  if (dash == text.npos || text.substr(dash, 2) != "- ") return std::nullopt;
  const size_t indent = dash - first;
  ListText out;
  // By lines; the list ends with what is not indented as they are.
  std::vector<size_t> begins;
  size_t end = first;
  line += LinesOf(text.substr(0, first));
  for (; end < text.size(); ++line) {
    const size_t next = std::min(text.find('\n', end), text.size() - 1) + 1;
    const size_t word = std::min(text.find_first_not_of(" \r\n", end), next);
    const size_t column = word - end;
    if (word < next && text[word] != '#') {
      if (column < indent || (column == indent && text.substr(word, 2) != "- ")) break;
      if (column == indent) {
        begins.push_back(end);
        out.items.push_back({{}, line});
      }
    }
    end = next;
  }
  begins.push_back(end);
  for (size_t i = 0; i < out.items.size(); ++i) {
    out.items[i].text = text.substr(begins[i], begins[i + 1] - begins[i]);
  }
  const absl::StatusOr<json> head =
      ParseYaml(fmt::format("{}items: []\n{}", text.substr(0, first - kItems.size()), text.substr(end)), "list");
  if (!head.ok() || !Text(*head, "kind").ends_with("List")) return std::nullopt;
  out.head = *head;
  return out;
}

absl::StatusOr<json> ParseYamlItem(const ListItem& item, const std::string& file) {
  std::string text(item.text);
  text[text.find('-')] = ' ';  // the rest stands as deep
  return ParseYaml(text, file);
}

json WithKindOf(const json& list, json item) {
  const std::string kind = Text(list, "kind");
  if (!item.is_object() || item.contains("kind") || !kind.ends_with("List") || kind == "List") return item;
  item["kind"] = kind.substr(0, kind.size() - 4);
  item["apiVersion"] = Text(list, "apiVersion", "v1");
  return item;
}

}  // namespace wavetank::kube
