// Percent-encoding, as in URLs and forms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavetank {

// `plus` reads '+' as a blank. nullopt: some '%' has no two hexadecimal digits behind it; `broken`, if it is there, is
// set to the (at most three) characters from that on.
std::optional<std::string> PercentDecoded(std::string_view text, bool plus = false, std::string_view* broken = nullptr);

// The same, but such a '%' stands for itself.
std::string PercentDecodedLoosely(std::string_view text, bool plus = false);

// ASCII's letters and digits stand as they are, and what is in `kept`; every other byte is escaped.
std::string PercentEncoded(std::string_view text, std::string_view kept = {});

}  // namespace wavetank
