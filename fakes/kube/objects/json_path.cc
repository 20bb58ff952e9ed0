#include "fakes/kube/objects/json_path.h"

#include <string>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;
using Found = std::vector<const json*>;

// A field's name up to the next '.' or '['; a backslash takes what follows as it is.
std::string TakeName(std::string_view* rest) {
  std::string name;
  size_t i = 0;
  for (; i < rest->size() && (*rest)[i] != '.' && (*rest)[i] != '['; ++i) {
    if ((*rest)[i] == '\\' && i + 1 < rest->size()) ++i;
    name += (*rest)[i];
  }
  rest->remove_prefix(i);
  return name;
}

bool Quoted(std::string_view text) {
  return text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
}

// The end of what stands in brackets, quotes heeded; npos: there is none.
size_t Closing(std::string_view text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text[i] == ']') {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string_view WithoutSpaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "?(@.type=="Ready")": equality and inequality with a literal, or that something is there.
bool Passes(const json& item, std::string_view filter, bool* readable) {
  filter = WithoutSpaces(filter);
  if (!filter.starts_with("?(") || !filter.ends_with(")")) return *readable = false;
  filter = WithoutSpaces(filter.substr(2, filter.size() - 3));
  if (!filter.starts_with("@")) return *readable = false;
  filter.remove_prefix(1);
  size_t op = filter.find("==");
  bool equal = true;
  if (op == std::string_view::npos) {
    op = filter.find("!=");
    equal = false;
  }
  const Found left = FindJsonPath(item, WithoutSpaces(filter.substr(0, op)));
  if (op == std::string_view::npos) return !left.empty();
  const std::string_view literal = WithoutSpaces(filter.substr(op + 2));
  const json value = Quoted(literal) ? json(std::string(literal.substr(1, literal.size() - 2))) : ParseJson(literal);
  if (value.is_discarded()) return *readable = false;
  return !left.empty() && (*left.front() == value) == equal;
}

}  // namespace

std::vector<const json*> FindJsonPath(const json& in, std::string_view path) {
  path = WithoutSpaces(path);
  if (path.starts_with("{") && path.ends_with("}")) path = path.substr(1, path.size() - 2);
  if (path.starts_with("$")) path.remove_prefix(1);
  Found at = {&in};
  while (!path.empty() && !at.empty()) {
    Found next;
    if (path.front() == '[') {
      path.remove_prefix(1);
      const size_t end = Closing(path);
      if (end == std::string_view::npos) return {};
      const std::string_view inside = WithoutSpaces(path.substr(0, end));
      path.remove_prefix(end + 1);
      for (const json* one : at) {
        if (Quoted(inside)) {
          const json& field = At(*one, inside.substr(1, inside.size() - 2));
          if (!field.is_null()) next.push_back(&field);
          continue;
        }
        const json& items = Items(*one);
        if (inside == "*") {
          for (const json& item : items) next.push_back(&item);
        } else if (inside.starts_with("?")) {
          bool readable = true;
          for (const json& item : items) {
            if (Passes(item, inside, &readable)) next.push_back(&item);
          }
          if (!readable) return {};
        } else {
          if (inside.empty() || inside.size() > 9 || inside.find_first_not_of("-0123456789") != std::string_view::npos)
            return {};
          const json number = ParseJson(inside);
          if (!number.is_number_integer()) return {};
          const auto size = static_cast<int64_t>(items.size());
          const int64_t index = number.get<int64_t>() < 0 ? size + number.get<int64_t>() : number.get<int64_t>();
          if (index >= 0 && index < size) next.push_back(&items[static_cast<size_t>(index)]);
        }
      }
    } else {
      if (path.front() == '.') path.remove_prefix(1);
      if (path.empty()) break;
      if (path.front() == '[') continue;
      const std::string name = TakeName(&path);
      if (name.empty()) return {};
      for (const json* one : at) {
        const json& field = At(*one, name);
        if (!field.is_null()) next.push_back(&field);
      }
    }
    at = std::move(next);
  }
  return at;
}

}  // namespace wavetank::fakekube
