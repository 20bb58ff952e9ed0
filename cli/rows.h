// The rows of a table that a verb prints, as cells of text.
#pragma once

#include <string>
#include <vector>

namespace wavetank::cli {

using Rows = std::vector<std::vector<std::string>>;  // of a table; the first may be the head

}  // namespace wavetank::cli
