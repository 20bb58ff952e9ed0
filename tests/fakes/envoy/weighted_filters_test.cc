// What weighted clusters say to filters, in virtual time. A real Envoy 1.40 beside it:
// tests/oracles/envoy/cases/filters.json.
#include <gtest/gtest.h>

#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

// Half of the requests are of cluster c, which has them all aborted; the route wants none to be.
constexpr char kListener[] = R"({"name": "l",
  "address": {"socket_address": {"address": "10.9.0.1", "port_value": 80}},
  "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "l",
    "route_config": {"name": "l", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{
      "match": {"prefix": "/"},
      "typed_per_filter_config": {"envoy.filters.http.fault": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"}},
      "route": {"weighted_clusters": {"clusters": [
        {"name": "c", "weight": 1, "typed_per_filter_config": {"envoy.filters.http.fault": {
          "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
          "abort": {"http_status": 418, "percentage": {"numerator": 100}}}}},
        {"name": "d", "weight": 1}]}}}]}]},
    "http_filters": [
      {"name": "envoy.filters.http.fault", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"}},
      {"name": "envoy.filters.http.router", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]})";

TEST(WeightedFiltersTest, AFilterHeedsTheWeightedClusterThatItsRequestGoesTo) {
  Lab lab(1, Instant());
  Lab::Proxy& proxy = lab.AddProxy("near", "10.9.0.9");
  EchoApp &c = lab.AddApp("c", "10.1.0.1", 80), &d = lab.AddApp("d", "10.1.0.2", 80);
  proxy.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{"10.1.0.1:80"}});
  proxy.ads->world[XdsType::kCds]["d"] = StaticCluster("d", {{"10.1.0.2:80"}});
  proxy.ads->world[XdsType::kLds]["l"] = Bytes("Listener", kListener);
  proxy.ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
  proxy.ads->world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
  proxy.ads->automatic = true;
  proxy.envoy->Start();
  lab.RunFor(50ms);
  RequestSpec spec;
  spec.authority = "x";
  int aborted = 0;
  for (int i = 0; i < 40; ++i) aborted += lab.Ask(proxy, "10.9.0.1:80", spec).record.code == 418 ? 1 : 0;
  EXPECT_EQ(c.served, 0);
  EXPECT_EQ(d.served, 40 - aborted);
  EXPECT_GT(aborted, 0);
  EXPECT_GT(d.served, 0);
}

}  // namespace
}  // namespace wavetank::envoysim::lab
