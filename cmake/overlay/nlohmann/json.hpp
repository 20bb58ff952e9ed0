// The JSON library with our assertions in place of its own (core/base/json_assert.h): found before the system's header.
#pragma once

#include "core/base/json_assert.h"
// After it: the library defines JSON_ASSERT where nobody has.
#include_next <nlohmann/json.hpp>
