// Brackets of JSON text, told before it is parsed: how deep it nests (parsers and printers go down with it), and where
// a value ends among others.
#pragma once

#include <cstddef>
#include <string_view>

namespace wavetank::kube {

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

}  // namespace wavetank::kube
