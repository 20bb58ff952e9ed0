#include "core/base/cel/cel_lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"

namespace wavetank::cel {
namespace {

bool CelDigit(char c) { return c >= '0' && c <= '9'; }
bool CelNameChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class CelLexer {
 public:
  explicit CelLexer(std::string_view text) : text_(text) {}

  std::vector<CelLexeme> Read(std::vector<CelFault>* faults) {
    std::vector<CelLexeme> out;
    for (;;) {
      SkipSpace();
      const size_t begin = at_;
      if (at_ == text_.size()) break;
      CelFault fault;
      const CelToken kind = One(&fault);
      if (fault.what.empty()) {
        out.push_back({kind, text_.substr(begin, at_ - begin), begin});
      } else {
        faults->push_back(std::move(fault));
      }
    }
    out.push_back({CelToken::kEnd, "<EOF>", text_.size()});
    return out;
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void SkipSpace() {
    for (;;) {
      const size_t next = text_.find_first_not_of("\t \r\n\f", at_);
      at_ = next == std::string_view::npos ? text_.size() : next;
      if (text_.substr(at_, 2) != "//") return;
      at_ = std::min(text_.find('\n', at_), text_.size());
    }
  }

  CelToken One(CelFault* fault) {
    const char c = Peek();
    if (CelDigit(c) || (c == '.' && CelDigit(Peek(1)))) return ReadNumber();
    if (size_t prefix = StringPrefix(); prefix != std::string_view::npos) return ReadString(prefix, fault);
    if (CelNameChar(c)) {
      const size_t begin = at_;
      while (CelNameChar(Peek())) ++at_;
      const std::string_view name = text_.substr(begin, at_ - begin);
      if (name == "in") return CelToken::kWord;
      return name == "true" || name == "false" || name == "null" ? CelToken::kLiteral : CelToken::kName;
    }
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "&&", "||"}) {
      if (text_.substr(at_, 2) != sign) continue;
      at_ += 2;
      return CelToken::kSign;
    }
    constexpr std::string_view kSigns = "<>[]{}().,-!?:+*/%";
    if (kSigns.find(c) == std::string_view::npos) {
      const std::string unknown = Unknown();
      *fault = {at_, fmt::format("Syntax error: token recognition error at: '{}'", unknown)};
      at_ += unknown.size();
      return CelToken::kEnd;
    }
    ++at_;
    return CelToken::kSign;
  }

  // What no token begins with: one character, with "&" and "|" and "=" what follows them too.
  std::string Unknown() const {
    size_t length = 1;
    const bool begins_sign = Peek() == '&' || Peek() == '|' || Peek() == '=';
    if (begins_sign && at_ + 1 < text_.size()) length = 2;
    while (at_ + length < text_.size() && (static_cast<unsigned char>(text_[at_ + length]) & 0xc0) == 0x80) ++length;
    return std::string(text_.substr(at_, length));
  }

  CelToken ReadNumber() {
    if (Peek() == '0' && Peek(1) == 'x' && absl::ascii_isxdigit(static_cast<unsigned char>(Peek(2)))) {
      at_ += 2;
      while (absl::ascii_isxdigit(static_cast<unsigned char>(Peek()))) ++at_;
      if (Peek() == 'u' || Peek() == 'U') ++at_;
      return CelToken::kNumber;
    }
    while (CelDigit(Peek())) ++at_;
    if (Peek() == 'u' || Peek() == 'U') {
      ++at_;
      return CelToken::kNumber;
    }
    if (Peek() == '.' && CelDigit(Peek(1))) {
      ++at_;
      while (CelDigit(Peek())) ++at_;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
      if (CelDigit(Peek(1 + sign))) {
        at_ += 1 + sign;
        while (CelDigit(Peek())) ++at_;
      }
    }
    return CelToken::kNumber;
  }

  // How many letters stand before a quote here (b, r, br); npos: no string begins.
  size_t StringPrefix() const {
    size_t i = 0;
    if (Peek(i) == 'b' || Peek(i) == 'B') ++i;
    if (Peek(i) == 'r' || Peek(i) == 'R') ++i;
    return Peek(i) == '"' || Peek(i) == '\'' ? i : std::string_view::npos;
  }

  CelToken ReadString(size_t prefix, CelFault* fault) {
    const size_t begin = at_;
    const bool raw = prefix > 0 && absl::ascii_tolower(static_cast<unsigned char>(text_[at_ + prefix - 1])) == 'r';
    at_ += prefix;
    const char quote = Peek();
    const bool three = Peek(1) == quote && Peek(2) == quote;
    at_ += three ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == quote && (!three || (Peek(1) == quote && Peek(2) == quote))) {
        at_ += three ? 3 : 1;
        return CelToken::kLiteral;
      }
      if (!three && (c == '\n' || c == '\r')) break;
      if (c == '\\' && !raw) {
        const size_t length = Escape();
        if (length == 0) break;
        at_ += length;
      } else {
        ++at_;
      }
    }
    // The character at which it could not go on belongs to it, too.
    const size_t end = std::min(at_ + (Peek() == '\\' ? 2 : 1), text_.size());
    *fault = {begin, fmt::format("Syntax error: token recognition error at: '{}'", text_.substr(begin, end - begin))};
    at_ = end;
    return CelToken::kEnd;
  }

  // Bytes of the escape that begins here; 0: it is none.
  size_t Escape() const {
    constexpr std::string_view kPlain = "abfnrtv\"'\\?`";
    const char c = Peek(1);
    if (c != '\0' && kPlain.find(c) != std::string_view::npos) return 2;
    size_t digits = 0;
    if (c == 'x' || c == 'X') digits = 2;
    if (c == 'u') digits = 4;
    if (c == 'U') digits = 8;
    if (digits > 0) {
      for (size_t i = 0; i < digits; ++i) {
        if (!absl::ascii_isxdigit(static_cast<unsigned char>(Peek(2 + i)))) return 0;
      }
      return 2 + digits;
    }
    const auto octal = [&](size_t i) { return Peek(i) >= '0' && Peek(i) <= '7'; };
    return c >= '0' && c <= '3' && octal(2) && octal(3) ? 4 : 0;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<CelLexeme> CelLexemes(std::string_view text, std::vector<CelFault>* faults) {
  return CelLexer(text).Read(faults);
}

}  // namespace wavetank::cel
