// What the JSON library's own assertions do. Included before the library by cmake/overlay/nlohmann/json.hpp.
#pragma once

namespace wavetank::assertion {
[[noreturn]] void FailInJson();
}

#define JSON_ASSERT(x) ((x) ? void() : ::wavetank::assertion::FailInJson())
