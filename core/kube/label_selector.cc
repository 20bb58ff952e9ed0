#include "core/kube/label_selector.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "fmt/format.h"

namespace wavetank::kube {
namespace {

absl::Status Invalid(std::string text) { return absl::InvalidArgumentError(text); }

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Splits at commas outside parentheses.
std::vector<std::string_view> SplitTop(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  return parts;
}

bool ValidKey(std::string_view key) {
  if (key.empty() || key.size() > 317) return false;
  return std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

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

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (std::string_view part : SplitTop(text)) {
    Requirement r;
    const auto bad = [&] {
      return absl::InvalidArgumentError(fmt::format(
          "label selector '{}': cannot read '{}'; write key=value, key!=value, key in (a,b), key or !key", text, part));
    };
    if (!part.empty() && part.front() == '!') {
      r = {std::string(Trim(part.substr(1))), Operator::kDoesNotExist, {}};
    } else if (const size_t open = part.find('('); open != std::string_view::npos && part.back() == ')') {
      std::string_view head = Trim(part.substr(0, open));
      if (head.size() > 6 && head.substr(head.size() - 6) == " notin") {
        r = {std::string(Trim(head.substr(0, head.size() - 6))), Operator::kNotIn, {}};
      } else if (head.size() > 3 && head.substr(head.size() - 3) == " in") {
        r = {std::string(Trim(head.substr(0, head.size() - 3))), Operator::kIn, {}};
      } else {
        return bad();
      }
      for (std::string_view value : SplitTop(part.substr(open + 1, part.size() - open - 2)))
        r.values.emplace_back(value);
    } else if (const size_t ne = part.find("!="); ne != std::string_view::npos) {
      r = {std::string(Trim(part.substr(0, ne))), Operator::kNotIn, {std::string(Trim(part.substr(ne + 2)))}};
    } else if (const size_t eq = part.find('='); eq != std::string_view::npos) {
      std::string_view value = part.substr(eq + 1);
      if (!value.empty() && value.front() == '=') value.remove_prefix(1);
      r = {std::string(Trim(part.substr(0, eq))), Operator::kIn, {std::string(Trim(value))}};
    } else {
      r = {std::string(part), Operator::kExists, {}};
    }
    if (!ValidKey(r.key)) return bad();
    selector.requirements_.push_back(std::move(r));
  }
  return selector;
}

LabelSelector LabelSelector::FromLabels(const Labels& labels) {
  LabelSelector selector;
  for (const auto& [key, value] : labels) selector.requirements_.push_back({key, Operator::kIn, {value}});
  return selector;
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
