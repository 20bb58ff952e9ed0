// Split-horizon EDS against a plain model of its rules, and cached against uncached, over generated meshes.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/gen/eds/eds.h"
#include "core/xds/cache.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "tests/core/gen/gen_world.h"
#include "tests/meshes.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::endpoint::v3::ClusterLoadAssignment;

struct GeneratedEndpoint {
  int cluster = 1, locality = 0;
  bool mtls = true, right_port = true, v2 = false;
  uint32_t weight = 0;
};

struct Mesh {
  std::vector<GeneratedEndpoint> endpoints;
  std::vector<int> gateways;  // number of gateways of c1, c2, c3
  int client = 1;
  bool subset = false, sni = false;
};

Mesh AnyMesh() {
  Mesh out;
  const int n = *rc::gen::inRange(0, 25);
  for (int i = 0; i < n; ++i) {
    GeneratedEndpoint e;
    e.cluster = *rc::gen::inRange(1, 4);
    e.locality = *rc::gen::inRange(0, 3);
    e.mtls = *rc::gen::inRange(0, 4) != 0;
    e.right_port = *rc::gen::inRange(0, 6) != 0;
    e.v2 = *rc::gen::arbitrary<bool>();
    e.weight = *rc::gen::inRange<uint32_t>(0, 4);
    out.endpoints.push_back(e);
  }
  for (int c = 0; c < 3; ++c) out.gateways.push_back(*rc::gen::inRange(0, 4));
  out.client = *rc::gen::inRange(1, 4);
  out.subset = *rc::gen::arbitrary<bool>();
  out.sni = *rc::gen::arbitrary<bool>();
  return out;
}

std::string ClusterName(int c) { return "c" + std::to_string(c); }
std::string EndpointAddress(size_t i) { return "10.0.0." + std::to_string(i); }
std::string GatewayAddress(int cluster, int i) { return std::to_string(cluster) + ".9.9." + std::to_string(i); }

void Fill(const Mesh& mesh, GenWorld& world) {
  world.AddService("web");
  std::map<int, EndpointList> lists;
  for (size_t i = 0; i < mesh.endpoints.size(); ++i) {
    const GeneratedEndpoint& e = mesh.endpoints[i];
    EndpointProfile p = GenWorld::Workload(ClusterName(e.cluster), "r/z" + std::to_string(e.locality));
    if (!e.mtls) p.tls_mode = kDisabledTlsMode;
    if (!e.right_port) p.service_port_name = "other";
    p.labels["version"] = e.v2 ? "v2" : "v1";
    lists[e.cluster].push_back(GenWorld::Endpoint(EndpointAddress(i), p, e.weight));
  }
  for (auto& [cluster, list] : lists) world.SetEndpoints(ClusterName(cluster), "web", std::move(list));
  for (int c = 1; c <= 3; ++c) {
    for (int g = 0; g < mesh.gateways[static_cast<size_t>(c - 1)]; ++g)
      world.AddGateway(ClusterName(c), GatewayAddress(c, g));
  }
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  config::Subset subset;
  subset.name = "v2";
  subset.labels = {{"version", "v2"}};
  rule.subsets.push_back(subset);
  world.AddRule("web", rule);
}

std::string ClusterName(const Mesh& mesh) {
  const char* subset = mesh.subset ? "v2" : "";
  const auto build = mesh.sni ? BuildDnsSrvSubsetKey : BuildSubsetKey;
  return build(TrafficDirection::kOutbound, subset, GenWorld::Host("web"), 80);
}

// Locality -> address -> weight. The rules once more, endpoint by endpoint.
using Assignment = std::map<std::string, std::map<std::string, uint32_t>>;

Assignment Model(const Mesh& mesh) {
  const bool split = mesh.gateways[0] + mesh.gateways[1] + mesh.gateways[2] > 0;
  uint32_t scale = 1;
  for (const int n : mesh.gateways) {
    if (n > 0) scale = std::lcm(scale, static_cast<uint32_t>(n));
  }
  Assignment out;
  for (size_t i = 0; i < mesh.endpoints.size(); ++i) {
    const GeneratedEndpoint& e = mesh.endpoints[i];
    if (!e.right_port || (mesh.subset && !e.v2)) continue;
    auto& locality = out["r/z" + std::to_string(e.locality)];
    const uint32_t weight = std::max(e.weight, 1u) * (split ? scale : 1);
    const int gateways = mesh.gateways[static_cast<size_t>(e.cluster - 1)];
    if (e.cluster == mesh.client || gateways == 0) {
      if (e.mtls || !mesh.sni) locality[EndpointAddress(i)] = weight;
    } else if (e.mtls) {
      for (int g = 0; g < gateways; ++g) {
        locality[GatewayAddress(e.cluster, g)] += weight / static_cast<uint32_t>(gateways);
      }
    }
  }
  return out;
}

Assignment Read(const Resource& resource) {
  ClusterLoadAssignment cla;
  RC_ASSERT(cla.ParseFromString(std::string(*resource.bytes)));
  Assignment out;
  std::string last;
  for (const auto& group : cla.endpoints()) {
    const std::string name = group.locality().region() + "/" + group.locality().zone();
    RC_ASSERT(last < name);  // sorted, each once
    last = name;
    auto& locality = out[name];
    uint32_t sum = 0;
    for (const auto& e : group.lb_endpoints()) {
      const auto& address = e.endpoint().address().socket_address().address();
      RC_ASSERT(locality.emplace(address, e.load_balancing_weight().value()).second);
      sum += e.load_balancing_weight().value();
    }
    RC_ASSERT(group.has_load_balancing_weight() == !locality.empty());
    RC_ASSERT(group.load_balancing_weight().value() == sum);
  }
  return out;
}

TEST(EdsProperty, AssignmentsAreThoseOfTheRules) {
  ASSERT_TRUE(rc::check([] {
    const Mesh mesh = AnyMesh();
    GenWorld world;
    Fill(mesh, world);
    const PushContextRef push = world.Push();
    const Proxy proxy =
        GenWorld::Connect(*push, ClusterName(mesh.client), mesh.sni ? NodeType::kRouter : NodeType::kSidecarProxy);
    WatchedResource watched;
    watched.resource_names = std::vector<std::string>{ClusterName(mesh)};
    const auto out = MakeEdsGenerator({})->Generate(proxy, watched, GenWorld::Request(push));
    RC_ASSERT(out.resources.size() == 1u);
    RC_ASSERT(Read(out.resources[0]) == Model(mesh));
  }));
}

// Weight is conserved but for what division by the number of gateways loses, which the scale factor makes nothing.
TEST(EdsProperty, GatewaysCarryTheWholeWeightOfWhatIsBehindThem) {
  ASSERT_TRUE(rc::check([] {
    Mesh mesh = AnyMesh();
    mesh.sni = false;
    for (GeneratedEndpoint& e : mesh.endpoints) e.mtls = true;
    uint64_t total = 0;
    for (const auto& [locality, endpoints] : Model(mesh)) {
      for (const auto& [address, weight] : endpoints) total += weight;
    }
    Mesh flat = mesh;
    flat.gateways = {0, 0, 0};
    uint64_t unscaled = 0;
    for (const auto& [locality, endpoints] : Model(flat)) {
      for (const auto& [address, weight] : endpoints) unscaled += weight;
    }
    uint32_t scale = 1;
    for (const int n : mesh.gateways) {
      if (n > 0) scale = std::lcm(scale, static_cast<uint32_t>(n));
    }
    GenWorld world;
    Fill(mesh, world);
    const PushContextRef push = world.Push();
    const Proxy proxy = GenWorld::Connect(*push, ClusterName(mesh.client));
    WatchedResource watched;
    watched.resource_names = std::vector<std::string>{ClusterName(mesh)};
    const auto out = MakeEdsGenerator({})->Generate(proxy, watched, GenWorld::Request(push));
    uint64_t generated = 0;
    for (const auto& [locality, endpoints] : Read(out.resources[0])) {
      for (const auto& [address, weight] : endpoints) generated += weight;
    }
    RC_ASSERT(generated == total);
    RC_ASSERT(generated == unscaled * scale);
  }));
}

// After any sequence of endpoint updates, each clearing its service from the cache, proxies of all clusters get the
// same with the cache as without.
TEST(EdsProperty, CacheChangesNothing) {
  ASSERT_TRUE(rc::check([] {
    const Mesh mesh = AnyMesh();
    GenWorld world;
    Fill(mesh, world);
    const PushContextRef push = world.Push();
    XdsCache cache;
    const auto cached = MakeEdsGenerator({&cache}), fresh = MakeEdsGenerator({});
    WatchedResource watched;
    watched.resource_names = std::vector<std::string>{ClusterName(mesh), "outbound|80||" + GenWorld::Host("web")};
    const PushRequest request = GenWorld::Request(push);
    const int updates = *rc::gen::inRange(1, 6);
    for (int u = 0; u < updates; ++u) {
      const int cluster = *rc::gen::inRange(1, 4);
      EndpointList list;
      const int n = *rc::gen::inRange(0, 4);
      for (int i = 0; i < n; ++i) {
        list.push_back(GenWorld::Endpoint("10.7." + std::to_string(u) + "." + std::to_string(i),
                                          GenWorld::Workload(ClusterName(cluster), "r/z0")));
      }
      world.SetEndpoints(ClusterName(cluster), "web", std::move(list));
      cache.Clear({{ConfigKind::kServiceEntry, GenWorld::Host("web"), "shop"}}, Time(1s));
      for (int c = 1; c <= 3; ++c) {
        const Proxy proxy = GenWorld::Connect(*push, ClusterName(c));
        for (int round = 0; round < 2; ++round) {
          RC_ASSERT(cached->Generate(proxy, watched, request).resources.list() ==
                    fresh->Generate(proxy, watched, request).resources.list());
        }
      }
    }
  }));
}

}  // namespace
}  // namespace wavetank::pilot
