// Whether a text is an expression of the Common Expression Language.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wavetank::cel {

// Whose words: github.com/google/cel-go 0.14 (istiod) or github.com/google/cel-cpp (Envoy).
enum class CelWords : uint8_t { kGo, kCpp };

// Why it is none, as they show it: where, what, and the line with a mark below; "": it is one. Of several mistakes in
// the order of tokens the first alone. What else might have stood there is not told everywhere in their words. O(text).
std::string CelSyntaxError(std::string_view text, CelWords words);

// `what` of the byte `at` of the text, shown so.
std::string CelErrorAt(std::string_view text, size_t at, std::string_view what);

}  // namespace wavetank::cel
