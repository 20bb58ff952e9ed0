// wavetank/actions.h: the scenario language's actions as C++ structs, of the same rows as the parser and the schema.
#pragma once

#include <string>

namespace wavetank::library {

// The text of the header, one struct for each action.
std::string ActionsHeader();
// The text of the Python package's module `actions`, a dataclass for each.
std::string ActionsModule();

}  // namespace wavetank::library
