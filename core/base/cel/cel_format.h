// format() of texts. cel-go: ext/formatting.go, strings.go
#pragma once

#include <string>
#include <string_view>

#include "core/base/cel/cel_value.h"

namespace wavetank::cel {

// %s %d %f %e %b %o %x %X and %%, of the list's elements in their order; a precision where cel-go takes one. Failures
// are in its words.
CelValue FormatText(const std::string& text, const CelList& values);

// As string() has it; what has no text fails.
CelValue TextOf(const CelValue& value);

}  // namespace wavetank::cel
