// Where the recordings of the real istiod 1.18.2 are (tests/oracles/README.md).
#pragma once

#include <cstdlib>
#include <string>

namespace wavetank {

// The folder that holds cases/, push/, push-cases/ and push-delta/: $WAVETANK_GOLDEN, or what the build unpacked.
inline std::string IstiodRecords() {
  if (const char* folder = std::getenv("WAVETANK_GOLDEN")) return folder;
  return WAVETANK_BINARY_DIR "/tests/oracles/istiod-1.18.2";
}

// The folder that holds cases/ with what istiod 1.30.3 made of the same inputs: outputs alone.
inline std::string LaterIstiodRecords() { return WAVETANK_BINARY_DIR "/tests/oracles/istiod-1.30.3"; }

}  // namespace wavetank
