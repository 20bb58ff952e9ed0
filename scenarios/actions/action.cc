#include "scenarios/actions/action.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::scenario {

void RegisterActions(std::vector<ActionKind>& table);  // made by CMake: every file of this folder adds its rows

bool Arguments::Has(std::string_view key) const { return !Json(key).is_null(); }

std::string Arguments::Text(std::string_view key, std::string_view otherwise) const {
  const nlohmann::json& value = Json(key);
  if (value.is_null()) return std::string(otherwise);
  return value.is_string() ? value.get<std::string>() : JsonText(value);
}

std::vector<std::string> Arguments::Texts(std::string_view key) const {
  std::vector<std::string> out;
  for (const nlohmann::json& item : Items(Json(key))) out.push_back(TextOf(item));
  return out;
}

int64_t Arguments::Integer(std::string_view key, int64_t otherwise) const { return NumberOf(Json(key), otherwise); }

bool Arguments::Flag(std::string_view key) const { return Json(key) == true; }

std::optional<Duration> Arguments::Time(std::string_view key) const { return ParseSignedDuration(Text(key)); }

std::optional<int64_t> Arguments::Share(std::string_view key) const { return ParseShare(Text(key)); }

const nlohmann::json& Arguments::Json(std::string_view key) const { return At(in_, key); }

kube::NamespacedName Arguments::Named(std::string_view key) const {
  const std::string text = Text(key);
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {"", text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

const std::vector<ActionKind>& Actions() {
  static const auto* const all = [] {
    auto* made = new std::vector<ActionKind>();
    RegisterActions(*made);
    std::sort(made->begin(), made->end(), [](const auto& a, const auto& b) { return a.row.name < b.row.name; });
    return made;
  }();
  return *all;
}

const ActionKind* FindAction(std::string_view name) {
  const std::vector<ActionKind>& all = Actions();
  const auto it = std::find_if(all.begin(), all.end(), [&](const ActionKind& kind) { return kind.row.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::string Describe(const Action& action) {
  const ActionKind* kind = FindAction(action.kind);
  return kind == nullptr ? action.kind : kind->describe(Arguments(action));
}

Inputs MakeInputs(const Scenario& scenario, const Action& action, std::vector<std::string>* notes) {
  const ActionKind* kind = FindAction(action.kind);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: no action is named '{}'", scenario.file, action.line, action.kind));
  }
  return kind->inputs(Arguments(action), {scenario, notes});
}

}  // namespace wavetank::scenario
