// What each proxy of a world has for endpoints, as `istioctl proxy-config endpoints` lists them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

struct EndpointRow {
  std::string endpoint, status, outlier, upstream;
  bool operator==(const EndpointRow&) const = default;
};

// Proxies that hold the same share one list, as those of a large mesh do: a row for each of them fills the memory.
struct ProxyEndpoints {
  std::string cluster, proxy;
  std::shared_ptr<const std::vector<EndpointRow>> rows;  // never null
};

// As they are now, in the order of clusters and pods. Of one proxy alone, if one is named.
std::vector<ProxyEndpoints> ListEndpoints(const sim::World& world, std::string_view proxy = "");

// A list with an object for each row, which names cluster and proxy.
nlohmann::ordered_json EndpointsJson(const std::vector<ProxyEndpoints>& endpoints);

}  // namespace wavetank::scenario
