// Brackets of JSON text, told before it is parsed: how deep it nests (parsers and printers go down with it), and where
// a value ends among others.
#pragma once

#include <cstddef>
#include <string_view>

namespace wavetank {

// Calls `stop(opens)` for each bracket outside of strings from `at` on, until it says so; the place of that one, or
// npos. O(text).
template <class Stop>
size_t FindBracket(std::string_view text, size_t at, Stop stop) {
  bool quoted = false;
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (const bool opens = c == '{' || c == '['; opens || c == '}' || c == ']') {
      if (stop(opens)) return i;
    }
  }
  return std::string_view::npos;
}

// A cheap upper bound: whatever passes may still be no JSON.
inline bool DeeperThan(std::string_view text, size_t limit) {
  size_t depth = 0;
  return FindBracket(text, 0, [&](bool opens) {
           if (opens) return ++depth > limit;
           if (depth > 0) --depth;
           return false;
         }) != std::string_view::npos;
}

// One behind the last byte of the object or list that begins at `at`; npos: the text ends inside.
inline size_t EndOfJson(std::string_view text, size_t at) {
  int depth = 0;
  const size_t last = FindBracket(text, at, [&](bool opens) {
    if (opens) ++depth;
    return !opens && --depth == 0;
  });
  return last == std::string_view::npos ? last : last + 1;
}

// Where the list that is the member `key` of the object at `at` begins (its '['); npos: it has none. O(text).
inline size_t ListMember(std::string_view text, size_t at, std::string_view key) {
  constexpr std::string_view kSpace = " \t\r\n";
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') {
      ++depth;
    } else if (text[i] == '}' || text[i] == ']') {
      if (--depth == 0) break;
    } else if (text[i] == '"') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size()) break;
      const bool is_it = depth == 1 && text.substr(i + 1, end - i - 1) == key;
      i = end;
      if (!is_it) continue;
      size_t value = text.find_first_not_of(kSpace, end + 1);
      if (value == text.npos || text[value] != ':') continue;  // a value, no key
      value = text.find_first_not_of(kSpace, value + 1);
      if (value != text.npos && text[value] == '[') return value;
    }
  }
  return std::string_view::npos;
}

}  // namespace wavetank
