#include "fakes/kube/objects/selector.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/json_text.h"

namespace wavetank::fakekube {
namespace {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

}  // namespace

absl::StatusOr<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  if (Trim(text).empty()) return selector;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view part = Trim(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const size_t eq = part.find('=');
    if (eq == std::string_view::npos || eq == 0) {
      return absl::InvalidArgumentError(fmt::format("invalid selector: '{}'; can't understand '{}'", text, part));
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

std::vector<std::string> FieldSelector::Paths() const {
  std::vector<std::string> paths;
  for (const Requirement& r : requirements_) paths.push_back(fmt::format("{}", fmt::join(r.path, ".")));
  return paths;
}

std::optional<std::string> FieldSelector::Exactly(std::string_view path) const {
  for (const Requirement& r : requirements_) {
    if (r.equal && fmt::format("{}", fmt::join(r.path, ".")) == path) return r.value;
  }
  return std::nullopt;
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
    if (at != nullptr && !at->is_string() && at->is_primitive() && !at->is_null()) value = JsonText(*at);
    // A field that Go leaves out where it is false.
    if (value.empty() && r.path.back() == "unschedulable") value = "false";
    if ((value == r.value) != r.equal) return false;
  }
  return true;
}

}  // namespace wavetank::fakekube
