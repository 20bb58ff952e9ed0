#include "core/kube/label_selector.h"

#include <algorithm>

#include "fmt/format.h"

namespace wavetank::kube {
namespace {
absl::Status Invalid(std::string text) { return absl::InvalidArgumentError(text); }
}  // namespace

absl::StatusOr<LabelSelector> LabelSelector::FromJson(const nlohmann::json& selector) {
  LabelSelector out;
  if (selector.is_null()) return out;
  if (!selector.is_object()) return Invalid("a label selector must be a mapping");
  if (const auto it = selector.find("matchLabels"); it != selector.end() && !it->is_null()) {
    if (!it->is_object()) return Invalid("matchLabels must be a mapping");
    for (const auto& [key, value] : it->items()) {
      if (!value.is_string()) return Invalid(fmt::format("matchLabels.{} must be a string", key));
      out.requirements_.push_back({key, Operator::kIn, {value.get<std::string>()}});
    }
  }
  const auto expressions = selector.find("matchExpressions");
  if (expressions == selector.end() || expressions->is_null()) return out;
  if (!expressions->is_array()) return Invalid("matchExpressions must be a list");
  for (size_t i = 0; i < expressions->size(); ++i) {
    const nlohmann::json& e = (*expressions)[i];
    const auto text = [&](const char* field) -> std::string {
      const auto it = e.is_object() ? e.find(field) : e.end();
      return it != e.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    Requirement requirement{text("key"), Operator::kIn, {}};
    if (requirement.key.empty()) return Invalid(fmt::format("matchExpressions[{}].key must be a label's name", i));
    const std::string op = text("operator");
    if (op == "In") {
      requirement.op = Operator::kIn;
    } else if (op == "NotIn") {
      requirement.op = Operator::kNotIn;
    } else if (op == "Exists") {
      requirement.op = Operator::kExists;
    } else if (op == "DoesNotExist") {
      requirement.op = Operator::kDoesNotExist;
    } else {
      return Invalid(
          fmt::format("matchExpressions[{}].operator is \"{}\"; expected In, NotIn, Exists or DoesNotExist", i, op));
    }
    if (const auto values = e.find("values"); values != e.end() && values->is_array()) {
      for (const nlohmann::json& value : *values) {
        if (!value.is_string()) return Invalid(fmt::format("matchExpressions[{}].values must be strings", i));
        requirement.values.push_back(value);
      }
    }
    const bool needs_values = requirement.op == Operator::kIn || requirement.op == Operator::kNotIn;
    if (needs_values == requirement.values.empty()) {
      return Invalid(fmt::format("matchExpressions[{}].values must be {} for operator {}", i,
                                 needs_values ? "given" : "absent", op));
    }
    out.requirements_.push_back(std::move(requirement));
  }
  return out;
}

bool LabelSelector::Matches(const Labels& labels) const {
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const auto it = labels.find(r.key);
    const bool has = it != labels.end();
    const bool in = has && std::find(r.values.begin(), r.values.end(), it->second) != r.values.end();
    switch (r.op) {
      case Operator::kIn:
        return in;
      case Operator::kNotIn:
        return !in;
      case Operator::kExists:
        return has;
      case Operator::kDoesNotExist:
        return !has;
    }
    return false;
  });
}

}  // namespace wavetank::kube
