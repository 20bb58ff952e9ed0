#include "fakes/envoy/access_log/access_log_expression.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/tcp/http.h"
#include "re2/re2.h"

namespace wavetank::envoysim {
namespace {

struct CelMissing {};  // an attribute that is not there, or an operation that failed
struct Cel;
using CelList = std::vector<Cel>;
struct Cel {
  std::variant<CelMissing, bool, int64_t, std::string, CelList> value;

  bool missing() const { return std::holds_alternative<CelMissing>(value); }
  const bool* boolean() const { return std::get_if<bool>(&value); }
  const int64_t* number() const { return std::get_if<int64_t>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
};

Cel CelText(std::string_view text) { return {std::string(text)}; }
Cel CelTextOrMissing(std::string_view text) { return text.empty() ? Cel{} : CelText(text); }
Cel CelAddress(const SocketAddress& a) { return a.empty() ? Cel{} : CelText(a.ToString()); }
Cel CelPort(const SocketAddress& a) { return a.empty() ? Cel{} : Cel{int64_t{a.port}}; }

// nullopt: nobody here knows the attribute. A header's name is `key`.
std::optional<Cel> CelAttribute(std::string_view name, std::string_view key, const AccessLogEntry& entry) {
  std::string kept;
  const auto request_header = [&](std::string_view header) {
    const auto value = LoggedRequestHeader(entry, header, &kept);
    return value ? CelText(*value) : Cel{};
  };
  const bool request = entry.request != nullptr;
  const auto path = [&]() -> std::string_view { return request ? std::string_view(entry.request->path) : ""; };
  const size_t question = path().find('?');
  if (name == "request.headers") return request_header(key);
  if (name == "request.path") return request_header(":path");
  if (name == "request.url_path") return request ? CelText(path().substr(0, question)) : Cel{};
  if (name == "request.query") {
    if (!request) return Cel{};
    return CelText(question == std::string_view::npos ? "" : path().substr(question + 1));
  }
  if (name == "request.host") return request_header(":authority");
  if (name == "request.method") return request_header(":method");
  if (name == "request.scheme") return request_header(":scheme");
  if (name == "request.referer") return request_header("referer");
  if (name == "request.useragent") return request_header("user-agent");
  if (name == "request.id") return request_header("x-request-id");
  if (name == "request.protocol") {
    if (!request) return Cel{};
    return CelText(entry.request->protocol == HttpProtocol::kHttp2 ? "HTTP/2" : "HTTP/1.1");
  }
  if (name == "request.size") return request ? Cel{int64_t{0}} : Cel{};
  if (name == "response.code") return entry.code != 0 ? Cel{int64_t{entry.code}} : Cel{};
  if (name == "response.code_details") return CelTextOrMissing(entry.details);
  if (name == "response.size") {
    return entry.bytes_sent ? Cel{static_cast<int64_t>(*entry.bytes_sent)} : Cel{};
  }
  if (name == "response.headers") {
    const auto value = LoggedResponseHeader(entry, key, &kept);
    return value ? CelText(*value) : Cel{};
  }
  if (name == "connection.mtls") return Cel{entry.client_certificate};
  if (name == "connection.requested_server_name") return CelText(absl::AsciiStrToLower(std::string(entry.server_name)));
  if (name == "connection.tls_version") return entry.tls ? CelText(entry.tls13 ? "TLSv1.3" : "TLSv1.2") : Cel{};
  if (name == "connection.uri_san_peer_certificate") return CelTextOrMissing(entry.client_uri);
  if (name == "connection.uri_san_local_certificate") return CelTextOrMissing(entry.server_uri);
  if (name == "connection.termination_details") return CelTextOrMissing(entry.termination);
  if (name == "source.address") return CelAddress(entry.downstream_remote);
  if (name == "source.port") return CelPort(entry.downstream_remote);
  if (name == "destination.address") return CelAddress(entry.downstream_local);
  if (name == "destination.port") return CelPort(entry.downstream_local);
  if (name == "upstream.address") return CelAddress(entry.upstream_remote);
  if (name == "upstream.port") return CelPort(entry.upstream_remote);
  if (name == "upstream.local_address") return CelAddress(entry.upstream_local);
  if (name == "upstream.transport_failure_reason") return CelTextOrMissing(entry.transport_failure);
  if (name == "xds.cluster_name") return CelTextOrMissing(entry.cluster);
  if (name == "xds.route_name") return CelTextOrMissing(entry.route);
  if (name == "xds.filter_chain_name") return CelTextOrMissing(entry.filter_chain);
  return std::nullopt;
}

enum class CelOp : uint8_t {
  kConstant,
  kAttribute,
  kList,
  kNot,
  kAnd,
  kOr,
  kIf,
  kEqual,
  kNotEqual,
  kLess,
  kAtMost,
  kMore,
  kAtLeast,
  kIn,
  kHas,
  kSize,
  kStartsWith,
  kEndsWith,
  kContains,
  kMatches,
};

struct CelNode {
  CelOp op = CelOp::kConstant;
  Cel constant;
  std::string name, key;  // kAttribute
  std::vector<CelNode> of;
};

std::optional<int> CompareCel(const Cel& a, const Cel& b) {
  if (a.number() != nullptr && b.number() != nullptr) return *a.number() < *b.number() ? -1 : *a.number() > *b.number();
  if (a.text() != nullptr && b.text() != nullptr) return a.text()->compare(*b.text());
  if (a.boolean() != nullptr && b.boolean() != nullptr) return int{*a.boolean()} - int{*b.boolean()};
  return std::nullopt;
}

Cel EvaluateCel(const CelNode& node, const AccessLogEntry& entry) {
  const auto at = [&](size_t i) { return EvaluateCel(node.of[i], entry); };
  switch (node.op) {
    case CelOp::kConstant:
      return node.constant;
    case CelOp::kAttribute:
      return CelAttribute(node.name, node.key, entry).value_or(Cel{});
    case CelOp::kHas:
      return {!at(0).missing()};
    case CelOp::kList: {
      CelList list;
      for (size_t i = 0; i < node.of.size(); ++i) list.push_back(at(i));
      return {std::move(list)};
    }
    case CelOp::kNot: {
      const Cel a = at(0);
      return a.boolean() != nullptr ? Cel{!*a.boolean()} : Cel{};
    }
    // What one side decides holds, whether or not the other fails.
    case CelOp::kAnd:
    case CelOp::kOr: {
      const bool decides = node.op == CelOp::kOr;
      const Cel a = at(0);
      if (a.boolean() != nullptr && *a.boolean() == decides) return a;
      const Cel b = at(1);
      if (b.boolean() != nullptr && *b.boolean() == decides) return b;
      return a.boolean() != nullptr && b.boolean() != nullptr ? Cel{!decides} : Cel{};
    }
    case CelOp::kIf: {
      const Cel a = at(0);
      if (a.boolean() == nullptr) return {};
      return at(*a.boolean() ? 1 : 2);
    }
    case CelOp::kIn: {
      const Cel a = at(0), b = at(1);
      const CelList* list = std::get_if<CelList>(&b.value);
      if (a.missing() || list == nullptr) return {};
      for (const Cel& one : *list) {
        if (CompareCel(a, one) == 0) return {true};
      }
      return {false};
    }
    case CelOp::kSize: {
      const Cel a = at(0);
      if (a.text() != nullptr) return {static_cast<int64_t>(a.text()->size())};
      const CelList* list = std::get_if<CelList>(&a.value);
      return list != nullptr ? Cel{static_cast<int64_t>(list->size())} : Cel{};
    }
    case CelOp::kStartsWith:
    case CelOp::kEndsWith:
    case CelOp::kContains:
    case CelOp::kMatches: {
      const Cel a = at(0), b = at(1);
      if (a.text() == nullptr || b.text() == nullptr) return {};
      if (node.op == CelOp::kStartsWith) return {a.text()->starts_with(*b.text())};
      if (node.op == CelOp::kEndsWith) return {a.text()->ends_with(*b.text())};
      if (node.op == CelOp::kContains) return {a.text()->find(*b.text()) != std::string::npos};
      const RE2 pattern(*b.text(), RE2::Quiet);
      return pattern.ok() ? Cel{RE2::PartialMatch(*a.text(), pattern)} : Cel{};
    }
    default: {
      const Cel a = at(0), b = at(1);
      if (a.missing() || b.missing()) return {};
      const std::optional<int> order = CompareCel(a, b);
      if (!order) return {};
      switch (node.op) {
        case CelOp::kEqual:
          return {*order == 0};
        case CelOp::kNotEqual:
          return {*order != 0};
        case CelOp::kLess:
          return {*order < 0};
        case CelOp::kAtMost:
          return {*order <= 0};
        case CelOp::kMore:
          return {*order > 0};
        default:
          return {*order >= 0};
      }
    }
  }
}

// Recursive descent; `failed_` once anything is not of the subset.
class CelParser {
 public:
  explicit CelParser(std::string_view text) : rest_(text) {}

  std::optional<CelNode> Parse() {
    CelNode out = Ternary();
    Space();
    if (failed_ || !rest_.empty()) return std::nullopt;
    return out;
  }

 private:
  void Space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool Take(std::string_view token) {
    Space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void Expect(std::string_view token) { failed_ |= !Take(token); }
  std::string_view Word() {
    Space();
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) != 0 || rest_[n] == '_')) ++n;
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  CelNode Fail() {
    failed_ = true;
    return {};
  }
  static CelNode Make(CelOp op, std::vector<CelNode> of) {
    CelNode out;
    out.op = op;
    out.of = std::move(of);
    return out;
  }

  CelNode Ternary() {
    if (++depth_ > 50) return Fail();
    CelNode out = Either();
    if (!failed_ && Take("?")) {
      CelNode yes = Ternary();
      Expect(":");
      CelNode no = Ternary();
      out = Make(CelOp::kIf, {std::move(out), std::move(yes), std::move(no)});
    }
    --depth_;
    return out;
  }
  CelNode Either() {
    CelNode out = Both();
    while (!failed_ && Take("||")) out = Make(CelOp::kOr, {std::move(out), Both()});
    return out;
  }
  CelNode Both() {
    CelNode out = Relation();
    while (!failed_ && Take("&&")) out = Make(CelOp::kAnd, {std::move(out), Relation()});
    return out;
  }
  CelNode Relation() {
    CelNode out = Unary();
    while (!failed_) {
      static constexpr std::pair<std::string_view, CelOp> kRelations[] = {
          {"==", CelOp::kEqual},   {"!=", CelOp::kNotEqual}, {"<=", CelOp::kAtMost},
          {">=", CelOp::kAtLeast}, {"<", CelOp::kLess},      {">", CelOp::kMore}};
      std::optional<CelOp> op;
      for (const auto& [token, relation] : kRelations) {
        if (!op && Take(token)) op = relation;
      }
      Space();
      if (!op && rest_.starts_with("in") && (rest_.size() == 2 || rest_[2] == ' ' || rest_[2] == '[')) {
        rest_.remove_prefix(2);
        op = CelOp::kIn;
      }
      if (!op) return out;
      out = Make(*op, {std::move(out), Unary()});
    }
    return out;
  }
  CelNode Unary() {
    Space();
    if (!rest_.starts_with("!=") && Take("!")) return Make(CelOp::kNot, {Unary()});
    return Member();
  }

  CelNode Member() {
    CelNode out = Primary();
    while (!failed_) {
      if (Take("[")) {
        const CelNode key = Ternary();
        Expect("]");
        const std::string* text = key.constant.text();
        const bool headers = out.op == CelOp::kAttribute && out.name.ends_with(".headers");
        if (failed_ || !headers || key.op != CelOp::kConstant || text == nullptr) return Fail();
        out.key = *text;
        continue;
      }
      if (!Take(".")) break;
      const std::string word(Word());
      if (Take("(")) {
        static constexpr std::pair<std::string_view, CelOp> kMethods[] = {{"startsWith", CelOp::kStartsWith},
                                                                          {"endsWith", CelOp::kEndsWith},
                                                                          {"contains", CelOp::kContains},
                                                                          {"matches", CelOp::kMatches},
                                                                          {"size", CelOp::kSize}};
        std::optional<CelOp> op;
        for (const auto& [name, method] : kMethods) {
          if (name == word) op = method;
        }
        if (!op) return Fail();
        std::vector<CelNode> of = {std::move(out)};
        if (*op != CelOp::kSize) of.push_back(Ternary());
        Expect(")");
        out = Make(*op, std::move(of));
        continue;
      }
      if (out.op != CelOp::kAttribute || word.empty()) return Fail();
      // request.headers.host is request.headers['host'].
      if (out.name.ends_with(".headers")) {
        if (!out.key.empty()) return Fail();
        out.key = word;
      } else {
        out.name += "." + word;
      }
    }
    if (out.op == CelOp::kAttribute) {
      const bool headers = out.name.ends_with(".headers");
      if (headers == out.key.empty() || !CelAttribute(out.name, out.key, AccessLogEntry{})) return Fail();
    }
    return out;
  }

  CelNode Primary() {
    Space();
    if (rest_.empty()) return Fail();
    const char c = rest_.front();
    if (Take("(")) {
      CelNode out = Ternary();
      Expect(")");
      return out;
    }
    if (Take("[")) {
      CelNode out = Make(CelOp::kList, {});
      while (!failed_ && !Take("]")) {
        if (!out.of.empty()) Expect(",");
        out.of.push_back(Ternary());
      }
      return out;
    }
    if (c == '\'' || c == '"') return Quoted(c);
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') {
      size_t n = 1;
      while (n < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[n])) != 0) ++n;
      int64_t number = 0;
      if (!absl::SimpleAtoi(std::string(rest_.substr(0, n)), &number)) return Fail();
      rest_.remove_prefix(n);
      if (rest_.starts_with('.')) return Fail();  // no fractions here
      CelNode out;
      out.constant = {number};
      return out;
    }
    const std::string_view word = Word();
    if (word == "true" || word == "false") {
      CelNode out;
      out.constant = {word == "true"};
      return out;
    }
    if (word == "has" || word == "size") {
      Expect("(");
      CelNode of = Ternary();
      Expect(")");
      return Make(word == "has" ? CelOp::kHas : CelOp::kSize, {std::move(of)});
    }
    if (word.empty()) return Fail();
    CelNode out;
    out.op = CelOp::kAttribute;
    out.name = word;
    return out;
  }

  CelNode Quoted(char quote) {
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_.front() != quote) {
      if (rest_.front() == '\\') {
        rest_.remove_prefix(1);
        if (rest_.empty()) return Fail();
        const char escaped = rest_.front();
        if (escaped != '\\' && escaped != '\'' && escaped != '"') return Fail();
      }
      text.push_back(rest_.front());
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return Fail();
    rest_.remove_prefix(1);
    CelNode out;
    out.constant = {std::move(text)};
    return out;
  }

  std::string_view rest_;
  int depth_ = 0;
  bool failed_ = false;
};

class ParsedExpression final : public LogExpression {
 public:
  explicit ParsedExpression(CelNode root) : root_(std::move(root)) {}
  bool Holds(const AccessLogEntry& entry) const override {
    const Cel value = EvaluateCel(root_, entry);
    return value.boolean() != nullptr && *value.boolean();
  }

 private:
  CelNode root_;
};

}  // namespace

std::shared_ptr<const LogExpression> LogExpression::Parse(std::string_view text) {
  std::optional<CelNode> root = CelParser(text).Parse();
  if (!root) return nullptr;
  return std::make_shared<const ParsedExpression>(*std::move(root));
}

}  // namespace wavetank::envoysim
