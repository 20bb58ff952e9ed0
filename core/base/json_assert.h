// What the JSON library's own assertions do. Included before everything else by the build (CMakeLists.txt).
#pragma once

namespace wavetank::assertion {
[[noreturn]] void FailInJson();
}

#define JSON_ASSERT(x) ((x) ? void() : ::wavetank::assertion::FailInJson())
