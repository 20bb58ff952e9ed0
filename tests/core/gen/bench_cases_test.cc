// Each mesh of istiod's benchmarks generates what istiod generates from it, in numbers; what is in the resources is
// the golden cases' business.
#include "tests/core/gen/bench_cases.h"

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "gtest/gtest.h"

namespace wavetank::pilot::bench_cases {
namespace {

class BenchCases : public ::testing::TestWithParam<Case> {};

template <typename Message>
std::vector<Message> ParseAll(const std::vector<Resource>& resources) {
  std::vector<Message> out;
  std::set<std::string> names;
  for (const Resource& resource : resources) {
    EXPECT_TRUE(out.emplace_back().ParseFromString(std::string(*resource.bytes))) << resource.name;
    EXPECT_EQ(out.back().name(), resource.name);
    EXPECT_TRUE(names.emplace(resource.name).second) << resource.name << " twice";
  }
  return out;
}

TEST_P(BenchCases, GenerateAsManyResourcesAsIstiod) {
  const Case& c = GetParam();
  Mesh mesh;
  c.fill(mesh);
  mesh.Connect();
  const PushRequest request = GenWorld::Request(mesh.push);
  const std::vector<Resource> listeners = Listeners(mesh);
  EXPECT_EQ(ParseAll<::envoy::config::listener::v3::Listener>(listeners).size(), c.listeners);
  const auto clusters = MakeCdsGenerator({})->Generate(mesh.proxy, {}, request).resources;
  EXPECT_EQ(ParseAll<::envoy::config::cluster::v3::Cluster>(clusters).size(), c.clusters);
  const WatchedResource watched = RoutesOf(listeners);
  const auto routes = MakeRdsGenerator({})->Generate(mesh.proxy, watched, request).resources;
  EXPECT_EQ(routes.size(), c.routes);
  for (const auto& route : ParseAll<::envoy::config::route::v3::RouteConfiguration>(routes)) {
    EXPECT_GT(route.virtual_hosts_size(), 0) << route.name();
  }
}

// docs/istiod-benchmarks.md: 212.3 kB per message.
TEST(BenchCaseSizes, ListenersThatMeasureAndLogHaveTheSizeOfIstiods) {
  Mesh mesh;
  FillTelemetryApi(mesh);
  mesh.Connect();
  size_t bytes = 0;
  for (const Resource& listener : Listeners(mesh)) bytes += listener.bytes->size();
  EXPECT_NEAR(static_cast<double>(bytes) / 1000, 212.3, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Istiod, BenchCases, ::testing::ValuesIn(kCases),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace wavetank::pilot::bench_cases
