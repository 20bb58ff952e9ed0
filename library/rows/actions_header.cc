#include "library/rows/actions_header.h"

#include <cctype>
#include <set>

#include "fmt/format.h"
#include "scenarios/actions/action.h"

namespace wavetank::library {
namespace {

using scenario::FieldRow;
using scenario::FieldType;

std::string StructName(std::string_view action) {
  std::string out(action);
  out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

// A field's name where a language does not take the row's own.
std::string MemberName(std::string_view field, const std::set<std::string_view>& keywords) {
  if (field == "namespace") return "ns";
  return keywords.contains(field) ? std::string(field) + "_" : std::string(field);
}

enum class Form { kText, kInteger, kFlag, kTexts, kTextMap, kValue };
Form FormOf(FieldType type) {
  switch (type) {
    case FieldType::kInteger:
      return Form::kInteger;
    case FieldType::kFlag:
      return Form::kFlag;
    case FieldType::kTexts:
    case FieldType::kClusters:
    case FieldType::kAddresses:
      return Form::kTexts;
    case FieldType::kTextMap:
      return Form::kTextMap;
    case FieldType::kShares:
    case FieldType::kMapping:
    case FieldType::kMappings:
    case FieldType::kManifests:
    case FieldType::kObject:
    case FieldType::kObjects:
    case FieldType::kTextOrObject:
      return Form::kValue;
    default:
      return Form::kText;  // durations, shares and rates as a scenario writes them, too
  }
}

std::string Meaning(const FieldRow& field) {
  std::string out(field.meaning);
  if (field.type == FieldType::kNamespacedName && out.find('/') == std::string::npos) out += ", namespace/name";
  if (!field.choices.empty()) {
    if (!out.empty()) out += ": ";
    for (const std::string_view choice : field.choices)
      out += fmt::format("{}{}", choice == field.choices[0] ? "" : ", ", choice);
  }
  return out.empty() ? fmt::format("As `{}` of a scenario", field.name) : out;
}

std::string CppStruct(const scenario::ActionKind& kind) {
  static const std::set<std::string_view> kKeywords = {"default",  "delete", "for",  "new",   "operator",
                                                       "register", "switch", "this", "class", "static"};
  static const std::vector<std::string_view> kTypes = {
      "std::string", "int64_t", "bool", "std::vector<std::string>", "std::map<std::string, std::string>", "Value"};
  const std::string name = StructName(kind.row.name);
  std::string members, body;
  for (const FieldRow& field : kind.row.fields) {
    const std::string member = MemberName(field.name, kKeywords);
    const Form form = FormOf(field.type);
    const std::string_view type = kTypes[static_cast<size_t>(form)];
    // Lists and mappings are empty where they are left out, as nothing else follows from empty ones. (An optional
    // mapping cannot be given as {{"a", "b"}}: that is a range of two pointers to it.)
    const bool several = form == Form::kTexts || form == Form::kTextMap;
    const bool always = field.required || form == Form::kValue || several;
    members += fmt::format("  /// {}{}\n  {} {}{};\n", Meaning(field), field.required ? "; required" : "",
                           always ? std::string(type) : fmt::format("std::optional<{}>", type), member,
                           always ? "{}" : " = std::nullopt");
    const std::string set = fmt::format("out.fields[\"{}\"] = {}{};", field.name, always ? "" : "*", member);
    if (field.required) {
      body += "    " + set + "\n";
    } else {
      body += fmt::format("    if ({}) {}\n",
                          form == Form::kValue ? "!" + member + ".IsNull()"
                          : several            ? "!" + member + ".empty()"
                                               : member,
                          set);
    }
  }
  return fmt::format(
      "/// {}. {}: `{}`\nstruct {} {{\n{}\n  operator Action() const {{  // NOLINT: it is one\n    Action out{{\"{}\", "
      "{{}}}};\n{}    "
      "return out;\n  }}\n}};\n",
      kind.row.meaning, kind.row.name, kind.example, name, members, kind.row.name, body);
}

std::string PythonClass(const scenario::ActionKind& kind) {
  static const std::set<std::string_view> kKeywords = {"from",  "in",  "is",   "not",   "for",
                                                       "class", "del", "with", "global"};
  static const std::vector<std::string_view> kTypes = {"str", "int", "bool", "Sequence[str]", "Mapping[str, str]",
                                                       "Any"};
  std::string required, optional;
  std::string names;
  for (const FieldRow& field : kind.row.fields) {
    const std::string member = MemberName(field.name, kKeywords);
    const std::string_view type = kTypes[static_cast<size_t>(FormOf(field.type))];
    if (field.required) {
      required += fmt::format("    {}: {}  # {}\n", member, type, Meaning(field));
    } else {
      optional += fmt::format("    {}: Optional[{}] = None  # {}\n", member, type, Meaning(field));
    }
    names += fmt::format("{}\"{}\": \"{}\"", names.empty() ? "" : ", ", member, field.name);
  }
  return fmt::format(
      "@dataclass(frozen=True)\nclass {}(Action):\n    \"\"\"{}: `{}: {}`\"\"\"\n\n    _kind: ClassVar[str] = \"{}\"\n "
      " "
      "  "
      "_names: ClassVar[Mapping[str, str]] = {{{}}}\n{}{}\n\n",
      StructName(kind.row.name), kind.row.meaning, kind.row.name, kind.example, kind.row.name, names, required,
      optional);
}

}  // namespace

std::string ActionsHeader() {
  std::string out =
      "/// \\file\n/// Actions as structs, made of the rows of the scenario language (`wavetank schema --actions "
      "cpp`). Durations, shares and "
      "rates are\n/// written as in a scenario: \"500ms\", \"10%\", \"100/s\".\n#pragma once\n\n#include "
      "<cstdint>\n#include "
      "<map>\n#include <optional>\n#include <string>\n#include <vector>\n\n#include \"wavetank/action.h\"\n\nnamespace "
      "wavetank::actions {\n\n";
  for (const scenario::ActionKind& kind : scenario::Actions()) out += CppStruct(kind) + "\n";
  return out + "}  // namespace wavetank::actions\n";
}

std::string ActionsModule() {
  std::string out =
      "\"\"\"Actions as dataclasses, made of the rows of the scenario language (`wavetank schema --actions "
      "python`).\n\nDurations, shares "
      "and rates are written as in a scenario: \"500ms\", \"10%\", \"100/s\".\n\"\"\"\nfrom dataclasses import "
      "dataclass\nfrom typing import Any, ClassVar, Mapping, Optional, Sequence\n\nfrom wavetank._action import "
      "Action\n\n\n";
  for (const scenario::ActionKind& kind : scenario::Actions()) out += PythonClass(kind);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace wavetank::library
