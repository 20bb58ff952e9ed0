// Functions of text/template itself (Go: text/template/funcs.go).
#include <utility>

#include "core/inject/template/arguments.h"
#include "core/inject/template/go_template.h"
#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;

absl::StatusOr<Value> Index(const Arguments& in) {
  Value out = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    absl::StatusOr<Value> next = IndexOf(out, in[i]);
    if (!next.ok()) return next;
    out = *std::move(next);
  }
  return out;
}

absl::StatusOr<Value> Slice(const Arguments& in) {
  const json& of = in[0].json;
  if (!of.is_string() && !of.is_array()) return BadArgument("slice of untyped nil");
  const size_t size = of.is_string() ? of.get_ref<const std::string&>().size() : of.size();
  const size_t from = in.size() > 1 ? static_cast<size_t>(WholeOf(in[1])) : 0;
  const size_t to = in.size() > 2 ? static_cast<size_t>(WholeOf(in[2])) : size;
  if (from > to || to > size) return BadArgument(fmt::format("index out of range: {}", to));
  if (of.is_string()) return Value::Plain(of.get_ref<const std::string&>().substr(from, to - from));
  return Value{json(json::array_t(of.begin() + static_cast<long>(from), of.begin() + static_cast<long>(to))),
               in[0].kind};
}

absl::StatusOr<Value> Length(const Arguments& in) {
  if (in[0].kind == Value::Kind::kZero) return Value::Plain(0);
  const json& of = in[0].json;
  if (of.is_string()) return Value::Plain(of.get_ref<const std::string&>().size());
  if (in[0].absent()) return BadArgument("len of nil pointer");
  if (!of.is_structured()) return BadArgument("len of type that has none");
  return Value::Plain(of.size());
}

absl::StatusOr<Value> EqualToAny(const Arguments& in) {
  for (size_t i = 1; i < in.size(); ++i) {
    const absl::StatusOr<bool> same = Equal(in[0], in[i]);
    if (!same.ok()) return same.status();
    if (*same) return Value::Plain(true);
  }
  return Value::Plain(false);
}

GoTemplate::Function Ordered(bool (*holds)(int)) {
  return Exactly(2, [holds](const Arguments& in) -> absl::StatusOr<Value> {
    const absl::StatusOr<int> order = Compare(in[0], in[1]);
    if (!order.ok()) return order.status();
    return Value::Plain(holds(*order));
  });
}

// fmt.Sprint puts blanks between two operands neither of which is a string.
std::string Sprint(const Arguments& in) {
  std::string out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i > 0 && !in[i - 1].text() && !in[i].text()) out += ' ';
    out += Print(in[i]);
  }
  return out;
}

}  // namespace

std::string Sprintf(const Arguments& in) {
  const std::string format = Print(in[0]);
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    size_t verb = i + 1;
    while (verb < format.size() && std::string_view("+-# 0123456789.").find(format[verb]) != std::string_view::npos)
      ++verb;
    if (verb == format.size()) break;
    const std::string flags = format.substr(i + 1, verb - i - 1);
    i = verb;
    if (format[verb] == '%') {
      out += '%';
      continue;
    }
    out += next < in.size() ? Formatted(in[next], flags, format[verb]) : fmt::format("%!{}(MISSING)", format[verb]);
    ++next;
  }
  return out;
}

GoTemplate::Functions BuiltInFunctions() {
  GoTemplate::Functions out;
  out["not"] = Exactly(1, [](const Arguments& in) { return Value::Plain(!IsTrue(in[0])); });
  out["index"] = AtLeast(1, Index);
  out["slice"] = AtLeast(1, Slice);
  out["len"] = Exactly(1, Length);
  out["eq"] = AtLeast(2, EqualToAny);
  out["ne"] = Exactly(2, [](const Arguments& in) -> absl::StatusOr<Value> {
    const absl::StatusOr<bool> same = Equal(in[0], in[1]);
    if (!same.ok()) return same.status();
    return Value::Plain(!*same);
  });
  out["lt"] = Ordered([](int order) { return order < 0; });
  out["le"] = Ordered([](int order) { return order <= 0; });
  out["gt"] = Ordered([](int order) { return order > 0; });
  out["ge"] = Ordered([](int order) { return order >= 0; });
  out["print"] = AtLeast(0, [](const Arguments& in) { return Value::Plain(Sprint(in)); });
  out["printf"] = AtLeast(1, [](const Arguments& in) { return Value::Plain(Sprintf(in)); });
  out["println"] = AtLeast(0, [](const Arguments& in) {
    std::string text;
    for (const Value& each : in) text += (text.empty() ? "" : " ") + Print(each);
    return Value::Plain(text + "\n");
  });
  return out;
}

}  // namespace wavetank::pilot::gotemplate
