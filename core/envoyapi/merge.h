// How an EnvoyFilter's MERGE puts one message into another (istiod: pkg/proto/merge; pilot/pkg/networking/util,
// MergeAnyWithAny).
#pragma once

#include "google/protobuf/any.pb.h"

namespace wavetank::pilot {

// As protobuf merges: lists grow, an entry of a map replaces the one of its key, a field that is set replaces a scalar
// and goes into a message. But a duration is replaced as a whole, or "5s" into "1.5s" would make 5.5 s. Both are of one
// type; their descriptors may be of different pools.
void MergeEnvoyMessage(const google::protobuf::Message& from, google::protobuf::Message& into);

enum class MergeResult { kMerged, kUnreadable, kDifferentTypes };
// Decodes both, merges, encodes again. Otherwise `into` stays as it is: one of the two is of no known type or no
// message of its type, or they are of two types.
MergeResult MergeAny(const google::protobuf::Any& from, google::protobuf::Any& into);

}  // namespace wavetank::pilot
