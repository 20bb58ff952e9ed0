#include "core/inject/template/value.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;
using Kind = Value::Kind;

// Fields of Kubernetes' and Istio's structs that are map[string]string.
constexpr std::array<std::string_view, 5> kStringMaps = {"annotations", "labels", "nodeSelector", "proxyMetadata",
                                                         "matchLabels"};

absl::Status Bad(std::string text) { return absl::InvalidArgumentError(text); }

bool Upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

Value InStruct(std::string_view name, const json& found) {
  if (name == "Values") return Value::Plain(found);  // map[string]any of its own
  if (!found.is_object()) return {found, found.is_array() ? Kind::kStruct : Kind::kPlain};
  for (const std::string_view map : kStringMaps) {
    if (map == name) return {found, Kind::kStringMap};
  }
  return {found, Kind::kStruct};
}

// What the kinds of Go are to eq: 's', 'b', 'n' (whole), 'f', or 0 for all that it cannot compare.
char BasicKind(const json& in) {
  if (in.is_string()) return 's';
  if (in.is_boolean()) return 'b';
  if (in.is_number_float()) return 'f';
  return in.is_number() ? 'n' : 0;
}

json ZeroOf(char kind) {
  switch (kind) {
    case 's':
      return "";
    case 'b':
      return false;
    case 'n':
      return 0;
    default:
      return 0.0;
  }
}

// Both of one kind: a field that is not there is the other's zero.
std::pair<json, json> Aligned(const Value& a, const Value& b) {
  if (a.kind == Kind::kZero && b.kind == Kind::kZero) return {"", ""};
  if (a.kind == Kind::kZero) return {ZeroOf(BasicKind(b.json)), b.json};
  if (b.kind == Kind::kZero) return {a.json, ZeroOf(BasicKind(a.json))};
  return {a.json, b.json};
}

}  // namespace

bool IsTrue(const Value& value) {
  const json& in = value.json;
  if (value.kind == Kind::kZero || value.kind == Kind::kNone) return false;
  if (in.is_boolean()) return in.get<bool>();
  if (in.is_number()) return in.get<double>() != 0;
  if (in.is_string()) return !in.get_ref<const std::string&>().empty();
  if (value.kind == Kind::kStruct && in.is_object()) return true;
  return !in.empty();
}

std::string NumberText(const json& number) {
  if (number.is_number_unsigned()) return fmt::format("{}", number.get<uint64_t>());
  if (number.is_number_integer()) return fmt::format("{}", number.get<int64_t>());
  const double value = number.get<double>();
  if (!std::isfinite(value)) return value > 0 ? "+Inf" : value < 0 ? "-Inf" : "NaN";
  // strconv: the shortest digits, with an exponent below -4 and from 6 on.
  const double size = std::fabs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e6)) {
    for (int digits = 0; digits < 17; ++digits) {
      std::string text = fmt::format("{:.{}e}", value, digits);
      double read = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), read).ec == std::errc() && read == value) return text;
    }
  }
  if (value == std::floor(value) && size < 1e6) return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

std::string Print(const Value& value) {
  const json& in = value.json;
  if (value.kind == Kind::kZero) return "";
  if (value.kind == Kind::kNone || in.is_null()) return "<no value>";
  if (in.is_string()) return in.get<std::string>();
  if (in.is_boolean()) return in.get<bool>() ? "true" : "false";
  if (in.is_number()) return NumberText(in);
  std::string out = in.is_object() ? "map[" : "[";
  bool first = true;
  for (const auto& [key, member] : in.items()) {
    if (!std::exchange(first, false)) out += ' ';
    if (in.is_object()) out += key + ":";
    out += member.is_null() ? "<nil>" : Print(ElementOf(value, member));
  }
  return out + "]";
}

std::string JsonName(std::string_view field) {
  std::string out(field);
  size_t upper = 0;
  while (upper < out.size() && Upper(out[upper])) ++upper;
  // Of several capitals the last begins the next word, unless nothing follows.
  const size_t lowered = upper <= 1 || upper == out.size() ? upper : upper - 1;
  for (size_t i = 0; i < lowered; ++i) out[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(out[i])));
  return out;
}

Value ElementOf(const Value& value, const json& element) {
  if (element.is_null()) return Value::None();
  const bool of_struct = value.kind == Kind::kStruct && (element.is_object() || element.is_array());
  return {element, of_struct ? Kind::kStruct : Kind::kPlain};
}

absl::StatusOr<Value> FieldOf(const Value& value, std::string_view name) {
  const json& in = value.json;
  if (value.kind == Kind::kZero) return value;
  if (value.absent()) return Bad(fmt::format("nil pointer evaluating interface {{}}.{}", name));
  if (value.kind == Kind::kStruct && in.is_object()) {
    // The data's own members are named as in Go, others by their JSON names.
    for (const std::string& key : {std::string(name), JsonName(name)}) {
      if (const auto it = in.find(key); it != in.end() && !it->is_null()) return InStruct(key, *it);
    }
    if (name.size() > 3 && name.starts_with("Get") && Upper(name[3])) return FieldOf(value, name.substr(3));
    return Value{nullptr, Kind::kZero};
  }
  // Wrappers and enums: their value is themselves.
  if (name == "GetValue" || name == "String" || name == "Value") return value;
  if (!in.is_object()) {
    const char* type = in.is_string()    ? "string"
                       : in.is_boolean() ? "bool"
                       : in.is_number()  ? "float64"
                                         : "[]interface {}";
    return Bad(fmt::format("can't evaluate field {} in type {}", name, type));
  }
  const auto it = in.find(name);
  if (it != in.end()) return it->is_null() ? Value::None() : Value::Plain(*it);
  return value.kind == Kind::kStringMap ? Value::Plain("") : Value::None();
}

absl::StatusOr<Value> IndexOf(const Value& value, const Value& key) {
  const json& in = value.json;
  if (value.kind == Kind::kZero)
    return key.text() ? Value::Plain("") : absl::StatusOr<Value>(Bad("index out of range: 0"));
  if (value.absent()) return Bad("index of untyped nil");
  if (in.is_object()) {
    if (!key.text()) return Bad("value has type int; should be string");
    const auto it = in.find(key.json.get_ref<const std::string&>());
    if (it != in.end()) return ElementOf(value, *it);
    return value.kind == Kind::kStringMap ? Value::Plain("") : Value::None();
  }
  if (!in.is_array() && !in.is_string()) return Bad("can't index item of such a type");
  if (!key.json.is_number()) return Bad("cannot index slice/array with type string");
  const double at = key.json.get<double>();
  const size_t size = in.is_array() ? in.size() : in.get_ref<const std::string&>().size();
  if (at < 0 || at >= static_cast<double>(size)) return Bad(fmt::format("index out of range: {}", at));
  const auto index = static_cast<size_t>(at);
  if (in.is_string()) return Value::Plain(static_cast<unsigned char>(in.get_ref<const std::string&>()[index]));
  return ElementOf(value, in[index]);
}

absl::StatusOr<bool> Equal(const Value& a, const Value& b) {
  if (a.absent() || b.absent()) return a.absent() && b.absent();
  const auto [left, right] = Aligned(a, b);
  const char kind = BasicKind(left), other = BasicKind(right);
  if (kind == 0 || other == 0) return Bad("non-comparable type");
  if (kind != other) {
    // A number of the template itself is of either kind.
    if ((kind == 'f' || kind == 'n') && (other == 'f' || other == 'n'))
      return left.get<double>() == right.get<double>();
    return Bad("incompatible types for comparison");
  }
  return left == right;
}

absl::StatusOr<int> Compare(const Value& a, const Value& b) {
  const auto [left, right] = Aligned(a, b);
  if (left.is_string() && right.is_string()) {
    return left.get_ref<const std::string&>().compare(right.get_ref<const std::string&>());
  }
  if (!left.is_number() || !right.is_number()) return Bad("incompatible types for comparison");
  const double x = left.get<double>(), y = right.get<double>();
  return x < y ? -1 : x > y ? 1 : 0;
}

json WithWholeNumbers(const json& in) {
  if (in.is_number_float()) {
    const double value = in.get<double>();
    return value == std::floor(value) && std::fabs(value) < 9e15 ? json(static_cast<int64_t>(value)) : in;
  }
  if (!in.is_structured()) return in;
  json out = in;
  for (auto& [key, member] : out.items()) member = WithWholeNumbers(member);
  return out;
}

}  // namespace wavetank::pilot::gotemplate
