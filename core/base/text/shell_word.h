// A text as one word of a POSIX shell, for commands that are printed to be run again.
#pragma once

#include <string>
#include <string_view>

namespace wavetank {

// In single quotes where a shell would read it otherwise, else as it is.
inline std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

}  // namespace wavetank
