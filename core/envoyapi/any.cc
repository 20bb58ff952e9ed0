#include "core/envoyapi/any.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace wavetank::pilot {

std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  out.reserve(message.ByteSizeLong());
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

std::string TypeUrlOf(const google::protobuf::Message& message) {
  return "type.googleapis.com/" + message.GetDescriptor()->full_name();
}

google::protobuf::Any PackAny(const google::protobuf::Message& message) {
  google::protobuf::Any any;
  any.set_type_url(TypeUrlOf(message));
  any.set_value(Serialize(message));
  return any;
}

}  // namespace wavetank::pilot
