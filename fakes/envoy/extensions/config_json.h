// Configurations of types that no code here has a class for, as JSON with the fields' own names: read by Envoy's
// descriptors, so that what is no such message is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace google::protobuf {
class Any;
class Message;
}  // namespace google::protobuf

namespace wavetank::envoysim {

// Of a TypedStruct, too: what it wraps. InvalidArgument in Envoy's words.
absl::StatusOr<nlohmann::json> ConfigJson(const google::protobuf::Any& config);

// What stands at "a.b.c"; null if nothing does.
const nlohmann::json& JsonAt(const nlohmann::json& whole, std::string_view path);
// The same of one kind, and `otherwise` for all else. Numbers of 64 bits are texts in protobuf's JSON.
uint64_t NumberAt(const nlohmann::json& whole, std::string_view path, uint64_t otherwise = 0);
bool BoolAt(const nlohmann::json& whole, std::string_view path, bool otherwise = false);
std::string TextAt(const nlohmann::json& whole, std::string_view path);
// Of a google.protobuf.Duration: "0.250s".
Duration DurationAt(const nlohmann::json& whole, std::string_view path, Duration otherwise);

// A part of it, as a message that has a class.
absl::Status ReadPart(const nlohmann::json& part, google::protobuf::Message* out);

}  // namespace wavetank::envoysim
