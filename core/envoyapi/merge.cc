#include "core/envoyapi/merge.h"

#include <memory>
#include <vector>

#include "core/envoyapi/any.h"
#include "core/envoyapi/descriptors.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace wavetank::pilot {
namespace {

namespace pb = ::google::protobuf;

// Durations that stand where no list and no map is in between are those that protobuf would merge.
void ReplaceDurations(const pb::Message& from, pb::Message& into) {
  const pb::Reflection& read = *from.GetReflection();
  const pb::Reflection& write = *into.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  read.ListFields(from, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const pb::Message& source = read.GetMessage(from, field);
    pb::Message& target = *write.MutableMessage(&into, field);
    if (field->message_type()->full_name() == "google.protobuf.Duration") {
      target.CopyFrom(source);
    } else {
      ReplaceDurations(source, target);
    }
  }
}

}  // namespace

void MergeEnvoyMessage(const pb::Message& from, pb::Message& into) {
  into.MergeFrom(from);
  ReplaceDurations(from, into);
}

MergeResult MergeAny(const pb::Any& from, pb::Any& into) {
  const std::unique_ptr<pb::Message> target = NewEnvoyMessage(into.type_url()),
                                     source = NewEnvoyMessage(from.type_url());
  if (target == nullptr || !target->ParseFromString(into.value())) return MergeResult::kUnreadable;
  if (source == nullptr || !source->ParseFromString(from.value())) return MergeResult::kUnreadable;
  if (target->GetDescriptor() != source->GetDescriptor()) return MergeResult::kDifferentTypes;
  MergeEnvoyMessage(*source, *target);
  into.set_type_url("type.googleapis.com/" + target->GetDescriptor()->full_name());
  into.set_value(Serialize(*target));
  return MergeResult::kMerged;
}

}  // namespace wavetank::pilot
