// ECDS: the configurations of extensions that EnvoyFilters and WasmPlugins add, by name (istiod: pilot/pkg/xds/ecds.go,
// envoyfilter/extension_configuration_patch.go).
#pragma once

#include <memory>

#include "core/security/pull_secrets.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

// Only pushes of EnvoyFilters, WasmPlugins, of Secrets that these name, or of everything concern it. `secrets` must
// outlive it; null: none is to be had.
std::unique_ptr<Generator> MakeEcdsGenerator(const PullSecrets* secrets = nullptr);

}  // namespace wavetank::pilot
