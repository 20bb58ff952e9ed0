#include "fakes/envoy/extensions/config_json.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "core/base/json_text.h"
#include "core/envoyapi/descriptors.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fmt/format.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/util/json_util.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::envoysim {
namespace {

using Json = nlohmann::json;

absl::Status ReadInto(const google::protobuf::Any& config, google::protobuf::Message* message) {
  const std::string type = ConfigType(config);
  if (TypeName(config) == type) {
    if (message->ParseFromString(config.value())) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("Unable to unpack as {}: [{}]", type, config.type_url()));
  }
  udpa::type::v1::TypedStruct wrapped;  // xds.type.v3 has the same fields
  std::string text;
  if (!wrapped.ParseFromString(config.value()) ||
      !google::protobuf::util::MessageToJsonString(wrapped.value(), &text).ok()) {
    return absl::InvalidArgumentError("Unable to parse JSON as proto (TypedStruct)");
  }
  const auto read = google::protobuf::util::JsonStringToMessage(text, message);
  if (read.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("Unable to parse JSON as proto ({})", std::string(read.message())));
}

}  // namespace

absl::StatusOr<Json> ConfigJson(const google::protobuf::Any& config) {
  const std::string type = ConfigType(config);
  if (type.empty()) return Json::object();  // named alone: all defaults
  const std::unique_ptr<google::protobuf::Message> message = pilot::NewEnvoyMessage(type);
  if (message == nullptr) return absl::InvalidArgumentError(fmt::format("could not find @type '{}'", type));
  if (absl::Status s = ReadInto(config, message.get()); !s.ok()) return s;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(*message, &text, options).ok()) {
    return absl::InvalidArgumentError(fmt::format("Unable to unpack as {}: [{}]", type, config.type_url()));
  }
  Json out = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return out.is_object() ? out : Json::object();
}

const Json& JsonAt(const Json& whole, std::string_view path) {
  static const Json kNothing;
  const Json* at = &whole;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    if (!at->is_object()) return kNothing;
    const auto found = at->find(std::string(path.substr(0, dot)));
    if (found == at->end()) return kNothing;
    at = &*found;
    path.remove_prefix(dot == path.npos ? path.size() : dot + 1);
  }
  return *at;
}

uint64_t NumberAt(const Json& whole, std::string_view path, uint64_t otherwise) {
  const Json& at = JsonAt(whole, path);
  if (at.is_number_unsigned()) return at.get<uint64_t>();
  uint64_t value = 0;
  if (at.is_string() && absl::SimpleAtoi(at.get_ref<const std::string&>(), &value)) return value;
  return otherwise;
}

bool BoolAt(const Json& whole, std::string_view path, bool otherwise) {
  const Json& at = JsonAt(whole, path);
  return at.is_boolean() ? at.get<bool>() : otherwise;
}

std::string TextAt(const Json& whole, std::string_view path) {
  const Json& at = JsonAt(whole, path);
  return at.is_string() ? at.get<std::string>() : std::string();
}

Duration DurationAt(const Json& whole, std::string_view path, Duration otherwise) {
  const std::string text = TextAt(whole, path);
  double seconds = 0;
  if (!text.ends_with('s') || !absl::SimpleAtod(text.substr(0, text.size() - 1), &seconds)) return otherwise;
  // Of what a Duration holds, the simulation's clock reaches 292 years.
  constexpr double kMost = 9e9;
  return Duration(std::llround(std::clamp(seconds, -kMost, kMost) * 1e9));
}

absl::Status ReadPart(const Json& part, google::protobuf::Message* out) {
  const auto read = google::protobuf::util::JsonStringToMessage(JsonText(part), out);
  if (read.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("Unable to parse JSON as proto ({})", std::string(read.message())));
}

}  // namespace wavetank::envoysim
