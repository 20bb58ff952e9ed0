// The tokens of a text in the Common Expression Language, as cel-go and cel-cpp take it apart (CEL.g4 of both).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::cel {

enum class CelToken : uint8_t { kEnd, kName, kLiteral, kSign, kNumber, kWord };  // kWord: in

struct CelLexeme {
  CelToken kind = CelToken::kEnd;
  std::string_view text;
  size_t at = 0;  // byte
};

// A place where there is no token, or no expression.
struct CelFault {
  size_t at = 0;
  std::string what;  // empty: none
};

// All tokens, with kEnd last. What is none is passed over and told. O(text).
std::vector<CelLexeme> CelLexemes(std::string_view text, std::vector<CelFault>* faults);

}  // namespace wavetank::cel
