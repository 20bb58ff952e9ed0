#include "core/base/cel/cel_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "core/base/cel/cel_lexer.h"
#include "core/base/cel/cel_syntax.h"

namespace wavetank::cel {
namespace {

void AddCodePoint(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xf0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

// What a string's token stands for; the lexer has seen that its escapes are some. `bytes`: \x and octals are bytes, not
// code points.
std::string Unquoted(std::string_view token, bool bytes, bool raw) {
  const size_t quotes = token.size() >= 6 && token[0] == token[1] && token[0] == token[2] ? 3 : 1;
  token = token.substr(quotes, token.size() - 2 * quotes);
  if (raw) return std::string(token);
  std::string out;
  while (!token.empty()) {
    const char c = token.front();
    token.remove_prefix(1);
    if (c != '\\') {
      out.push_back(c);
      continue;
    }
    const char kind = token.front();
    constexpr std::string_view kPlain = "abfnrtv", kMeant = "\a\b\f\n\r\t\v";
    if (const size_t plain = kPlain.find(kind); plain != std::string_view::npos) {
      out.push_back(kMeant[plain]);
      token.remove_prefix(1);
      continue;
    }
    size_t digits = 0;
    int base = 16;
    if (kind == 'x' || kind == 'X') digits = 2;
    if (kind == 'u') digits = 4;
    if (kind == 'U') digits = 8;
    if (digits > 0) {
      token.remove_prefix(1);
    } else if (kind >= '0' && kind <= '3') {
      digits = 3;
      base = 8;
    } else {
      out.push_back(kind);  // a quote, \, ? or `
      token.remove_prefix(1);
      continue;
    }
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char d = absl::ascii_tolower(static_cast<unsigned char>(token[i]));
      code = code * static_cast<uint32_t>(base) + static_cast<uint32_t>(d <= '9' ? d - '0' : d - 'a' + 10);
    }
    token.remove_prefix(digits);
    if (bytes && kind != 'u' && kind != 'U') {
      out.push_back(static_cast<char>(code));
    } else {
      AddCodePoint(code, &out);
    }
  }
  return out;
}

// Operators between two operands; what binds less first.
constexpr std::string_view kLevels[][7] = {
    {"||"}, {"&&"}, {"<", "<=", ">=", ">", "==", "!=", "in"}, {"+", "-"}, {"*", "/", "%"}};

// Over tokens that form an expression (CelSyntaxError); what that does not look at fails here.
class TreeBuilder : private CelTokens {
 public:
  TreeBuilder(std::string_view text, std::vector<CelLexeme> tokens, bool optionals)
      : CelTokens(std::move(tokens)), text_(text), optionals_(optionals) {}

  absl::StatusOr<CelNode> Build() {
    CelNode out = Ternary();
    if (!status_.ok()) return status_;
    return out;
  }

 private:
  CelNode Fail(size_t at, std::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(CelErrorAt(text_, at, what));
    return {};
  }
  static CelNode Call(std::string_view name, std::vector<CelNode> of, bool member = false) {
    CelNode out;
    out.kind = CelNode::Kind::kCall;
    out.name = name;
    out.of = std::move(of);
    out.member = member;
    return out;
  }
  static std::vector<CelNode> Two(CelNode a, CelNode b) {
    std::vector<CelNode> out;
    out.push_back(std::move(a));
    out.push_back(std::move(b));
    return out;
  }

  CelNode Ternary() {
    CelNode out = Binary(0);
    if (!status_.ok() || !Take("?")) return out;
    std::vector<CelNode> of = Two(std::move(out), Binary(0));
    Take(":");
    of.push_back(Ternary());
    return Call("?:", std::move(of));
  }

  CelNode Binary(size_t level) {
    if (level == std::size(kLevels)) return Unary();
    CelNode out = Binary(level + 1);
    for (;;) {
      std::string_view taken;
      for (const std::string_view sign : kLevels[level]) {
        if (taken.empty() && status_.ok() && !sign.empty() && Take(sign)) taken = sign;
      }
      if (taken.empty()) return out;
      CelNode right = Binary(level + 1);
      out = Call(taken, Two(std::move(out), std::move(right)));
    }
  }

  CelNode Unary() {
    const std::string_view sign = Is("!") ? "!" : Is("-") ? "-" : "";
    if (sign.empty()) return Member(Primary(false));
    // A minus before a number belongs to it.
    if (sign == "-" && tokens_[at_ + 1].kind == CelToken::kNumber) {
      ++at_;
      return Member(Primary(true));
    }
    bool odd = false;
    while (Take(sign)) odd = !odd;
    CelNode out = Member(Primary(false));
    if (!odd) return out;  // as if it were not there, whatever the value
    std::vector<CelNode> of;
    of.push_back(std::move(out));
    return Call(sign, std::move(of));
  }

  CelNode Member(CelNode out) {
    while (status_.ok()) {
      const size_t at = Now().at;
      if (Take(".")) {
        const bool optional = Is("?");
        if (optional && !optionals_) return Fail(0, "unsupported syntax '.?'");
        if (optional) ++at_;
        std::string name(Now().text);
        ++at_;
        if (optional) {
          CelNode key;
          key.literal = std::move(name);
          out = Call("?.", Two(std::move(out), std::move(key)));
          continue;
        }
        if (Take("(")) {
          out = MemberCall(std::move(out), std::move(name));
          continue;
        }
        CelNode select;
        select.kind = CelNode::Kind::kSelect;
        select.name = std::move(name);
        select.of.push_back(std::move(out));
        out = std::move(select);
      } else if (Take("[")) {
        const bool optional = Is("?");
        if (optional && !optionals_) return Fail(at, "unsupported syntax '[?'");
        if (optional) ++at_;
        CelNode key = Ternary();
        Take("]");
        out = Call(optional ? "[?]" : "[]", Two(std::move(out), std::move(key)));
      } else if (Is("{")) {
        CelNode message;
        message.kind = CelNode::Kind::kMessage;
        message.name = NameOf(out);
        SkipBraces();
        out = std::move(message);
      } else {
        break;
      }
    }
    return out;
  }

  CelNode MemberCall(CelNode target, std::string name) {
    std::vector<CelNode> of;
    const size_t at = tokens_[at_ - 1].at;
    of.push_back(std::move(target));
    Arguments(&of);
    const size_t count = of.size() - 1;
    const bool two = name == "all" || name == "exists" || name == "exists_one" || name == "map" || name == "filter";
    const bool of_optional = optionals_ && (name == "optMap" || name == "optFlatMap");
    if (status_.ok() && of_optional && count == 2 && of[1].kind != CelNode::Kind::kName) {
      return Fail(at, name + "() variable name must be a simple identifier");
    }
    // cel-go: ext/comprehensions.go
    const bool asks = name == "all" || name == "exists" || name == "existsOne";
    const bool makes = name == "transformList" || name == "transformMap" || name == "transformMapEntry";
    const bool over_pairs = optionals_ && ((asks && count == 3) || (makes && (count == 3 || count == 4)));
    if (status_.ok() && over_pairs && of[1].kind == CelNode::Kind::kName && of[2].kind == CelNode::Kind::kName) {
      CelNode macro;
      macro.kind = CelNode::Kind::kMacro;
      macro.name = std::move(name);
      macro.variable = std::move(of[1].name);
      macro.second = std::move(of[2].name);
      of.erase(of.begin() + 1, of.begin() + 3);
      macro.of = std::move(of);
      macro.at = at;
      return macro;
    }
    if (status_.ok() && (((two || of_optional) && count == 2) || (name == "map" && count == 3))) {
      CelNode macro;
      macro.kind = CelNode::Kind::kMacro;
      macro.name = std::move(name);
      macro.variable = std::move(of[1].name);
      of.erase(of.begin() + 1);
      macro.of = std::move(of);
      macro.at = at;
      return macro;
    }
    CelNode out = Call(name, std::move(of), /*member=*/true);
    out.at = at;
    return out;
  }

  void Arguments(std::vector<CelNode>* out) {
    while (status_.ok() && !Take(")")) {
      out->push_back(Ternary());
      Take(",");
    }
  }

  // "a.b.c"
  static std::string NameOf(const CelNode& node) {
    return node.kind == CelNode::Kind::kSelect ? NameOf(node.of.front()) + "." + node.name : node.name;
  }

  void SkipBraces() {
    size_t open = 0;
    do {
      if (Is("{")) ++open;
      if (Is("}")) --open;
      ++at_;
    } while (open > 0);
  }

  CelNode Primary(bool negative) {
    CelNode out;
    if (Take("(")) {
      out = Ternary();
      Take(")");
      return out;
    }
    if (Take("[") || Take("{")) {
      const bool pairs = tokens_[at_ - 1].text == "{";
      const std::string_view close = pairs ? "}" : "]";
      out.kind = pairs ? CelNode::Kind::kMap : CelNode::Kind::kList;
      while (status_.ok() && !Take(close)) {
        const bool optional = Is("?");
        if (optional && !optionals_) return Fail(Now().at, "unsupported syntax '?'");
        if (optional) ++at_;
        out.of.push_back(Ternary());
        if (optional) {
          std::vector<CelNode> of;
          of.push_back(std::move(out.of.back()));
          out.of.back() = Call("?", std::move(of));
        }
        if (pairs) {
          Take(":");
          out.of.push_back(Ternary());
        }
        Take(",");
      }
      return out;
    }
    if (Now().kind == CelToken::kNumber) return Number(negative);
    if (Now().kind == CelToken::kLiteral) return Text();
    Take(".");
    out.kind = CelNode::Kind::kName;
    out.name = Now().text;
    out.at = Now().at;
    ++at_;
    if (!Take("(")) return out;
    std::vector<CelNode> of;
    Arguments(&of);
    if (out.name == "has" && of.size() == 1) {
      out = std::move(of.front());
      out.kind = CelNode::Kind::kHas;
      return out;
    }
    const size_t at = out.at;
    out = Call(std::string(out.name), std::move(of));
    out.at = at + out.name.size();  // at its parenthesis
    return out;
  }

  CelNode Number(bool negative) {
    const CelLexeme token = Now();
    ++at_;
    const size_t at = negative ? tokens_[at_ - 2].at : token.at;
    std::string digits(token.text);
    const bool hex = digits.size() > 1 && digits[1] == 'x';
    CelNode out;
    if (digits.back() == 'u' || digits.back() == 'U') {
      digits.pop_back();
      uint64_t value = 0;
      const bool read = hex ? absl::SimpleHexAtoi(digits, &value) : absl::SimpleAtoi(digits, &value);
      if (!read || negative) return Fail(at, "invalid uint literal");
      out.literal = value;
      return out;
    }
    if (!hex && digits.find_first_of(".eE") != std::string::npos) {
      double value = 0;
      if (!absl::SimpleAtod(digits, &value)) return Fail(at, "invalid double literal");
      out.literal = negative ? -value : value;
      return out;
    }
    int64_t value = 0;
    if (negative) digits.insert(0, "-");
    const bool read = hex ? absl::SimpleHexAtoi(digits, &value) : absl::SimpleAtoi(digits, &value);
    if (!read) return Fail(at, hex ? "invalid hex int literal" : "invalid int literal");
    out.literal = value;
    return out;
  }

  CelNode Text() {
    std::string_view token = Now().text;
    ++at_;
    CelNode out;
    if (token == "null") return out;
    if (token == "true" || token == "false") {
      out.literal = token == "true";
      return out;
    }
    bool bytes = false, raw = false;
    for (; token.front() != '"' && token.front() != '\''; token.remove_prefix(1)) {
      (absl::ascii_tolower(static_cast<unsigned char>(token.front())) == 'b' ? bytes : raw) = true;
    }
    std::string text = Unquoted(token, bytes, raw);
    if (bytes) {
      out.literal = CelBytes{std::move(text)};
    } else {
      out.literal = std::move(text);
    }
    return out;
  }

  const std::string_view text_;
  const bool optionals_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<CelNode> ParseCel(std::string_view text, CelWords words, bool optionals) {
  if (std::string error = CelSyntaxError(text, words); !error.empty()) {
    return absl::InvalidArgumentError(std::move(error));
  }
  std::vector<CelFault> none;
  return TreeBuilder(text, CelLexemes(text, &none), optionals).Build();
}

}  // namespace wavetank::cel
