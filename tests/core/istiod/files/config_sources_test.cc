#include "core/istiod/files/config_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> Chosen(const json& addresses, const std::string& config_dir = "") {
  json sources = json::array();
  for (const json& address : addresses) sources.push_back({{"address", address}});
  const absl::StatusOr<ConfigSources> chosen = ChooseConfigSources({{"configSources", sources}}, config_dir);
  if (!chosen.ok()) return {std::string(Message(chosen.status()))};
  std::vector<std::string> out;
  for (const ConfigSource& source : chosen->sources)
    out.push_back(source.kind == ConfigSource::Kind::kCluster ? "cluster" : source.folder);
  for (const std::string& warning : chosen->warnings) out.push_back(warning);
  return out;
}

TEST(ConfigSources, AreTheClusterUnlessSomethingElseIsNamed) {
  EXPECT_THAT(Chosen(json::array()), ElementsAre("cluster"));
  EXPECT_THAT(Chosen(json::array(), "/etc/config"), ElementsAre("/etc/config"));
  EXPECT_THAT(Chosen({"fs:///one", "k8s://", "fs:///two"}, "/etc/config"), ElementsAre("/one", "cluster", "/two"));
  EXPECT_EQ(ChooseConfigSources(json(), "")->sources.size(), 1U);
}

TEST(ConfigSources, WhatIstiodLeavesOutIsTold) {
  EXPECT_THAT(Chosen({"k8s://other/cluster", "k8s:///"}),
              ElementsAre("cluster", "Not implemented, ignore: k8s://other/cluster"));
  EXPECT_THAT(Chosen({"http://somewhere"}), ElementsAre("Ignoring unsupported config source: http://somewhere"));
  EXPECT_THAT(Chosen({""}), ElementsAre("Ignoring unsupported config source: "));
}

TEST(ConfigSources, OfWhichOneCannotBeEndIstiod) {
  EXPECT_THAT(Chosen({"fs:// /a"}),
              ElementsAre("invalid config URL fs:// /a parse \"fs:// /a\": invalid character \" \" in host name"));
  EXPECT_THAT(Chosen({"fs://folder"}), ElementsAre("invalid fs config URL fs://folder, contains no file path"));
  EXPECT_THAT(Chosen({"xds://mcp.example:15010"}),
              ElementsAre(testing::AllOf(StartsWith("MCP: failed running"), HasSubstr("mcp.example:15010"))));
}

}  // namespace
}  // namespace wavetank::pilot
