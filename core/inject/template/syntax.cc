#include "core/inject/template/syntax.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 100;  // of what stands within another

struct Token {
  enum class Kind : uint8_t { kText, kOpen, kClose, kWord, kField, kVariable, kString, kNumber, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;     // of kString, decoded
  bool spaced = false;  // blanks before it
  int line = 1;
};

bool WordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool Blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Cuts a template into tokens; blanks around "{{-" and "-}}" are gone, comments too.
class Lexer {
 public:
  Lexer(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < text_.size() && status_.ok()) {
      const size_t open = text_.find("{{", at_);
      std::string plain(text_.substr(at_, open == text_.npos ? open : open - at_));
      const bool trims =
          open != text_.npos && text_.substr(open + 2, 1) == "-" && open + 3 < text_.size() && Blank(text_[open + 3]);
      const int lines = static_cast<int>(std::count(plain.begin(), plain.end(), '\n'));
      if (trim_next_) plain.erase(0, std::min(plain.find_first_not_of(" \t\r\n"), plain.size()));
      trim_next_ = false;
      if (trims) plain.erase(plain.find_last_not_of(" \t\r\n") + 1);
      if (!plain.empty()) Add(Token::Kind::kText, plain);
      line_ += lines;
      if (open == text_.npos) break;
      at_ = open + (trims ? 3 : 2);
      Action();
    }
    Add(Token::Kind::kEnd, "EOF");
    if (!status_.ok()) return status_;
    return std::move(out_);
  }

 private:
  void Add(Token::Kind kind, std::string text) { out_.push_back({kind, std::move(text), spaced_, line_}); }
  void Fail(std::string_view why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("template: {}:{}: {}", name_, line_, why));
  }
  // Behind "}}" or "-}}".
  bool Closes() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("}}")) {
      at_ += 2;
      return true;
    }
    if (!rest.starts_with("-}}")) return false;
    at_ += 3;
    return trim_next_ = true;
  }

  void Action() {
    if (Comment()) return;
    Add(Token::Kind::kOpen, "{{");
    while (status_.ok()) {
      spaced_ = false;
      while (at_ < text_.size() && Blank(text_[at_])) {
        line_ += text_[at_++] == '\n' ? 1 : 0;
        spaced_ = true;
      }
      if (at_ >= text_.size()) return Fail("unclosed action");
      if (Closes()) return Add(Token::Kind::kClose, "}}");
      One();
    }
  }

  bool Comment() {
    size_t begin = at_;
    while (begin < text_.size() && Blank(text_[begin])) ++begin;
    if (text_.substr(begin, 2) != "/*") return false;
    const size_t end = text_.find("*/", begin);
    if (end == text_.npos) {
      Fail("unclosed comment");
      return true;
    }
    line_ += static_cast<int>(
        std::count(text_.begin() + static_cast<long>(at_), text_.begin() + static_cast<long>(end), '\n'));
    at_ = end + 2;
    while (at_ < text_.size() && Blank(text_[at_])) ++at_;
    if (!Closes()) Fail("comment ends before closing delimiter");
    return true;
  }

  std::string Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && WordChar(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void One() {
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    if (c == '"' || c == '`' || c == '\'') return Quoted(c);
    if (c == '.' && std::isdigit(static_cast<unsigned char>(next)) == 0) {
      ++at_;
      return Add(Token::Kind::kField, Word());
    }
    if (c == '$') {
      ++at_;
      return Add(Token::Kind::kVariable, "$" + Word());
    }
    const bool sign = (c == '-' || c == '+') && std::isdigit(static_cast<unsigned char>(next)) != 0;
    if (sign || c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0) return NumberToken();
    if (WordChar(c)) return Add(Token::Kind::kWord, Word());
    if (c == ':' && next == '=') {
      at_ += 2;
      return Add(Token::Kind::kSign, ":=");
    }
    if (std::string_view("|(),=").find(c) == std::string_view::npos) {
      return Fail(fmt::format("unexpected \"{}\" in command", c));
    }
    ++at_;
    Add(Token::Kind::kSign, std::string(1, c));
  }

  void NumberToken() {
    const size_t begin = at_++;
    while (at_ < text_.size() && (WordChar(text_[at_]) || text_[at_] == '.')) ++at_;
    Add(Token::Kind::kNumber, std::string(text_.substr(begin, at_ - begin)));
  }

  void Quoted(char quote) {
    const size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && quote != '`') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n' && quote != '`') break;
      ++at_;
    }
    if (at_ >= text_.size() || text_[at_] != quote) {
      return Fail(quote == '`' ? "unterminated raw quoted string" : "unterminated quoted string");
    }
    const std::string_view inner = text_.substr(begin, at_++ - begin);
    Add(quote == '\'' ? Token::Kind::kNumber : Token::Kind::kString,
        quote == '`' ? std::string(inner) : Unescaped(inner));
    line_ += quote == '`' ? static_cast<int>(std::count(inner.begin(), inner.end(), '\n')) : 0;
  }

  static std::string Unescaped(std::string_view in) {
    std::string out;
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] != '\\' || i + 1 == in.size()) {
        out += in[i];
        continue;
      }
      switch (const char c = in[++i]; c) {
        case 'n':
          out += '\n';
          break;
        case 't':
          out += '\t';
          break;
        case 'r':
          out += '\r';
          break;
        default:
          out += c;
      }
    }
    return out;
  }

  const std::string_view name_, text_;
  size_t at_ = 0;
  int line_ = 1;
  bool trim_next_ = false, spaced_ = false;
  std::vector<Token> out_;
  absl::Status status_;
};

// Recursive descent over the tokens.
class Parser {
 public:
  Parser(std::string_view name, std::vector<Token> tokens, const std::set<std::string>& functions)
      : name_(name), tokens_(std::move(tokens)), functions_(functions) {}

  absl::StatusOr<Tree> Run() {
    tree_.main = List({});
    if (status_.ok() && !Is(Token::Kind::kEnd)) Fail(fmt::format("unexpected {}", Now().text));
    if (!status_.ok()) return status_;
    return std::move(tree_);
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  bool Is(Token::Kind kind) const { return Now().kind == kind; }
  bool Sign(std::string_view text) const { return Is(Token::Kind::kSign) && Now().text == text; }
  void Fail(std::string_view why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("template: {}:{}: {}", name_, Now().line, why));
  }
  Token Next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  void Close() {
    if (!Is(Token::Kind::kClose)) return Fail(fmt::format("unexpected <{}> in command", Now().text));
    Next();
  }
  // Whether {{word}} comes: one of those that end a list.
  bool Ahead(std::string_view word) const {
    return Is(Token::Kind::kOpen) && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == Token::Kind::kWord &&
           tokens_[at_ + 1].text == word;
  }

  std::vector<Node> List(const std::vector<std::string_view>& ends) {
    std::vector<Node> out;
    if (++depth_ > kMaxDepth) Fail("the template is nested too deeply");
    while (status_.ok() && !Is(Token::Kind::kEnd)) {
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return Ahead(end); })) break;
      if (Is(Token::Kind::kText)) {
        Node node;
        node.line = Now().line;
        node.text = Next().text;
        out.push_back(std::move(node));
      } else {
        Next();  // "{{"
        Statement(out);
      }
    }
    --depth_;
    return out;
  }

  void Statement(std::vector<Node>& out) {
    static const std::map<std::string, Node::Kind> kBlocks = {
        {"if", Node::Kind::kIf}, {"range", Node::Kind::kRange}, {"with", Node::Kind::kWith}};
    Node node;
    node.line = Now().line;
    const std::string word = Is(Token::Kind::kWord) ? Now().text : "";
    if (const auto block = kBlocks.find(word); block != kBlocks.end()) {
      Next();
      node.kind = block->second;
      Branch(node);
    } else if (word == "define") {
      return Define();
    } else if (word == "template" || word == "block") {
      Next();
      Call(node, word == "block");
    } else if (word == "break" || word == "continue") {
      Next();
      node.kind = word == "break" ? Node::Kind::kBreak : Node::Kind::kContinue;
      Close();
    } else if (word == "end" || word == "else") {
      return Fail(fmt::format("unexpected {{{{{}}}}}", word));
    } else {
      node.kind = Node::Kind::kAction;
      node.pipe = Pipeline();
      Close();
    }
    out.push_back(std::move(node));
  }

  void Branch(Node& node) {
    node.pipe = Pipeline();
    Close();
    node.body = List({"end", "else"});
    if (Ahead("else")) {
      Next();
      Next();
      if (Is(Token::Kind::kWord) && (Now().text == "if" || Now().text == "with")) {
        // {{else if}} is an if of its own that ends with this one.
        Node inner;
        inner.line = Now().line;
        inner.kind = Next().text == "if" ? Node::Kind::kIf : Node::Kind::kWith;
        // Run and freed as deep as it is written.
        if (++depth_ > kMaxDepth) return Fail("the template is nested too deeply");
        Branch(inner);
        --depth_;
        node.otherwise.push_back(std::move(inner));
        return;
      }
      Close();
      node.otherwise = List({"end"});
    }
    End();
  }
  void End() {
    if (!Ahead("end")) return Fail("unexpected EOF");
    Next();
    Next();
    Close();
  }

  void Define() {
    Next();
    if (!Is(Token::Kind::kString)) return Fail("unexpected token in define clause");
    const std::string name = Next().text;
    Close();
    tree_.defined[name] = List({"end"});
    End();
  }

  void Call(Node& node, bool defines) {
    node.kind = Node::Kind::kTemplate;
    if (!Is(Token::Kind::kString)) return Fail("unexpected token in template clause");
    node.text = Next().text;
    if (!Is(Token::Kind::kClose)) node.pipe = Pipeline();
    Close();
    if (!defines) return;
    tree_.defined[node.text] = List({"end"});
    End();
  }

  PipeRef Pipeline() {
    auto out = std::make_shared<Pipe>();
    out->line = Now().line;
    if (++depth_ > kMaxDepth) Fail("the template is nested too deeply");
    Declarations(*out);
    do {
      if (Sign("|")) Next();
      out->commands.push_back(OneCommand());
    } while (status_.ok() && Sign("|"));
    --depth_;
    return out;
  }

  // "$x :=", "$x =", "$i, $x :=".
  void Declarations(Pipe& pipe) {
    const size_t begin = at_;
    std::vector<std::string> names;
    while (Is(Token::Kind::kVariable)) {
      names.push_back(Next().text);
      if (!Sign(",")) break;
      Next();
    }
    if (!names.empty() && (Sign(":=") || Sign("="))) {
      pipe.assigns = Next().text == "=";
      pipe.variables = std::move(names);
    } else {
      at_ = begin;
    }
  }

  Command OneCommand() {
    Command out;
    while (status_.ok() && !Is(Token::Kind::kClose) && !Is(Token::Kind::kEnd) && !Sign("|") && !Sign(")")) {
      out.push_back(OneOperand());
    }
    if (out.empty()) Fail("missing value for command");
    return out;
  }

  Operand OneOperand() {
    Operand out;
    const Token token = Next();
    out.text = token.text;
    switch (token.kind) {
      case Token::Kind::kField:
        if (!token.text.empty()) out.fields.push_back(token.text);
        out.text = "." + token.text;
        break;
      case Token::Kind::kVariable:
        out.kind = Operand::Kind::kVariable;
        out.name = token.text;
        break;
      case Token::Kind::kString:
        out.kind = Operand::Kind::kLiteral;
        out.literal = Value::Plain(token.text);
        break;
      case Token::Kind::kNumber:
        NumberLiteral(token.text, out);
        break;
      case Token::Kind::kWord:
        NamedOperand(token.text, out);
        break;
      default:
        if (token.kind != Token::Kind::kSign || token.text != "(") {
          Fail(fmt::format("unexpected <{}> in operand", token.text));
          return out;
        }
        out.kind = Operand::Kind::kPipe;
        out.pipe = Pipeline();
        if (!Sign(")")) Fail("unclosed left paren");
        Next();
    }
    while (Is(Token::Kind::kField) && !Now().spaced && !Now().text.empty()) {
      out.text += "." + Now().text;
      out.fields.push_back(Next().text);
    }
    return out;
  }

  void NumberLiteral(const std::string& text, Operand& out) {
    out.kind = Operand::Kind::kLiteral;
    const char* begin = text.c_str() + (text.starts_with('+') ? 1 : 0);
    const char* end = text.c_str() + text.size();
    int64_t whole = 0;
    if (const auto [stop, error] = std::from_chars(begin, end, whole); error == std::errc() && stop == end) {
      out.literal = Value::Plain(whole);
      return;
    }
    double real = 0;
    if (const auto [stop, error] = std::from_chars(begin, end, real); error == std::errc() && stop == end) {
      out.literal = Value::Plain(real);
    } else if (text.size() == 1) {  // a character
      out.literal = Value::Plain(static_cast<int64_t>(static_cast<unsigned char>(text[0])));
    } else {
      Fail(fmt::format("bad number syntax: \"{}\"", text));
    }
  }

  void NamedOperand(const std::string& word, Operand& out) {
    if (word == "true" || word == "false") {
      out.kind = Operand::Kind::kLiteral;
      out.literal = Value::Plain(word == "true");
    } else if (word == "nil") {
      out.kind = Operand::Kind::kNil;
    } else {
      out.kind = Operand::Kind::kFunction;
      out.name = word;
      if (!functions_.contains(word)) Fail(fmt::format("function \"{}\" not defined", word));
    }
  }

  const std::string_view name_;
  const std::vector<Token> tokens_;
  const std::set<std::string>& functions_;
  size_t at_ = 0, depth_ = 0;
  Tree tree_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Tree> ParseTemplate(std::string_view name, std::string_view text,
                                   const std::set<std::string>& functions) {
  absl::StatusOr<std::vector<Token>> tokens = Lexer(name, text).Run();
  if (!tokens.ok()) return tokens.status();
  return Parser(name, *std::move(tokens), functions).Run();
}

}  // namespace wavetank::pilot::gotemplate
