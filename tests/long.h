// Whether the slow suites were asked for: ./test --long, or WAVETANK_LONG=1 before one program. Never in a second build
// of the same sources (sanitizers, Debug, clang), which takes several times as long for what the first one shows.
#pragma once

#include <cstdlib>
#include <string_view>

namespace wavetank {

inline bool LongTests() {
#ifdef WAVETANK_SECOND_BUILD
  return false;
#endif
  const char* const wanted = std::getenv("WAVETANK_LONG");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

}  // namespace wavetank
