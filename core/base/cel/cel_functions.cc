#include "core/base/cel/cel_functions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/cel/cel_format.h"
#include "core/base/cel/cel_formats.h"
#include "core/base/cel/cel_objects.h"
#include "core/base/cel/cel_optional.h"
#include "core/base/ip.h"
#include "core/base/text/go_url.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::cel {
namespace {

constexpr CelFunction OfFormat(CelFormatKind kind) {
  return static_cast<CelFunction>(static_cast<int>(CelFunction::kFirstFormat) + static_cast<int>(kind));
}

// Envoy's cel-cpp has no string(), and nothing of the extensions but regular expressions.
constexpr FunctionRow kFunctions[] = {
    {"!", CelFunction::kNot, 1, 1, true, false},
    {"-", CelFunction::kNegate, 1, 1, true, false},
    {"+", CelFunction::kAdd, 2, 2, true, false},
    {"-", CelFunction::kSubtract, 2, 2, true, false},
    {"*", CelFunction::kMultiply, 2, 2, true, false},
    {"/", CelFunction::kDivide, 2, 2, true, false},
    {"%", CelFunction::kModulo, 2, 2, true, false},
    {"==", CelFunction::kEqual, 2, 2, true, false},
    {"!=", CelFunction::kNotEqual, 2, 2, true, false},
    {"<", CelFunction::kLess, 2, 2, true, false},
    {"<=", CelFunction::kAtMost, 2, 2, true, false},
    {">", CelFunction::kMore, 2, 2, true, false},
    {">=", CelFunction::kAtLeast, 2, 2, true, false},
    {"in", CelFunction::kIn, 2, 2, true, false},
    {"[]", CelFunction::kIndex, 2, 2, true, false},
    {"&&", CelFunction::kAnd, 2, 2, true, false},
    {"||", CelFunction::kOr, 2, 2, true, false},
    {"?:", CelFunction::kIf, 3, 3, true, false},
    {"size", CelFunction::kSize, 1, 1, true, true},
    {"startsWith", CelFunction::kStartsWith, 2, 2, true, true},
    {"endsWith", CelFunction::kEndsWith, 2, 2, true, true},
    {"contains", CelFunction::kContains, 2, 2, true, true},
    {"matches", CelFunction::kMatches, 2, 2, true, true},
    {"int", CelFunction::kToInt, 1, 1, true, false},
    {"uint", CelFunction::kToUint, 1, 1, true, false},
    {"double", CelFunction::kToDouble, 1, 1, true, false},
    {"bytes", CelFunction::kToBytes, 1, 1, true, false},
    {"duration", CelFunction::kToDuration, 1, 1, true, false},
    {"timestamp", CelFunction::kToTimestamp, 1, 1, true, false},
    {"dyn", CelFunction::kDyn, 1, 1, true, false},
    {"type", CelFunction::kType, 1, 1, true, false},
    {"getFullYear", CelFunction::kFullYear, 1, 2, false, true},
    {"getMonth", CelFunction::kMonth, 1, 2, false, true},
    {"getDate", CelFunction::kDate, 1, 2, false, true},
    {"getDayOfMonth", CelFunction::kDayOfMonth, 1, 2, false, true},
    {"getDayOfWeek", CelFunction::kDayOfWeek, 1, 2, false, true},
    {"getDayOfYear", CelFunction::kDayOfYear, 1, 2, false, true},
    {"getHours", CelFunction::kHours, 1, 2, false, true},
    {"getMinutes", CelFunction::kMinutes, 1, 2, false, true},
    {"getSeconds", CelFunction::kSeconds, 1, 2, false, true},
    {"getMilliseconds", CelFunction::kMilliseconds, 1, 2, false, true},
    // re.extract(...) and its like: known, and worth nothing here.
    {"extract", CelFunction::kRegex, 4, 4, false, true, FunctionRow::In::kEnvoy},
    {"captureN", CelFunction::kRegex, 3, 3, false, true, FunctionRow::In::kEnvoy},
    {"capture", CelFunction::kRegex, 3, 3, false, true, FunctionRow::In::kEnvoy},
    {"string", CelFunction::kToText, 1, 1, true, false, FunctionRow::In::kTexts},
    {"charAt", CelFunction::kCharAt, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"indexOf", CelFunction::kIndexOf, 2, 3, false, true, FunctionRow::In::kLibrary},
    {"lastIndexOf", CelFunction::kLastIndexOf, 2, 3, false, true, FunctionRow::In::kLibrary},
    {"lowerAscii", CelFunction::kLower, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"upperAscii", CelFunction::kUpper, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"replace", CelFunction::kReplace, 3, 4, false, true, FunctionRow::In::kLibrary},
    {"split", CelFunction::kSplit, 2, 3, false, true, FunctionRow::In::kLibrary},
    {"substring", CelFunction::kSubstring, 2, 3, false, true, FunctionRow::In::kLibrary},
    {"trim", CelFunction::kTrim, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"join", CelFunction::kJoin, 1, 2, false, true, FunctionRow::In::kLibrary},
    {"find", CelFunction::kFind, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"findAll", CelFunction::kFindAll, 2, 3, false, true, FunctionRow::In::kLibrary},
    {"isSorted", CelFunction::kIsSorted, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"sum", CelFunction::kSum, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"min", CelFunction::kMin, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"max", CelFunction::kMax, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isURL", CelFunction::kIsUrl, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"url", CelFunction::kUrl, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"getScheme", CelFunction::kScheme, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"getHost", CelFunction::kHost, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"getHostname", CelFunction::kHostname, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"getPort", CelFunction::kPort, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"getEscapedPath", CelFunction::kEscapedPath, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isIP", CelFunction::kIsIp, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"isCIDR", CelFunction::kIsCidr, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"isQuantity", CelFunction::kIsQuantity, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"quantity", CelFunction::kQuantity, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"isInteger", CelFunction::kIsInteger, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"asInteger", CelFunction::kAsInteger, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"asApproximateFloat", CelFunction::kAsFloat, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"sign", CelFunction::kSignOf, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"add", CelFunction::kPlus, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"sub", CelFunction::kMinus, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"isLessThan", CelFunction::kIsLess, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"isGreaterThan", CelFunction::kIsGreater, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"compareTo", CelFunction::kCompareTo, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"ip", CelFunction::kIp, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"family", CelFunction::kFamily, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isUnspecified", CelFunction::kIsUnspecified, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isLoopback", CelFunction::kIsLoopback, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isLinkLocalMulticast", CelFunction::kIsLinkLocalMulticast, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isLinkLocalUnicast", CelFunction::kIsLinkLocalUnicast, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"isGlobalUnicast", CelFunction::kIsGlobalUnicast, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"cidr", CelFunction::kCidr, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"containsIP", CelFunction::kContainsIp, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"containsCIDR", CelFunction::kContainsCidr, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"ip", CelFunction::kIpOfCidr, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"masked", CelFunction::kMasked, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"prefixLength", CelFunction::kPrefixLength, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"ip.isCanonical", CelFunction::kIsCanonical, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"?.", CelFunction::kSelectOptional, 2, 2, true, false, FunctionRow::In::kLibrary},
    {"[?]", CelFunction::kIndexOptional, 2, 2, true, false, FunctionRow::In::kLibrary},
    {"?", CelFunction::kOptionalPart, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"optional.of", CelFunction::kOptionalOf, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"optional.ofNonZeroValue", CelFunction::kOptionalOfNonZero, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"optional.none", CelFunction::kOptionalNone, 0, 0, true, false, FunctionRow::In::kLibrary},
    {"hasValue", CelFunction::kHasValue, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"value", CelFunction::kValue, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"or", CelFunction::kOrOptional, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"orValue", CelFunction::kOrValue, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"format", CelFunction::kFormat, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"sets.contains", CelFunction::kSetContains, 2, 2, true, false, FunctionRow::In::kLibrary},
    {"sets.equivalent", CelFunction::kSetEquals, 2, 2, true, false, FunctionRow::In::kLibrary},
    {"sets.intersects", CelFunction::kSetMeets, 2, 2, true, false, FunctionRow::In::kLibrary},
    {"strings.quote", CelFunction::kQuote, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"isSemver", CelFunction::kIsSemver, 1, 2, true, false, FunctionRow::In::kLibrary},
    {"semver", CelFunction::kSemver, 1, 2, true, false, FunctionRow::In::kLibrary},
    {"major", CelFunction::kMajor, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"minor", CelFunction::kMinor, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"patch", CelFunction::kPatch, 1, 1, false, true, FunctionRow::In::kLibrary},
    {"format.named", CelFunction::kNamedFormat, 1, 1, true, false, FunctionRow::In::kLibrary},
    {"validate", CelFunction::kValidate, 2, 2, false, true, FunctionRow::In::kLibrary},
    {"format.dns1123Label", OfFormat(CelFormatKind::kDns1123Label), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.dns1123Subdomain", OfFormat(CelFormatKind::kDns1123Subdomain), 0, 0, true, false,
     FunctionRow::In::kLibrary},
    {"format.dns1035Label", OfFormat(CelFormatKind::kDns1035Label), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.qualifiedName", OfFormat(CelFormatKind::kQualifiedName), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.dns1123LabelPrefix", OfFormat(CelFormatKind::kDns1123LabelPrefix), 0, 0, true, false,
     FunctionRow::In::kLibrary},
    {"format.dns1123SubdomainPrefix", OfFormat(CelFormatKind::kDns1123SubdomainPrefix), 0, 0, true, false,
     FunctionRow::In::kLibrary},
    {"format.dns1035LabelPrefix", OfFormat(CelFormatKind::kDns1035LabelPrefix), 0, 0, true, false,
     FunctionRow::In::kLibrary},
    {"format.labelValue", OfFormat(CelFormatKind::kLabelValue), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.uri", OfFormat(CelFormatKind::kUri), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.uuid", OfFormat(CelFormatKind::kUuid), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.byte", OfFormat(CelFormatKind::kByte), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.date", OfFormat(CelFormatKind::kDate), 0, 0, true, false, FunctionRow::In::kLibrary},
    {"format.datetime", OfFormat(CelFormatKind::kDateTime), 0, 0, true, false, FunctionRow::In::kLibrary},
};

constexpr std::string_view kTypes[] = {"int",   "uint", "double", "bool",      "string",
                                       "bytes", "list", "map",    "null_type", "type"};

// <0, 0, >0 of two numbers, whatever their types; nothing: one is none, or is not a number (NaN).
std::optional<int> CompareNumbers(const CelValue& a, const CelValue& b) {
  const auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  const auto* const ai = a.As<int64_t>();
  const auto* const bi = b.As<int64_t>();
  const auto* const au = a.As<uint64_t>();
  const auto* const bu = b.As<uint64_t>();
  if (ai != nullptr && bi != nullptr) return order(*ai, *bi);
  if (au != nullptr && bu != nullptr) return order(*au, *bu);
  if (ai != nullptr && bu != nullptr) return *ai < 0 ? -1 : order(static_cast<uint64_t>(*ai), *bu);
  if (au != nullptr && bi != nullptr) return *bi < 0 ? 1 : order(*au, static_cast<uint64_t>(*bi));
  const auto as_double = [](const CelValue& v) -> std::optional<double> {
    if (const double* d = v.As<double>()) return *d;
    if (const int64_t* i = v.As<int64_t>()) return static_cast<double>(*i);
    if (const uint64_t* u = v.As<uint64_t>()) return static_cast<double>(*u);
    return std::nullopt;
  };
  const std::optional<double> x = as_double(a), y = as_double(b);
  if (!x || !y || std::isnan(*x) || std::isnan(*y)) return std::nullopt;
  return order(*x, *y);
}

template <class T>
std::optional<int> CompareAs(const CelValue& a, const CelValue& b) {
  const T* const x = a.As<T>();
  const T* const y = b.As<T>();
  if (x == nullptr || y == nullptr) return std::nullopt;
  return *x < *y ? -1 : *y < *x ? 1 : 0;
}

// Nothing: these two have no order.
std::optional<int> CompareValues(const CelValue& a, const CelValue& b) {
  if (std::optional<int> out = CompareNumbers(a, b)) return out;
  if (std::optional<int> out = CompareAs<std::string>(a, b)) return out;
  if (std::optional<int> out = CompareAs<bool>(a, b)) return out;
  if (std::optional<int> out = CompareAs<absl::Duration>(a, b)) return out;
  if (std::optional<int> out = CompareAs<absl::Time>(a, b)) return out;
  const auto* const x = a.As<CelBytes>();
  const auto* const y = b.As<CelBytes>();
  if (x != nullptr && y != nullptr) return x->bytes.compare(y->bytes);
  return std::nullopt;
}

// A map that an expression writes down.
class WrittenMap final : public CelMap {
 public:
  explicit WrittenMap(std::vector<std::pair<CelValue, CelValue>> entries) : entries_(std::move(entries)) {}
  CelValue Get(const CelValue& key) const override {
    for (const auto& [known, value] : entries_) {
      if (CompareValues(known, key) == 0) return value;
    }
    return CelNoSuchKey(key.As<std::string>() != nullptr ? *key.As<std::string>() : "");
  }
  std::optional<int64_t> size() const override { return static_cast<int64_t>(entries_.size()); }
  std::vector<CelValue> Keys() const override {
    std::vector<CelValue> out;
    for (const auto& [key, value] : entries_) out.push_back(key);
    return out;
  }

 private:
  std::vector<std::pair<CelValue, CelValue>> entries_;
};

// Of two whole numbers of one type; `what`: its name.
template <class Whole>
CelValue WholeArithmetic(CelFunction function, Whole x, Whole y, std::string_view what) {
  Whole out = 0;
  bool over = false;
  switch (function) {
    case CelFunction::kAdd:
      over = __builtin_add_overflow(x, y, &out);
      break;
    case CelFunction::kSubtract:
      over = __builtin_sub_overflow(x, y, &out);
      break;
    case CelFunction::kMultiply:
      over = __builtin_mul_overflow(x, y, &out);
      break;
    default:
      if (y == 0) return CelFailure(function == CelFunction::kDivide ? "division by zero" : "modulus by zero");
      over = std::is_signed_v<Whole> && x == std::numeric_limits<Whole>::min() && y == static_cast<Whole>(-1);
      if (!over) out = function == CelFunction::kDivide ? x / y : x % y;
  }
  return over ? CelFailure(fmt::format("{} overflow", what)) : CelValue{out};
}

CelValue Arithmetic(CelFunction function, const CelValue& a, const CelValue& b) {
  if (const auto* x = a.As<int64_t>(), *y = b.As<int64_t>(); x != nullptr && y != nullptr)
    return WholeArithmetic(function, *x, *y, "integer");
  if (const auto* x = a.As<uint64_t>(), *y = b.As<uint64_t>(); x != nullptr && y != nullptr)
    return WholeArithmetic(function, *x, *y, "unsigned integer");
  if (const auto* x = a.As<double>(), *y = b.As<double>(); x != nullptr && y != nullptr) {
    if (function == CelFunction::kAdd) return {*x + *y};
    if (function == CelFunction::kSubtract) return {*x - *y};
    if (function == CelFunction::kMultiply) return {*x * *y};
    if (function == CelFunction::kDivide) return {*x / *y};
    return {};
  }
  if (function != CelFunction::kAdd && function != CelFunction::kSubtract) return {};
  const bool adds = function == CelFunction::kAdd;
  const auto* const ad = a.As<absl::Duration>();
  const auto* const bd = b.As<absl::Duration>();
  const auto* const at = a.As<absl::Time>();
  const auto* const bt = b.As<absl::Time>();
  if (ad != nullptr && bd != nullptr) return {adds ? *ad + *bd : *ad - *bd};
  if (at != nullptr && bd != nullptr) return {adds ? *at + *bd : *at - *bd};
  if (ad != nullptr && bt != nullptr && adds) return {*bt + *ad};
  if (at != nullptr && bt != nullptr && !adds) return {*at - *bt};
  return {};
}

CelValue SizeOf(const CelValue& of) {
  if (const auto* text = of.As<std::string>()) {  // in code points
    return {static_cast<int64_t>(std::count_if(text->begin(), text->end(),
                                               [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }))};
  }
  if (const auto* bytes = of.As<CelBytes>()) return {static_cast<int64_t>(bytes->bytes.size())};
  if (const auto* list = of.As<std::shared_ptr<const CelList>>()) return {static_cast<int64_t>((*list)->size())};
  if (const auto* map = of.As<std::shared_ptr<const CelMap>>()) {
    const std::optional<int64_t> size = (*map)->size();
    return size ? CelValue{*size} : CelValue{};
  }
  return {};
}

CelValue Converted(CelFunction function, const CelValue& of) {
  const auto* const text = of.As<std::string>();
  const auto* const number = of.As<int64_t>();
  const auto* const natural = of.As<uint64_t>();
  const auto* const real = of.As<double>();
  switch (function) {
    case CelFunction::kToInt: {
      if (number != nullptr) return of;
      constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      if (natural != nullptr) return *natural <= kMost ? CelValue{static_cast<int64_t>(*natural)} : CelValue{};
      if (real != nullptr) {
        return *real > -0x1p63 && *real < 0x1p63 ? CelValue{static_cast<int64_t>(*real)} : CelValue{};
      }
      if (const auto* time = of.As<absl::Time>()) return {absl::ToUnixSeconds(*time)};
      int64_t read = 0;
      return text != nullptr && absl::SimpleAtoi(*text, &read) ? CelValue{read} : CelValue{};
    }
    case CelFunction::kToUint: {
      if (natural != nullptr) return of;
      if (number != nullptr) return *number >= 0 ? CelValue{static_cast<uint64_t>(*number)} : CelValue{};
      if (real != nullptr) return *real >= 0 && *real < 0x1p64 ? CelValue{static_cast<uint64_t>(*real)} : CelValue{};
      uint64_t read = 0;
      return text != nullptr && absl::SimpleAtoi(*text, &read) ? CelValue{read} : CelValue{};
    }
    case CelFunction::kToDouble: {
      if (real != nullptr) return of;
      if (number != nullptr) return {static_cast<double>(*number)};
      if (natural != nullptr) return {static_cast<double>(*natural)};
      double read = 0;
      return text != nullptr && absl::SimpleAtod(*text, &read) ? CelValue{read} : CelValue{};
    }
    case CelFunction::kToBytes:
      if (text != nullptr) return {CelBytes{*text}};
      return of.As<CelBytes>() != nullptr ? of : CelValue{};
    case CelFunction::kToDuration: {
      absl::Duration read;
      if (of.As<absl::Duration>() != nullptr) return of;
      return text != nullptr && absl::ParseDuration(*text, &read) ? CelValue{read} : CelValue{};
    }
    default: {  // kToTimestamp
      absl::Time read;
      if (of.As<absl::Time>() != nullptr) return of;
      if (number != nullptr) return {absl::FromUnixSeconds(*number)};
      return text != nullptr && absl::ParseTime(absl::RFC3339_full, *text, &read, nullptr) ? CelValue{read}
                                                                                           : CelValue{};
    }
  }
}

CelValue TypeOf(const CelValue& of) {
  if (OptionalIn(of) != nullptr) return {CelType{"optional_type"}};
  static constexpr std::string_view kNames[] = {"",
                                                "null_type",
                                                "bool",
                                                "int",
                                                "uint",
                                                "double",
                                                "string",
                                                "bytes",
                                                "google.protobuf.Duration",
                                                "google.protobuf.Timestamp",
                                                "type",
                                                "list",
                                                "map"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(of.is)>);
  return of.failed() ? CelValue{} : CelValue{CelType{kNames[of.is.index()]}};
}

// `zone`: nothing, or a text; of zones by name UTC alone is known, as no machine's files may decide.
CelValue PartOf(CelFunction part, const CelValue& of, const CelValue* zone) {
  if (const auto* duration = of.As<absl::Duration>(); duration != nullptr && zone == nullptr) {
    switch (part) {
      case CelFunction::kHours:
        return {absl::ToInt64Hours(*duration)};
      case CelFunction::kMinutes:
        return {absl::ToInt64Minutes(*duration)};
      case CelFunction::kSeconds:
        return {absl::ToInt64Seconds(*duration)};
      case CelFunction::kMilliseconds:
        return {absl::ToInt64Milliseconds(*duration) % 1000};
      default:
        return {};
    }
  }
  const auto* const time = of.As<absl::Time>();
  if (time == nullptr) return {};
  absl::TimeZone in = absl::UTCTimeZone();
  if (zone != nullptr) {
    const auto* const name = zone->As<std::string>();
    if (name == nullptr) return {};
    if (*name != "UTC" && !name->empty()) {
      int hours = 0, minutes = 0;
      const bool signed_ = (*name)[0] == '+' || (*name)[0] == '-';
      const std::string digits = name->substr(signed_ ? 1 : 0);
      if (digits.size() != 5 || digits[2] != ':' || !absl::SimpleAtoi(digits.substr(0, 2), &hours) ||
          !absl::SimpleAtoi(digits.substr(3), &minutes)) {
        return {};
      }
      in = absl::FixedTimeZone(((*name)[0] == '-' ? -60 : 60) * (hours * 60 + minutes));
    }
  }
  const absl::TimeZone::CivilInfo civil = in.At(*time);
  const absl::CivilSecond& c = civil.cs;
  switch (part) {
    case CelFunction::kFullYear:
      return {int64_t{c.year()}};
    case CelFunction::kMonth:
      return {int64_t{c.month() - 1}};
    case CelFunction::kDate:
      return {int64_t{c.day()}};
    case CelFunction::kDayOfMonth:
      return {int64_t{c.day() - 1}};
    case CelFunction::kDayOfWeek:  // from Sunday
      return {(static_cast<int64_t>(absl::GetWeekday(c)) + 1) % 7};
    case CelFunction::kDayOfYear:
      return {int64_t{absl::GetYearDay(absl::CivilDay(c)) - 1}};
    case CelFunction::kHours:
      return {int64_t{c.hour()}};
    case CelFunction::kMinutes:
      return {int64_t{c.minute()}};
    case CelFunction::kSeconds:
      return {int64_t{c.second()}};
    default:
      return {absl::ToInt64Milliseconds(civil.subsecond)};
  }
}

// An address of the web that url() has read.
class ReadUrl final : public CelMap {
 public:
  explicit ReadUrl(GoUrl url) : url_(std::move(url)) {}
  CelValue Get(const CelValue&) const override { return {}; }
  std::optional<int64_t> size() const override { return std::nullopt; }
  CelValue Part(CelFunction part) const {
    std::string_view rest = url_.rest, host;
    if (rest.starts_with("//")) {
      host = rest.substr(2, std::min(rest.find_first_of("/?#", 2), rest.size()) - 2);
      rest.remove_prefix(2 + host.size());
      host.remove_prefix(host.rfind('@') + 1);
    }
    if (part == CelFunction::kScheme) return CelText(url_.scheme);
    if (part == CelFunction::kHost) return CelText(host);
    if (part == CelFunction::kEscapedPath) return CelText(rest.substr(0, rest.find_first_of("?#")));
    size_t colon = host.rfind(':');
    if (host.ends_with(']')) colon = host.npos;
    if (part == CelFunction::kPort) return CelText(colon == host.npos ? "" : host.substr(colon + 1));
    host = host.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return CelText(host);
  }

 private:
  const GoUrl url_;
};

// As Go's url.ParseRequestURI: a whole address, or a path from the root.
std::optional<GoUrl> RequestUrl(std::string_view text) {
  std::optional<GoUrl> out = ParseGoUrl(text);
  return out && (!out->scheme.empty() || text.starts_with('/')) ? std::move(out) : std::nullopt;
}

// Lists taken as sets. cel-go: ext/sets.go
CelValue OfSets(CelFunction f, const CelList& a, const CelValue& other) {
  const auto* const list = other.As<std::shared_ptr<const CelList>>();
  if (list == nullptr) return {};
  const CelList& b = **list;
  const auto has = [](const CelList& in, const CelValue& one) {
    return std::any_of(in.begin(), in.end(), [&](const CelValue& each) { return EqualValues(each, one) == true; });
  };
  const auto all = [&](const CelList& in, const CelList& of) {
    return std::all_of(of.begin(), of.end(), [&](const CelValue& one) { return has(in, one); });
  };
  if (f == CelFunction::kSetContains) return {all(a, b)};
  if (f == CelFunction::kSetEquals) return {all(a, b) && all(b, a)};
  return {std::any_of(b.begin(), b.end(), [&](const CelValue& one) { return has(a, one); })};
}

// cel-go: ext/strings.go, quote
CelValue QuotedText(std::string_view text) {
  constexpr std::pair<char, char> kEscapes[] = {{'\a', 'a'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'},
                                                {'\t', 't'}, {'\v', 'v'}, {'"', '"'},  {'\\', '\\'}};
  std::string out = "\"";
  for (const char c : text) {
    const auto* const escape =
        std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](const auto& each) { return each.first == c; });
    if (escape != std::end(kEscapes)) out += '\\';
    out += escape == std::end(kEscapes) ? c : escape->second;
  }
  return CelText(out + '"');
}

CelValue ListOf(CelList list) { return {std::make_shared<const CelList>(std::move(list))}; }

// Where each code point of a text begins, and its end.
std::vector<size_t> Places(std::string_view text) {
  std::vector<size_t> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) out.push_back(i);
  }
  out.push_back(text.size());
  return out;
}

CelValue OutOfBounds(int64_t index) { return CelFailure(fmt::format("index out of range: {}", index)); }

// Of texts, as cel-go's ext/strings.go: places are code points.
CelValue TextCall(CelFunction f, const std::string& text, const std::vector<CelValue>& of, int largest_program) {
  const auto* const arg = of.size() > 1 ? of[1].As<std::string>() : nullptr;
  const auto number = [&](size_t i) { return of.size() > i ? of[i].As<int64_t>() : nullptr; };
  const bool wants_text = f != CelFunction::kCharAt && f != CelFunction::kSubstring && f != CelFunction::kLower &&
                          f != CelFunction::kUpper && f != CelFunction::kTrim;
  if (wants_text && arg == nullptr) return {};
  switch (f) {
    case CelFunction::kLower:
      return CelText(absl::AsciiStrToLower(text));
    case CelFunction::kUpper:
      return CelText(absl::AsciiStrToUpper(text));
    case CelFunction::kTrim:
      return CelText(std::string(absl::StripAsciiWhitespace(text)));
    case CelFunction::kCharAt:
    case CelFunction::kSubstring: {
      const std::vector<size_t> places = Places(text);
      const auto count = static_cast<int64_t>(places.size()) - 1;
      const int64_t* const from = number(1);
      if (from == nullptr || (of.size() > 2 && number(2) == nullptr)) return {};
      if (*from < 0 || *from > count) return OutOfBounds(*from);
      if (f == CelFunction::kCharAt && *from == count) return CelText("");
      const int64_t to = f == CelFunction::kCharAt ? *from + 1 : of.size() > 2 ? *number(2) : count;
      if (to < 0 || to > count) return OutOfBounds(to);
      if (to < *from) return CelFailure(fmt::format("invalid substring range. start: {}, end: {}", *from, to));
      const size_t begin = places[static_cast<size_t>(*from)];
      return CelText(text.substr(begin, places[static_cast<size_t>(to)] - begin));
    }
    case CelFunction::kIndexOf:
    case CelFunction::kLastIndexOf: {
      const std::vector<size_t> places = Places(text);
      const auto count = static_cast<int64_t>(places.size()) - 1;
      if (of.size() > 2 && number(2) == nullptr) return {};
      const bool first = f == CelFunction::kIndexOf;
      const int64_t at = of.size() > 2 ? *number(2) : first ? 0 : count;
      if (at < 0 || at > count) return OutOfBounds(at);
      const size_t byte = places[static_cast<size_t>(at)];
      const size_t found = first ? text.find(*arg, byte) : text.rfind(*arg, byte);
      if (found == std::string::npos) return {int64_t{-1}};
      return {static_cast<int64_t>(std::lower_bound(places.begin(), places.end(), found) - places.begin())};
    }
    case CelFunction::kReplace: {
      const auto* const with = of[2].As<std::string>();
      if (with == nullptr || (of.size() > 3 && number(3) == nullptr)) return {};
      int64_t left = of.size() > 3 ? *number(3) : -1;
      std::string out;
      size_t at = 0;
      while (left != 0 && !arg->empty()) {
        const size_t next = text.find(*arg, at);
        if (next == std::string::npos) break;
        out += text.substr(at, next - at) + *with;
        at = next + arg->size();
        --left;
      }
      return CelText(out + text.substr(at));
    }
    case CelFunction::kSplit: {
      if (of.size() > 2 && number(2) == nullptr) return {};
      int64_t left = of.size() > 2 ? *number(2) : -1;
      CelList out;
      if (left == 0) return ListOf({});
      if (arg->empty()) {  // each code point
        const std::vector<size_t> places = Places(text);
        for (size_t i = 0; i + 1 < places.size(); ++i) {
          const bool last = left > 0 && static_cast<int64_t>(i) + 1 == left;
          out.push_back(CelText(last ? text.substr(places[i]) : text.substr(places[i], places[i + 1] - places[i])));
          if (last) break;
        }
        return ListOf(std::move(out));
      }
      size_t at = 0;
      for (; left < 0 || left > 1; left -= left > 0 ? 1 : 0) {
        const size_t next = text.find(*arg, at);
        if (next == std::string::npos) break;
        out.push_back(CelText(text.substr(at, next - at)));
        at = next + arg->size();
      }
      out.push_back(CelText(text.substr(at)));
      return ListOf(std::move(out));
    }
    case CelFunction::kFind:
    case CelFunction::kFindAll: {
      const RE2 pattern(*arg, RE2::Quiet);
      if (!pattern.ok() || (largest_program > 0 && pattern.ProgramSize() > largest_program))
        return CelFailure(fmt::format("Illegal regex: {}", pattern.error()));
      if (of.size() > 2 && number(2) == nullptr) return {};
      int64_t left = f == CelFunction::kFind ? 1 : of.size() > 2 ? *number(2) : -1;
      CelList out;
      re2::StringPiece found;
      size_t at = 0;
      while (left != 0 && at <= text.size() && pattern.Match(text, at, text.size(), RE2::UNANCHORED, &found, 1)) {
        out.push_back(CelText({found.data(), found.size()}));
        at = static_cast<size_t>(found.data() - text.data()) + std::max<size_t>(found.size(), 1);
        --left;
      }
      if (f == CelFunction::kFindAll) return ListOf(std::move(out));
      return out.empty() ? CelText("") : out.front();
    }
    default:
      return {};
  }
}

CelValue ListCall(CelFunction f, const CelList& list, const std::vector<CelValue>& of) {
  switch (f) {
    case CelFunction::kJoin: {
      const auto* const by = of.size() > 1 ? of[1].As<std::string>() : nullptr;
      if (of.size() > 1 && by == nullptr) return {};
      std::string out;
      for (const CelValue& one : list) {
        const auto* const text = one.As<std::string>();
        if (text == nullptr) return {};
        if (&one != &list.front() && by != nullptr) out += *by;
        out += *text;
      }
      return CelText(out);
    }
    case CelFunction::kIndexOf:
    case CelFunction::kLastIndexOf: {
      int64_t out = -1;
      for (size_t i = 0; i < list.size(); ++i) {
        if (EqualValues(list[i], of[1]) != true) continue;
        out = static_cast<int64_t>(i);
        if (f == CelFunction::kIndexOf) break;
      }
      return {out};
    }
    case CelFunction::kIsSorted:
      for (size_t i = 1; i < list.size(); ++i) {
        const std::optional<int> order = CompareValues(list[i - 1], list[i]);
        if (!order) return {};
        if (*order > 0) return {false};
      }
      return {true};
    case CelFunction::kSum: {
      CelValue out = {int64_t{0}};
      for (const CelValue& one : list) {
        out = &one == &list.front() ? one : Arithmetic(CelFunction::kAdd, out, one);
        if (out.failed()) return out;
      }
      return out;
    }
    case CelFunction::kMin:
    case CelFunction::kMax: {
      if (list.empty())
        return CelFailure(f == CelFunction::kMin ? "min called on empty list" : "max called on empty list");
      const CelValue* out = &list.front();
      for (const CelValue& one : list) {
        const std::optional<int> order = CompareValues(one, *out);
        if (!order) return {};
        if (f == CelFunction::kMin ? *order < 0 : *order > 0) out = &one;
      }
      return *out;
    }
    case CelFunction::kSetContains:
    case CelFunction::kSetEquals:
    case CelFunction::kSetMeets:
      return OfSets(f, list, of[1]);
    default:
      return {};
  }
}

CelValue InText(CelFunction f, const CelValue& a, const CelValue& b, int largest_program) {
  const auto* const text = a.As<std::string>();
  const auto* const part = b.As<std::string>();
  if (text == nullptr || part == nullptr) return {};
  if (f == CelFunction::kStartsWith) return {text->starts_with(*part)};
  if (f == CelFunction::kEndsWith) return {text->ends_with(*part)};
  if (f == CelFunction::kContains) return {text->find(*part) != std::string::npos};
  const RE2 pattern(*part, RE2::Quiet);
  if (!pattern.ok() || (largest_program > 0 && pattern.ProgramSize() > largest_program)) return {};
  return {RE2::PartialMatch(*text, pattern)};
}

// Nothing that is wrong with a text, or what is.
CelValue Validated(const CelMap& format, const CelValue& of) {
  const auto* const text = of.As<std::string>();
  const auto wrong = text == nullptr ? std::nullopt : WrongWith(*text, format);
  if (!wrong) return {};
  if (wrong->empty()) return NoOptional();
  CelList out;
  for (const std::string& each : *wrong) out.push_back(CelText(each));
  return MakeOptional(ListOf(std::move(out)));
}

// What only the library has.
CelValue LibraryCall(CelFunction f, const std::vector<CelValue>& of, int largest_program) {
  const CelValue& a = of.front();
  if (f >= CelFunction::kSelectOptional && f <= CelFunction::kOrValue) return OptionalCall(f, of);
  if (f == CelFunction::kFormat) {
    const auto* const text = a.As<std::string>();
    const auto* const list = of[1].As<std::shared_ptr<const CelList>>();
    return text != nullptr && list != nullptr ? FormatText(*text, **list) : CelValue{};
  }
  if (f == CelFunction::kToText) {
    const auto* const map = a.As<std::shared_ptr<const CelMap>>();
    const std::optional<std::string> text = map == nullptr ? std::nullopt : ObjectText(**map);
    return text ? CelText(*text) : TextOf(a);
  }
  if (const auto* list = a.As<std::shared_ptr<const CelList>>()) return ListCall(f, **list, of);
  if (const auto* map = a.As<std::shared_ptr<const CelMap>>()) {
    if (f == CelFunction::kValidate) return Validated(**map, of[1]);
    const auto* const url = dynamic_cast<const ReadUrl*>(map->get());
    return url == nullptr ? ObjectCall(f, **map, of) : url->Part(f);
  }
  const auto* const text = a.As<std::string>();
  if (text == nullptr) return {};
  switch (f) {
    case CelFunction::kIsUrl:
      return {RequestUrl(*text).has_value()};
    case CelFunction::kUrl: {
      std::optional<GoUrl> url = RequestUrl(*text);
      if (!url) return CelFailure(fmt::format("URL parse error during conversion from string: {}", *text));
      return {std::shared_ptr<const CelMap>(std::make_shared<ReadUrl>(*std::move(url)))};
    }
    case CelFunction::kIsIp:
      return {IpAddress::Parse(*text).ok()};
    case CelFunction::kIsCanonical: {
      // Kubernetes: apiserver/pkg/cel/library/ip.go, ipIsCanonical
      const auto ip = IpAddress::Parse(*text);
      return ip.ok() ? CelValue{ip->ToString() == *text}
                     : CelFailure(fmt::format("IP Address \"{}\" parse error during conversion from string", *text));
    }
    case CelFunction::kIsCidr:
      return {text->find('/') != std::string::npos && IpPrefix::Parse(*text).ok()};
    case CelFunction::kIsQuantity:
      return {IsQuantity(*text)};
    case CelFunction::kQuantity:
      return MakeQuantity(*text);
    case CelFunction::kQuote:
      return QuotedText(*text);
    case CelFunction::kNamedFormat: {
      const std::optional<CelFormatKind> found = FindFormat(*text);
      return found ? MakeOptional(MakeFormat(*found)) : NoOptional();
    }
    case CelFunction::kIsSemver:
    case CelFunction::kSemver: {
      const bool* const normal = of.size() > 1 ? of[1].As<bool>() : nullptr;
      if (of.size() > 1 && normal == nullptr) return {};
      CelValue made = MakeSemver(*text, normal != nullptr && *normal);
      return f == CelFunction::kSemver ? made : CelValue{!made.failed()};
    }
    case CelFunction::kIp:
      return MakeIp(*text);
    case CelFunction::kCidr:
      return MakeCidr(*text);
    default:
      return f > CelFunction::kIsCidr ? CelValue{} : TextCall(f, *text, of, largest_program);
  }
}

}  // namespace

CelValue TextOf(const CelValue& of) {
  if (of.As<std::string>() != nullptr) return of;
  if (const bool* flag = of.As<bool>()) return CelText(*flag ? "true" : "false");
  if (const int64_t* number = of.As<int64_t>()) return CelText(fmt::format("{}", *number));
  if (const uint64_t* number = of.As<uint64_t>()) return CelText(fmt::format("{}", *number));
  if (const double* number = of.As<double>()) return CelText(fmt::format("{}", *number));
  if (const auto* bytes = of.As<CelBytes>()) return CelText(bytes->bytes);
  if (const auto* span = of.As<absl::Duration>()) {
    return CelText(fmt::format("{}s", absl::ToDoubleSeconds(*span)));  // cel-go: types/duration.go
  }
  if (const auto* time = of.As<absl::Time>())
    return CelText(absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", *time, absl::UTCTimeZone()));
  return {};
}

const FunctionRow* FindFunction(std::string_view name, size_t arguments, bool member, bool library, bool texts) {
  using In = FunctionRow::In;
  const auto has = [&](In in) {
    return in == In::kBoth || in == (library ? In::kLibrary : In::kEnvoy) || (in == In::kTexts && (library || texts));
  };
  const auto* const row = std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const FunctionRow& f) {
    return f.name == name && arguments >= f.least && arguments <= f.most && (member ? f.member : f.global) && has(f.in);
  });
  return row == std::end(kFunctions) ? nullptr : row;
}

std::optional<std::string_view> FindType(std::string_view name) {
  for (const std::string_view type : kTypes) {
    if (type == name) return type;
  }
  return std::nullopt;
}

std::string_view TypeNameOf(const CelValue& value) {
  const CelValue type = TypeOf(value);
  return type.failed() ? "" : type.As<CelType>()->name;
}

std::optional<bool> EqualValues(const CelValue& a, const CelValue& b) {
  if (a.failed() || b.failed()) return std::nullopt;
  if (const auto* x = OptionalIn(a), *y = OptionalIn(b); x != nullptr || y != nullptr) {
    if (x == nullptr || y == nullptr || x->has() != y->has()) return false;
    return x->has() ? EqualValues(x->value(), y->value()) : true;
  }
  if (const std::optional<int> order = CompareValues(a, b)) return *order == 0;
  if (a.As<CelNull>() != nullptr && b.As<CelNull>() != nullptr) return true;
  if (const auto* x = a.As<CelType>(), *y = b.As<CelType>(); x != nullptr && y != nullptr) return x->name == y->name;
  const auto* const x = a.As<std::shared_ptr<const CelList>>();
  const auto* const y = b.As<std::shared_ptr<const CelList>>();
  if (x != nullptr && y != nullptr) {
    if ((*x)->size() != (*y)->size()) return false;
    for (size_t i = 0; i < (*x)->size(); ++i) {
      const std::optional<bool> same = EqualValues((**x)[i], (**y)[i]);
      if (!same || !*same) return same;
    }
    return true;
  }
  const auto* const m = a.As<std::shared_ptr<const CelMap>>();
  const auto* const n = b.As<std::shared_ptr<const CelMap>>();
  if (m == nullptr || n == nullptr) return false;
  if (const std::optional<bool> same = SameObjects(**m, **n)) return same;
  if (!(*m)->size() || !(*n)->size()) return std::nullopt;  // attributes are not compared as a whole
  if ((*m)->size() != (*n)->size()) return false;
  for (const CelValue& key : (*m)->Keys()) {
    const CelValue other = (*n)->Get(key);
    if (other.failed()) return false;
    const std::optional<bool> same = EqualValues((*m)->Get(key), other);
    if (!same || !*same) return same;
  }
  return true;
}

CelValue OptionalField(const CelValue& of, const CelValue& key) {
  if (const auto* optional = OptionalIn(of)) return optional->has() ? OptionalField(optional->value(), key) : of;
  if (const auto* list = of.As<std::shared_ptr<const CelList>>()) {
    const auto* const index = key.As<int64_t>();
    if (index == nullptr) return {};
    const bool there = *index >= 0 && static_cast<size_t>(*index) < (*list)->size();
    return there ? MakeOptional((**list)[static_cast<size_t>(*index)]) : NoOptional();
  }
  const auto* const map = of.As<std::shared_ptr<const CelMap>>();
  if (map == nullptr) return {};
  CelValue found = (*map)->Get(key);
  return found.failed() ? NoOptional() : MakeOptional(std::move(found));
}

CelValue CelField(const CelValue& of, const CelValue& key) {
  if (OptionalIn(of) != nullptr) return OptionalField(of, key);
  if (const auto* map = of.As<std::shared_ptr<const CelMap>>()) return (*map)->Get(key);
  const auto* const list = of.As<std::shared_ptr<const CelList>>();
  const auto* const index = key.As<int64_t>();
  if (list == nullptr || index == nullptr) return {};
  if (*index < 0 || static_cast<size_t>(*index) >= (*list)->size())
    return CelFailure(fmt::format("index out of bounds: {}", *index));
  return (**list)[static_cast<size_t>(*index)];
}

CelValue WrittenCelMap(std::vector<std::pair<CelValue, CelValue>> entries) {
  return {std::shared_ptr<const CelMap>(std::make_shared<WrittenMap>(std::move(entries)))};
}

CelValue CallFunction(CelFunction function, const std::vector<CelValue>& of, bool texts, int largest_program) {
  if (function == CelFunction::kOptionalNone) return NoOptional();
  if (function >= CelFunction::kFirstFormat && function <= CelFunction::kLastFormat) {
    return MakeFormat(
        static_cast<CelFormatKind>(static_cast<int>(function) - static_cast<int>(CelFunction::kFirstFormat)));
  }
  const CelValue& a = of.front();
  const CelValue none = {CelNull{}};
  const CelValue& b = of.size() > 1 ? of[1] : none;
  switch (function) {
    case CelFunction::kNot:
      return a.As<bool>() != nullptr ? CelValue{!*a.As<bool>()} : CelValue{};
    case CelFunction::kNegate:
      if (const double* real = a.As<double>()) return {-*real};
      return Arithmetic(CelFunction::kSubtract, {int64_t{0}}, a);
    case CelFunction::kAdd:
      if (texts) {
        const auto* const x = a.As<std::string>();
        const auto* const y = b.As<std::string>();
        if (x != nullptr && y != nullptr) return CelText(*x + *y);
        const auto* const l = a.As<std::shared_ptr<const CelList>>();
        const auto* const m = b.As<std::shared_ptr<const CelList>>();
        if (l != nullptr && m != nullptr) {
          CelList both = **l;
          both.insert(both.end(), (*m)->begin(), (*m)->end());
          return ListOf(std::move(both));
        }
      }
      return Arithmetic(function, a, b);
    case CelFunction::kSubtract:
    case CelFunction::kMultiply:
    case CelFunction::kDivide:
    case CelFunction::kModulo:
      return Arithmetic(function, a, b);
    case CelFunction::kEqual:
    case CelFunction::kNotEqual: {
      const std::optional<bool> same = EqualValues(a, b);
      return same ? CelValue{*same == (function == CelFunction::kEqual)} : CelValue{};
    }
    case CelFunction::kLess:
    case CelFunction::kAtMost:
    case CelFunction::kMore:
    case CelFunction::kAtLeast: {
      const std::optional<int> order = CompareValues(a, b);
      if (!order) return {};
      if (function == CelFunction::kLess) return {*order < 0};
      if (function == CelFunction::kAtMost) return {*order <= 0};
      return {function == CelFunction::kMore ? *order > 0 : *order >= 0};
    }
    case CelFunction::kIn: {
      if (const auto* map = b.As<std::shared_ptr<const CelMap>>()) return {!(*map)->Get(a).failed()};
      const auto* const list = b.As<std::shared_ptr<const CelList>>();
      if (list == nullptr) return {};
      return {std::any_of((*list)->begin(), (*list)->end(),
                          [&](const CelValue& one) { return EqualValues(a, one) == true; })};
    }
    case CelFunction::kIndex:
      return CelField(a, b);
    case CelFunction::kSize:
      return SizeOf(a);
    case CelFunction::kStartsWith:
    case CelFunction::kEndsWith:
    case CelFunction::kContains:
    case CelFunction::kMatches:
      return InText(function, a, b, largest_program);
    case CelFunction::kToInt:
    case CelFunction::kToUint:
    case CelFunction::kToDouble:
    case CelFunction::kToBytes:
    case CelFunction::kToDuration:
    case CelFunction::kToTimestamp:
      return Converted(function, a);
    case CelFunction::kDyn:
      return a;
    case CelFunction::kType:
      return TypeOf(a);
    case CelFunction::kFullYear:
    case CelFunction::kMonth:
    case CelFunction::kDate:
    case CelFunction::kDayOfMonth:
    case CelFunction::kDayOfWeek:
    case CelFunction::kDayOfYear:
    case CelFunction::kHours:
    case CelFunction::kMinutes:
    case CelFunction::kSeconds:
    case CelFunction::kMilliseconds:
      return PartOf(function, a, of.size() > 1 ? &b : nullptr);
    case CelFunction::kAnd:
    case CelFunction::kOr:
    case CelFunction::kIf:
    case CelFunction::kRegex:
      return {};
    default:
      return LibraryCall(function, of, largest_program);
  }
}

}  // namespace wavetank::cel
