// What istiod knows beside what proxies get: gateways, services and endpoint shards, as docs/golden-cases.md writes
// them.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "core/model/endpoint_index.h"
#include "core/model/network_manager.h"
#include "core/model/service.h"
#include "core/registry/aggregate.h"
#include "nlohmann/json.hpp"

namespace wavetank::golden {

nlohmann::json GatewaysView(const pilot::NetworkGateways& gateways);
nlohmann::json ServicesView(const pilot::Aggregate& registries,
                            const std::function<bool(const pilot::Service&)>& is_cluster_local);
// `left_out`: services, as "namespace/host".
nlohmann::json ShardsView(const pilot::EndpointIndex& index, const std::set<std::string>& left_out = {});

}  // namespace wavetank::golden
