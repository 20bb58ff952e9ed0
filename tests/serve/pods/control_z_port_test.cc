// ControlZ of a live world's istiods: what it changes, and that a log of it replays.
#include "serve/debug/control_z_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/server.h"
#include "sim/pod_process.h"
#include "tests/serve/live.h"

namespace wavetank::serve {
namespace {

using ::testing::HasSubstr;

class ControlZPortTest : public ::testing::Test {
 protected:
  ControlZPort Istiod(sim::World& world) {
    return {"cluster1", "istio-system", world.Pods("cluster1", "istio-system", "istiod").front()->pod()->meta.name,
            9876};
  }
  fakekube::http::Response Ask(const std::string& method, const std::string& path, const std::string& body = "") {
    fakekube::http::Response out;
    server_->loop().Call([&](sim::World& world) {
      fakekube::http::Request request;
      request.method = method;
      request.path = path;
      request.body = body;
      if (auto answer = ControlZAnswer(world, Istiod(world), request, {})) out = *std::move(answer);
      return true;
    });
    return out;
  }

  std::unique_ptr<Server> server_ = StartServer(OnAnyPort());
};

TEST_F(ControlZPortTest, IsTheIstiodsAloneAndAtItsPortAlone) {
  server_->loop().Call([&](sim::World& world) {
    ControlZPort where = Istiod(world);
    EXPECT_TRUE(IsControlZ(world, where));
    where.port = 9877;
    EXPECT_FALSE(IsControlZ(world, where));
    where = {"cluster1", "sample", world.Pods("cluster1", "sample", "sleep").front()->pod()->meta.name, 9876};
    EXPECT_FALSE(IsControlZ(world, where));
    return true;
  });
}

TEST_F(ControlZPortTest, AScopesNewLevelIsAnInputAndIsShown) {
  const uint64_t before = *server_->loop().Call([](sim::World& world) { return world.inputs(); });
  EXPECT_EQ(Ask("GET", "/scopej/ads").code, 200);
  EXPECT_EQ(*server_->loop().Call([](sim::World& world) { return world.inputs(); }), before);
  EXPECT_EQ(Ask("PUT", "/scopej/ads", R"({"output_level":"none"})").code, 202);
  EXPECT_EQ(*server_->loop().Call([](sim::World& world) { return world.inputs(); }), before + 1);
  EXPECT_THAT(Ask("GET", "/scopej/ads").body, HasSubstr("\"output_level\":\"none\""));
  EXPECT_THAT(Ask("GET", "/scopej/kube").body, HasSubstr("\"output_level\":\"info\""));
}

TEST_F(ControlZPortTest, ItsAddressWithoutASlashLeadsToTheOneWithIt) {
  const auto answer = Ask("GET", "/scopej");
  EXPECT_EQ(answer.code, 301);
  ASSERT_EQ(answer.headers.size(), 1u);
  EXPECT_EQ(answer.headers[0].second, "/scopej/");
}

}  // namespace
}  // namespace wavetank::serve
