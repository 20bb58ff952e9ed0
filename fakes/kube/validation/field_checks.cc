#include "fakes/kube/validation/field_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/json_access.h"

namespace wavetank::fakekube {

using nlohmann::json;

namespace {
constexpr const char* kNotNegative = "must be greater than or equal to 0";
}  // namespace

void CheckNotNegative(const json& in, const char* name, const std::string& at, FieldErrors* errors) {
  const json& value = At(in, name);
  if (value.is_number_integer() && value.get<int64_t>() < 0)
    errors->push_back(InvalidField(at + "." + name, value, kNotNegative));
}

void CheckReplicasAreFew(const json& in, const char* name, const std::string& at, FieldErrors* errors) {
  if (NumberOf(At(in, name)) > kMostReplicas)
    errors->push_back(InvalidField(at + "." + name, At(in, name),
                                   fmt::format("a simulated workload has at most {} replicas", kMostReplicas)));
}

void CheckCountOrPercent(const json& value, const std::string& field, FieldErrors* errors) {
  if (value.is_number_integer()) {
    if (value.get<int64_t>() < 0) errors->push_back(InvalidField(field, value, kNotNegative));
    return;
  }
  if (!value.is_string()) return;
  const std::string text = value.get<std::string>();
  int percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool is_percent = error == std::errc() && end + 1 == text.data() + text.size() && *end == '%' && percent >= 0;
  if (!is_percent) {
    errors->push_back(InvalidField(field, value,
                                   "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
                                   "'1%',  or '93%', regex used for validation is '[0-9]+%')"));
  } else if (percent > 100) {
    errors->push_back(InvalidField(field, value, "must not be greater than 100%"));
  }
}

void CheckWord(const json& value, const std::string& field, std::vector<std::string> supported, FieldErrors* errors) {
  if (value.is_null()) return;
  if (std::find(supported.begin(), supported.end(), TextOf(value)) == supported.end())
    errors->push_back(UnsupportedField(field, value, std::move(supported)));
}

void CheckSelector(const json& selector, const std::string& at, FieldErrors* errors) {
  const json& expressions = Items(At(selector, "matchExpressions"));
  for (size_t i = 0; i < expressions.size(); ++i) {
    const std::string field = fmt::format("{}.matchExpressions[{}]", at, i), op = Text(expressions[i], "operator");
    const bool none = Items(At(expressions[i], "values")).empty();
    if (op == "In" || op == "NotIn") {
      if (none)
        errors->push_back(RequiredField(field + ".values", "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!none)
        errors->push_back(
            ForbiddenField(field + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    } else {
      errors->push_back(InvalidField(field + ".operator", op, "not a valid selector operator"));
    }
  }
}

}  // namespace wavetank::fakekube
