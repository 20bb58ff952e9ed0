// istiod_variables.tsv, which is compiled in.
#pragma once

#include <string_view>

namespace wavetank::pilot {

std::string_view IstiodVariablesText();

}  // namespace wavetank::pilot
