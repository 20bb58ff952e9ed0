#include "core/kube/label_selector.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
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

// strconv.ParseInt(text, 10, 64).
std::optional<int64_t> Integer(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string TextIn(const nlohmann::json& expression, const char* field) {
  const auto it = expression.is_object() ? expression.find(field) : expression.end();
  return it != expression.end() && it->is_string() ? it->get<std::string>() : std::string();
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
  if (absl::Status status = out.Add(*expressions, false); !status.ok()) return status;
  return out;
}

absl::StatusOr<LabelSelector> LabelSelector::FromNodeExpressions(const nlohmann::json& expressions) {
  LabelSelector out;
  if (expressions.is_null()) return out;
  if (absl::Status status = out.Add(expressions, true); !status.ok()) return status;
  return out;
}

absl::Status LabelSelector::Add(const nlohmann::json& expressions, bool may_compare) {
  if (!expressions.is_array()) return Invalid("matchExpressions must be a list");
  for (size_t i = 0; i < expressions.size(); ++i) {
    const nlohmann::json& e = expressions[i];
    Requirement requirement{TextIn(e, "key"), Operator::kIn, {}};
    if (requirement.key.empty()) return Invalid(fmt::format("matchExpressions[{}].key must be a label's name", i));
    const std::string op = TextIn(e, "operator");
    if (op == "In") {
      requirement.op = Operator::kIn;
    } else if (op == "NotIn") {
      requirement.op = Operator::kNotIn;
    } else if (op == "Exists") {
      requirement.op = Operator::kExists;
    } else if (op == "DoesNotExist") {
      requirement.op = Operator::kDoesNotExist;
    } else if (may_compare && op == "Gt") {
      requirement.op = Operator::kGreaterThan;
    } else if (may_compare && op == "Lt") {
      requirement.op = Operator::kLessThan;
    } else {
      return Invalid(fmt::format("matchExpressions[{}].operator is \"{}\"; expected In, NotIn, Exists{} DoesNotExist{}",
                                 i, op, may_compare ? "," : " or", may_compare ? ", Gt or Lt" : ""));
    }
    if (const auto values = e.find("values"); values != e.end() && values->is_array()) {
      for (const nlohmann::json& value : *values) {
        if (!value.is_string()) return Invalid(fmt::format("matchExpressions[{}].values must be strings", i));
        requirement.values.push_back(value.get<std::string>());
      }
    }
    const bool needs_values = requirement.op != Operator::kExists && requirement.op != Operator::kDoesNotExist;
    if (needs_values == requirement.values.empty()) {
      return Invalid(fmt::format("matchExpressions[{}].values must be {} for operator {}", i,
                                 needs_values ? "given" : "absent", op));
    }
    const bool compares = requirement.op == Operator::kGreaterThan || requirement.op == Operator::kLessThan;
    if (compares && (requirement.values.size() != 1 || !Integer(requirement.values[0])))
      return Invalid(fmt::format("matchExpressions[{}].values must be one integer for operator {}", i, op));
    requirements_.push_back(std::move(requirement));
  }
  return absl::OkStatus();
}

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (std::string_view part : SplitTop(text)) {
    Requirement r;
    const auto bad = [&] {
      return absl::InvalidArgumentError(fmt::format(
          "label selector '{}': cannot read '{}'; write key=value, key!=value, key in (a,b), key, !key, key>1 or key<1",
          text, part));
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
    } else if (const size_t order = part.find_first_of("<>"); order != std::string_view::npos) {
      const std::string_view number = Trim(part.substr(order + 1));
      r = {std::string(Trim(part.substr(0, order))),
           part[order] == '>' ? Operator::kGreaterThan : Operator::kLessThan,
           {std::string(number)}};
      // apimachinery: pkg/labels/selector.go, NewRequirement().
      if (ValidKey(r.key) && !Integer(number)) {
        return Invalid(fmt::format(
            "values[0]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, the value must be an integer", number));
      }
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

bool LabelSelector::Meets(const Requirement& r, const Labels& labels) {
  const auto it = labels.find(r.key);
  const bool has = it != labels.end();
  const auto among = [&] { return has && std::find(r.values.begin(), r.values.end(), it->second) != r.values.end(); };
  switch (r.op) {
    case Operator::kIn:
      return among();
    case Operator::kNotIn:
      return !among();
    case Operator::kExists:
      return has;
    case Operator::kDoesNotExist:
      return !has;
    case Operator::kGreaterThan:
    case Operator::kLessThan: {
      // A label that is no number is neither.
      const std::optional<int64_t> is = has ? Integer(it->second) : std::nullopt, than = Integer(r.values[0]);
      return is && than && (r.op == Operator::kGreaterThan ? *is > *than : *is < *than);
    }
  }
  return false;
}

bool LabelSelector::Matches(const Labels& labels) const {
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return Meets(requirement, labels); });
}

}  // namespace wavetank::kube
