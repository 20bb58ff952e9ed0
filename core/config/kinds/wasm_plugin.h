// extensions.istio.io WasmPlugin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/kinds/policy_target.h"
#include "core/config/kinds/typed_config.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

struct WasmPlugin {
  // Where among the HTTP filters. Enumerators have the API's numbers.
  enum class Phase : uint8_t { kUnspecified, kAuthn, kAuthz, kStats };
  enum class PullPolicy : uint8_t { kUnspecified, kIfNotPresent, kAlways };
  enum class FailStrategy : uint8_t { kClose, kOpen, kReload };
  enum class Mode : uint8_t { kUndefined, kClient, kServer, kClientAndServer };

  // Which listeners; no ports: all.
  struct TrafficSelector {
    Mode mode = Mode::kUndefined;
    std::vector<uint32_t> ports;
    friend bool operator==(const TrafficSelector&, const TrafficSelector&) = default;
  };
  struct EnvVar {
    std::string name, value;
    bool from_host = false;
    friend bool operator==(const EnvVar&, const EnvVar&) = default;
  };

  std::optional<Labels> selector;     // matchLabels
  std::vector<PolicyTarget> targets;  // targetRefs, or targetRef
  std::string url, sha256, image_pull_secret, verification_key, plugin_name;
  PullPolicy image_pull_policy = PullPolicy::kUnspecified;
  FailStrategy fail_strategy = FailStrategy::kClose;
  bool network = false;          // type NETWORK
  nlohmann::json plugin_config;  // an object; null: none
  Phase phase = Phase::kUnspecified;
  std::optional<int64_t> priority;
  std::vector<EnvVar> env;
  std::vector<TrafficSelector> match;
  friend bool operator==(const WasmPlugin&, const WasmPlugin&) = default;
};
using WasmPluginRef = TypedConfigRef<WasmPlugin>;

}  // namespace wavetank::config
