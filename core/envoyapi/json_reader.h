// Envoy's messages out of JSON, with the leniency of istiod's decoder: unknown fields are passed over, numbers may be
// quoted, durations are Go's ("1h30m"), null is absent, of a oneof the field that the message declares last wins
// (istiod: pkg/util/protomarshal, UnmarshalAllowUnknown; golang/protobuf's jsonpb).
#pragma once

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace google::protobuf {
class Message;
}

namespace wavetank::pilot {

// InvalidArgument names path and reason: a field of another type, an enum's unknown name, an Any of an unknown type.
// `out` is then half filled.
absl::Status ReadEnvoyJson(const nlohmann::json& json, google::protobuf::Message& out);

enum class UnknownFields { kPassedOver, kRefused };

// The same, but the message says what golang/protobuf's jsonpb would ("unknown field \"x\" in envoy...", "json: cannot
// unmarshal ..."), and no path.
absl::Status ReadEnvoyJsonAsGo(const nlohmann::json& json, UnknownFields unknown, google::protobuf::Message& out);

}  // namespace wavetank::pilot
