// A mesh of two clusters on two networks out of the scenarios' manifests: sleep and helloworld in both.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fakes/kube/objects/manifest.h"
#include "gtest/gtest.h"
#include "sim/inputs/input.h"
#include "sim/world.h"

namespace wavetank::sim {

// Two clusters on two networks; cluster2 has an istiod of its own, or is served by cluster1's.
inline WorldOptions TwoClusters(bool remote) {
  WorldOptions options;
  options.clusters.push_back({"cluster1",
                              "network1",
                              "cluster1",
                              "10.1.0.0/16",
                              "10.96.0.0/16",
                              "172.30.1.0/24",
                              false,
                              {{"n1", "region1", "zone1"}}});
  options.clusters.push_back({"cluster2",
                              "network2",
                              remote ? "cluster1" : "cluster2",
                              "10.2.0.0/16",
                              "10.97.0.0/16",
                              "172.30.2.0/24",
                              false,
                              {{"n2", "region1", "zone1"}}});
  return options;
}

class TwoClusterWorld : public testing::Test {
 protected:
  // From nothing to rest.
  void Build(bool remote, const std::string& root2 = "root") {
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(TwoClusters(remote));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    if (!remote) Do("cacerts", {{"cluster", "cluster2"}, {"root", root2}});
    for (const char* n : {"1", "2"}) Apply(std::string("cluster") + n, std::string("network") + n);
    Do("install", {{"cluster", "cluster1"}});
    Do("install", {{"cluster", "cluster2"}});
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
    Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "present"}});
    if (!remote) Do("remoteSecret", {{"of", "cluster1"}, {"in", "cluster2"}, {"state", "present"}});
    for (const char* n : {"1", "2"}) {
      const std::string cluster = std::string("cluster") + n;
      Apply(cluster, std::string("eastwest-network") + n);
      Apply(cluster, "expose-services");
      if (remote && *n == '1') Apply(cluster, "expose-istiod");
    }
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
    for (const char* n : {"1", "2"}) {
      const std::string cluster = std::string("cluster") + n;
      for (const std::string& file : {std::string("sample"), std::string("helloworld-service"),
                                      std::string("helloworld-v") + n, std::string("sleep")}) {
        Apply(cluster, file);
      }
    }
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
  }
  // An input as event logs have it.
  void Do(const std::string& kind, const nlohmann::json& body) {
    const absl::StatusOr<Input> input = Input::Parse(kind, body);
    ASSERT_TRUE(input.ok()) << input.status();
    const absl::Status status = world_->Do(*input);
    EXPECT_TRUE(status.ok()) << kind << ": " << status;
  }
  // A manifest of scenarios/manifests/, by its name; what names no namespace goes to `sample`.
  void Apply(const std::string& cluster, const std::string& manifest) {
    const auto objects =
        fakekube::LoadManifests(std::string(WAVETANK_SOURCE_DIR "/scenarios/manifests/") + manifest + ".yaml");
    ASSERT_TRUE(objects.ok()) << objects.status();
    for (const auto& object : *objects) {
      nlohmann::json body = object.object;
      if (!fakekube::ClusterScoped(body.value("kind", "")) && !body["metadata"].contains("namespace")) {
        body["metadata"]["namespace"] = "sample";
      }
      Do("apply", {{"cluster", cluster}, {"object", std::move(body)}});
    }
  }

  std::unique_ptr<World> world_;
};

}  // namespace wavetank::sim
