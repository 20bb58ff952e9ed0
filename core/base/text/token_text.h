// Finds JSON Web Tokens in texts, for code that must not write them down.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace wavetank {

struct TokenPlace {
  size_t begin = 0, end = 0;
};

// The first token at or after `from`: header.payload.signature, the first two being JSON objects in base64url, which
// both begin with eyJ.
std::optional<TokenPlace> FindToken(std::string_view text, size_t from = 0);

}  // namespace wavetank
