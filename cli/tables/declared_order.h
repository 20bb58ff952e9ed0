// JSON of protobuf messages with their fields in the order in which their types declare them, as Go prints them for
// istioctl (golang/protobuf: jsonpb/encode.go): of a oneof the member that is set, at the place of its first one; the
// keys of maps and Structs sorted; "@type" before the fields of what an Any packs.
#pragma once

#include "nlohmann/json.hpp"

namespace google::protobuf {
class Descriptor;
}

namespace wavetank::cli::tables {

// `value` in lowerCamelCase, as protobuf's JSON mapping has it. What the type does not declare comes last. O(value).
nlohmann::ordered_json InDeclaredOrder(const nlohmann::json& value, const google::protobuf::Descriptor& type);

}  // namespace wavetank::cli::tables
