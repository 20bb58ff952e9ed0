// RDS (istiod: pilot/pkg/xds/rds.go).
#pragma once

#include <memory>

#include "core/xds/generator.h"

namespace wavetank::pilot {

class XdsCache;

struct RdsOptions {
  XdsCache* cache = nullptr;  // null: generate every time
};

// The route configurations that the proxy asked for by name. Only full pushes concern routes. Sidecars' outbound ones
// are cached.
std::unique_ptr<Generator> MakeRdsGenerator(const RdsOptions& options);

}  // namespace wavetank::pilot
