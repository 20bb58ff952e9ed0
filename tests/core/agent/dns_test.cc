#include "core/agent/dns_message.h"
#include "core/agent/dns_table.h"
#include "core/gen/nds/name_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = DnsDecision::Kind;

constexpr auto kA = static_cast<uint16_t>(DnsType::kA), kAaaa = static_cast<uint16_t>(DnsType::kAaaa);

IpAddress Ip(std::string_view text) { return IpAddress::Parse(text).value(); }

pilot::NameTable Table() {
  pilot::NameTable table;
  table.hosts["reviews.ns1.svc.cluster.local"] = {{"9.9.9.9"}, "Kubernetes", "reviews", "ns1"};
  table.hosts["details.ns2.svc.cluster.remote"] = {{"11.11.11.11", "12.12.12.12"}, "Kubernetes", "details", "ns2"};
  table.hosts["headless.ns2.svc.cluster.local"] = {
      {"10.0.0.1", "10.0.0.2", "10.0.0.3"}, "Kubernetes", "headless", "ns2"};
  table.hosts["www.example.com"] = {{"1.1.1.1"}, "External", "", ""};
  table.hosts["*.wild.com"] = {{"2.2.2.2"}, "External", "", ""};
  table.hosts["dual.example.com"] = {{"3.3.3.3", "fd00::3"}, "External", "", ""};
  table.hosts["only6.example.com"] = {{"fd00::6"}, "External", "", ""};
  return table;
}

class DnsTableTest : public ::testing::Test {
 protected:
  DnsTableTest() { table.Update(Table()); }
  std::vector<std::string> Addresses(std::string_view name, uint16_t type = kA) {
    std::vector<std::string> out;
    for (const DnsRecord& record : table.Lookup(name, type).records) {
      out.push_back(record.type == DnsType::kCname ? "-> " + record.target : record.address.ToString());
    }
    return out;
  }
  Kind KindOf(std::string_view name, uint16_t type = kA) { return table.Lookup(name, type).kind; }

  DnsTable table{{.proxy_namespace = "ns1",
                  .proxy_domain = "ns1.svc.cluster.local",
                  .search = {"ns1.svc.cluster.local", "svc.cluster.local", "cluster.local"}}};
};

TEST_F(DnsTableTest, AServiceHasItsShortNames) {
  for (const char* name : {"reviews.ns1.svc.cluster.local.", "reviews.ns1.svc.", "reviews.ns1.", "reviews."}) {
    EXPECT_THAT(Addresses(name), ElementsAre("9.9.9.9")) << name;
  }
}

TEST_F(DnsTableTest, TheShortestNameIsOfTheOwnNamespaceAlone) {
  EXPECT_EQ(KindOf("headless."), Kind::kUpstream);
  EXPECT_EQ(Addresses("headless.ns2.").size(), 3u);
}

TEST_F(DnsTableTest, AServiceOfAnotherDomainHasItsFullNameOnly) {
  EXPECT_THAT(Addresses("details.ns2.svc.cluster.remote."), ElementsAre("11.11.11.11", "12.12.12.12"));
  EXPECT_EQ(KindOf("details.ns2."), Kind::kUpstream);
}

TEST_F(DnsTableTest, WithTheFirstSearchDomainANameIsAnAlias) {
  EXPECT_THAT(Addresses("www.example.com.ns1.svc.cluster.local."), ElementsAre("-> www.example.com.", "1.1.1.1"));
  EXPECT_EQ(KindOf("www.example.com.svc.cluster.local."), Kind::kUpstream);
}

TEST_F(DnsTableTest, AWildcardAnswersForTheNameThatWasAsked) {
  const DnsDecision decision = table.Lookup("a.b.wild.com.", kA);
  ASSERT_EQ(decision.records.size(), 1u);
  EXPECT_EQ(decision.records[0].name, "a.b.wild.com.");
  EXPECT_EQ(decision.records[0].address, Ip("2.2.2.2"));
  EXPECT_EQ(KindOf("wild.com."), Kind::kUpstream);
}

TEST_F(DnsTableTest, AKnownNameWithoutSuchAnAddressIsAnsweredWithNothing) {
  EXPECT_EQ(KindOf("www.example.com.", kAaaa), Kind::kAnswer);
  EXPECT_THAT(Addresses("www.example.com.", kAaaa), IsEmpty());
  EXPECT_THAT(Addresses("only6.example.com."), IsEmpty());
  EXPECT_THAT(Addresses("dual.example.com.", kAaaa), ElementsAre("fd00::3"));
}

TEST_F(DnsTableTest, CaseDoesNotMatter) { EXPECT_THAT(Addresses("WWW.Example.COM."), ElementsAre("1.1.1.1")); }

TEST_F(DnsTableTest, OtherTypesGoUpstream) { EXPECT_EQ(KindOf("www.example.com.", 16), Kind::kUpstream); }

TEST_F(DnsTableTest, ANewTableForgetsTheOldOne) {
  table.Update({});
  EXPECT_EQ(KindOf("www.example.com."), Kind::kUpstream);
  EXPECT_TRUE(table.ready());
}

TEST_F(DnsTableTest, EveryAddressOfAHeadlessServiceIsFirstAtTimes) {
  RandomStream random(1, "dns");
  std::set<std::string> firsts;
  for (int i = 0; i < 100; ++i) {
    std::vector<DnsRecord> records = table.Lookup("headless.ns2.", kA).records;
    DnsTable::Shuffle(records, random);
    firsts.insert(records[0].address.ToString());
  }
  EXPECT_THAT(firsts, UnorderedElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
}

TEST(DnsBeforeItsTable, RefusesUnlessItStandsForTheSystemsServer) {
  EXPECT_EQ(DnsTable({}).Lookup("a.", kA).kind, Kind::kServFail);
  EXPECT_EQ(DnsTable({.respond_before_sync = true}).Lookup("a.", kA).kind, Kind::kUpstream);
}

TEST(DnsMessage, AnswersAreReadAsTheyWereWritten) {
  const auto query = ParseQuery(MakeQuery(7, "www.example.com.ns1.", kA));
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->id, 7);
  EXPECT_EQ(query->name, "www.example.com.ns1.");
  const std::vector<DnsRecord> records = {{"www.example.com.ns1.", DnsType::kCname, {}, "www.example.com."},
                                          {"www.example.com.", DnsType::kA, Ip("1.2.3.4"), ""},
                                          {"www.example.com.", DnsType::kAaaa, Ip("fd00::1"), ""}};
  const auto read = ParseAnswer(MakeAnswer(*query, records, DnsRcode::kNoError, 512));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, records);
}

TEST(DnsMessage, WhatDoesNotFitIsLeftOutAndTold) {
  const auto query = ParseQuery(MakeQuery(7, "many.", kA));
  std::vector<DnsRecord> records(100, {"many.", DnsType::kA, Ip("1.2.3.4"), ""});
  const std::string answer = MakeAnswer(*query, records, DnsRcode::kNoError, 512);
  EXPECT_LE(answer.size(), 512u);
  EXPECT_NE(answer[2] & 0x02, 0);
  EXPECT_LT(ParseAnswer(answer)->size(), 100u);
}

TEST(DnsMessage, AFailureIsUnavailable) {
  const auto query = ParseQuery(MakeQuery(7, "x.", kA));
  EXPECT_TRUE(absl::IsUnavailable(ParseAnswer(MakeAnswer(*query, {}, DnsRcode::kServFail, 512)).status()));
}

TEST(DnsMessage, WhatIsNotThereSaysForHowLong) {
  const auto query = ParseQuery(MakeQuery(7, "web.shop.svc.", 1));
  ASSERT_TRUE(query.ok()) << query.status();
  DnsLife life;
  life.nothing = 60;
  const std::string answer = MakeAnswer(*query, {}, DnsRcode::kNxDomain, 512, life);
  EXPECT_TRUE(absl::IsNotFound(ParseAnswer(answer).status()));
  EXPECT_EQ(answer.substr(8, 2), std::string("\0\1", 2));                     // one record of authority
  EXPECT_EQ(answer.substr(answer.size() - 4), std::string("\0\0\0\x3c", 4));  // its minimum
  EXPECT_EQ(MakeAnswer(*query, {}, DnsRcode::kServFail, 512, life).substr(8, 2), std::string("\0\0", 2));
}

TEST(DnsMessage, ALabelWithADotIsEchoedAsOne) {
  const std::string plain = MakeQuery(7, "axb.example.", kA);
  std::string dotted = plain;
  dotted[14] = '.';  // of the first label, behind the header and its length
  const auto query = ParseQuery(dotted);
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->name, "a\\.b.example.");
  const std::string answer = MakeAnswer(*query, {}, DnsRcode::kNxDomain, 512);
  EXPECT_EQ(answer.substr(12), dotted.substr(12));
}

TEST(DnsMessage, BytesThatAreNoTextAreEchoedAsTheyCame) {
  std::string odd = MakeQuery(7, "axxb.example.", kA);
  odd[14] = '\x01';
  odd[15] = '\\';
  const auto query = ParseQuery(odd);
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->name, "a\\001\\\\b.example.");
  EXPECT_EQ(MakeAnswer(*query, {}, DnsRcode::kNxDomain, 512).substr(12), odd.substr(12));
}

TEST(DnsMessage, HostileBytesAreRefused) {
  const std::string good = MakeQuery(7, "www.example.com.", kA);
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseQuery(good.substr(0, cut)).status())) << cut;
  }
  std::string loop = good;
  loop[12] = static_cast<char>(0xc0);  // a pointer to itself
  loop[13] = 12;
  EXPECT_FALSE(ParseQuery(loop).ok());
  EXPECT_FALSE(ParseAnswer(good).ok());
}

}  // namespace
}  // namespace wavetank::agent
