#include "core/envoyapi/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/go_duration.h"
#include "core/envoyapi/any.h"
#include "core/envoyapi/descriptors.h"
#include "core/kube/time_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace wavetank::pilot {
namespace {

namespace pb = ::google::protobuf;
using nlohmann::json;
using Field = pb::FieldDescriptor;

// How Go calls the kind of a JSON value.
std::string_view GoKind(const json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "bool";
  if (value.is_array()) return "array";
  return value.is_number() ? "number" : "object";
}
// What encoding/json says of a value that is none of `type`.
std::string GoMismatch(const json& value, std::string_view type) {
  const std::string shown = value.is_number() && type != "string" && type != "bool" && type.find('[') == type.npos
                                ? fmt::format("number {}", JsonText(value))
                                : std::string(GoKind(value));
  return fmt::format("json: cannot unmarshal {} into Go value of type {}", shown, type);
}

// What encoding/json says of a quoted number: its text is read as JSON by itself.
std::string GoNumberMismatch(const json& value, std::string_view type) {
  if (!value.is_string()) return GoMismatch(value, type);
  const std::string& text = value.get_ref<const std::string&>();
  if (text.empty()) return "unexpected end of JSON input";
  const json inner = ParseJson(text);
  if (!inner.is_discarded()) return GoMismatch(inner, type);
  constexpr std::string_view kDigits = "-0123456789";
  const auto quoted = [](char c) { return c == '\'' ? std::string("'\\''") : fmt::format("'{}'", c); };
  if (kDigits.find(text[0]) != std::string_view::npos) {
    const size_t end = text.find_first_not_of("0123456789.eE+-");
    if (end != std::string::npos) return fmt::format("invalid character {} after top-level value", quoted(text[end]));
    return "unexpected end of JSON input";
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text[0] != word[0]) continue;
    for (size_t i = 1; i < word.size(); ++i) {
      if (i == text.size()) return "unexpected end of JSON input";
      if (text[i] == word[i]) continue;
      return fmt::format("invalid character {} in literal {} (expecting {})", quoted(text[i]), word, quoted(word[i]));
    }
    return fmt::format("invalid character {} after top-level value", quoted(text[word.size()]));
  }
  return fmt::format("invalid character {} looking for beginning of value", quoted(text[0]));
}

template <typename T>
constexpr std::string_view GoTypeOf() {
  if constexpr (std::is_same_v<T, int32_t>) return "int32";
  if constexpr (std::is_same_v<T, int64_t>) return "int64";
  if constexpr (std::is_same_v<T, uint32_t>) return "uint32";
  if constexpr (std::is_same_v<T, uint64_t>) return "uint64";
  if constexpr (std::is_same_v<T, float>) return "float32";
  return "float64";
}

std::string PathOf(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

// Messages whose JSON is not an object of their fields. By name: they may be of any pool.
bool IsWellKnown(std::string_view type) {
  constexpr std::string_view kPackage = "google.protobuf.";
  if (!type.starts_with(kPackage)) return false;
  type.remove_prefix(kPackage.size());
  for (std::string_view name :
       {"Any", "BoolValue", "BytesValue", "StringValue", "Int32Value", "UInt32Value", "FloatValue", "Int64Value",
        "UInt64Value", "DoubleValue", "Duration", "Timestamp", "Value", "ListValue", "Struct"}) {
    if (type == name) return true;
  }
  return false;
}

// A number, written as one or quoted, in the width that is asked for. What has a fraction is no integer.
template <typename T>
std::optional<T> Number(const json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return out;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return std::nullopt;
    return static_cast<T>(value.get<double>());
  } else {
    if (value.is_number_unsigned()) {
      const auto number = value.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<T>::max())) return std::nullopt;
      return static_cast<T>(number);
    }
    if (value.is_number_integer()) {
      const auto number = value.get<int64_t>();
      if (number < 0 && std::is_unsigned_v<T>) return std::nullopt;
      if (number < static_cast<int64_t>(std::numeric_limits<T>::min())) return std::nullopt;
      return static_cast<T>(number);
    }
    // A patch goes through a Struct, where 1.0 is 1.
    if (!value.is_number_float()) return std::nullopt;
    const double number = value.get<double>();
    constexpr double kExact = 9007199254740992.0;
    if (number != std::trunc(number) || std::abs(number) > kExact) return std::nullopt;
    return Number<T>(json(static_cast<int64_t>(number)));
  }
}

// Whose words errors are in.
enum class Voice { kOurs, kGo };

class Reader {
 public:
  explicit Reader(Voice voice = Voice::kOurs, UnknownFields unknown = UnknownFields::kPassedOver)
      : voice_(voice), unknown_(unknown) {}

  absl::Status Message(const json& value, const std::string& path, pb::Message& out) {
    const std::string& type = out.GetDescriptor()->full_name();
    if (value.is_null() && type != "google.protobuf.Value") return absl::OkStatus();
    if (IsWellKnown(type)) return WellKnown(value, path, out);
    if (!value.is_object()) return NoMapping(value, path);
    const pb::Descriptor& descriptor = *out.GetDescriptor();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const Field& field = *descriptor.field(i);
      // The name in lowerCamelCase wins over the one of the .proto file.
      auto found = value.find(field.json_name());
      if (found == value.end()) found = value.find(field.name());
      if (found == value.end()) continue;
      const bool takes_null = !field.is_repeated() && field.cpp_type() == Field::CPPTYPE_MESSAGE &&
                              field.message_type()->full_name() == "google.protobuf.Value";
      if (found->is_null() && !takes_null) continue;
      if (absl::Status status = Set(*found, PathOf(path, field.name()), field, out); !status.ok()) return status;
    }
    if (unknown_ == UnknownFields::kRefused) {
      for (const auto& [name, item] : value.items()) {
        if (descriptor.FindFieldByName(name) != nullptr || descriptor.FindFieldByCamelcaseName(name) != nullptr)
          continue;
        const std::string what = fmt::format("unknown field {} in {}", JsonText(json(name)), type);
        return Refused(path, what, what);
      }
    }
    return absl::OkStatus();
  }

 private:
  // `go`: what Go says, if it is not the same.
  absl::Status Refused(std::string_view path, std::string_view what, std::string_view go) const {
    if (voice_ == Voice::kGo) return absl::InvalidArgumentError({go.data(), go.size()});
    return absl::InvalidArgumentError(fmt::format("{}: {}", path.empty() ? "value" : path, what));
  }
  absl::Status NoMapping(const json& value, std::string_view path) const {
    return Refused(path, "expected a mapping", GoMismatch(value, "map[string]json.RawMessage"));
  }
  absl::Status NoList(const json& value, std::string_view path) const {
    return Refused(path, "expected a list", GoMismatch(value, "[]json.RawMessage"));
  }

  absl::Status Set(const json& value, const std::string& path, const Field& field, pb::Message& out) {
    if (field.is_map()) return Map(value, path, field, out);
    if (!field.is_repeated()) return Singular(value, path, field, false, out);
    if (!value.is_array()) return NoList(value, path);
    for (size_t i = 0; i < value.size(); ++i) {
      if (absl::Status status = Singular(value[i], fmt::format("{}[{}]", path, i), field, true, out); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Map(const json& value, const std::string& path, const Field& field, pb::Message& out) {
    if (!value.is_object()) return NoMapping(value, path);
    const Field& key_field = *field.message_type()->map_key();
    const Field& value_field = *field.message_type()->map_value();
    for (const auto& [key, item] : value.items()) {
      pb::Message& entry = *out.GetReflection()->AddMessage(&out, &field);
      if (absl::Status status = Singular(json(key), path, key_field, false, entry); !status.ok()) return status;
      if (absl::Status status = Singular(item, PathOf(path, key), value_field, false, entry); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  // A scalar or a message; `add`: as one more of a list.
  absl::Status Singular(const json& value, const std::string& path, const Field& field, bool add, pb::Message& out) {
    const pb::Reflection& reflection = *out.GetReflection();
    const auto number = [&]<typename T>(T, void (pb::Reflection::*set)(pb::Message*, const Field*, T) const,
                                        void (pb::Reflection::*append)(pb::Message*, const Field*, T) const) {
      // In a list null is 0.
      const std::optional<T> read = value.is_null() ? T{} : Number<T>(value);
      if (!read) return Refused(path, "expected a number", GoNumberMismatch(value, GoTypeOf<T>()));
      (reflection.*(add ? append : set))(&out, &field, *read);
      return absl::OkStatus();
    };
    using R = pb::Reflection;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return number(int32_t{}, &R::SetInt32, &R::AddInt32);
      case Field::CPPTYPE_INT64:
        return number(int64_t{}, &R::SetInt64, &R::AddInt64);
      case Field::CPPTYPE_UINT32:
        return number(uint32_t{}, &R::SetUInt32, &R::AddUInt32);
      case Field::CPPTYPE_UINT64:
        return number(uint64_t{}, &R::SetUInt64, &R::AddUInt64);
      case Field::CPPTYPE_DOUBLE:
        return number(double{}, &R::SetDouble, &R::AddDouble);
      case Field::CPPTYPE_FLOAT:
        return number(float{}, &R::SetFloat, &R::AddFloat);
      case Field::CPPTYPE_BOOL: {
        const bool key = value.is_string() && field.containing_type()->map_key() == &field;
        if (!value.is_boolean() && !value.is_null() && !key) {
          return Refused(path, "expected true or false", GoMismatch(value, "bool"));
        }
        const bool read = key ? value == "true" : value.is_boolean() && value.get<bool>();
        add ? reflection.AddBool(&out, &field, read) : reflection.SetBool(&out, &field, read);
        return absl::OkStatus();
      }
      case Field::CPPTYPE_ENUM: {
        std::optional<int32_t> read;
        if (value.is_string()) {
          const auto* named = field.enum_type()->FindValueByName(value.get_ref<const std::string&>());
          if (named != nullptr) read = named->number();
        } else {
          read = value.is_null() ? 0 : Number<int32_t>(value);
        }
        if (!read) {
          const std::string& type = field.enum_type()->full_name();
          return Refused(path, fmt::format("no value of {}", type),
                         value.is_string()
                             ? fmt::format("unknown value {} for enum {}", JsonText(json(JsonText(value))), type)
                             : GoMismatch(value, "protoreflect.EnumNumber"));
        }
        add ? reflection.AddEnumValue(&out, &field, *read) : reflection.SetEnumValue(&out, &field, *read);
        return absl::OkStatus();
      }
      case Field::CPPTYPE_STRING: {
        if (!value.is_string() && !value.is_null()) {
          return Refused(path, "expected text",
                         GoMismatch(value, field.type() == Field::TYPE_BYTES ? "[]uint8" : "string"));
        }
        std::string read = value.is_null() ? std::string() : value.get<std::string>();
        if (field.type() == Field::TYPE_BYTES) {
          std::string bytes;
          if (!absl::Base64Unescape(read, &bytes)) {
            const size_t at = std::min(read.find_first_not_of(kBase64), read.size());
            return Refused(path, "expected base64", fmt::format("illegal base64 data at input byte {}", at));
          }
          read = std::move(bytes);
        }
        add ? reflection.AddString(&out, &field, std::move(read)) : reflection.SetString(&out, &field, std::move(read));
        return absl::OkStatus();
      }
      case Field::CPPTYPE_MESSAGE:
        return Message(value, path,
                       add ? *reflection.AddMessage(&out, &field) : *reflection.MutableMessage(&out, &field));
    }
    return absl::OkStatus();
  }

  absl::Status WellKnown(const json& value, const std::string& path, pb::Message& out) {
    const pb::Descriptor& type = *out.GetDescriptor();
    const std::string_view name = type.name();
    if (name == "Any") return Any(value, path, out);
    if (name == "Duration") return Duration(value, path, out);
    if (name == "Timestamp") return Timestamp(value, path, out);
    if (name == "Value") return Value(value, path, out);
    if (name == "ListValue" || name == "Struct") {
      if (name == "Struct" && !value.is_object()) return NoMapping(value, path);
      if (name == "ListValue" && !value.is_array()) return NoList(value, path);
      return Set(value, path, *type.FindFieldByNumber(1), out);
    }
    return Singular(value, path, *type.FindFieldByNumber(1), false, out);  // a wrapper
  }

  absl::Status Any(const json& value, const std::string& path, pb::Message& out) {
    if (!value.is_object()) return NoMapping(value, path);
    const auto url = value.find("@type");
    if (url == value.end()) return Refused(path, "@type is missing", "Any JSON doesn't have '@type'");
    if (!url->is_string()) {
      return Refused(path, "@type is missing",
                     fmt::format("can't unmarshal Any's '@type': {}", JsonText(json(JsonText(*url)))));
    }
    const std::unique_ptr<pb::Message> inner = NewEnvoyMessage(url->get_ref<const std::string&>());
    if (inner == nullptr) {
      return Refused(path, fmt::format("no type {} is known", url->get<std::string>()),
                     fmt::format("could not resolve Any message type: {}", url->get<std::string>()));
    }
    absl::Status status;
    // Empty is one there, though its own form is that of any message (golang/protobuf: jsonpb, wellKnownType).
    const std::string& name = inner->GetDescriptor()->full_name();
    if (IsWellKnown(name) || name == "google.protobuf.Empty") {
      const auto content = value.find("value");
      if (content == value.end()) return Refused(path, "value is missing", "Any JSON doesn't have 'value'");
      status = Message(*content, PathOf(path, "value"), *inner);
    } else {
      json content = value;
      content.erase("@type");
      status = Message(content, path, *inner);
    }
    if (!status.ok()) {
      if (voice_ == Voice::kOurs) return status;
      return absl::InvalidArgumentError(
          fmt::format("can't unmarshal Any nested proto {}: {}", url->get<std::string>(), wavetank::Message(status)));
    }
    const pb::Reflection& reflection = *out.GetReflection();
    reflection.SetString(&out, out.GetDescriptor()->FindFieldByNumber(1), url->get<std::string>());
    reflection.SetString(&out, out.GetDescriptor()->FindFieldByNumber(2), Serialize(*inner));
    return absl::OkStatus();
  }

  absl::Status Duration(const json& value, const std::string& path, pb::Message& out) const {
    const auto read = value.is_string() ? ParseGoDuration(value.get_ref<const std::string&>()) : std::nullopt;
    if (!read) {
      return Refused(path, "expected a duration",
                     value.is_string() ? "bad Duration: " + GoDurationComplaint(value.get_ref<const std::string&>())
                                       : GoMismatch(value, "string"));
    }
    SetTime(read->count() / kSecond, static_cast<int32_t>(read->count() % kSecond), out);
    return absl::OkStatus();
  }

  absl::Status Timestamp(const json& value, const std::string& path, pb::Message& out) const {
    const auto read = value.is_string() ? kube::ParseRfc3339(value.get_ref<const std::string&>()) : std::nullopt;
    if (!read) {
      return Refused(path, "expected a time",
                     value.is_string() ? fmt::format("bad Timestamp: parsing time {} as "
                                                     "\"2006-01-02T15:04:05.999999999Z07:00\": cannot parse it",
                                                     JsonText(value))
                                       : GoMismatch(value, "string"));
    }
    SetTime(*read, 0, out);  // nanoseconds do not hold the year 9999
    return absl::OkStatus();
  }

  // Duration and Timestamp have the same fields.
  static constexpr int64_t kSecond = 1'000'000'000;
  static void SetTime(int64_t seconds, int32_t nanoseconds, pb::Message& out) {
    const pb::Reflection& reflection = *out.GetReflection();
    reflection.SetInt64(&out, out.GetDescriptor()->FindFieldByNumber(1), seconds);
    reflection.SetInt32(&out, out.GetDescriptor()->FindFieldByNumber(2), nanoseconds);
  }

  absl::Status Value(const json& value, const std::string& path, pb::Message& out) {
    enum Kind { kNull = 1, kNumber, kString, kBool, kStruct, kList };
    const pb::Descriptor& type = *out.GetDescriptor();
    const pb::Reflection& reflection = *out.GetReflection();
    switch (value.type()) {
      case json::value_t::null:
        reflection.SetEnumValue(&out, type.FindFieldByNumber(kNull), 0);
        return absl::OkStatus();
      case json::value_t::string:
        return Singular(value, path, *type.FindFieldByNumber(kString), false, out);
      case json::value_t::boolean:
        return Singular(value, path, *type.FindFieldByNumber(kBool), false, out);
      case json::value_t::object:
        return Singular(value, path, *type.FindFieldByNumber(kStruct), false, out);
      case json::value_t::array:
        return Singular(value, path, *type.FindFieldByNumber(kList), false, out);
      default:
        return Singular(value, path, *type.FindFieldByNumber(kNumber), false, out);
    }
  }

  static constexpr const char* kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n";

  const Voice voice_;
  const UnknownFields unknown_;
};

}  // namespace

absl::Status ReadEnvoyJson(const json& value, pb::Message& out) { return Reader().Message(value, "", out); }

absl::Status ReadEnvoyJsonAsGo(const json& value, UnknownFields unknown, pb::Message& out) {
  return Reader(Voice::kGo, unknown).Message(value, "", out);
}

}  // namespace wavetank::pilot
