// Which extensions an Envoy binary has, and how it refuses the others.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Any;
}

namespace wavetank::envoysim {

enum class ExtensionSet : uint8_t;

// The message name in a type URL: what follows the last '/'. A TypedStruct answers the type it wraps.
std::string_view TypeName(const google::protobuf::Any& config);

// "Didn't find a registered implementation for 'NAME' with type URL: 'TYPE'" if the binary lacks it.
absl::Status CheckExtension(std::string_view name, const google::protobuf::Any& config, ExtensionSet extensions);

}  // namespace wavetank::envoysim
