// Tables of commas, as RFC 4180 has them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank {

// Takes the cells of the next record off `text`, with its end; quotes hold commas, ends of lines and doubled quotes. A
// quote that nothing closes holds the rest. O(record).
inline std::vector<std::string> TakeCsvRecord(std::string_view& text) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cells.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  text.remove_prefix(std::min(i + 1, text.size()));
  return cells;
}

}  // namespace wavetank
