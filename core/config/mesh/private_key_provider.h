// ProxyConfig.privateKeyProvider: what signs with a proxy's private keys in its stead, an instruction set of the
// processor (CryptoMB) or a card (QAT) (istio.io/api/mesh/v1alpha1, PrivateKeyProvider).
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

class ProtoJson;

struct PrivateKeyProvider {
  enum class Kind : uint8_t { kNone, kCryptoMb, kQat };
  Kind kind = Kind::kNone;
  std::optional<Duration> poll_delay;
};

void ReadMessage(ProtoJson& in, PrivateKeyProvider& out);

// Of a ProxyConfig in JSON; nullopt if it names none or cannot be read.
std::optional<PrivateKeyProvider> PrivateKeyProviderOf(const nlohmann::json& proxy_config);

}  // namespace wavetank::config
