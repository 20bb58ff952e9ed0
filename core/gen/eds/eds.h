// Endpoint discovery (istiod: pilot/pkg/xds/eds.go, EdsGenerator).
#pragma once

#include <memory>

#include "core/xds/generator.h"

namespace wavetank::pilot {

class XdsCache;

struct EdsOptions {
  XdsCache* cache = nullptr;  // null: generate every time
};

// Reads the push context of the request, and the endpoint index as it is now. A push that is not full, or whose every
// configuration is a service, covers the clusters of those services only. Nothing is sent when nothing was generated.
std::unique_ptr<Generator> MakeEdsGenerator(const EdsOptions& options);

}  // namespace wavetank::pilot
