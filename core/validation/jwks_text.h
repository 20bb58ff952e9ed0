// Key sets of JSON Web Keys as text.
#pragma once

#include <string>

namespace wavetank::validation {

// Why it is none, as github.com/lestrrat-go/jwx 1.2 says it; "": it is one. Only public parts are looked at, and
// nothing of a key is in the text. O(text).
std::string KeySetError(const std::string& text);

}  // namespace wavetank::validation
