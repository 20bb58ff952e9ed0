#include "core/validation/cel_syntax.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

enum class CelToken { kEnd, kName, kLiteral, kSign, kNumber, kWord };  // kWord: in

struct CelLexeme {
  CelToken kind = CelToken::kEnd;
  std::string_view text;
  size_t at = 0;  // byte
};

struct CelFault {
  size_t at = 0;
  std::string what;  // empty: none
};

constexpr std::string_view kOperands =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

bool CelDigit(char c) { return c >= '0' && c <= '9'; }
bool CelNameChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class CelLexer {
 public:
  explicit CelLexer(std::string_view text) : text_(text) {}

  // All tokens, with kEnd last. What is none is passed over.
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

// What an expression is, as far as macros ask.
enum class CelShape { kName, kField, kOther };

class CelReader {
 public:
  explicit CelReader(std::vector<CelLexeme> tokens) : tokens_(std::move(tokens)) {}

  CelFault Read() {
    Expression("");
    if (fault_.what.empty() && Now().kind != CelToken::kEnd) {
      Fail(fmt::format("{} input '{}' expecting <EOF>",
                       tokens_[at_ + 1].kind == CelToken::kEnd ? "extraneous" : "mismatched", Now().text));
    }
    return fault_;
  }

 private:
  static constexpr int kDeepest = 250;  // cel-go's limit of recursion

  const CelLexeme& Now() const { return tokens_[at_]; }
  bool AtEnd() const { return Now().kind == CelToken::kEnd; }
  bool Is(std::string_view sign) const {
    return (Now().kind == CelToken::kSign || Now().kind == CelToken::kWord) && Now().text == sign;
  }
  bool Take(std::string_view sign) {
    if (!Is(sign)) return false;
    ++at_;
    return true;
  }
  void Fail(const std::string& what) {
    if (fault_.what.empty()) fault_ = {Now().at, "Syntax error: " + what};
  }
  // A macro that its arguments do not fit.
  void FailMacro(size_t at, std::string what) {
    if (fault_.what.empty()) fault_ = {at, std::move(what)};
  }
  void Expect(std::string_view sign, std::string_view set = {}) {
    if (!fault_.what.empty() || Take(sign)) return;
    if (set.empty()) return Fail(fmt::format("missing '{}' at '{}'", sign, Now().text));
    Fail(fmt::format("mismatched input '{}' expecting {}", Now().text, set));
  }

  // `more`: what else might stand in its place.
  CelShape Expression(std::string_view more) {
    if (!fault_.what.empty()) return CelShape::kOther;
    if (++depth_ > kDeepest) {
      Fail(fmt::format("expression recursion limit exceeded: {}", kDeepest));
      return CelShape::kOther;
    }
    CelShape shape = Operands(more);
    if (fault_.what.empty() && Take("?")) {
      shape = CelShape::kOther;
      Operands("");
      Expect(":", "':'");
      Expression("");
    }
    --depth_;
    return shape;
  }

  // Operands with operators between them: which binds first does not matter here.
  CelShape Operands(std::string_view more) {
    CelShape shape = Unary(more);
    while (fault_.what.empty() && TakeOperator()) {
      shape = CelShape::kOther;
      Unary("");
    }
    return shape;
  }
  bool TakeOperator() {
    for (const std::string_view sign : {"||", "&&", "<", "<=", ">=", ">", "==", "!=", "in", "*", "/", "%", "+", "-"}) {
      if (Take(sign)) return true;
    }
    return false;
  }

  CelShape Unary(std::string_view more) {
    const size_t begin = at_;
    if (Is("!")) {
      while (Take("!")) {
      }
    } else {
      while (Take("-")) {
      }
    }
    CelShape shape = Primary(more, at_ != begin);
    while (fault_.what.empty()) {
      if (Take(".")) {
        shape = Select();
      } else if (Take("[")) {
        Take("?");
        Expression("'?'");
        Expect("]");
        shape = CelShape::kOther;
      } else if (Is("{") && message_) {
        ++at_;
        Fields();
        shape = CelShape::kOther;
      } else {
        break;
      }
    }
    return at_ > begin + 1 && shape == CelShape::kName && (tokens_[begin].text == "!" || tokens_[begin].text == "-")
               ? CelShape::kOther
               : shape;
  }

  // Behind a dot: a field, or a call of a member.
  CelShape Select() {
    Take("?");
    if (Now().kind != CelToken::kName) {
      Fail(fmt::format("no viable alternative at input '.{}'", AtEnd() ? "" : Now().text));
      return CelShape::kOther;
    }
    const std::string_view name = Now().text;
    ++at_;
    if (!Take("(")) return CelShape::kField;
    const size_t first = Now().at;
    const auto [count, shape] = Arguments();
    const bool two = count == 2 && (name == "all" || name == "exists" || name == "exists_one" || name == "filter");
    if ((two || (name == "map" && (count == 2 || count == 3))) && shape != CelShape::kName) {
      FailMacro(first,
                name == "map" || name == "filter" ? "argument is not an identifier" : "argument must be a simple name");
    }
    return CelShape::kOther;
  }

  // How many, and the first one's shape.
  std::pair<int, CelShape> Arguments() {
    if (Take(")")) return {0, CelShape::kOther};
    CelShape first = CelShape::kOther;
    int count = 0;
    do {
      const CelShape shape = Expression(count == 0 ? "')'" : "");
      if (count++ == 0) first = shape;
    } while (fault_.what.empty() && Take(","));
    Expect(")", "{')', ','}");
    return {count, first};
  }

  void Entries(std::string_view close, bool pairs) {
    const std::string set = fmt::format("{{'{}', ','}}", close);
    while (fault_.what.empty() && !Take(close)) {
      Take("?");
      Expression("");
      if (pairs) {
        Expect(":", "':'");
        Expression("");
      }
      if (!Take(",")) return Expect(close, set);
    }
  }

  void Fields() {
    while (fault_.what.empty() && !Take("}")) {
      Take("?");
      if (Now().kind != CelToken::kName) return Fail(fmt::format("missing IDENTIFIER at '{}'", Now().text));
      ++at_;
      Expect(":");
      Expression("");
      if (!Take(",")) return Expect("}", "{'}', ','}");
    }
  }

  CelShape Primary(std::string_view more, bool behind_sign) {
    message_ = false;
    const bool dot = Take(".");
    if (Now().kind == CelToken::kName) {
      const bool has = Now().text == "has" && !dot;
      ++at_;
      message_ = !Is("(");
      if (message_) return CelShape::kName;
      const size_t open = Now().at;
      ++at_;
      const auto [count, shape] = Arguments();
      if (has && count == 1 && shape != CelShape::kField) FailMacro(open, "invalid argument to has() macro");
      return CelShape::kOther;
    }
    if (dot) {
      Fail(fmt::format("no viable alternative at input '.{}'", AtEnd() ? "" : Now().text));
    } else if (Now().kind == CelToken::kLiteral || Now().kind == CelToken::kNumber) {
      ++at_;
    } else if (Take("(")) {
      const CelShape shape = Expression("");
      Expect(")");
      return shape;
    } else if (Take("[")) {
      Entries("]", false);
    } else if (Take("{")) {
      Entries("}", true);
    } else {
      MissingOperand(more, behind_sign);
    }
    return CelShape::kOther;
  }

  static bool BeginsOperand(const CelLexeme& token) {
    constexpr std::string_view kSigns = "[{(.-!";
    return token.kind == CelToken::kName || token.kind == CelToken::kLiteral || token.kind == CelToken::kNumber ||
           (token.text.size() == 1 && kSigns.find(token.text[0]) != std::string_view::npos);
  }

  void MissingOperand(std::string_view more, bool behind_sign) {
    std::string set(kOperands);
    // Where the grammar's tokens have their places.
    if (more == "')'") set.replace(set.find("'(', "), 5, "'(', ')', ");
    if (more == "'?'") set.replace(set.find("'!', "), 5, "'!', '?', ");
    const bool next_fits =
        !AtEnd() && (BeginsOperand(tokens_[at_ + 1]) || (more == "')'" && tokens_[at_ + 1].text == ")"));
    Fail(fmt::format("{} input '{}' expecting {}", behind_sign || next_fits ? "extraneous" : "mismatched", Now().text,
                     set));
  }

  const std::vector<CelLexeme> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool message_ = false;  // names alone came, behind which fields may stand
  CelFault fault_;
};

// In code points.
size_t Length(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string CelSyntaxError(std::string_view text) {
  std::vector<CelFault> faults;
  CelFault fault = CelReader(CelLexer(text).Read(&faults)).Read();
  if (!fault.what.empty()) faults.push_back(std::move(fault));
  std::stable_sort(faults.begin(), faults.end(), [](const CelFault& a, const CelFault& b) { return a.at < b.at; });
  std::string out;
  for (const CelFault& one : faults) {
    const std::string_view before = text.substr(0, one.at);
    const size_t break_at = before.rfind('\n');
    const size_t begin = break_at == std::string_view::npos ? 0 : break_at + 1;
    const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
    const size_t column = Length(text.substr(begin, one.at - begin));
    if (!out.empty()) out += '\n';
    out += fmt::format("ERROR: <input>:{}:{}: {}", std::count(before.begin(), before.end(), '\n') + 1, column + 1,
                       one.what);
    if (!text.empty()) out += fmt::format("\n | {}\n | {}^", line, std::string(column, '.'));
  }
  return out;
}

}  // namespace wavetank::validation
