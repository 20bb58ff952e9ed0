// Durations that an Envoy takes no message with.
#pragma once

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace wavetank::envoysim {

// InvalidArgument: a google.protobuf.Duration in the message, at any depth, is negative or beyond what Envoy counts
// (292 years). What lies in an Any is looked at when that is unpacked. Takes time as the message has fields that are
// set. Envoy: source/common/protobuf/utility.cc, validateDurationFields
absl::Status CheckDurations(const google::protobuf::Message& message);

}  // namespace wavetank::envoysim
