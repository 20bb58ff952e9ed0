#include "fakes/kube/http/api/schema_rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "core/base/cel/cel_expression.h"
#include "core/base/cel/cel_optional.h"
#include "core/base/json/json_read.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::fakekube::http {
namespace {

using cel::CelExpression;
using cel::CelList;
using cel::CelMap;
using cel::CelText;
using cel::CelValue;
using nlohmann::json;

constexpr const char* kRules = "x-kubernetes-validations";
// Kubernetes counts what rules cost in units of its own, of which an object's may take ten million.
constexpr int64_t kMostSteps = 2'000'000;
constexpr size_t kLongestMessage = 5 * 1024;

CelValue CelOf(const json& schema, const json& value, bool is_resource);

// A field's name as rules write it (apiserver: pkg/cel/escaping.go).
std::string Unescaped(const std::string& name) {
  if (name.find("__") == std::string::npos) return name;
  static constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const std::string_view rest = std::string_view(name).substr(i);
    const auto* const escape = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                            [&](const auto& one) { return rest.starts_with(one.first); });
    if (escape == std::end(kEscapes)) {
      out += name[i++];
    } else {
      out += escape->second;
      i += escape->first.size();
    }
  }
  // A word that CEL keeps for itself: __namespace__.
  static constexpr std::string_view kReserved[] = {
      "true", "false",  "null", "in",   "as",      "break",     "const",  "continue", "else", "for",  "function",
      "if",   "import", "let",  "loop", "package", "namespace", "return", "var",      "void", "while"};
  for (const std::string_view word : kReserved) {
    if (out == fmt::format("__{}__", word)) return std::string(word);
  }
  return out;
}

// An object whose fields its schema names, or a mapping of any keys.
class ObjectMap final : public CelMap {
 public:
  ObjectMap(const json& schema, const json& object, bool is_resource)
      : schema_(schema), object_(object), is_resource_(is_resource) {}

  CelValue Get(const CelValue& key) const override {
    const auto* const name = key.As<std::string>();
    if (name == nullptr) return {};
    const std::string field = Named() ? Unescaped(*name) : *name;
    const auto it = object_.find(field);
    const json* const of = it == object_.end() ? nullptr : SchemaOf(field);
    if (of == nullptr || it->is_null()) return cel::CelNoSuchKey(*name);
    return CelOf(*of, *it, false);
  }
  std::optional<int64_t> size() const override { return static_cast<int64_t>(Fields().size()); }
  std::vector<CelValue> Keys() const override {
    std::vector<CelValue> out;
    for (const std::string& field : Fields()) out.push_back(CelText(field));
    return out;
  }

 private:
  bool Named() const { return At(schema_, "properties").is_object(); }
  const json* SchemaOf(const std::string& field) const {
    static const json kText = {{"type", "string"}};
    static const json kMeta = {{"type", "object"}, {"properties", {{"name", kText}, {"generateName", kText}}}};
    if (is_resource_ && (field == "apiVersion" || field == "kind")) return &kText;
    if (is_resource_ && field == "metadata") return &kMeta;
    const json& properties = At(schema_, "properties");
    if (properties.is_object()) {
      if (const auto it = properties.find(field); it != properties.end()) return &*it;
    }
    const json& more = At(schema_, "additionalProperties");
    if (more.is_object()) return &more;
    return At(schema_, "x-kubernetes-preserve-unknown-fields") == true || more == true ? &Null() : nullptr;
  }
  std::vector<std::string> Fields() const {
    std::vector<std::string> out;
    for (const auto& [key, value] : object_.items()) {
      if (!value.is_null() && SchemaOf(key) != nullptr) out.push_back(key);
    }
    return out;
  }

  const json& schema_;
  const json& object_;
  const bool is_resource_;
};

CelValue TextValue(const json& schema, const std::string& text) {
  const std::string format = Text(schema, "format");
  if (format == "date-time" || format == "date") {
    absl::Time time;
    const char* const as = format == "date" ? "%Y-%m-%d" : absl::RFC3339_full;
    return absl::ParseTime(as, text, &time, nullptr) ? CelValue{time} : CelValue{};
  }
  if (format == "duration") {
    absl::Duration duration;
    return absl::ParseDuration(text, &duration) ? CelValue{duration} : CelValue{};
  }
  if (format == "byte") {
    std::string bytes;
    return absl::Base64Unescape(text, &bytes) ? CelValue{cel::CelBytes{std::move(bytes)}} : CelValue{};
  }
  return CelText(text);
}

CelValue CelOf(const json& schema, const json& value, bool is_resource) {
  if (value.is_object())
    return {std::shared_ptr<const CelMap>(std::make_shared<ObjectMap>(schema, value, is_resource))};
  if (value.is_array()) {
    CelList list;
    for (const json& item : value) list.push_back(CelOf(At(schema, "items"), item, false));
    return {std::make_shared<const CelList>(std::move(list))};
  }
  if (value.is_string()) return TextValue(schema, value.get_ref<const std::string&>());
  if (value.is_boolean()) return {value.get<bool>()};
  if (value.is_number()) {
    if (Text(schema, "type") == "number" || !value.is_number_integer()) return {value.get<double>()};
    return {value.get<int64_t>()};
  }
  return {cel::CelNull{}};
}

// As the author of a rule is shown it.
std::string Shown(const json& rule) {
  const std::string message(absl::StripAsciiWhitespace(Text(rule, "message")));
  return message.empty() ? std::string(absl::StripAsciiWhitespace(Text(rule, "rule"))) : message;
}

class RuleChecker {
 public:
  RuleChecker(bool ratchets, RuleVerdict* verdict) : ratchets_(ratchets), verdict_(*verdict) {}

  // `node`: the schema that says what is where; `rules`: it, or a part of its allOf.
  void Check(const json& rules, const json& node, const std::string& path, const json& value, const json& old,
             bool unchanged, bool is_resource) {
    if (budget_ < 0 || !rules.is_object() || value.is_null()) return;
    unchanged = unchanged || (!old.is_null() && value == old);
    for (const json& rule : Items(At(rules, kRules))) Ask(rule, node, path, value, old, unchanged, is_resource);
    for (const json& part : Items(At(rules, "allOf"))) Check(part, node, path, value, old, unchanged, is_resource);
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        const json& before = Counterpart(node, value[i], old);
        Check(At(rules, "items"), At(node, "items"), fmt::format("{}[{}]", path, i), value[i], before, unchanged,
              false);
      }
      return;
    }
    if (!value.is_object()) return;
    for (const auto& [key, inner] : value.items()) {
      const json& named = At(At(rules, "properties"), key);
      const json& more = At(rules, "additionalProperties");
      const json& before = At(old, key);
      if (named.is_object()) {
        const bool embedded = At(named, "x-kubernetes-embedded-resource") == true;
        Check(named, At(At(node, "properties"), key), path.empty() ? key : path + "." + key, inner, before, unchanged,
              embedded);
      } else if (more.is_object()) {
        Check(more, At(node, "additionalProperties"), fmt::format("{}[{}]", path, key), inner, before, unchanged,
              false);
      }
    }
  }

 private:
  // The element of the same keys in what was there before; of lists that have no keys none is the same.
  static const json& Counterpart(const json& node, const json& item, const json& old) {
    if (Text(node, "x-kubernetes-list-type") != "map") return Null();
    for (const json& before : Items(old)) {
      const json& keys = Items(At(node, "x-kubernetes-list-map-keys"));
      const bool same = std::all_of(keys.begin(), keys.end(),
                                    [&](const json& key) { return At(item, TextOf(key)) == At(before, TextOf(key)); });
      if (same) return before;
    }
    return Null();
  }

  // Null: it is none that is evaluated here (FindRuleProblems). One is made once for all elements that it is asked of.
  const CelExpression* Made(const std::string& text) {
    const auto [it, fresh] = made_.try_emplace(text);
    if (fresh) it->second = CelExpression::Make(text, cel::kKubernetesCel);
    return it->second.ok() ? &*it->second : nullptr;
  }

  void Ask(const json& rule, const json& node, const std::string& path, const json& value, const json& old,
           bool unchanged, bool is_resource) {
    if (budget_ < 0) return;
    const CelExpression* const made = Made(Text(rule, "rule"));
    if (made == nullptr) return;
    const bool transition = made->Names("oldSelf"), optional = At(rule, "optionalOldSelf") == true;
    if (transition && old.is_null() && !optional) return;
    const auto variables = [&](std::string_view name) {
      if (name == "self") return CelOf(node, value, is_resource);
      if (name != "oldSelf") return CelValue{};
      if (old.is_null()) return optional ? cel::NoOptional() : CelValue{};
      return optional ? cel::MakeOptional(CelOf(node, old, is_resource)) : CelOf(node, old, is_resource);
    };
    const CelValue said = made->Evaluate(variables, &budget_);
    const std::string where = path.empty() ? "<nil>" : path, type = Text(node, "type", "object");
    if (budget_ < 0) {
      verdict_.errors.push_back(InvalidField(
          where, type, "validation failed due to running out of cost budget, no further validation rules will be run"));
      return;
    }
    if (said.failed()) {
      const std::string& why = std::get<cel::CelError>(said.is).why;
      const bool overload = why.starts_with("no such overload");
      verdict_.errors.push_back(InvalidField(
          where, type,
          overload ? fmt::format("'{}': call arguments did not match a supported operator, function or macro signature "
                                 "for rule: {}",
                                 why, Shown(rule))
                   : fmt::format("{} evaluating rule: {}", why, Shown(rule))));
      return;
    }
    if (const bool* holds = said.As<bool>(); holds != nullptr && *holds) return;
    FieldError error = ErrorOf(rule, where + Text(rule, "fieldPath"), type, Message(rule, variables));
    if (ratchets_ && unchanged && !transition) {
      verdict_.warnings.push_back(fmt::format("{}: {}", error.field, error.message));
    } else {
      verdict_.errors.push_back(std::move(error));
    }
  }

  std::string Message(const json& rule, const CelExpression::Variables& variables) {
    if (const std::string text = Text(rule, "messageExpression"); !text.empty()) {
      const CelExpression* const made = Made(text);
      const CelValue said = made != nullptr ? made->Evaluate(variables, &budget_) : CelValue{};
      if (const auto* message = said.As<std::string>()) {
        const std::string trimmed(absl::StripAsciiWhitespace(*message));
        if (!trimmed.empty() && trimmed.size() <= kLongestMessage && trimmed.find('\n') == std::string::npos)
          return trimmed;
      }
    }
    return Text(rule, "message").empty() ? fmt::format("failed rule: {}", Shown(rule)) : Shown(rule);
  }

  static FieldError ErrorOf(const json& rule, std::string field, const std::string& type, const std::string& message) {
    const std::string reason = Text(rule, "reason");
    if (reason == "FieldValueForbidden") return ForbiddenField(std::move(field), message);
    if (reason == "FieldValueRequired") return RequiredField(std::move(field), message);
    if (reason == "FieldValueDuplicate") return DuplicateField(std::move(field), type);
    return InvalidField(std::move(field), type, message);
  }

  std::map<std::string, absl::StatusOr<CelExpression>, std::less<>> made_;
  const bool ratchets_;
  RuleVerdict& verdict_;
  int64_t budget_ = kMostSteps;
};

void FindProblems(const json& schema, const std::string& path, std::vector<RuleProblem>* out) {
  if (!schema.is_object()) return;
  size_t index = 0;
  for (const json& rule : Items(At(schema, kRules))) {
    const std::string at = fmt::format("{}.{}[{}]", path, kRules, index++);
    for (const char* field : {"rule", "messageExpression"}) {
      const std::string text = Text(rule, field);
      if (text.empty()) continue;
      const absl::StatusOr<CelExpression> made = CelExpression::Make(text, cel::kKubernetesCel);
      if (made.ok()) continue;
      const bool refused = absl::IsInvalidArgument(made.status());
      out->push_back({fmt::format("{}.{}", at, field), text, std::string(wavetank::Message(made.status())), refused});
    }
  }
  for (const auto& [key, inner] : Members(At(schema, "properties")))
    FindProblems(inner, fmt::format("{}.properties[{}]", path, key), out);
  FindProblems(At(schema, "items"), path + ".items", out);
  FindProblems(At(schema, "additionalProperties"), path + ".additionalProperties", out);
  index = 0;
  for (const json& part : Items(At(schema, "allOf")))
    FindProblems(part, fmt::format("{}.allOf[{}]", path, index++), out);
}

}  // namespace

RuleVerdict CheckSchemaRules(const json& schema, const json& object, const json& old, bool ratchets) {
  RuleVerdict out;
  RuleChecker(ratchets, &out).Check(schema, schema, "", object, old, false, /*is_resource=*/true);
  return out;
}

bool HasSchemaRules(const json& schema) {
  if (!schema.is_structured()) return false;
  if (schema.is_object() && !Items(At(schema, kRules)).empty()) return true;
  return std::any_of(schema.begin(), schema.end(), HasSchemaRules);
}

std::vector<RuleProblem> FindRuleProblems(const json& schema) {
  std::vector<RuleProblem> out;
  FindProblems(schema, "", &out);
  return out;
}

}  // namespace wavetank::fakekube::http
