// The types of Kubernetes' own API: which fields they have, and of what type these are. For what tells clients of them
// (openapi.h) and for the fields that nobody knows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/http/resources.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

struct ApiField {
  std::string_view name;
  std::string_view type;  // as the table in api_types.cc has it: "s", "[Container", "{s", ...
  bool required = false;
  // In the protobuf encoding, from the outermost message inwards; zeroes follow. All zero: it is not encoded.
  std::array<uint16_t, 3> numbers{};
  bool keeps_zero = false;  // whoever sends a zero means it
};
struct ApiType {
  std::string_view name;  // "PodSpec"
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

// What stands in an object of this type and cannot be read into it, as Go's JSON says of the first: "json: cannot
// unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32". "": all can. O(body).
std::string UnreadableField(const ApiType& type, const nlohmann::json& body);

}  // namespace wavetank::fakekube::http
