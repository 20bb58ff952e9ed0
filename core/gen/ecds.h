// ECDS: the configurations of extensions that EnvoyFilters add, by name (istiod: pilot/pkg/xds/ecds.go,
// envoyfilter/extension_configuration_patch.go).
#pragma once

#include <memory>

#include "core/xds/generator.h"

namespace wavetank::pilot {

// Only pushes of EnvoyFilters, WasmPlugins or of everything concern it. WasmPlugins are not among the configurations.
std::unique_ptr<Generator> MakeEcdsGenerator();

}  // namespace wavetank::pilot
