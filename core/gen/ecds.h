// ECDS: the configurations of extensions that EnvoyFilters and WasmPlugins add, by name (istiod: pilot/pkg/xds/ecds.go,
// envoyfilter/extension_configuration_patch.go).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/xds/generator.h"

namespace wavetank::pilot {

// The Docker credentials that WasmPlugins' images are pulled with.
class PullSecrets {
 public:
  virtual ~PullSecrets() = default;
  // False: no Secret can be had for proxies of that cluster.
  virtual bool Knows(const std::string& cluster) const = 0;
  // Of that cluster, else of the config cluster; nullopt: there is none. Nobody may print it.
  virtual std::optional<std::string> DockerCredential(const std::string& cluster, std::string_view ns,
                                                      std::string_view name) const = 0;
};

// Only pushes of EnvoyFilters, WasmPlugins, of Secrets that these name, or of everything concern it. `secrets` must
// outlive it; null: none is to be had.
std::unique_ptr<Generator> MakeEcdsGenerator(const PullSecrets* secrets = nullptr);

}  // namespace wavetank::pilot
