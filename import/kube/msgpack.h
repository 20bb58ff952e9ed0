// MessagePack as JSON values, for files that may hold anything.
#pragma once

#include <optional>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::importing {

// The one value that `bytes` are. Keys of maps that are no text become the text of their JSON; binary data and
// extensions become null. nullopt: cut short, followed by more, or deeper than 64. O(bytes).
std::optional<nlohmann::json> ParseMsgPack(std::string_view bytes);

}  // namespace wavetank::importing
