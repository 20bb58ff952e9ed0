// Headers as a reply carries them: lines "name: value\n", names in lower case.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavetank::envoysim {

template <typename Each>
void ForEachHeader(std::string_view lines, Each each) {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == lines.npos ? lines.size() : end + 1);
    const size_t colon = line.find(": ");
    if (colon != line.npos) each(line.substr(0, colon), line.substr(colon + 2));
  }
}

// The value of the first of that name; nothing: there is none.
inline std::optional<std::string_view> FindHeaderLine(std::string_view lines, std::string_view name) {
  std::optional<std::string_view> found;
  ForEachHeader(lines, [&](std::string_view key, std::string_view value) {
    if (key == name && !found) found = value;
  });
  return found;
}

inline void AddHeaderLine(std::string_view name, std::string_view value, std::string* lines) {
  lines->append(name).append(": ").append(value).append("\n");
}

}  // namespace wavetank::envoysim
