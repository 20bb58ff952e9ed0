// What this program was made of; the build writes it (cmake/Commit.cmake).
#pragma once

#include <string_view>

namespace wavetank::cli {

std::string_view Commit();  // "cc8578c0a1b2", with -dirty if sources were changed since; "unknown" outside of a clone
std::string_view Build();   // "RelWithDebInfo, GNU 12.2.0"

}  // namespace wavetank::cli
