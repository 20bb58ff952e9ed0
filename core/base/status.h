// absl::Status across module borders. Debian's abseil has a string_view of its own, hence the conversions.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace wavetank {

inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace wavetank
