// The text of default_roles.yaml, which the build embeds.
#pragma once

#include <string_view>

namespace wavetank::serve {

std::string_view DefaultRoles();

}  // namespace wavetank::serve
