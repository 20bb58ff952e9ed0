#include "oracles/control_plane/mesh_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/gen/nds/name_table.h"
#include "core/xds/messages.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "google/protobuf/struct.pb.h"

namespace wavetank::serve {
namespace {

using ::testing::HasSubstr;
using Resources = scenario::XdsSnapshot::Resources;

Resources Cluster(const std::string& name, int timeout) {
  envoy::config::cluster::v3::Cluster cluster;
  cluster.set_name(name);
  cluster.mutable_connect_timeout()->set_seconds(timeout);
  return {{name, pilot::Resource{name, cluster.SerializeAsString()}.bytes}};
}

Resources Names(std::vector<std::string> ips) {
  pilot::NameTable table;
  table.hosts["a.example"] = {std::move(ips), "External", "", ""};
  return {{"", pilot::Resource{"", pilot::EncodeNameTable(table)}.bytes}};
}

Resources Extension(const std::string& plugin, const std::string& version) {
  google::protobuf::Struct variables;
  (*variables.mutable_fields())["PLUGIN"].set_string_value(plugin);
  (*variables.mutable_fields())["ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"].set_string_value(version);
  envoy::config::core::v3::TypedExtensionConfig extension;
  extension.set_name("e");
  extension.mutable_typed_config()->PackFrom(variables);
  return {{"e", pilot::Resource{"e", extension.SerializeAsString()}.bytes}};
}

class MeshComparisonTest : public ::testing::Test {
 protected:
  StepDifferences Compare(const HeldMesh& real, const HeldMesh& ours) {
    comparison_.Begin(real, ours);
    slices_ = 1;
    while (comparison_.Slice()) ++slices_;
    return comparison_.Take();
  }

  DiffOptions options_;
  MeshComparison comparison_{options_};
  int slices_ = 0;
};

TEST_F(MeshComparisonTest, OneTypeOfOneProxyIsASlice) {
  const HeldMesh mesh = {{"p", {{"cds", Cluster("c", 1)}, {"nds", Names({"1.2.3.4"})}}}, {"q", {{"cds", {}}}}};
  const StepDifferences found = Compare(mesh, mesh);
  EXPECT_EQ(slices_, 3);
  EXPECT_EQ(found.proxies, 2u);
  EXPECT_EQ(found.resources, 2u);
  EXPECT_TRUE(found.differences.empty());
}

TEST_F(MeshComparisonTest, AFieldThatDiffersIsNamedByProxyTypeAndPath) {
  const StepDifferences found = Compare({{"p", {{"cds", Cluster("c", 1)}}}}, {{"p", {{"cds", Cluster("c", 2)}}}});
  ASSERT_EQ(found.differences.size(), 1u);
  EXPECT_EQ(found.differences[0].proxy, "p");
  EXPECT_EQ(found.differences[0].type, "cds");
  EXPECT_THAT(found.differences[0].differences[0].path, HasSubstr("connect_timeout"));
}

TEST_F(MeshComparisonTest, ATypeThatOneSideAloneHoldsDiffers) {
  EXPECT_EQ(Compare({{"p", {{"ecds", Cluster("c", 1)}}}}, {{"p", {}}}).differences.size(), 1u);
  EXPECT_EQ(Compare({{"p", {}}}, {{"p", {{"cds", Cluster("c", 1)}}}}).differences.size(), 1u);
}

TEST_F(MeshComparisonTest, VersionsOfObjectsAreEachApiServersOwn) {
  EXPECT_TRUE(
      Compare({{"p", {{"ecds", Extension("a", "7")}}}}, {{"p", {{"ecds", Extension("a", "5")}}}}).differences.empty());
  EXPECT_EQ(
      Compare({{"p", {{"ecds", Extension("a", "7")}}}}, {{"p", {{"ecds", Extension("b", "7")}}}}).differences.size(),
      1u);
}

TEST_F(MeshComparisonTest, ReasonsAndParentsOfAStatusAreComparedAndTheirOrderIsNot) {
  const auto status = [](const std::string& text) {
    return HeldMesh{{"statuses of c1", {{"status", {{"r", pilot::Resource{"r", text}.bytes}}}}}};
  };
  const HeldMesh real =
      status(R"({"name": "r", "status": {"parents": [{"at": "a", "message": "x; y"}, {"at": "b"}]}})");
  EXPECT_TRUE(
      Compare(real, status(R"({"name": "r", "status": {"parents": [{"at": "b"}, {"at": "a", "message": "y; x"}]}})"))
          .differences.empty());
  EXPECT_FALSE(
      Compare(real, status(R"({"name": "r", "status": {"parents": [{"at": "b"}, {"at": "a", "message": "y"}]}})"))
          .differences.empty());
}

TEST_F(MeshComparisonTest, AProxyOfOneSideAloneDiffers) {
  const StepDifferences found = Compare({{"p", {}}}, {{"q", {}}});
  ASSERT_EQ(found.differences.size(), 2u);
  EXPECT_EQ(found.differences[0].proxy, "p");
  EXPECT_EQ(found.differences[1].proxy, "q");
}

TEST_F(MeshComparisonTest, NamesAreComparedAndTheOrderOfTheirAddressesIsNot) {
  const auto mesh = [](std::vector<std::string> ips) { return HeldMesh{{"p", {{"nds", Names(std::move(ips))}}}}; };
  EXPECT_TRUE(Compare(mesh({"1.1.1.1", "2.2.2.2"}), mesh({"2.2.2.2", "1.1.1.1"})).differences.empty());
  EXPECT_EQ(Compare(mesh({"1.1.1.1"}), mesh({"1.1.1.2"})).differences.size(), 1u);
}

TEST_F(MeshComparisonTest, WhatWasEqualOnceIsReadAgainOnlyWhenItChanges) {
  const HeldMesh one = {{"p", {{"nds", Names({"1.1.1.1", "2.2.2.2"})}}}};
  const HeldMesh other = {{"p", {{"nds", Names({"2.2.2.2", "1.1.1.1"})}}}};
  EXPECT_TRUE(Compare(one, other).differences.empty());
  EXPECT_TRUE(Compare(one, other).differences.empty());
  EXPECT_EQ(Compare(one, {{"p", {{"nds", Names({"3.3.3.3"})}}}}).differences.size(), 1u);
}

}  // namespace
}  // namespace wavetank::serve
