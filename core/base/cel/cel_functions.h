// Operators and functions of the Common Expression Language over values.
// cel-go: common/types, ext/{strings,lists}.go; cel-cpp: eval/public; Kubernetes: apiserver/pkg/cel/library
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/cel/cel_value.h"

namespace wavetank::cel {

enum class CelFunction : uint8_t {
  kNot,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kEqual,
  kNotEqual,
  kLess,
  kAtMost,
  kMore,
  kAtLeast,
  kIn,
  kIndex,
  kAnd,
  kOr,
  kIf,
  kSize,
  kStartsWith,
  kEndsWith,
  kContains,
  kMatches,
  kToInt,
  kToUint,
  kToDouble,
  kToBytes,
  kToDuration,
  kToTimestamp,
  kDyn,
  kType,
  kFullYear,
  kMonth,
  kDate,
  kDayOfMonth,
  kDayOfWeek,
  kDayOfYear,
  kHours,
  kMinutes,
  kSeconds,
  kMilliseconds,
  kRegex,
  // The library's.
  kToText,
  kCharAt,
  kIndexOf,
  kLastIndexOf,
  kLower,
  kUpper,
  kReplace,
  kSplit,
  kSubstring,
  kTrim,
  kJoin,
  kFind,
  kFindAll,
  kIsSorted,
  kSum,
  kMin,
  kMax,
  kIsUrl,
  kUrl,
  kScheme,
  kHost,
  kHostname,
  kPort,
  kEscapedPath,
  kIsIp,
  kIsCidr,
  // Of objects that the library makes (cel_objects.h).
  kIsQuantity,
  kQuantity,
  kIsInteger,
  kAsInteger,
  kAsFloat,
  kSignOf,
  kPlus,
  kMinus,
  kIsLess,
  kIsGreater,
  kCompareTo,
  kIp,
  kFamily,
  kIsUnspecified,
  kIsLoopback,
  kIsLinkLocalMulticast,
  kIsLinkLocalUnicast,
  kIsGlobalUnicast,
  kCidr,
  kContainsIp,
  kContainsCidr,
  kIpOfCidr,
  kMasked,
  kPrefixLength,
  kIsCanonical,
  // Of optional values (cel_optional.h).
  kSelectOptional,
  kIndexOptional,
  kOptionalPart,  // of a list or map that is written down
  kOptionalOf,
  kOptionalOfNonZero,
  kOptionalNone,
  kHasValue,
  kValue,
  kOrOptional,
  kOrValue,
  kFormat,  // cel_format.h
  // Sets of lists.
  kSetContains,
  kSetEquals,
  kSetMeets,
  kQuote,
  // Versions (cel_objects.h).
  kIsSemver,
  kSemver,
  kMajor,
  kMinor,
  kPatch,
  // Named formats (cel_formats.h), in its order.
  kNamedFormat,
  kValidate,
  kFirstFormat,
  kLastFormat = kFirstFormat + 12,
};

struct FunctionRow {
  std::string_view name;
  CelFunction is;
  size_t least, most;  // arguments, one before the dot among them
  bool global, member;
  enum class In : uint8_t { kBoth, kEnvoy, kLibrary, kTexts } in = In::kBoth;
};

// Null: that dialect has no such function. `library`, `texts`: CelDialect's.
const FunctionRow* FindFunction(std::string_view name, size_t arguments, bool member, bool library, bool texts);

// Of a type's name alone: "int", "list".
std::optional<std::string_view> FindType(std::string_view name);

// Values of different types are not equal; nothing: it cannot be told.
std::optional<bool> EqualValues(const CelValue& a, const CelValue& b);

// A field of a map, an element of a list; of an optional value another one.
CelValue CelField(const CelValue& of, const CelValue& key);

// Of any function but &&, || and ?:, whose arguments need not all be there. `of` holds no failure. O(arguments).
// `texts`: + concatenates.
CelValue CallFunction(CelFunction function, const std::vector<CelValue>& of, bool texts, int largest_program);

// a.?b and a[?b]. cel-go: interpreter/attributes.go, applyQualifiers
CelValue OptionalField(const CelValue& of, const CelValue& key);
// By its type's name, as messages have it.
std::string_view TypeNameOf(const CelValue& value);

// A map that an expression writes down.
CelValue WrittenCelMap(std::vector<std::pair<CelValue, CelValue>> entries);

}  // namespace wavetank::cel
