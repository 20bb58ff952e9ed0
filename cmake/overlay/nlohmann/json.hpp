// The JSON library with our assertions in place of its own (core/base/json_assert.h), and without conversions that
// nobody wrote: each throws where a value is of another kind. Found before the system's header.
#pragma once

#include "core/base/json_assert.h"
// Tests, whose JSON is their own, may have them.
#ifndef JSON_USE_IMPLICIT_CONVERSIONS
#define JSON_USE_IMPLICIT_CONVERSIONS 0
#endif
// After them: the library defines what nobody has.
#include_next <nlohmann/json.hpp>
