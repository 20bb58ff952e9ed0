// LDS (istiod: pilot/pkg/xds/lds.go).
#pragma once

#include <memory>

#include "core/xds/generator.h"

namespace wavetank::pilot {

std::unique_ptr<Generator> MakeLdsGenerator();

}  // namespace wavetank::pilot
