#include "fakes/kube/http/api/api_types.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/json_access.h"
#include "fakes/kube/http/api/api_types_text.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// Whose type is not named like their kind.
struct OtherName {
  std::string_view kind, version, type;
};
constexpr OtherName kOtherNames[] = {
    {"Event.events.k8s.io", "v1", "EventsV1Event"},
    {"HorizontalPodAutoscaler.autoscaling", "v2", "V2HorizontalPodAutoscaler"},
    {"HorizontalPodAutoscaler.autoscaling", "v1", "AutoscalingV1HorizontalPodAutoscaler"}};

using Table = std::map<std::string, ApiType, std::less<>>;

constexpr std::pair<std::string_view, FieldShape> kShapes[] = {{"string", FieldShape::kString},
                                                               {"quantity", FieldShape::kQuantity},
                                                               {"integer", FieldShape::kInteger},
                                                               {"number", FieldShape::kNumber},
                                                               {"boolean", FieldShape::kBoolean},
                                                               {"time", FieldShape::kTime},
                                                               {"microTime", FieldShape::kMicroTime},
                                                               {"bytes", FieldShape::kBytes},
                                                               {"integerOrString", FieldShape::kIntegerOrString},
                                                               {"object", FieldShape::kObject},
                                                               {"anything", FieldShape::kAnything}};

FieldType ReadType(std::string_view words) {
  constexpr std::string_view kList = "list of ", kMap = "map of ", kOrAnything = " or anything";
  FieldType type;
  if (words.ends_with(kOrAnything)) {
    type = ReadType(words.substr(0, words.size() - kOrAnything.size()));
    type.or_anything = true;
    return type;
  }
  for (const auto& [begin, shape] : {std::pair{kList, FieldShape::kList}, std::pair{kMap, FieldShape::kMap}}) {
    if (!words.starts_with(begin)) continue;
    type.shape = shape;
    type.of = std::make_shared<const FieldType>(ReadType(words.substr(begin.size())));
    return type;
  }
  for (const auto& [name, shape] : kShapes) {
    if (words == name) {
      type.shape = shape;
      return type;
    }
  }
  type.shape = FieldShape::kType;
  type.name = words;
  return type;
}

ApiField ReadField(const std::string& name, const json& said) {
  ApiField field;
  field.name = name;
  field.type = ReadType(Text(said, "type"));
  field.required = At(said, "required") == true;
  field.keeps_zero = At(said, "zeroCounts") == true;
  size_t place = 0;
  for (const json& number : Items(At(said, "protobuf"))) {
    if (place < field.numbers.size()) field.numbers[place++] = static_cast<uint16_t>(NumberOf(number));
  }
  return field;
}

const Table& Types() {
  static const auto* const kTable = [] {
    auto* table = new Table;
    // In the order of the file, in which a struct's fields are checked and shown.
    const auto all = nlohmann::ordered_json::parse(ApiTypesText(), nullptr, false);
    for (const auto& [name, fields] : all.items()) {
      ApiType& type = (*table)[name];
      type.name = name;
      for (const auto& [field, said] : fields.items()) type.fields.push_back(ReadField(field, json(said)));
    }
    return table;
  }();
  return *kTable;
}

// It is the type of some resource's objects.
bool IsObjects(std::string_view type) {
  static const auto* const kAll = [] {
    auto* all = new std::set<std::string, std::less<>>;
    ResourceTable().ForEach([&](const Resource& resource) {
      if (const ApiType* of = ApiTypeOf(resource); of != nullptr) all->insert(of->name);
    });
    return all;
  }();
  return kAll->contains(type);
}

void Walk(const FieldType& type, const json& value, const std::string& path, std::vector<std::string>* unknown) {
  if (type.shape == FieldShape::kList) {
    size_t index = 0;
    for (const json& item : Items(value)) Walk(*type.of, item, path + "[" + std::to_string(index++) + "]", unknown);
    return;
  }
  if (!value.is_object()) return;
  if (type.shape == FieldShape::kMap) {
    for (const auto& [key, item] : value.items()) Walk(*type.of, item, path + "." + key, unknown);
    return;
  }
  const ApiType* fields = type.shape == FieldShape::kType ? FindApiType(type.name) : nullptr;
  if (fields == nullptr) return;
  // An object within another (volumeClaimTemplates) has them, too.
  const bool whole = path.empty() || IsObjects(type.name);
  for (const auto& [key, item] : value.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    if (whole && (key == "apiVersion" || key == "kind")) continue;
    if (const ApiField* field = fields->Find(key); field != nullptr) {
      Walk(field->type, item, inner, unknown);
    } else {
      unknown->push_back(inner);
    }
  }
}

// "[]v1.Container"
std::string GoName(const FieldType& type, std::string_view field) {
  static constexpr std::string_view kLong[] = {"activeDeadlineSeconds",
                                               "deletionGracePeriodSeconds",
                                               "expirationSeconds",
                                               "fsGroup",
                                               "generation",
                                               "observedGeneration",
                                               "runAsGroup",
                                               "runAsUser",
                                               "terminationGracePeriodSeconds",
                                               "tolerationSeconds"};
  switch (type.shape) {
    case FieldShape::kList:
      return "[]" + GoName(*type.of, "");
    case FieldShape::kMap:
      return "map[string]" + GoName(*type.of, "");
    case FieldShape::kString:
      return "string";
    case FieldShape::kInteger:
      return std::find(std::begin(kLong), std::end(kLong), field) != std::end(kLong) ? "int64" : "int32";
    case FieldShape::kNumber:
      return "float64";
    case FieldShape::kBoolean:
      return "bool";
    case FieldShape::kBytes:
      return "[]uint8";
    case FieldShape::kTime:
      return "v1.Time";
    case FieldShape::kMicroTime:
      return "v1.MicroTime";
    case FieldShape::kQuantity:
      return "resource.Quantity";
    case FieldShape::kIntegerOrString:
      return "intstr.IntOrString";
    case FieldShape::kObject:
    case FieldShape::kAnything:
      return "runtime.RawExtension";
    case FieldShape::kType:
      break;
  }
  return "v1." + type.name;
}

bool Readable(const FieldType& type, const json& value) {
  if (value.is_null() || type.or_anything) return true;
  switch (type.shape) {
    case FieldShape::kList:
      return value.is_array();
    case FieldShape::kString:
    case FieldShape::kTime:
    case FieldShape::kMicroTime:
    case FieldShape::kBytes:
      return value.is_string();
    case FieldShape::kQuantity:
      return value.is_string() || value.is_number();
    case FieldShape::kIntegerOrString:
      return value.is_string() || value.is_number_integer();
    case FieldShape::kInteger:
      return value.is_number_integer();
    case FieldShape::kNumber:
      return value.is_number();
    case FieldShape::kBoolean:
      return value.is_boolean();
    case FieldShape::kObject:
    case FieldShape::kAnything:
      return true;
    case FieldShape::kMap:
    case FieldShape::kType:
      return value.is_object();
  }
  return true;
}

// apimachinery: pkg/api/resource, ParseQuantity(). Empty: it is one.
std::string_view QuantityError(std::string_view text) {
  constexpr std::string_view kFormat =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  static constexpr std::string_view kSuffixes[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                                   "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const auto skip = [&](std::string_view among) {
    const size_t end = std::min(text.find_first_not_of(among), text.size());
    const std::string_view skipped = text.substr(0, end);
    text.remove_prefix(end);
    return skipped;
  };
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  const std::string_view digits = skip("0123456789.");
  if (digits.find_first_not_of('.') == std::string_view::npos || std::count(digits.begin(), digits.end(), '.') > 1)
    return kFormat;
  const std::string_view suffix = skip("eEinumkKMGTP");
  const bool sign = !text.empty() && (text.front() == '+' || text.front() == '-');
  if (sign) text.remove_prefix(1);
  const std::string_view exponent = skip("0123456789");
  if (!text.empty()) return kFormat;
  if (!exponent.empty() && (suffix == "e" || suffix == "E")) return {};
  const bool known = std::find(std::begin(kSuffixes), std::end(kSuffixes), suffix) != std::end(kSuffixes);
  return known && exponent.empty() && !sign ? "" : "unable to parse quantity's suffix";
}

// `owner`: the struct that the field is of.
std::string FirstUnreadable(std::string_view owner, std::string_view field, const FieldType& type, const json& value,
                            const std::string& path) {
  if (!Readable(type, value)) {
    const std::string is = value.is_boolean() ? "bool" : value.type_name();
    return "json: cannot unmarshal " + is + " into Go struct field " + std::string(owner) + "." + path + " of type " +
           GoName(type, field);
  }
  if (type.shape == FieldShape::kQuantity && value.is_string())
    return std::string(QuantityError(value.get_ref<const std::string&>()));
  if (type.of != nullptr) {
    if (!value.is_structured()) return {};
    for (const json& item : value) {
      if (std::string found = FirstUnreadable(owner, "", *type.of, item, path); !found.empty()) return found;
    }
    return {};
  }
  const ApiType* inner = value.is_object() && type.shape == FieldShape::kType ? FindApiType(type.name) : nullptr;
  if (inner == nullptr) return {};
  for (const auto& [key, item] : value.items()) {
    const ApiField* known = inner->Find(key);
    if (known == nullptr) continue;
    std::string found = FirstUnreadable(inner->name, key, known->type, item, path.empty() ? key : path + "." + key);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

const ApiField* ApiType::Find(std::string_view field) const {
  for (const ApiField& each : fields) {
    if (each.name == field) return &each;
  }
  return nullptr;
}

const ApiType* FindApiType(std::string_view name) {
  const auto it = Types().find(name);
  return it == Types().end() ? nullptr : &it->second;
}

const ApiType* ApiTypeOf(const Resource& resource) {
  if (resource.custom || resource.review_only) return nullptr;
  const std::string kind = resource.kind + "." + resource.group;
  for (const OtherName& other : kOtherNames) {
    if (other.kind == kind && other.version == resource.version) return FindApiType(other.type);
  }
  return FindApiType(resource.kind);
}

void ForEachApiType(const std::function<void(const ApiType&)>& visit) {
  for (const auto& [name, type] : Types()) visit(type);
}

std::string UnreadableField(const ApiType& type, const json& body) {
  return FirstUnreadable(type.name, "", ReadType(type.name), body, "");
}

std::vector<std::string> UnknownFields(const ApiType& type, const json& body) {
  std::vector<std::string> unknown;
  Walk(ReadType(type.name), body, "", &unknown);
  return unknown;
}

}  // namespace wavetank::fakekube::http
