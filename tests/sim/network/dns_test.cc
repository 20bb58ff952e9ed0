#include "sim/network/dns.h"

#include <gmock/gmock.h>

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::sim {
namespace {

IpAddress Ip(std::string_view text) { return *IpAddress::Parse(text); }

class DnsTest : public fakekube::ClusterTest {
 protected:
  std::string Says(std::string_view name) {
    const auto addresses = dns_.Resolve(name, "default");
    if (!addresses.ok()) return std::string(absl::StatusCodeToString(addresses.status().code()));
    std::string out;
    for (const IpAddress& ip : *addresses) out += (out.empty() ? "" : " ") + ip.ToString();
    return out;
  }
  void Wait(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }

  WorldDns world_;
  ClusterDns dns_{api(), world_};
};

TEST_F(DnsTest, AnAliasIsFollowedToItsAddresses) {
  world_.Set("www.example", {.alias = "lb.example"});
  EXPECT_EQ(Says("www.example."), "NOT_FOUND");
  world_.Set("lb.example", {.addresses = {Ip("203.0.113.1")}});
  EXPECT_EQ(Says("www.example."), "203.0.113.1");
}

TEST_F(DnsTest, ACircleOfAliasesIsNoAnswer) {
  world_.Set("a.example", {.alias = "b.example"});
  world_.Set("b.example", {.alias = "a.example"});
  EXPECT_EQ(Says("a.example."), "UNAVAILABLE");
}

TEST_F(DnsTest, AQueryThatFailsTakesItsAddressesAway) {
  DnsRecord record{.addresses = {Ip("203.0.113.1"), Ip("fd00::1")}};
  world_.Set("both.example", record);
  EXPECT_EQ(Says("both.example."), "203.0.113.1 fd00::1");
  record.a_fails = true;
  world_.Set("both.example", record);
  EXPECT_EQ(Says("both.example."), "fd00::1");
  record.aaaa_fails = true;
  world_.Set("both.example", record);
  EXPECT_EQ(Says("both.example."), "UNAVAILABLE");
}

TEST_F(DnsTest, AnAnswerIsKeptForItsTimeAndSaysWhatIsLeftOfIt) {
  world_.Set("a.example", {.addresses = {Ip("203.0.113.1")}, .ttl = 30s});
  EXPECT_EQ(Says("a.example."), "203.0.113.1");
  world_.Set("a.example", {.addresses = {Ip("203.0.113.2")}, .ttl = 30s});
  Wait(20s);
  EXPECT_EQ(Says("a.example."), "203.0.113.1");
  EXPECT_EQ(dns_.Ask("a.example.", "default")->ttl, 10s);
  Wait(10s);
  EXPECT_EQ(Says("a.example."), "203.0.113.2");
}

TEST_F(DnsTest, ThatThereIsNoneIsKeptTooAndAServersFailureIsNot) {
  world_.Set("a.example", {.ttl = 30s});
  EXPECT_EQ(Says("a.example."), "NOT_FOUND");
  world_.Set("a.example", {.addresses = {Ip("203.0.113.1")}});
  EXPECT_EQ(Says("a.example."), "NOT_FOUND");
  Wait(30s);
  EXPECT_EQ(Says("a.example."), "203.0.113.1");
  world_.Set("b.example", {.a_fails = true, .aaaa_fails = true, .ttl = 30s});
  EXPECT_EQ(Says("b.example."), "UNAVAILABLE");
  world_.Set("b.example", {.addresses = {Ip("203.0.113.1")}});
  EXPECT_EQ(Says("b.example."), "203.0.113.1");
}

}  // namespace
}  // namespace wavetank::sim
