// security.istio.io PeerAuthentication.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct PeerAuthentication {
  enum class Mode : uint8_t { kUnset, kDisable, kPermissive, kStrict };
  std::optional<Labels> selector;  // matchLabels
  std::optional<Mode> mtls;        // nullopt: no mtls field; kUnset: the field without a mode
  std::map<uint32_t, Mode> port_level_mtls;
  friend bool operator==(const PeerAuthentication&, const PeerAuthentication&) = default;
};
using PeerAuthenticationRef = TypedConfigRef<PeerAuthentication>;

}  // namespace wavetank::config
