// The resource types of an ADS stream, in the order in which Envoy asks for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wavetank::envoysim {

enum class XdsType : uint8_t { kCds, kEds, kLds, kRds, kSds, kEcds };
inline constexpr int kXdsTypes = 6;

std::string_view XdsTypeUrl(XdsType type);
std::string_view XdsTypeName(XdsType type);  // "CDS", ...
// Nullopt: none of these.
std::optional<XdsType> XdsTypeOf(std::string_view type_url);

}  // namespace wavetank::envoysim
