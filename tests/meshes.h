// How many meshes a property is tried on: 300, 10,000 with WAVETANK_LONG=1; RC_PARAMS="max_success=..." overrides both.
// Include it in every test program with properties. RapidCheck reads the environment at its first check.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/long.h"

namespace wavetank {

inline const bool meshes_chosen = [] {
  const char* const given = std::getenv("RC_PARAMS");
  const std::string parameters = given == nullptr ? "" : given;
  if (parameters.find("max_success") != std::string::npos) return true;
  return setenv("RC_PARAMS", ((LongTests() ? "max_success=10000 " : "max_success=300 ") + parameters).c_str(), 1) == 0;
}();

}  // namespace wavetank
