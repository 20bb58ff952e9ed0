// What a step can do: one row per action, one file per row. The parser, the schema for editors, the tables of README.md
// and the inputs that reach the world are made of it.
//
// To add one: a file NAME.cc here that defines RegisterName(), and its test in tests/scenarios/actions/. The list of
// all files is made by CMake.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/kube/object.h"
#include "nlohmann/json.hpp"
#include "scenarios/language/rows.h"
#include "scenarios/language/scenario.h"
#include "sim/inputs/input.h"

namespace wavetank::scenario {

// An action's fields as they were read: every one has the type that its row says. What is not given is empty.
class Arguments {
 public:
  explicit Arguments(const Action& action) : in_(action.arguments), line_(action.line) {}
  // Those of a mapping within, which must outlive this.
  Arguments(const nlohmann::json& in, int line) : in_(in), line_(line) {}

  bool Has(std::string_view key) const;
  std::string Text(std::string_view key, std::string_view otherwise = {}) const;
  std::vector<std::string> Texts(std::string_view key) const;
  int64_t Integer(std::string_view key, int64_t otherwise = 0) const;
  bool Flag(std::string_view key) const;
  // These two: nullopt, it is not given.
  std::optional<Duration> Time(std::string_view key) const;
  std::optional<int64_t> Share(std::string_view key) const;  // in ppm
  const nlohmann::json& Json(std::string_view key) const;    // null: not given
  // "namespace/name".
  kube::NamespacedName Named(std::string_view key) const;
  int line() const { return line_; }

 private:
  const nlohmann::json& in_;
  const int line_;
};

// What an action may look at beside its fields.
struct ActionContext {
  const Scenario& scenario;
  std::vector<std::string>* notes;  // on its manifests; may be null
};

using Inputs = absl::StatusOr<std::vector<sim::Input>>;

struct ActionKind {
  MappingRow row;                  // its name is the action's, its meaning stands in the schema
  std::vector<MappingRow> inner;   // rows that fields of this one refer to; "NAME.something"
  std::string_view example, what;  // in README.md: a value of the mapping, and what happens
  // What the row cannot say of its fields; may be null. Mistakes are recorded with the field (Field::Fail).
  void (*check)(const Field& f) = nullptr;
  // In a report, in one line. Never what a Secret holds.
  std::string (*describe)(const Arguments& a) = nullptr;
  // What it does to the world. InvalidArgument names file, line and remedy.
  Inputs (*inputs)(const Arguments& a, const ActionContext& context) = nullptr;
};

// All rows, in the order of their names.
const std::vector<ActionKind>& Actions();
// Null: there is no action of that name.
const ActionKind* FindAction(std::string_view name);

// "scale sample/helloworld-v2 in cluster2 to 3".
std::string Describe(const Action& action);

// What one action of a step does to the world. InvalidArgument names what is wrong with its manifest.
Inputs MakeInputs(const Scenario& scenario, const Action& action, std::vector<std::string>* notes);

}  // namespace wavetank::scenario
