// The text of api_types.json, which the build embeds (cmake/EmbedText.cmake).
#pragma once

#include <string_view>

namespace wavetank::fakekube::http {

std::string_view ApiTypesText();

}  // namespace wavetank::fakekube::http
