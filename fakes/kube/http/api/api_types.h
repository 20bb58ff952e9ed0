// The types of Kubernetes' own API: which fields they have, and of what type these are. For what tells clients of them
// (openapi.h) and for the fields that nobody knows. The table is api_types.json, a type after the other: a field's
// type, whether it must be there, its number in Kubernetes' protobuf encoding (several: of messages that JSON does not
// show, from the outermost inwards), whether a zero counts, and what Go calls it. The fields of Kubernetes 1.27 and
// what came later.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/http/api/resources.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

enum class FieldShape : uint8_t {
  kString,
  kQuantity,
  kInteger,
  kNumber,
  kBoolean,
  kTime,
  kMicroTime,
  kBytes,
  kIntegerOrString,
  kObject,    // of any fields
  kAnything,  // also no object
  kList,
  kMap,  // from text
  kType  // another type of the table
};
// As api_types.json says it: "string", "list of Container", "map of string", "JSONSchemaProps or anything".
struct FieldType {
  FieldShape shape = FieldShape::kAnything;
  bool or_anything = false;             // what is not of the shape is taken as it is
  std::string name;                     // of kType
  std::shared_ptr<const FieldType> of;  // of kList and kMap: what they hold
};
struct ApiField {
  std::string name;
  FieldType type;
  bool required = false;
  // In the protobuf encoding, from the outermost message inwards; zeroes follow. All zero: it is not encoded.
  std::array<uint16_t, 3> numbers{};
  bool keeps_zero = false;  // a zero is not the same as nothing
  std::string go;           // what Go calls its type, where its shape does not tell: "v1.PullPolicy", "int64"
};
struct ApiType {
  std::string name;  // "PodSpec"
  std::vector<ApiField> fields;
  const ApiField* Find(std::string_view field) const;
};

const ApiType* FindApiType(std::string_view name);
// Of a resource's objects; null for custom resources, reviews and the few kinds that are not in the table.
const ApiType* ApiTypeOf(const Resource& resource);
// In order of name.
void ForEachApiType(const std::function<void(const ApiType&)>& visit);

// "spec.containers[0].imge": what stands in an object of this type and belongs to none of its types. O(body).
std::vector<std::string> UnknownFields(const ApiType& type, const nlohmann::json& body);

}  // namespace wavetank::fakekube::http
