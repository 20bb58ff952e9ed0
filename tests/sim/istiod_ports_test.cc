// What istiod's other ports answer within a world: pages over HTTP, and clear text where nobody is believed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/traffic.h"
#include "sim/world.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

class IstiodPortsWorld : public TwoClusterWorld {
 protected:
  void SetUp() override { Build(/*remote=*/false); }
  // The code of the answer to sleep of cluster1; -1: no request ended.
  int Get(int port, const std::string& path) {
    int code = -1;
    const Subscription requests = world_->commons().on_request.Add(
        [&](const TrafficRecord& record) { code = static_cast<int>(record.record.code); });
    Do("traffic", {{"id", path + std::to_string(port)},
                   {"flow", "pages"},
                   {"from", {{"cluster", "cluster1"}, {"namespace", "sample"}, {"app", "sleep"}}},
                   {"host", "istiod.istio-system"},
                   {"port", port},
                   {"path", path},
                   {"requests", 1}});
    world_->RunUntil(world_->Now() + 5s);
    return code;
  }
};

TEST_F(IstiodPortsWorld, MonitoringAnswersReadinessVersionMetricsAndDebugPages) {
  for (const char* path : {"/ready", "/version", "/metrics", "/debug/syncz"}) EXPECT_EQ(Get(15014, path), 200) << path;
  EXPECT_EQ(Get(15014, "/debug/nosuchz"), 404);
}

}  // namespace
}  // namespace wavetank::sim
