#include "fakes/kube/http/api/schema.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fakes/kube/http/api/schema_formats.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

std::string Inner(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}
std::string Inner(const std::string& path, size_t index) { return fmt::format("{}[{}]", path, index); }

bool IsRootField(const std::string& path, std::string_view key) {
  return path.empty() && (key == "apiVersion" || key == "kind" || key == "metadata");
}

// The schema of a mapping's field; null: none, and the field is not known.
const json* FieldSchema(const json& schema, const std::string& key) {
  if (const json& properties = At(schema, "properties"); properties.is_object()) {
    if (const auto it = properties.find(key); it != properties.end()) return &*it;
  }
  const json& more = At(schema, "additionalProperties");
  if (more.is_object() || more == true) return &more;
  return nullptr;
}

void Prune(const json& schema, const std::string& path, json* value, std::vector<std::string>* gone) {
  if (value->is_array()) {
    const json& items = At(schema, "items");
    for (size_t i = 0; i < value->size(); ++i) Prune(items, Inner(path, i), &(*value)[i], gone);
    return;
  }
  if (!value->is_object()) return;
  const bool keeps = At(schema, "x-kubernetes-preserve-unknown-fields") == true;
  const bool embedded = At(schema, "x-kubernetes-embedded-resource") == true;
  for (auto it = value->begin(); it != value->end();) {
    if (IsRootField(path, it.key()) || (embedded && IsRootField("", it.key()))) {
      ++it;
      continue;
    }
    const json* inner = FieldSchema(schema, it.key());
    // `additionalProperties: true` says nothing of what is inside.
    if (inner != nullptr && inner->is_object()) Prune(*inner, Inner(path, it.key()), &*it, gone);
    if (inner != nullptr || keeps) {
      ++it;
      continue;
    }
    gone->push_back(Inner(path, it.key()));
    it = value->erase(it);
  }
}

// As Go's %T would put it in JSON's words.
std::string TypeName(const json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return "null";
}

bool HasType(const json& value, std::string_view type) {
  if (type == "number") return value.is_number();
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
  }
  return TypeName(value) == type;
}

// A definition of many alternatives for an object of many parts must not stop the world.
constexpr int64_t kMostChecks = 2'000'000;

class Validator {
 public:
  std::vector<FieldError> errors;

  explicit Validator(int64_t* checks) : checks_(checks) {}

  void Check(const json& schema, const std::string& path, const json& value) {
    if (!schema.is_object() || *checks_ > kMostChecks) return;
    if (++*checks_ > kMostChecks) {
      errors.push_back(InvalidField(path, "", "the definition's schema is too large to hold this object against it"));
      return;
    }
    if (value.is_null() && At(schema, "nullable") == true) return;
    if (At(schema, "x-kubernetes-int-or-string") == true) {
      if (!value.is_number_integer() && !value.is_string()) WrongType(path, "integer,string", value);
    } else if (const std::string type = Text(schema, "type"); !type.empty() && !HasType(value, type)) {
      return WrongType(path, type, value);
    }
    if (value.is_object()) CheckObject(schema, path, value);
    if (value.is_array()) CheckArray(schema, path, value);
    if (value.is_string()) CheckText(schema, path, value.get_ref<const std::string&>());
    if (value.is_number()) CheckNumber(schema, path, value);
    if (const json& allowed = At(schema, "enum"); allowed.is_array() && !allowed.empty()) {
      if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
        std::vector<std::string> texts;
        for (const json& each : allowed) texts.push_back(TextOf(each, JsonText(each)));
        errors.push_back(UnsupportedField(path, value, std::move(texts)));
      }
    }
    Combine(schema, path, value);
  }

 private:
  void Wrong(const std::string& path, const json& value, std::string_view why) {
    // A whole object is not shown in its own refusal.
    const json shown = path.empty() || value.is_object() || value.is_array() ? json("") : value;
    errors.push_back(InvalidField(path.empty() ? "<nil>" : path, shown, fmt::format("{} in body {}", path, why)));
  }
  void WrongType(const std::string& path, std::string_view type, const json& value) {
    const std::string is = TypeName(value);
    errors.push_back({"FieldValueTypeInvalid", path,
                      fmt::format("Invalid value: \"{0}\": {1} in body must be of type {2}: \"{0}\"", is, path, type)});
  }

  void CheckObject(const json& schema, const std::string& path, const json& value) {
    for (const json& name : Items(At(schema, "required"))) {
      if (name.is_string() && !value.contains(name.get_ref<const std::string&>()))
        errors.push_back(RequiredField(Inner(path, name.get_ref<const std::string&>())));
    }
    const auto size = static_cast<int64_t>(value.size());
    if (const int64_t least = Number(schema, "minProperties"); size < least)
      Wrong(path, value, fmt::format("should have at least {} properties", least));
    if (const int64_t most = Number(schema, "maxProperties", INT64_MAX); size > most)
      Wrong(path, value, fmt::format("should have at most {} properties", most));
    for (const auto& [key, item] : value.items()) {
      if (IsRootField(path, key)) continue;
      if (const json* inner = FieldSchema(schema, key); inner != nullptr) Check(*inner, Inner(path, key), item);
    }
  }
  void CheckArray(const json& schema, const std::string& path, const json& value) {
    const auto size = static_cast<int64_t>(value.size());
    if (const int64_t least = Number(schema, "minItems"); size < least)
      Wrong(path, value, fmt::format("should have at least {} items", least));
    if (const int64_t most = Number(schema, "maxItems", INT64_MAX); size > most) {
      errors.push_back(
          {"FieldValueTooMany", path, fmt::format("Too many: {}: must have at most {} items", size, most)});
    }
    for (size_t i = 0; i < value.size(); ++i) Check(At(schema, "items"), Inner(path, i), value[i]);
    CheckListType(schema, path, value);
  }
  // Elements of a set, and keys of a map's elements, are there once (apiextensions-apiserver: pkg/apiserver/schema/
  // listtype).
  void CheckListType(const json& schema, const std::string& path, const json& value) {
    const std::string type = Text(schema, "x-kubernetes-list-type");
    if (type != "set" && type != "map") return;
    std::set<std::string> seen;
    for (size_t i = 0; i < value.size(); ++i) {
      json key = value[i];
      if (type == "map") {
        key = json::object();
        for (const json& name : Items(At(schema, "x-kubernetes-list-map-keys"))) {
          const std::string field = TextOf(name);
          const json& said = At(value[i], field);
          const json& otherwise = At(schema, {"items", "properties", field, "default"});
          if (!said.is_null() || !otherwise.is_null()) key[field] = said.is_null() ? otherwise : said;
        }
      }
      if (!seen.insert(JsonText(key)).second) errors.push_back(DuplicateField(Inner(path, i), key));
    }
  }
  void CheckText(const json& schema, const std::string& path, const std::string& value) {
    // Characters, not bytes.
    const auto length = std::count_if(value.begin(), value.end(), [](char c) { return (c & 0xc0) != 0x80; });
    if (const int64_t least = Number(schema, "minLength"); length < least)
      Wrong(path, value, fmt::format("should be at least {} chars long", least));
    if (const int64_t most = Number(schema, "maxLength", INT64_MAX); length > most)
      errors.push_back(TooLongField(path, most));
    if (const std::string format = Text(schema, "format"); !format.empty() && !HasFormat(format, value)) {
      errors.push_back({"FieldValueTypeInvalid", path,
                        fmt::format("Invalid value: {0}: {1} in body must be of type {2}: {0}", JsonText(json(value)),
                                    path, format)});
    }
    if (const std::string pattern = Text(schema, "pattern"); !pattern.empty()) {
      RE2::Options options(RE2::Quiet);
      options.set_max_mem(1 << 20);
      const RE2 expression(pattern, options);
      if (expression.ok() && !RE2::PartialMatch(value, expression))
        Wrong(path, value, fmt::format("should match '{}'", pattern));
    }
  }
  void CheckNumber(const json& schema, const std::string& path, const json& value) {
    const auto is = value.get<double>();
    if (Text(schema, "format") == "int32" && (is < INT32_MIN || is > INT32_MAX)) {
      errors.push_back(
          {"FieldValueInvalid", path,
           fmt::format("Invalid value: {0}: Checked value must be of type integer with format int32 in {1}",
                       JsonText(value), path)});
    }
    if (const json& least = At(schema, "minimum"); least.is_number()) {
      const bool exclusive = At(schema, "exclusiveMinimum") == true;
      if (is < least.get<double>() || (exclusive && is == least.get<double>()))
        Wrong(path, value,
              fmt::format("should be greater than {}{}", exclusive ? "" : "or equal to ", JsonText(least)));
    }
    if (const json& most = At(schema, "maximum"); most.is_number()) {
      const bool exclusive = At(schema, "exclusiveMaximum") == true;
      if (is > most.get<double>() || (exclusive && is == most.get<double>()))
        Wrong(path, value, fmt::format("should be less than {}{}", exclusive ? "" : "or equal to ", JsonText(most)));
    }
    if (const json& of = At(schema, "multipleOf"); of.is_number() && of.get<double>() > 0) {
      if (std::fmod(is, of.get<double>()) != 0)
        Wrong(path, value, fmt::format("should be a multiple of {}", JsonText(of)));
    }
  }

  bool Holds(const json& schema, const std::string& path, const json& value) {
    Validator inner(checks_);
    inner.Check(schema, path, value);
    return inner.errors.empty();
  }
  void Combine(const json& schema, const std::string& path, const json& value) {
    for (const json& each : Items(At(schema, "allOf"))) Check(each, path, value);
    const auto holding = [&](const json& of) {
      return std::count_if(of.begin(), of.end(), [&](const json& each) { return Holds(each, path, value); });
    };
    if (const json& any = Items(At(schema, "anyOf")); !any.empty() && holding(any) == 0)
      Wrong(path, value, "must validate at least one schema (anyOf)");
    if (const json& one = Items(At(schema, "oneOf")); !one.empty()) {
      if (const auto count = holding(one); count != 1) {
        Wrong(path, value,
              fmt::format("must validate one and only one schema (oneOf). {}",
                          count == 0 ? "Found none valid" : fmt::format("Found {} valid alternatives", count)));
      }
    }
    if (const json& not_so = At(schema, "not"); not_so.is_object() && Holds(not_so, path, value))
      Wrong(path, value, "must not validate the schema (not)");
  }

  int64_t* checks_;
};

}  // namespace

std::vector<std::string> PruneBySchema(const json& schema, json* object) {
  std::vector<std::string> gone;
  Prune(schema, "", object, &gone);
  return gone;
}

void SetSchemaDefaults(const json& schema, json* object) {
  if (object->is_array()) {
    for (json& item : *object) SetSchemaDefaults(At(schema, "items"), &item);
    return;
  }
  if (!object->is_object()) return;
  const json& properties = At(schema, "properties");
  if (properties.is_object()) {
    for (const auto& [name, property] : properties.items()) {
      const json& value = At(property, "default");
      if (value.is_null()) continue;
      json& there = (*object)[name];
      if (there.is_null()) there = value;
    }
  }
  for (auto it = object->begin(); it != object->end(); ++it) {
    if (const json* inner = FieldSchema(schema, it.key()); inner != nullptr) SetSchemaDefaults(*inner, &*it);
  }
}

std::vector<FieldError> ValidateBySchema(const json& schema, const json& object) {
  int64_t checks = 0;
  Validator validator(&checks);
  validator.Check(schema, "", object);
  return std::move(validator.errors);
}

}  // namespace wavetank::fakekube::http
