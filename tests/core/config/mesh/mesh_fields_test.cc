#include "core/config/mesh/mesh_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::config {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Paths(std::string_view message, const json& document) {
  std::vector<std::string> out;
  for (const UnknownMeshField& field : UnknownMeshFields(message, document))
    out.push_back(fmt::format("{}", fmt::join(field.path, ".")));
  return out;
}

TEST(MeshFields, AWordThatIsNoFieldIsToldWithTheFieldsOfItsMessage) {
  const auto unknown = UnknownMeshFields("MeshConfig", {{"outboundTraficPolicy", {{"mode", "REGISTRY_ONLY"}}}});
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_THAT(unknown[0].path, ElementsAre("outboundTraficPolicy"));
  EXPECT_EQ(unknown[0].message, "MeshConfig");
  EXPECT_THAT(unknown[0].known, Contains("outboundTrafficPolicy"));
}

TEST(MeshFields, AFieldAtTheWrongLevelIsToldWithItsPlace) {
  const auto above = UnknownMeshFields("MeshConfig", {{"proxyMetadata", {{"A", "b"}}}});
  ASSERT_EQ(above.size(), 1u);
  EXPECT_EQ(above[0].elsewhere, "defaultConfig");
  EXPECT_FALSE(above[0].at_root);
  const auto below = UnknownMeshFields("MeshConfig", {{"defaultConfig", {{"accessLogFile", "/dev/stdout"}}}});
  ASSERT_EQ(below.size(), 1u);
  EXPECT_TRUE(below[0].at_root);
  EXPECT_THAT(Paths("MeshNetworks", json::parse(R"({"networks": {"n": {"endpoints": [{"fromRegistery": "c1"}],
    "gateways": [{"address": "1.2.3.4", "port": 15443}]}}, "network1": {}})")),
              ElementsAre("network1", "networks.n.endpoints.fromRegistery"));
}

TEST(MeshFields, WhatMessagesHoldIsLookedInto) {
  EXPECT_THAT(Paths("MeshConfig", json::parse(R"({
    "defaultConfig": {"tracing": {"samplin": 1}, "proxyMetadata": {"ANY_NAME": "x"}},
    "extensionProviders": [{"name": "a"}, {"name": "b", "zipkin": {"servce": "z"}}]})")),
              ElementsAre("defaultConfig.tracing.samplin", "extensionProviders.zipkin.servce"));
  EXPECT_THAT(Paths("ProxyConfig", {{"holdAplicationUntilProxyStarts", true}}),
              ElementsAre("holdAplicationUntilProxyStarts"));
}

TEST(MeshFields, BothSpellingsOfProtobufsJsonAreKnown) {
  EXPECT_THAT(Paths("MeshConfig", {{"proxy_listen_port", 1}, {"proxyListenPort", 1}, {"Proxylistenport", 1}}),
              ElementsAre("Proxylistenport"));
}

TEST(MeshFields, FieldsOfLaterReleasesAreKnown) {
  EXPECT_THAT(Paths("MeshConfig", {{"inboundTrafficPolicy", {{"mode", "LOCALHOST"}}}}), IsEmpty());
}

TEST(MeshFields, ValuesOfAnotherShapeAreLeftToWhoReadsThem) {
  EXPECT_THAT(Paths("MeshConfig", json::parse(R"({"defaultConfig": 3, "serviceSettings": [[], "x", null]})")),
              IsEmpty());
  EXPECT_THAT(Paths("MeshConfig", json("text")), IsEmpty());
}

}  // namespace
}  // namespace wavetank::config
