// A host of several addresses: which of them a connection goes to.
// Envoy: source/common/network/multi_connection_base_impl.cc, happy_eyeballs_connection_impl.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr std::string_view kService = "10.9.0.1:80";
constexpr char kV4[] = "10.1.0.1", kV6[] = "fd00:1::1";

// A client, and a server that listens at an address of each IP family.
class HappyEyeballs : public ::testing::Test {
 protected:
  HappyEyeballs() : client_(lab_.AddProxy("client", "10.0.0.1")) {
    spec_.authority = "x";
    lab_.AddApp("v4", kV4, 80);
    lab_.AddApp("v6", kV6, 80);
    auto& world = client_.ads->world;
    world[XdsType::kCds]["c"] = EdsCluster("c");
    world[XdsType::kEds]["c"] = Assignment("c", {{std::string(kV4) + ":80", 1, "", false, std::string(kV6) + ":80"}});
    world[XdsType::kLds]["l"] = HttpListenerTo("l", kService, "c", false);
    world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    client_.ads->automatic = true;
    client_.envoy->Start();
    lab_.RunFor(10ms);
  }
  // How long it took, in milliseconds.
  int64_t Ask() {
    const Time before = lab_.kernel.Now();
    result_ = lab_.Begin(client_, kService, spec_);
    while (!result_->done && lab_.kernel.Now() - before < 60s) lab_.RunFor(1ms);
    return (lab_.kernel.Now() - before) / 1ms;
  }
  uint64_t Counter(const std::string& name) { return client_.envoy->counter("cluster.c." + name); }

  Lab lab_{1, Instant()};
  Lab::Proxy& client_;
  RequestSpec spec_;
  std::shared_ptr<Lab::Result> result_;
};

TEST_F(HappyEyeballs, TheFirstAddressIsTakenIfItAnswers) {
  EXPECT_LE(Ask(), 10);
  EXPECT_EQ(result_->server, "v4");
}

TEST_F(HappyEyeballs, TheNextOneIsTriedAfter300Milliseconds) {
  lab_.network.blackholed[*IpAddress::Parse(kV4)] = true;
  const int64_t took = Ask();
  EXPECT_GE(took, 300);
  EXPECT_LE(took, 310);
  EXPECT_EQ(result_->record.code, 200);
  EXPECT_EQ(result_->server, "v6");
  EXPECT_EQ(Counter("upstream_cx_total"), 1u);
  EXPECT_EQ(Counter("upstream_cx_connect_fail"), 0u);
}

TEST_F(HappyEyeballs, TheNextOneIsTriedAtOnceIfTheFirstRefuses) {
  lab_.RemoveApp(kV4, 80);
  EXPECT_LE(Ask(), 10);
  EXPECT_EQ(result_->server, "v6");
}

TEST_F(HappyEyeballs, TheConnectionFailsWhenAllAddressesHave) {
  lab_.RemoveApp(kV4, 80);
  lab_.RemoveApp(kV6, 80);
  EXPECT_LE(Ask(), 10);
  EXPECT_EQ(result_->record.code, 503);
  EXPECT_EQ(result_->flags, "UF");
  EXPECT_EQ(Counter("upstream_cx_connect_fail"), 1u);
}

TEST_F(HappyEyeballs, OneTimeoutIsForAllAddresses) {
  lab_.network.blackholed[*IpAddress::Parse(kV4)] = lab_.network.blackholed[*IpAddress::Parse(kV6)] = true;
  const int64_t took = Ask();
  EXPECT_GE(took, 10000);
  EXPECT_LE(took, 10010);
  EXPECT_EQ(Counter("upstream_cx_connect_timeout"), 1u);
}

TEST_F(HappyEyeballs, AnAttemptThatComesTooLateIsClosed) {
  lab_.network.blackholed[*IpAddress::Parse(kV4)] = true;
  Ask();
  lab_.network.blackholed[*IpAddress::Parse(kV4)] = false;
  lab_.RunFor(60s);  // the first attempt's SYN would have come again
  EXPECT_LE(Ask(), 10);
  EXPECT_EQ(result_->server, "v6") << "the pooled connection is the one that stood first";
}

}  // namespace
}  // namespace wavetank::envoysim::lab
