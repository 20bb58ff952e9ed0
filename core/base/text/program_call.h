// How the program was called, which an assertion tells beside what it knows of the run: many verbs make a world of what
// is named there alone.
#pragma once

#include <string>

namespace wavetank::assertion {

// Without keys and tokens. Set once, by whoever has a command line.
inline std::string& ProgramCall() {
  static auto* const call = new std::string;
  return *call;
}

}  // namespace wavetank::assertion
