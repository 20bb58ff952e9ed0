#include "sim/inputs/input.h"

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"

namespace wavetank::sim {

using nlohmann::json;

void RegisterInputKinds(InputTable& table);  // made by CMake: every file of this folder adds its kinds

const InputTable& AllInputs() {
  static const auto* const table = [] {
    auto* made = new InputTable();
    RegisterInputKinds(*made);
    return made;
  }();
  return *table;
}

absl::StatusOr<Input> Input::Parse(std::string_view kind, const json& body) {
  for (const auto& [name, read] : AllInputs().rows_) {
    if (name == kind) return read(body);
  }
  return absl::UnimplementedError(fmt::format("no input is of kind '{}'", kind));
}

json Input::Print() const {
  return PrintFields([this](FieldVisitor& visitor) { held_->Visit(visitor); });
}

absl::StatusOr<Input> Input::AsItsTextSays() const {
  if (AreWhatTheirTextSays([this](FieldVisitor& visitor) { held_->Visit(visitor); })) return *this;
  absl::StatusOr<Input> read = Parse(kind(), ParseJson(JsonText(Print())));
  if (read.ok()) read->of_real_istiod = of_real_istiod;
  return read;
}

std::string Input::cluster() const { return Text(Print(), "cluster"); }

std::vector<std::string_view> InputKinds() {
  std::vector<std::string_view> out;
  for (const auto& [name, read] : AllInputs().rows_) out.push_back(name);
  return out;
}

}  // namespace wavetank::sim
