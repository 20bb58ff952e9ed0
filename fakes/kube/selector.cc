#include "fakes/kube/selector.h"

#include <fmt/format.h>

#include <algorithm>

namespace wavetank::fakekube {
namespace {

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

LabelSelector LabelSelector::FromLabels(const kube::Labels& labels) {
  LabelSelector selector;
  for (const auto& [key, value] : labels) selector.requirements_.push_back({key, Operator::kIn, {value}});
  return selector;
}

absl::StatusOr<LabelSelector> LabelSelector::FromJson(const nlohmann::json& json) {
  LabelSelector selector;
  if (json.is_null()) return selector;
  if (!json.is_object()) return absl::InvalidArgumentError("selector: expected a mapping");
  const bool structured = json.contains("matchLabels") || json.contains("matchExpressions");
  const nlohmann::json labels = structured ? json.value("matchLabels", nlohmann::json::object()) : json;
  if (!labels.is_object()) return absl::InvalidArgumentError("selector.matchLabels: expected a mapping");
  for (const auto& [key, value] : labels.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(fmt::format("selector: the value of '{}' is no text; put it into quotes", key));
    }
    selector.requirements_.push_back({key, Operator::kIn, {value.get<std::string>()}});
  }
  if (!structured || !json.contains("matchExpressions")) return selector;
  for (const nlohmann::json& expression : json.at("matchExpressions")) {
    if (!expression.is_object()) return absl::InvalidArgumentError("selector.matchExpressions: expected mappings");
    Requirement r;
    r.key = expression.value("key", "");
    const std::string op = expression.value("operator", "");
    if (op == "In") {
      r.op = Operator::kIn;
    } else if (op == "NotIn") {
      r.op = Operator::kNotIn;
    } else if (op == "Exists") {
      r.op = Operator::kExists;
    } else if (op == "DoesNotExist") {
      r.op = Operator::kDoesNotExist;
    } else {
      return absl::InvalidArgumentError(
          fmt::format("selector.matchExpressions: '{}' is no operator; In, NotIn, Exists or DoesNotExist", op));
    }
    for (const nlohmann::json& value : expression.value("values", nlohmann::json::array())) {
      if (value.is_string()) r.values.push_back(value.get<std::string>());
    }
    selector.requirements_.push_back(std::move(r));
  }
  return selector;
}

bool LabelSelector::Matches(const kube::Labels& labels) const {
  for (const Requirement& r : requirements_) {
    const auto it = labels.find(r.key);
    const bool present = it != labels.end();
    const bool listed = present && std::find(r.values.begin(), r.values.end(), it->second) != r.values.end();
    switch (r.op) {
      case Operator::kIn:
        if (!listed) return false;
        break;
      case Operator::kNotIn:
        if (listed) return false;
        break;
      case Operator::kExists:
        if (!present) return false;
        break;
      case Operator::kDoesNotExist:
        if (present) return false;
        break;
    }
  }
  return true;
}

absl::StatusOr<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  if (Trim(text).empty()) return selector;
  for (std::string_view part : SplitTop(text)) {
    const size_t eq = part.find('=');
    if (eq == std::string_view::npos || eq == 0) {
      return absl::InvalidArgumentError(
          fmt::format("field selector '{}': cannot read '{}'; write path=value", text, part));
    }
    const bool equal = part[eq - 1] != '!';
    std::string_view path = Trim(part.substr(0, equal ? eq : eq - 1));
    std::string_view value = part.substr(eq + 1);
    if (!value.empty() && value.front() == '=') value.remove_prefix(1);
    Requirement r;
    r.equal = equal;
    r.value = std::string(Trim(value));
    while (!path.empty()) {
      const size_t dot = path.find('.');
      r.path.emplace_back(path.substr(0, dot));
      path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    selector.requirements_.push_back(std::move(r));
  }
  return selector;
}

bool FieldSelector::Matches(const kube::Object& object) const {
  for (const Requirement& r : requirements_) {
    const nlohmann::json* at = &object.body;
    for (const std::string& key : r.path) {
      const auto it = at->is_object() ? at->find(key) : at->end();
      if (!at->is_object() || it == at->end()) {
        at = nullptr;
        break;
      }
      at = &*it;
    }
    std::string value;
    if (at != nullptr && at->is_string()) value = at->get<std::string>();
    if (at != nullptr && !at->is_string() && at->is_primitive() && !at->is_null()) value = at->dump();
    if ((value == r.value) != r.equal) return false;
  }
  return true;
}

}  // namespace wavetank::fakekube
