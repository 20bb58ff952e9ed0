// One border under libFuzzer: WAVETANK_FUZZ_BORDER names it (tools/fuzz).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/border.h"

namespace {

const wavetank::fuzz::Border* Wanted() {
  const char* const wanted = std::getenv("WAVETANK_FUZZ_BORDER");
  for (const auto& border : wavetank::fuzz::Borders()) {
    if (wanted != nullptr && std::string_view(wanted) == border.name) return &border;
  }
  std::fputs("WAVETANK_FUZZ_BORDER names one of:\n", stderr);
  for (const auto& border : wavetank::fuzz::Borders()) std::fprintf(stderr, "  %s\n", border.name);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const wavetank::fuzz::Border* const border = Wanted();
  border->take({reinterpret_cast<const char*>(data), size});
  return 0;
}
