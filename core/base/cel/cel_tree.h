// An expression of the Common Expression Language as a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/cel/cel_syntax.h"

namespace wavetank::cel {

struct CelNull {
  bool operator==(const CelNull&) const { return true; }
};
struct CelBytes {
  std::string bytes;
  bool operator==(const CelBytes& o) const { return bytes == o.bytes; }
};
using CelLiteral = std::variant<CelNull, bool, int64_t, uint64_t, double, std::string, CelBytes>;

struct CelNode {
  enum class Kind : uint8_t {
    kLiteral,
    kName,     // `name`
    kSelect,   // of[0].name
    kHas,      // has(of[0].name)
    kCall,     // name(of...); operators are calls of "+", "?:", "[]", "!", "-" (of one: the negation), "in", ...
    kList,     // of...
    kMap,      // of[0]: of[1], ...
    kMessage,  // name{...}; its fields are not kept
    kMacro,    // all, exists, exists_one, map, filter: of[0] over `variable`, of[1], and of[2] of a map with three;
               // optMap and optFlatMap, of an optional value; with `second`, what goes over indices or keys and values
  };
  Kind kind = Kind::kLiteral;
  CelLiteral literal;
  std::string name;
  std::string variable, second;
  bool member = false;  // kCall: of[0] stood before the dot
  size_t at = 0;        // the byte at which it is shown to stand
  std::vector<CelNode> of;
};

// InvalidArgument in that library's words ("ERROR: <input>:1:17: Syntax error: ..."). `optionals`: a.?b, a[?b], [?a]
// and {?a: b}, as calls of "?.", "[?]" and "?" of the element or key; else they are refused. O(text).
absl::StatusOr<CelNode> ParseCel(std::string_view text, CelWords words, bool optionals);

}  // namespace wavetank::cel
