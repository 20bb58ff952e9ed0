// What functions of templates do with their arguments. Private to this room.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/inject/template/go_template.h"

namespace wavetank::pilot::gotemplate {

using Arguments = std::vector<Value>;

inline absl::Status BadArgument(std::string text) { return absl::InvalidArgumentError(text); }

// A function of so many arguments, no fewer, or between two numbers; others are told as Go tells it.
GoTemplate::Function Between(size_t least, size_t most, GoTemplate::Function body);
template <class Fn>
GoTemplate::Function Exactly(size_t count, Fn body) {
  return Between(count, count, std::move(body));
}
template <class Fn>
GoTemplate::Function AtLeast(size_t least, Fn body) {
  return Between(least, 1000, std::move(body));
}
// Of texts alone: what is no text is printed first, as Sprig's strval does.
template <class Fn>
GoTemplate::Function OfTexts(size_t count, Fn body) {
  return Exactly(count, [body](const Arguments& in) {
    std::vector<std::string> texts;
    for (const Value& each : in) texts.push_back(Print(each));
    return Value::Plain(body(texts));
  });
}

// As Sprig's cast does: of texts and numbers; 0 of anything else.
int64_t WholeOf(const Value& value);
double RealOf(const Value& value);
// As fmt formats it: flags "-05.2", verb 'd'.
std::string Formatted(const Value& value, std::string_view flags, char verb);
std::string Sprintf(const Arguments& arguments);
// In double quotes, as strconv.Quote and JSON write it.
std::string QuotedText(std::string_view text);
// The elements of a list; of anything else none.
const nlohmann::json& ListOf(const Value& value);

}  // namespace wavetank::pilot::gotemplate
