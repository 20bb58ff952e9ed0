#include "fakes/kube/http/api/unreadable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// "[]v1.Container": what Go calls a field's type, where the table says no other name. Types of several groups with one
// name have the group before it in the table ("DiscoveryV1EndpointPort"), as in the API's documentation.
std::string GoTypeName(const FieldType& type) {
  switch (type.shape) {
    case FieldShape::kList:
      return "[]" + GoTypeName(*type.of);
    case FieldShape::kMap:
      return "map[string]" + GoTypeName(*type.of);
    case FieldShape::kString:
    case FieldShape::kTime:  // which read themselves, from a text
    case FieldShape::kMicroTime:
      return "string";
    case FieldShape::kInteger:
    case FieldShape::kIntegerOrString:  // reads itself: from a text, else from a number
      return "int32";
    case FieldShape::kNumber:
      return "float64";
    case FieldShape::kBoolean:
      return "bool";
    case FieldShape::kBytes:
      return "[]uint8";
    case FieldShape::kQuantity:
      return "resource.Quantity";
    case FieldShape::kObject:
    case FieldShape::kAnything:
      return "runtime.RawExtension";
    case FieldShape::kType:
      break;
  }
  if (type.name.starts_with("V2")) return "v2." + type.name.substr(2);
  const size_t version = type.name.find("V1");
  const bool prefixed = version != std::string::npos && version > 0;
  return "v1." + (prefixed ? type.name.substr(version + 2) : type.name);
}

std::string_view WithoutPackage(std::string_view go) { return go.substr(go.find('.') + 1); }

// apimachinery: pkg/api/resource, ParseQuantity(). Empty: it is one.
std::string_view QuantityError(std::string_view text) {
  constexpr std::string_view kFormat =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  static constexpr std::string_view kSuffixes[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                                   "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const auto skip = [&](std::string_view among) {
    const size_t end = std::min(text.find_first_not_of(among), text.size());
    const std::string_view skipped = text.substr(0, end);
    text.remove_prefix(end);
    return skipped;
  };
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  const std::string_view digits = skip("0123456789.");
  if (digits.find_first_not_of('.') == std::string_view::npos || std::count(digits.begin(), digits.end(), '.') > 1)
    return kFormat;
  const std::string_view suffix = skip("eEinumkKMGTP");
  const bool sign = !text.empty() && (text.front() == '+' || text.front() == '-');
  if (sign) text.remove_prefix(1);
  const std::string_view exponent = skip("0123456789");
  if (!text.empty()) return kFormat;
  if (!exponent.empty() && (suffix == "e" || suffix == "E")) return {};
  const bool known = std::find(std::begin(kSuffixes), std::end(kSuffixes), suffix) != std::end(kSuffixes);
  return known && exponent.empty() && !sign ? "" : "unable to parse quantity's suffix";
}

// What Go's time.Parse() says of a text in RFC 3339, with a fraction of just six digits where `micro`. Empty: it is a
// time.
class TimeText {
 public:
  TimeText(std::string_view text, bool micro) : text_(text), rest_(text), micro_(micro) {}

  std::string Error() {
    const int year = Digits(4, "2006");
    Literal("-");
    const int month = Digits(2, "01", 1, 12, "month");
    Literal("-");
    const int day = Digits(2, "02", 0, 31, "day");
    Literal("T");
    Digits(2, "15", 0, 23, "hour");
    Literal(":");
    Digits(2, "04", 0, 59, "minute");
    Literal(":");
    Digits(2, "05", 0, 59, "second");
    Fraction();
    Zone();
    if (!error_.empty()) return error_;
    if (!rest_.empty()) return fmt::format("parsing time {}: extra text: {}", Quoted(text_), Quoted(rest_));
    static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    const int days = kDays[month - 1] + (month == 2 && leap ? 1 : 0);
    return day < 1 || day > days ? OutOfRange("day") : "";
  }

 private:
  static std::string Quoted(std::string_view text) { return JsonText(json(std::string(text))); }
  std::string OutOfRange(std::string_view what) const {
    return fmt::format("parsing time {}: {} out of range", Quoted(text_), what);
  }
  void Bad(std::string_view element) {
    if (!error_.empty()) return;
    error_ = fmt::format("parsing time {} as \"2006-01-02T15:04:05{}Z07:00\": cannot parse {} as {}", Quoted(text_),
                         micro_ ? ".000000" : "", Quoted(rest_), Quoted(element));
  }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  bool AllDigits(size_t from, size_t count) const {
    return rest_.size() >= from + count && std::all_of(rest_.begin() + static_cast<ptrdiff_t>(from),
                                                       rest_.begin() + static_cast<ptrdiff_t>(from + count), IsDigit);
  }
  int Digits(size_t count, std::string_view element, int least = 0, int most = 9999, std::string_view what = {}) {
    if (!error_.empty()) return 1;
    if (!AllDigits(0, count)) {
      Bad(element);
      return 1;
    }
    int value = 0;
    for (const char c : rest_.substr(0, count)) value = value * 10 + (c - '0');
    rest_.remove_prefix(count);
    if (value < least || value > most) {
      error_ = OutOfRange(what);
      return 1;
    }
    return value;
  }
  void Literal(std::string_view element) {
    if (!error_.empty()) return;
    if (!rest_.starts_with(element)) return Bad(element);
    rest_.remove_prefix(element.size());
  }
  // Where the layout has no fraction, one of any length is taken (time: format.go, Parse()).
  void Fraction() {
    if (!error_.empty()) return;
    if (micro_) {
      if (!rest_.starts_with(".") || !AllDigits(1, 6)) return Bad(".000000");
      rest_.remove_prefix(7);
      return;
    }
    if ((!rest_.starts_with(".") && !rest_.starts_with(",")) || !AllDigits(1, 1)) return;
    rest_.remove_prefix(1);
    while (!rest_.empty() && IsDigit(rest_.front())) rest_.remove_prefix(1);
  }
  void Zone() {
    if (!error_.empty()) return;
    if (rest_.starts_with("Z")) {
      rest_.remove_prefix(1);
      return;
    }
    const bool sign = rest_.starts_with("+") || rest_.starts_with("-");
    if (!sign || !AllDigits(1, 2) || rest_.substr(3, 1) != ":" || !AllDigits(4, 2)) return Bad("Z07:00");
    rest_.remove_prefix(6);
  }

  const std::string_view text_;
  std::string_view rest_;
  const bool micro_;
  std::string error_;
};

// The byte of which Go's base64.StdEncoding complains (encoding/base64, decodeQuantum()). Nullopt: it is base64.
std::optional<size_t> Base64Error(std::string_view text) {
  size_t at = 0;
  const auto line_breaks = [&] {
    while (at < text.size() && (text[at] == '\n' || text[at] == '\r')) ++at;
  };
  const auto is_data = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  };
  for (size_t in_group = 0;;) {
    line_breaks();
    if (at == text.size()) return in_group == 0 ? std::nullopt : std::optional(at - in_group);
    const char c = text[at++];
    if (is_data(c)) {
      in_group = (in_group + 1) % 4;
      continue;
    }
    if (c != '=' || in_group < 2) return at - 1;
    if (in_group == 2) {
      line_breaks();
      if (at == text.size()) return text.size();
      if (text[at] != '=') return at - 1;
      ++at;
    }
    line_breaks();
    return at < text.size() ? std::optional(at) : std::nullopt;
  }
}

bool FitsInto(const json& value, std::string_view go) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) return false;
  if (go == "int64") return true;
  const auto number = value.get<int64_t>();
  return number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max();
}

class Reading {
 public:
  enum class By : uint8_t { kDecoder, kConverter };
  explicit Reading(By by) : by_(by) {}

  // `owner`: the struct that the field is of, "" at the root. `go`: what Go calls its type, "" as the shape says.
  void Read(std::string_view owner, const std::string& path, const FieldType& type, std::string_view named,
            const json& value) {
    if (done_ || value.is_null()) return;
    if (type.or_anything) return ReadByItself(owner, path, type, value);
    const std::string go = named.empty() ? GoTypeName(type) : std::string(named);
    switch (type.shape) {
      case FieldShape::kObject:
      case FieldShape::kAnything:
        return;
      case FieldShape::kQuantity:
        return Fail(std::string(QuantityError(value.is_string()   ? value.get_ref<const std::string&>()
                                              : value.is_number() ? JsonText(value)
                                                                  : "x")));
      case FieldShape::kTime:
      case FieldShape::kMicroTime:
        if (!value.is_string()) return FailToReadItself(owner, path, value, "string");
        return Fail(TimeText(value.get_ref<const std::string&>(), type.shape == FieldShape::kMicroTime).Error());
      case FieldShape::kIntegerOrString:
        if (!value.is_string() && !FitsInto(value, "int32")) FailToReadItself(owner, path, value, "int32");
        return;
      case FieldShape::kString:
        if (!value.is_string()) Mismatch(owner, path, type, go, value);
        return;
      case FieldShape::kBoolean:
        if (!value.is_boolean()) Mismatch(owner, path, type, go, value);
        return;
      case FieldShape::kNumber:
        if (!value.is_number()) Mismatch(owner, path, type, go, value);
        return;
      case FieldShape::kInteger:
        if (!FitsInto(value, go)) Mismatch(owner, path, type, go, value);
        return;
      case FieldShape::kBytes:
        return ReadBytes(owner, path, type, go, value);
      case FieldShape::kList:
      case FieldShape::kMap:
        if (type.shape == FieldShape::kList ? !value.is_array() : !value.is_object())
          return Mismatch(owner, path, type, go, value);
        for (const json& item : value) Read(owner, path, *type.of, InnerName(go, type), item);
        return;
      case FieldShape::kType:
        if (!value.is_object()) return Mismatch(owner, path, type, go, value);
        return ReadFields(path, type.name, value);
    }
  }

  std::string Error() const { return error_; }

 private:
  // "[]v1.Capability" holds v1.Capability; of a list or mapping with a name of its own ("v1.ResourceList") nothing is
  // known by that.
  static std::string_view InnerName(std::string_view go, const FieldType& type) {
    const std::string_view begin = type.shape == FieldShape::kList ? "[]" : "map[string]";
    return go.starts_with(begin) ? go.substr(begin.size()) : std::string_view();
  }

  void ReadFields(const std::string& path, const std::string& type_name, const json& value) {
    const ApiType* type = FindApiType(type_name);
    if (type == nullptr) return;
    FieldType self;
    self.shape = FieldShape::kType;
    self.name = type_name;
    const std::string go = GoTypeName(self);
    for (const auto& [key, item] : value.items()) {
      if (done_) return;
      const ApiField* field = type->Find(key);
      if (field == nullptr) continue;
      Read(WithoutPackage(go), path.empty() ? key : path + "." + key, field->type, field->go, item);
    }
  }

  // A schema, or something else, reads what it is from its own text: who asked for it adds where it stands.
  void ReadByItself(std::string_view owner, const std::string& path, const FieldType& type, const json& value) {
    if (!value.is_object() || type.shape != FieldShape::kType) return;
    Reading inner(By::kDecoder);
    inner.ReadFields("", type.name, value);
    if (inner.error_.empty()) return;
    Fail(inner.type_.empty() || by_ == By::kConverter ? inner.error_ : Words(owner, path, inner.found_, inner.type_));
  }

  void ReadBytes(std::string_view owner, const std::string& path, const FieldType& type, const std::string& go,
                 const json& value) {
    if (value.is_array()) {
      FieldType byte;
      byte.shape = FieldShape::kInteger;
      for (const json& item : value) {
        if (!item.is_number_integer()) return Mismatch(owner, path, byte, "uint8", item);
      }
      return;
    }
    if (!value.is_string()) return Mismatch(owner, path, type, go, value);
    const std::optional<size_t> wrong = Base64Error(value.get_ref<const std::string&>());
    if (!wrong) return;
    std::string words = fmt::format("illegal base64 data at input byte {}", *wrong);
    if (by_ == By::kConverter) return Fail("error decoding from json: " + words);
    if (error_.empty()) error_ = std::move(words);
  }

  static std::string Found(const json& value, bool for_integer) {
    if (value.is_boolean()) return "bool";
    if (value.is_number() && for_integer) return "number " + JsonText(value);
    return value.type_name();
  }
  static std::string Words(std::string_view owner, std::string_view path, std::string_view found,
                           std::string_view type) {
    if (owner.empty()) return fmt::format("json: cannot unmarshal {} into Go value of type {}", found, type);
    return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", found, owner, path, type);
  }

  void FailToReadItself(std::string_view owner, std::string_view path, const json& value, std::string_view type) {
    Fail(Words(by_ == By::kConverter ? std::string_view() : owner, path, Found(value, type == "int32"), type));
  }

  // encoding/json remembers the first and reads on; the converter ends.
  void Mismatch(std::string_view owner, std::string_view path, const FieldType& type, const std::string& go,
                const json& value) {
    if (by_ == By::kConverter) return Fail(Converted(type, go, value));
    if (!error_.empty()) return;
    found_ = Found(value, type.shape == FieldShape::kInteger);
    type_ = go;
    error_ = Words(owner, path, found_, type_);
  }

  // apimachinery: pkg/runtime/converter.go: what Go converts by itself (a number into a text) is refused by name, what
  // it does not as "unrecognized". "": it is taken.
  static std::string Converted(const FieldType& type, const std::string& go, const json& value) {
    const std::string kind = value.is_number_float()     ? "float64"
                             : value.is_number_integer() ? "int64"
                             : value.is_array()          ? "slice"
                             : value.is_object()         ? "map"
                             : value.is_boolean()        ? "bool"
                                                         : "string";
    switch (type.shape) {
      case FieldShape::kMap:
        return "cannot restore map from " + kind;
      case FieldShape::kList:
      case FieldShape::kBytes:
        return "cannot restore slice from " + kind;
      case FieldShape::kType:
        return "cannot restore struct from: " + kind;
      case FieldShape::kInteger:
        if (kind == "int64") return {};  // it is cut
        if (kind != "float64") return "unrecognized type: " + go;
        return value.get<double>() == std::trunc(value.get<double>()) ? "" : "cannot convert float64 to " + go;
      case FieldShape::kString:
        return kind == "int64" ? "cannot convert int64 to " + go : "unrecognized type: string";
      default:
        return "unrecognized type: " + go;
    }
  }

  // What a type says that reads itself ends the reading.
  void Fail(std::string words) {
    if (words.empty()) return;
    error_ = std::move(words);
    type_.clear();
    done_ = true;
  }

  const By by_;
  bool done_ = false;
  std::string error_, found_, type_;
};

FieldType TypeNamed(std::string_view name) {
  FieldType type;
  type.shape = FieldShape::kType;
  type.name = name;
  return type;
}

}  // namespace

std::string UnreadableField(const ApiType& type, const json& body) {
  Reading reading(Reading::By::kDecoder);
  reading.Read("", "", TypeNamed(type.name), "", body);
  return reading.Error();
}

std::string UnreadableMetadata(const json& metadata) {
  Reading reading(Reading::By::kDecoder);
  reading.Read("", "", TypeNamed("ObjectMeta"), "", metadata);
  return reading.Error();
}

std::string UnconvertibleField(const ApiType& type, const json& body) {
  Reading reading(Reading::By::kConverter);
  reading.Read("", "", TypeNamed(type.name), "", body);
  return reading.Error();
}

std::string UnreadableKind(const json& body) {
  const std::string begin = "couldn't get version/kind; json parse error: json: cannot unmarshal ";
  const auto found = [](const json& value) { return value.is_boolean() ? std::string("bool") : value.type_name(); };
  if (body.is_null()) return {};
  if (!body.is_object()) {
    return begin + found(body) +
           " into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
           "\"json:\\\"kind,omitempty\\\"\" }";
  }
  for (const char* field : {"apiVersion", "kind"}) {
    const json& value = At(body, field);
    if (value.is_null() || value.is_string()) continue;
    return fmt::format("{}{} into Go struct field .{} of type string", begin, found(value), field);
  }
  return {};
}

}  // namespace wavetank::fakekube::http
