#include "core/base/cel/cel_syntax.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/cel/cel_lexer.h"
#include "fmt/format.h"

namespace wavetank::cel {
namespace {

constexpr std::string_view kOperands =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

// What an expression is, as far as macros ask.
enum class CelShape { kName, kField, kOther };

class CelReader : private CelTokens {
 public:
  CelReader(std::vector<CelLexeme> tokens, CelWords words) : CelTokens(std::move(tokens)), words_(words) {}

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

  bool AtEnd() const { return Now().kind == CelToken::kEnd; }
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
        const size_t bracket = tokens_[at_ - 1].at;
        Take("?");
        Expression("'?'");
        Expect("]");
        shape = CelShape::kOther;
        shown_at_ = bracket;
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
    shown_at_ = Now().at;
    const bool dot = Take(".");
    if (Now().kind == CelToken::kName) {
      const bool has = Now().text == "has" && !dot;
      ++at_;
      message_ = !Is("(");
      if (message_) return CelShape::kName;
      const size_t open = Now().at;
      ++at_;
      const auto [count, shape] = Arguments();
      if (has && count == 1 && shape != CelShape::kField) {
        words_ == CelWords::kGo ? FailMacro(open, "invalid argument to has() macro")
                                : FailMacro(shown_at_, "has() argument must be a field selection");
      }
      shown_at_ = open;
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

  const CelWords words_;
  size_t shown_at_ = 0;  // where the last expression is shown to stand, which is not where it begins
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

std::string CelSyntaxError(std::string_view text, CelWords words) {
  std::vector<CelFault> faults;
  CelFault fault = CelReader(CelLexemes(text, &faults), words).Read();
  if (!fault.what.empty()) faults.push_back(std::move(fault));
  std::stable_sort(faults.begin(), faults.end(), [](const CelFault& a, const CelFault& b) { return a.at < b.at; });
  std::string out;
  for (const CelFault& one : faults) {
    if (!out.empty()) out += '\n';
    out += CelErrorAt(text, one.at, one.what);
  }
  return out;
}

std::string CelErrorAt(std::string_view text, size_t at, std::string_view what) {
  const std::string_view before = text.substr(0, at);
  const size_t break_at = before.rfind('\n');
  const size_t begin = break_at == std::string_view::npos ? 0 : break_at + 1;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const size_t column = Length(text.substr(begin, at - begin));
  std::string out =
      fmt::format("ERROR: <input>:{}:{}: {}", std::count(before.begin(), before.end(), '\n') + 1, column + 1, what);
  if (!text.empty()) out += fmt::format("\n | {}\n | {}^", line, std::string(column, '.'));
  return out;
}

}  // namespace wavetank::cel
