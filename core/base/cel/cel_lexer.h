// The tokens of a text in the Common Expression Language, as cel-go and cel-cpp take it apart (CEL.g4 of both).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
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

// A place among tokens, for who reads them one by one.
class CelTokens {
 public:
  explicit CelTokens(std::vector<CelLexeme> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const CelLexeme& Now() const { return tokens_[at_]; }
  bool Is(std::string_view sign) const {
    return (Now().kind == CelToken::kSign || Now().kind == CelToken::kWord) && Now().text == sign;
  }
  bool Take(std::string_view sign) {
    if (!Is(sign)) return false;
    ++at_;
    return true;
  }

  const std::vector<CelLexeme> tokens_;
  size_t at_ = 0;
};

}  // namespace wavetank::cel
