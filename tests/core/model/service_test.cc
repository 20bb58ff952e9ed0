#include "core/model/service.h"

#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

TEST(ServiceTest, OfOneNumberThePortThatIsNotUdpIsFound) {
  Service dns;
  dns.ports = {{"udp", 53, Protocol::kUdp}, {"tcp", 53, Protocol::kTcp}, {"only-udp", 54, Protocol::kUdp}};
  ASSERT_NE(dns.FindPort(53), nullptr);
  EXPECT_EQ(dns.FindPort(53)->name, "tcp");
  EXPECT_EQ(dns.FindPort(54), nullptr);
  EXPECT_EQ(dns.FindPortOfAnyProtocol(53)->name, "udp");
  EXPECT_EQ(dns.FindPortOfAnyProtocol(54)->name, "only-udp");
}

}  // namespace
}  // namespace wavetank::pilot
