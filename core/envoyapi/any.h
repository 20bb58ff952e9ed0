// Protobuf messages to bytes: deterministic, packed in an Any where xDS wants one. For .cc files only.
#pragma once

#include <string>
#include <string_view>

#include "google/protobuf/any.pb.h"
#include "google/protobuf/message.h"

namespace wavetank::pilot {

// Map fields in key order (istiod: protoconv.MessageToAny marshals deterministically).
std::string Serialize(const google::protobuf::MessageLite& message);

std::string TypeUrlOf(const google::protobuf::Message& message);  // "type.googleapis.com/envoy..."

google::protobuf::Any PackAny(const google::protobuf::Message& message);

}  // namespace wavetank::pilot
