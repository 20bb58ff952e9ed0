// Trace records in words, for people: what a kind is called and what its two numbers are.
#pragma once

#include <string>
#include <string_view>

#include "core/base/trace.h"

namespace wavetank {

// "Request"; "kind 17" for a number that this program does not know.
std::string TraceKindName(TraceKind kind);
// " code=200 latencyNs=5155659": the numbers of a record by name; empty where the kind has none.
std::string TraceNumbers(TraceKind kind, int64_t a, int64_t b);

}  // namespace wavetank
