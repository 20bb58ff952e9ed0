// How far two words are from each other, for "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace wavetank {

// How many letters are to be put in, taken out or changed; two neighbours that change places count as one. O(a * b).
size_t LettersApart(std::string_view a, std::string_view b);

}  // namespace wavetank
