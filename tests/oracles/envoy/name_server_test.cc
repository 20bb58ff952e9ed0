// Where the names of a case are asked for.
#include "oracles/envoy/peers/name_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/await.h"

namespace wavetank::envoydiff {
namespace {

// A child that another thread starts holds every socket of the program until its exec.
TEST(NameServerTest, WaitsForAnAddressThatIsHeldForAMoment) {
  const int holder = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  ASSERT_EQ(bind(holder, reinterpret_cast<const sockaddr*>(&at), size), 0);
  ASSERT_EQ(getsockname(holder, reinterpret_cast<sockaddr*>(&at), &size), 0);
  std::thread releases([holder] {
    LetTimePass(std::chrono::milliseconds(50));
    close(holder);
  });
  EXPECT_NE(NameServer::Make(fmt::format("127.0.0.1:{}", ntohs(at.sin_port)), {}), nullptr);
  releases.join();
}

TEST(NameServerTest, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_EQ(NameServer::Make("192.0.2.1:10053", {}), nullptr);
}

}  // namespace
}  // namespace wavetank::envoydiff
