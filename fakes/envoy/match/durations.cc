#include "fakes/envoy/match/durations.h"

#include <vector>

#include "fakes/envoy/match/proto_time.h"
#include "google/protobuf/duration.pb.h"

namespace wavetank::envoysim {
namespace {

using google::protobuf::FieldDescriptor;

absl::Status CheckDuration(const google::protobuf::Duration& duration) {
  if (duration.seconds() < 0 || duration.nanos() < 0) {
    return absl::InvalidArgumentError("Invalid duration: Expected positive duration");
  }
  if (duration.nanos() > 999'999'999 || duration.seconds() > kMaxDurationSeconds) {
    return absl::InvalidArgumentError("Invalid duration: Duration out-of-range");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDurations(const google::protobuf::Message& message) {
  const google::protobuf::Descriptor* const type = message.GetDescriptor();
  if (type == google::protobuf::Duration::descriptor()) {
    return CheckDuration(static_cast<const google::protobuf::Duration&>(message));
  }
  if (type->file()->package() == "google.protobuf")
    return absl::OkStatus();  // metadata, numbers, what is unpacked later
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const google::protobuf::Message& part = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                                   : reflection.GetMessage(message, field);
      if (absl::Status status = CheckDurations(part); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::envoysim
