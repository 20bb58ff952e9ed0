#include "scenarios/survey/proxy_endpoints.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "fakes/envoy/envoy.h"
#include "nlohmann/json.hpp"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

using Rows = std::vector<EndpointRow>;

Rows RowsOf(const envoysim::Envoy& envoy) {
  Rows out;
  for (envoysim::EndpointStatus& e : envoy.Endpoints()) {
    out.push_back({std::move(e.address), e.healthy ? "HEALTHY" : "UNHEALTHY", e.outlier_ejected ? "EJECTED" : "OK",
                   std::move(e.cluster)});
  }
  return out;
}

// One of all that are equal.
class Shared {
 public:
  std::shared_ptr<const Rows> Of(Rows rows) {
    size_t hash = 0;
    for (const EndpointRow& r : rows) hash = absl::HashOf(hash, r.endpoint, r.status, r.outlier, r.upstream);
    std::vector<std::shared_ptr<const Rows>>& alike = known_[hash];
    const auto same = std::find_if(alike.begin(), alike.end(), [&](const auto& each) { return *each == rows; });
    if (same != alike.end()) return *same;
    return alike.emplace_back(std::make_shared<const Rows>(std::move(rows)));
  }

 private:
  absl::flat_hash_map<size_t, std::vector<std::shared_ptr<const Rows>>> known_;  // by hash
};

}  // namespace

std::vector<ProxyEndpoints> ListEndpoints(const sim::World& world, std::string_view proxy) {
  std::vector<ProxyEndpoints> out;
  Shared shared;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr || (!proxy.empty() && pod->name() != proxy)) continue;
    out.push_back({pod->site().name, pod->name(), shared.Of(RowsOf(*pod->envoy()))});
  }
  return out;
}

nlohmann::ordered_json EndpointsJson(const std::vector<ProxyEndpoints>& endpoints) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ProxyEndpoints& held : endpoints) {
    for (const EndpointRow& r : *held.rows) {
      out.push_back({{"cluster", held.cluster},
                     {"proxy", held.proxy},
                     {"endpoint", r.endpoint},
                     {"status", r.status},
                     {"outlierCheck", r.outlier},
                     {"upstream", r.upstream}});
    }
  }
  return out;
}

}  // namespace wavetank::scenario
