// A value of a Go template: what is JSON, with what Go knows beside it (a map of any values, a map of strings, a
// struct), because that decides what is printed where nothing is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot::gotemplate {

struct Value {
  enum class Kind : uint8_t {
    kPlain,      // any value: map[string]any, []any, a string, a number, true or false
    kStringMap,  // map[string]string: what is not there is ""
    kStruct,     // a Go struct or message, its fields under their JSON names: what is not there is zero
    kZero,       // such a field: it is empty, false, 0 and ""
    kNone,       // what a map does not have, and nil
  };
  nlohmann::json json;
  Kind kind = Kind::kPlain;

  static Value Plain(nlohmann::json json) { return {std::move(json), Kind::kPlain}; }
  static Value None() { return {nullptr, Kind::kNone}; }
  bool absent() const { return kind == Kind::kNone || (kind == Kind::kPlain && json.is_null()); }
  bool text() const { return json.is_string(); }
};

// As `if` sees it.
bool IsTrue(const Value& value);
// As {{ }} prints it.
std::string Print(const Value& value);
// A field, a key of a map or a method without arguments (GetX, String). InvalidArgument: Go could not evaluate it.
absl::StatusOr<Value> FieldOf(const Value& value, std::string_view name);
// A member of a list, or an entry of a map by its key. InvalidArgument: there is none, or Go could not index it.
absl::StatusOr<Value> IndexOf(const Value& value, const Value& key);
// An element of the list or map itself, as `range` gives it.
Value ElementOf(const Value& value, const nlohmann::json& element);
// Equal as eq sees it; InvalidArgument: of kinds that cannot be compared.
absl::StatusOr<bool> Equal(const Value& a, const Value& b);
// Less than 0, 0 or more, as lt sees it.
absl::StatusOr<int> Compare(const Value& a, const Value& b);

// "ServiceAccountName" is serviceAccountName, "DNSPolicy" dnsPolicy, "HostIP" hostIP.
std::string JsonName(std::string_view field);
// A number as fmt prints it: 15020, 1e+06, 0.5.
std::string NumberText(const nlohmann::json& number);
// Whole numbers are written as such.
nlohmann::json WithWholeNumbers(const nlohmann::json& in);
// As sigs.k8s.io/yaml writes it: keys sorted, two spaces, a new line at its end.
std::string YamlText(const nlohmann::json& in);

}  // namespace wavetank::pilot::gotemplate
