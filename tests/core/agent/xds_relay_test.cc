#include "core/agent/xds_relay.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kClusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

class XdsRelayTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Types(const std::vector<OwnRequest>& requests) {
    std::vector<std::string> out;
    for (const OwnRequest& request : requests) out.push_back(request.type_url);
    return out;
  }
  XdsRelay::Answer Answer(std::string_view type, const std::string* resource) {
    std::string_view first;
    if (resource != nullptr) first = *resource;
    return relay.OnUpstream(type, "v", "n", resource == nullptr ? nullptr : &first);
  }

  std::vector<std::string> said;
  XdsRelay relay{[this](Level, std::string_view, std::string_view text) { said.emplace_back(text); }};
};

TEST_F(XdsRelayTest, WithoutADnsServerItAddsNothing) {
  EXPECT_THAT(relay.Connect(false)->AfterDownstream(kListenerTypeUrl), IsEmpty());
}

TEST_F(XdsRelayTest, ItsOwnRequestsFollowTheFirstForListeners) {
  relay.Handle(kNameTableTypeUrl, [](auto) { return absl::OkStatus(); });
  relay.Handle(kProxyConfigTypeUrl, [](auto) { return absl::OkStatus(); });
  relay.SetHealth(true, "");
  const auto connection = relay.Connect(false);
  EXPECT_THAT(connection->AfterDownstream(kClusters), IsEmpty());
  EXPECT_FALSE(connection->may_report_health());
  EXPECT_THAT(Types(connection->AfterDownstream(kListenerTypeUrl)),
              ElementsAre(kNameTableTypeUrl, kProxyConfigTypeUrl, kHealthTypeUrl));
  EXPECT_TRUE(connection->may_report_health());
  EXPECT_THAT(connection->AfterDownstream(kListenerTypeUrl), IsEmpty());
}

TEST_F(XdsRelayTest, EveryConnectionAsksAnew) {
  relay.Handle(kNameTableTypeUrl, [](auto) { return absl::OkStatus(); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Types(relay.Connect(i == 1)->AfterDownstream(kListenerTypeUrl)), ElementsAre(kNameTableTypeUrl));
  }
  EXPECT_THAT(said, ElementsAre("registered overlapping stream; closing previous"));
}

TEST_F(XdsRelayTest, ItsOwnAnswersStayAndAreAcknowledged) {
  std::string seen;
  relay.Handle(kNameTableTypeUrl, [&](std::string_view resource) {
    seen = resource;
    return absl::OkStatus();
  });
  const std::string resource = "table";
  const XdsRelay::Answer answer = Answer(kNameTableTypeUrl, &resource);
  EXPECT_EQ(answer.verdict, Verdict::kKeep);
  ASSERT_TRUE(answer.reply.has_value());
  EXPECT_EQ(answer.reply->version_info, "v");
  EXPECT_EQ(answer.reply->response_nonce, "n");
  EXPECT_FALSE(answer.reply->error.has_value());
  EXPECT_EQ(seen, "table");
}

TEST_F(XdsRelayTest, WhatItCannotReadItRefuses) {
  relay.Handle(kNameTableTypeUrl, [](auto) { return absl::InvalidArgumentError("not a NameTable"); });
  const std::string resource = "x";
  const XdsRelay::Answer answer = Answer(kNameTableTypeUrl, &resource);
  ASSERT_TRUE(answer.reply->error.has_value());
  EXPECT_EQ(answer.reply->error->code, 13);
  EXPECT_EQ(answer.reply->error->message, "not a NameTable");
}

TEST_F(XdsRelayTest, AnEmptyAnswerIsNotAcknowledged) {
  relay.Handle(kNameTableTypeUrl, [](auto) { return absl::OkStatus(); });
  EXPECT_FALSE(Answer(kNameTableTypeUrl, nullptr).reply.has_value());
}

TEST_F(XdsRelayTest, WhatIsNoEnvoysTypeIsNotPassedOn) {
  EXPECT_EQ(Answer(kClusters, nullptr).verdict, Verdict::kForward);
  EXPECT_EQ(Answer(kNameTableTypeUrl, nullptr).verdict, Verdict::kDrop);
  EXPECT_EQ(Answer("istio.io/debug/syncz", nullptr).verdict, Verdict::kTap);
}

TEST_F(XdsRelayTest, AnIllApplicationIsTold) {
  const OwnRequest request = relay.SetHealth(false, "connection refused");
  ASSERT_TRUE(request.error.has_value());
  EXPECT_EQ(request.error->message, "connection refused");
}

TEST_F(XdsRelayTest, EndsOfTheDailyWorkAreNoWarnings) {
  EXPECT_TRUE(IsExpectedEnd(absl::CancelledError("")));
  EXPECT_TRUE(IsExpectedEnd(absl::UnavailableError("error reading from server: EOF")));
  EXPECT_FALSE(IsExpectedEnd(absl::UnavailableError("connection refused")));
  relay.UpstreamEnded(3, absl::UnauthenticatedError("authentication failure"));
  EXPECT_THAT(said, Contains("upstream [3] terminated with unexpected error rpc error: code = Unauthenticated desc = "
                             "authentication failure"));
}

}  // namespace
}  // namespace wavetank::agent
