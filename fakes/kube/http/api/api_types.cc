#include "fakes/kube/http/api/api_types.h"

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
  field.go = Text(said, "go");
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

std::vector<std::string> UnknownFields(const ApiType& type, const json& body) {
  std::vector<std::string> unknown;
  Walk(ReadType(type.name), body, "", &unknown);
  return unknown;
}

}  // namespace wavetank::fakekube::http
