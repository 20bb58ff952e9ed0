// Sprig's functions of texts, numbers and defaults (Masterminds/sprig v3: strings.go, numeric.go, defaults.go).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/inject/template/arguments.h"
#include "core/inject/template/go_template.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

std::string Trimmed(std::string_view text, std::string_view set) {
  const size_t begin = text.find_first_not_of(set);
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(set) - begin + 1));
}

std::string Indented(int64_t spaces, const std::string& text) {
  const std::string pad(static_cast<size_t>(std::clamp<int64_t>(spaces, 0, 1000)), ' ');
  return pad + absl::StrReplaceAll(text, {{"\n", "\n" + pad}});
}

std::string Part(const std::string& text, int64_t from, int64_t to) {
  const auto size = static_cast<int64_t>(text.size());
  if (from < 0) from = 0;
  if (to < 0 || to > size) to = size;
  return from >= to ? "" : text.substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
}

std::string Repeated(int64_t count, const std::string& text) {
  std::string out;
  // Beyond what any template may come to it ends.
  for (int64_t i = 0; i < count && !text.empty() && out.size() <= GoTemplate::kMaxOutput; ++i) out += text;
  return out;
}

std::string TitleCase(std::string text) {
  bool begins = true;
  for (char& c : text) {
    if (begins) c = absl::ascii_toupper(static_cast<unsigned char>(c));
    begins = std::isspace(static_cast<unsigned char>(c)) != 0;
  }
  return text;
}

void AddTexts(GoTemplate::Functions& out) {
  static constexpr std::string_view kBlanks = " \t\r\n\v\f";
  out["trim"] = OfTexts(1, [](const Texts& in) { return Trimmed(in[0], kBlanks); });
  out["trimAll"] = OfTexts(2, [](const Texts& in) { return Trimmed(in[1], in[0]); });
  out["trimPrefix"] =
      OfTexts(2, [](const Texts& in) { return in[1].starts_with(in[0]) ? in[1].substr(in[0].size()) : in[1]; });
  out["trimSuffix"] = OfTexts(
      2, [](const Texts& in) { return in[1].ends_with(in[0]) ? in[1].substr(0, in[1].size() - in[0].size()) : in[1]; });
  out["upper"] = OfTexts(1, [](const Texts& in) { return absl::AsciiStrToUpper(in[0]); });
  out["lower"] = OfTexts(1, [](const Texts& in) { return absl::AsciiStrToLower(in[0]); });
  out["title"] = OfTexts(1, [](const Texts& in) { return TitleCase(in[0]); });
  out["contains"] = OfTexts(2, [](const Texts& in) { return in[1].find(in[0]) != std::string::npos; });
  out["hasPrefix"] = OfTexts(2, [](const Texts& in) { return in[1].starts_with(in[0]); });
  out["hasSuffix"] = OfTexts(2, [](const Texts& in) { return in[1].ends_with(in[0]); });
  out["replace"] = OfTexts(3, [](const Texts& in) {
    return in[0].empty() ? in[2] : absl::StrReplaceAll(in[2], {{in[0], in[1]}});
  });
  out["nospace"] = OfTexts(1, [](const Texts& in) {
    std::string text = in[0];
    std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
    return text;
  });
  const auto indent = [](bool new_line) {
    return Exactly(2, [new_line](const Arguments& in) {
      return Value::Plain((new_line ? "\n" : "") + Indented(WholeOf(in[0]), Print(in[1])));
    });
  };
  out["indent"] = indent(false);
  out["nindent"] = indent(true);
  out["repeat"] = Exactly(2, [](const Arguments& in) { return Value::Plain(Repeated(WholeOf(in[0]), Print(in[1]))); });
  out["trunc"] = Exactly(2, [](const Arguments& in) {
    const int64_t length = WholeOf(in[0]);
    const std::string text = Print(in[1]);
    const auto size = static_cast<int64_t>(text.size());
    return Value::Plain(length >= 0 ? Part(text, 0, length) : Part(text, std::max<int64_t>(0, size + length), size));
  });
  out["substr"] =
      Exactly(3, [](const Arguments& in) { return Value::Plain(Part(Print(in[2]), WholeOf(in[0]), WholeOf(in[1]))); });
  out["b64enc"] = OfTexts(1, [](const Texts& in) { return absl::Base64Escape(in[0]); });
  out["b64dec"] = OfTexts(1, [](const Texts& in) {
    std::string text;
    return absl::Base64Unescape(in[0], &text) ? text : std::string("illegal base64 data");
  });
  out["sha256sum"] = OfTexts(1, [](const Texts& in) {
    std::string hex;
    for (const uint8_t byte : x509::Sha256(in[0])) hex += fmt::format("{:02x}", byte);
    return hex;
  });
}

void AddQuotes(GoTemplate::Functions& out) {
  // Both leave out what is not there.
  const auto quoted = [](std::string (*quote)(const std::string&)) {
    return AtLeast(0, [quote](const Arguments& in) {
      Texts parts;
      for (const Value& each : in) {
        if (!each.absent()) parts.push_back(quote(Print(each)));
      }
      return Value::Plain(absl::StrJoin(parts, " "));
    });
  };
  out["quote"] = quoted([](const std::string& text) { return QuotedText(text); });
  out["squote"] = quoted([](const std::string& text) { return "'" + text + "'"; });
  out["cat"] = AtLeast(0, [](const Arguments& in) {
    Texts parts;
    for (const Value& each : in) {
      if (!each.absent()) parts.push_back(Print(each));
    }
    return Value::Plain(absl::StrJoin(parts, " "));
  });
  out["toString"] = OfTexts(1, [](const Texts& in) { return in[0]; });
  out["split"] = OfTexts(2, [](const Texts& in) {
    json parts = json::object();
    size_t i = 0;
    for (const std::string& part : Texts(absl::StrSplit(in[1], in[0]))) parts[fmt::format("_{}", i++)] = part;
    return parts;
  });
  out["splitList"] = OfTexts(2, [](const Texts& in) { return json(Texts(absl::StrSplit(in[1], in[0]))); });
  out["join"] = Exactly(2, [](const Arguments& in) {
    if (!in[1].json.is_array()) return Value::Plain(Print(in[1]));
    Texts parts;
    for (const json& each : in[1].json) {
      if (!each.is_null()) parts.push_back(Print(ElementOf(in[1], each)));
    }
    return Value::Plain(absl::StrJoin(parts, Print(in[0])));
  });
}

void AddDefaults(GoTemplate::Functions& out) {
  out["default"] = Between(1, 2, [](const Arguments& in) { return in.size() == 2 && IsTrue(in[1]) ? in[1] : in[0]; });
  out["empty"] = Exactly(1, [](const Arguments& in) { return Value::Plain(!IsTrue(in[0])); });
  out["coalesce"] = AtLeast(0, [](const Arguments& in) {
    for (const Value& each : in) {
      if (IsTrue(each)) return each;
    }
    return Value::None();
  });
  out["ternary"] = Exactly(3, [](const Arguments& in) { return IsTrue(in[2]) ? in[0] : in[1]; });
  out["fail"] = Exactly(1, [](const Arguments& in) -> absl::StatusOr<Value> { return BadArgument(Print(in[0])); });
  const auto to_json = [](int indent) {
    return Exactly(
        1, [indent](const Arguments& in) { return Value::Plain(JsonText(WithWholeNumbers(in[0].json), indent)); });
  };
  out["toJson"] = to_json(-1);
  out["toRawJson"] = to_json(-1);
  out["toPrettyJson"] = to_json(2);
  out["fromJson"] = Exactly(1, [](const Arguments& in) {
    json value = ParseJson(Print(in[0]));
    return value.is_discarded() ? Value::None() : Value::Plain(std::move(value));
  });
  const auto kind = [](const Value& value) -> std::string {
    if (value.absent()) return "invalid";
    if (value.text() || value.kind == Value::Kind::kZero) return "string";
    if (value.json.is_boolean()) return "bool";
    if (value.json.is_number_float()) return "float64";
    if (value.json.is_number()) return "int";
    return value.json.is_array() ? "slice" : value.kind == Value::Kind::kStruct ? "struct" : "map";
  };
  out["kindOf"] = Exactly(1, [kind](const Arguments& in) { return Value::Plain(kind(in[0])); });
  out["kindIs"] = Exactly(2, [kind](const Arguments& in) { return Value::Plain(kind(in[1]) == Print(in[0])); });
}

void AddNumbers(GoTemplate::Functions& out) {
  const auto whole = [](int64_t (*fn)(int64_t, int64_t)) {
    return AtLeast(1, [fn](const Arguments& in) {
      int64_t value = WholeOf(in[0]);
      for (size_t i = 1; i < in.size(); ++i) value = fn(value, WholeOf(in[i]));
      return Value::Plain(value);
    });
  };
  // As Go's: what overflows turns over.
  out["add"] = whole(
      [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
  out["sub"] = whole(
      [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); });
  out["mul"] = whole(
      [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); });
  out["max"] = whole([](int64_t a, int64_t b) { return std::max(a, b); });
  out["min"] = whole([](int64_t a, int64_t b) { return std::min(a, b); });
  out["add1"] = Exactly(1, [](const Arguments& in) {
    return Value::Plain(static_cast<int64_t>(static_cast<uint64_t>(WholeOf(in[0])) + 1));
  });
  const auto divided = [](bool rest) {
    return Exactly(2, [rest](const Arguments& in) -> absl::StatusOr<Value> {
      const int64_t a = WholeOf(in[0]), b = WholeOf(in[1]);
      if (b == 0) return BadArgument("runtime error: integer divide by zero");
      if (b == -1) return Value::Plain(rest ? 0 : static_cast<int64_t>(0 - static_cast<uint64_t>(a)));
      return Value::Plain(rest ? a % b : a / b);
    });
  };
  out["div"] = divided(false);
  out["mod"] = divided(true);
  for (const char* name : {"int", "int64", "atoi"}) {
    out[name] = Exactly(1, [](const Arguments& in) { return Value::Plain(WholeOf(in[0])); });
  }
  out["float64"] = Exactly(1, [](const Arguments& in) { return Value::Plain(RealOf(in[0])); });
  out["ceil"] = Exactly(1, [](const Arguments& in) { return Value::Plain(std::ceil(RealOf(in[0]))); });
  out["floor"] = Exactly(1, [](const Arguments& in) { return Value::Plain(std::floor(RealOf(in[0]))); });
}

}  // namespace

GoTemplate::Functions SprigFunctions() {
  GoTemplate::Functions out;
  AddTexts(out);
  AddQuotes(out);
  AddDefaults(out);
  AddNumbers(out);
  return out;
}

}  // namespace wavetank::pilot::gotemplate
