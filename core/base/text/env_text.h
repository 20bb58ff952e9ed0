// Variables of a process as Istio's env package reads them (istio.io/pkg: env/var.go): what cannot be read is the
// default, and a warning in the log.
#pragma once

#include <string>
#include <string_view>

#include "fmt/format.h"

namespace wavetank::env {

// What a variable of a type wants.
inline constexpr std::string_view kFlag = "true/false", kInteger = "an integer", kNumber = "a floating-point value",
                                  kDuration = "a duration";

inline std::string Warning(std::string_view value, std::string_view expected, std::string_view otherwise) {
  return fmt::format("Invalid environment variable value `{}`, expecting {}, defaulting to {}", value, expected,
                     otherwise);
}

}  // namespace wavetank::env
