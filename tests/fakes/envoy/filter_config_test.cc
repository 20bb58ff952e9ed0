// Filters that routes and their chain leave out, in virtual time. A real Envoy 1.40 beside it:
// tests/oracles/envoy/cases/filter_config.json.
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

// A fault that aborts everything, and a second one that its chain disables; what each route says to them.
std::string FaultyListener(const std::string& routes) {
  return R"({"name": "l",
  "address": {"socket_address": {"address": "10.9.0.1", "port_value": 80}},
  "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "l",
    "route_config": {"name": "l", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [)" +
         routes + R"(]}]},
    "http_filters": [
      {"name": "first", "disabled": true, "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
        "abort": {"http_status": 418, "percentage": {"numerator": 100}}}},
      {"name": "second", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
        "abort": {"http_status": 451, "percentage": {"numerator": 100}}}},
      {"name": "envoy.filters.http.router", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]})";
}

std::string RouteSaying(const std::string& prefix, const std::string& first, const std::string& second) {
  constexpr char kType[] = R"({"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig")";
  std::string words;
  if (!first.empty()) words += R"("first": )" + std::string(kType) + ", " + first + "}";
  if (!second.empty())
    words += (words.empty() ? "" : ", ") + (R"("second": )" + std::string(kType)) + ", " + second + "}";
  return R"({"match": {"prefix": ")" + prefix + R"("}, "route": {"cluster": "c"}, "typed_per_filter_config": {)" +
         words + "}}";
}

struct CodesOfRoutes {
  Lab lab;
  Lab::Proxy* proxy;

  explicit CodesOfRoutes(uint32_t minor) : lab(1, WithRelease(minor)), proxy(&lab.AddProxy("near", "10.9.0.9")) {
    lab.AddApp("c", "10.1.0.1", 80);
    proxy->ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{"10.1.0.1:80"}});
    proxy->ads->world[XdsType::kLds]["l"] =
        Bytes("Listener", FaultyListener(RouteSaying("/neither", "", R"("disabled": true)") + "," +
                                         RouteSaying("/first", R"("config": {})", R"("disabled": true)") + "," +
                                         RouteSaying("/", "", "")));
    proxy->ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    proxy->ads->world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    proxy->ads->automatic = true;
    proxy->envoy->Start();
    lab.RunFor(50ms);
  }

  static DataPlane::Options WithRelease(uint32_t minor) {
    DataPlane::Options out = Instant();
    out.release = EnvoyRelease{minor};
    return out;
  }
  uint16_t Of(const std::string& path) {
    RequestSpec spec;
    spec.authority = "x";
    spec.path = path;
    return lab.Ask(*proxy, "10.9.0.1:80", spec).record.code;
  }
};

TEST(FilterConfigTest, ARouteLeavesOneFilterOutAndEnablesAnother) {
  CodesOfRoutes codes(40);
  EXPECT_EQ(codes.Of("/"), 451);
  EXPECT_EQ(codes.Of("/neither"), 200);
  EXPECT_EQ(codes.Of("/first"), 418);
}

TEST(FilterConfigTest, BeforeRelease128AFilterThatItsChainDisablesTakesPart) {
  CodesOfRoutes codes(27);
  EXPECT_EQ(codes.Of("/neither"), 418);
}

}  // namespace
}  // namespace wavetank::envoysim::lab
