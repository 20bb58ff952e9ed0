#include "fakes/kube/validation/field_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/bounds.h"
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
  if (NumberOf(At(in, name)) > bounds::kReplicas)
    errors->push_back(InvalidField(at + "." + name, At(in, name),
                                   fmt::format("a simulated workload has at most {} replicas", bounds::kReplicas)));
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

namespace {

constexpr const char* kNoOperator = "not a valid selector operator";

// What LabelSelectorRequirement and NodeSelectorRequirement have in common. True: the operator is one of both.
bool CheckMembership(const json& requirement, const std::string& field, FieldErrors* errors) {
  const std::string op = Text(requirement, "operator");
  const bool none = Items(At(requirement, "values")).empty();
  if (op == "In" || op == "NotIn") {
    if (none)
      errors->push_back(RequiredField(field + ".values", "must be specified when `operator` is 'In' or 'NotIn'"));
    return true;
  }
  if (op != "Exists" && op != "DoesNotExist") return false;
  if (!none)
    errors->push_back(
        ForbiddenField(field + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  return true;
}

// kubernetes: pkg/apis/core/validation, ValidateNodeSelectorTerm().
void CheckNodeTerm(const json& term, const std::string& at, FieldErrors* errors) {
  const json& expressions = Items(At(term, "matchExpressions"));
  for (size_t i = 0; i < expressions.size(); ++i) {
    const std::string field = fmt::format("{}.matchExpressions[{}]", at, i), op = Text(expressions[i], "operator");
    if (CheckMembership(expressions[i], field, errors)) continue;
    if (op != "Gt" && op != "Lt") {
      errors->push_back(InvalidField(field + ".operator", op, kNoOperator));
    } else if (Items(At(expressions[i], "values")).size() != 1) {
      errors->push_back(
          RequiredField(field + ".values", "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  }
  const json& fields = Items(At(term, "matchFields"));
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string field = fmt::format("{}.matchFields[{}]", at, i), op = Text(fields[i], "operator");
    if (op != "In" && op != "NotIn") {
      errors->push_back(InvalidField(field + ".operator", op, kNoOperator));
    } else if (Items(At(fields[i], "values")).size() != 1) {
      errors->push_back(RequiredField(
          field + ".values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"));
    }
    if (Text(fields[i], "key") != "metadata.name")
      errors->push_back(InvalidField(field + ".key", Text(fields[i], "key"), "not a valid field selector key"));
  }
}

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

// Calls `check` with the term below each preference and its field.
template <class Check>
void CheckPreferences(const json& affinity, const char* term, const std::string& at, FieldErrors* errors, Check check) {
  const json& preferences = Items(At(affinity, kPreferred));
  for (size_t i = 0; i < preferences.size(); ++i) {
    const std::string field = fmt::format("{}.{}[{}]", at, kPreferred, i);
    if (const int64_t weight = NumberOf(At(preferences[i], "weight")); weight <= 0 || weight > 100)
      errors->push_back(InvalidField(field + ".weight", weight, "must be in the range 1-100"));
    check(At(preferences[i], term), field + "." + term);
  }
}

}  // namespace

void CheckSelector(const json& selector, const std::string& at, FieldErrors* errors) {
  const json& expressions = Items(At(selector, "matchExpressions"));
  for (size_t i = 0; i < expressions.size(); ++i) {
    const std::string field = fmt::format("{}.matchExpressions[{}]", at, i);
    if (!CheckMembership(expressions[i], field, errors))
      errors->push_back(InvalidField(field + ".operator", Text(expressions[i], "operator"), kNoOperator));
  }
}

void CheckAffinity(const json& affinity, const std::string& at, FieldErrors* errors) {
  if (const json& nodes = At(affinity, "nodeAffinity"); nodes.is_object()) {
    if (const json& required = At(nodes, kRequired); required.is_object()) {
      const std::string field = fmt::format("{}.nodeAffinity.{}.nodeSelectorTerms", at, kRequired);
      const json& terms = Items(At(required, "nodeSelectorTerms"));
      if (terms.empty()) errors->push_back(RequiredField(field, "must have at least one node selector term"));
      for (size_t i = 0; i < terms.size(); ++i) CheckNodeTerm(terms[i], fmt::format("{}[{}]", field, i), errors);
    }
    CheckPreferences(nodes, "preference", at + ".nodeAffinity", errors,
                     [&](const json& term, const std::string& field) { CheckNodeTerm(term, field, errors); });
  }
  const auto check_pods = [&](const json& term, const std::string& field) {
    CheckSelector(At(term, "labelSelector"), field + ".labelSelector", errors);
    CheckSelector(At(term, "namespaceSelector"), field + ".namespaceSelector", errors);
    if (Text(term, "topologyKey").empty()) errors->push_back(RequiredField(field + ".topologyKey", "can not be empty"));
  };
  for (const char* which : {"podAffinity", "podAntiAffinity"}) {
    const json& pods = At(affinity, which);
    const std::string field = at + "." + which;
    const json& required = Items(At(pods, kRequired));
    for (size_t i = 0; i < required.size(); ++i) check_pods(required[i], fmt::format("{}.{}[{}]", field, kRequired, i));
    CheckPreferences(pods, "podAffinityTerm", field, errors, check_pods);
  }
}

}  // namespace wavetank::fakekube
