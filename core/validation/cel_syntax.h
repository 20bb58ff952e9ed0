// Whether a text is an expression of the Common Expression Language.
#pragma once

#include <string>
#include <string_view>

namespace wavetank::validation {

// Why it is none, as github.com/google/cel-go 0.14 shows it: where, what, and the line with a mark below; "": it is
// one. Of several mistakes in the order of tokens the first alone. What else might have stood there is not told
// everywhere in cel-go's words. O(text).
std::string CelSyntaxError(std::string_view text);

}  // namespace wavetank::validation
