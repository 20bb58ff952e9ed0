// Cluster discovery (istiod: pilot/pkg/xds/cds.go; pilot/pkg/networking/core/v1alpha3/cluster.go).
#pragma once

#include <memory>

#include "core/xds/generator.h"

namespace wavetank::pilot {

class XdsCache;

struct CdsOptions {
  XdsCache* cache = nullptr;  // null: generate every time
};

// Outbound clusters in the order of the proxy's services, then the fixed ones and the inbound ones (sidecars), or those
// named by SNI (routers with AUTO_PASSTHROUGH servers). Only full pushes concern clusters. Outbound clusters are
// cached, a port with all its subsets at a time. Delta: when nothing but services changed, those services' clusters,
// and all clusters that are not outbound.
std::unique_ptr<Generator> MakeCdsGenerator(const CdsOptions& options);

}  // namespace wavetank::pilot
