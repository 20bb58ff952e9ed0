// A value without a type of its own: an object of Kubernetes, a field of an action, a part of an answer.
/// \file
/// A value without a type of its own: an object of Kubernetes, a field of an action, a part of an answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace wavetank {

/// Nothing, a flag, a number, text, a list or a map; what JSON can say.
/// \code
/// using wavetank::Value;
/// Value service = Value::Map{{"kind", "Service"}, {"metadata", Value::Map{{"name", "a"}}}};
/// \endcode
class Value {
 public:
  using List = std::vector<Value>;
  using Map = std::map<std::string, Value, std::less<>>;

  Value() = default;
  Value(bool value) : held_(value) {}                           // NOLINT: what it is made of
  Value(int value) : held_(static_cast<int64_t>(value)) {}      // NOLINT
  Value(int64_t value) : held_(value) {}                        // NOLINT
  Value(double value) : held_(value) {}                         // NOLINT
  Value(const char* value) : held_(std::string(value)) {}       // NOLINT
  Value(std::string_view value) : held_(std::string(value)) {}  // NOLINT
  Value(std::string value) : held_(std::move(value)) {}         // NOLINT
  Value(List value) : held_(std::move(value)) {}                // NOLINT
  Value(Map value) : held_(std::move(value)) {}                 // NOLINT
  Value(const std::vector<std::string>& texts);                 // NOLINT
  Value(const std::map<std::string, std::string>& texts);       // NOLINT

  bool IsNull() const { return held_.index() == 0; }
  bool IsList() const { return std::holds_alternative<List>(held_); }
  bool IsMap() const { return std::holds_alternative<Map>(held_); }
  bool IsText() const { return std::holds_alternative<std::string>(held_); }

  /// What is of another type is false, 0, empty.
  bool Flag() const;
  int64_t Integer() const;
  double Number() const;
  const std::string& Text() const;
  const List& Items() const;
  const Map& Entries() const;
  /// Of a map; what it does not have is null, as is what any other value has.
  const Value& operator[](std::string_view key) const;
  /// Made if it is not there; anything but a map becomes one.
  Value& Set(std::string_view key, Value value);

  /// JSON in one line. O(value).
  std::string Print() const;
  /// False: the text is no JSON; `out` is null then. O(text).
  static bool Parse(std::string_view text, Value* out);

  friend bool operator==(const Value& a, const Value& b) { return a.held_ == b.held_; }

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> held_;
};

}  // namespace wavetank
