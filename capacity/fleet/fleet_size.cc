#include <algorithm>
#include <cmath>
#include <string>

#include "capacity/fleet/fleet.h"
#include "core/base/random.h"

namespace wavetank::capacity {

std::vector<int64_t> DrawEndpoints(const Fleet& fleet, int64_t cluster) {
  RandomStream random(fleet.seed, "endpoints/" + std::to_string(cluster));
  const EndpointsSpec& spec = fleet.endpoints;
  std::vector<int64_t> out(static_cast<size_t>(fleet.services));
  for (size_t i = 0; i < out.size(); ++i) {
    switch (spec.kind) {
      case EndpointsSpec::Kind::kFixed:
        out[i] = spec.fixed;
        break;
      case EndpointsSpec::Kind::kRange:
        out[i] = random.Between(spec.least, spec.most);
        break;
      case EndpointsSpec::Kind::kZipf:
        out[i] = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(spec.most) /
                                                           std::pow(static_cast<double>(i + 1), spec.exponent)));
        break;
    }
  }
  return out;
}

int64_t TotalEndpoints(const Fleet& fleet) {
  int64_t total = 0;
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    for (const int64_t endpoints : DrawEndpoints(fleet, cluster)) total += endpoints;
  }
  return total;
}

MeshSize SizeOf(const Fleet& fleet) {
  MeshSize out;
  const auto replicas = static_cast<double>(fleet.istiod.replicas);
  out.proxies = std::ceil(static_cast<double>(fleet.proxies + fleet.gateways) / replicas);
  const auto shared = static_cast<double>(fleet.services) * static_cast<double>(fleet.shared_ppm) / 1e6;
  out.services = shared + (static_cast<double>(fleet.services) - shared) * static_cast<double>(fleet.clusters);
  out.endpoints = static_cast<double>(TotalEndpoints(fleet));
  out.clusters = static_cast<double>(fleet.clusters);
  out.scope = static_cast<double>(fleet.scope);
  return out;
}

}  // namespace wavetank::capacity
