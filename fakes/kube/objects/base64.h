// Base64 as Secrets carry it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavetank::fakekube {

std::string Base64Encode(std::string_view bytes);
// Nullopt: it is no base64.
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace wavetank::fakekube
