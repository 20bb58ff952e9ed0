// What each fault means for each kind of call, in one place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fakes/kube/store/api_server.h"
#include "sim/kernel/kernel.h"

namespace wavetank::fakekube {
namespace {

constexpr ApiCall kRequests[] = {ApiCall::kRead, ApiCall::kWatch, ApiCall::kWrite, ApiCall::kTokenReview};

class FaultTableTest : public ::testing::Test {
 protected:
  void Start(std::string_view fault, Duration amount = 2s) {
    EndFaults(server_);
    const FaultRow* row = FindFault(fault);
    ASSERT_NE(row, nullptr) << fault;
    row->start(server_, amount);
  }

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("c", 0, nullptr);
  ApiServer server_{host_, {.name = "c"}};
};

TEST_F(FaultTableTest, NamesAreUniqueAndEachSaysWhatItDoes) {
  std::set<std::string_view> names;
  for (const FaultRow& row : FaultTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.does, "") << row.name;
    EXPECT_EQ(row.touch == nullptr, row.calls == 0) << row.name;
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(FindFault("none"), nullptr);
}

TEST_F(FaultTableTest, EveryRequestMeetsTheFaultTokenReviewsToo) {
  for (const ApiCall call : kRequests) {
    Start("unreachable");
    EXPECT_FALSE(server_.FateOf(call).answered);
    Start("slow");
    EXPECT_EQ(server_.FateOf(call).delay, 2s);
    EXPECT_TRUE(server_.FateOf(call).refusal.ok());
    Start("unauthorized");
    EXPECT_TRUE(absl::IsUnauthenticated(server_.FateOf(call).refusal));
    Start("too-many-requests");
    EXPECT_TRUE(absl::IsResourceExhausted(server_.FateOf(call).refusal));
    EXPECT_EQ(server_.FateOf(call).retry_after, 2s);
    EndFaults(server_);
    EXPECT_TRUE(server_.FateOf(call).answered && server_.FateOf(call).refusal.ok());
    EXPECT_EQ(server_.FateOf(call).delay, Duration{});
  }
}

TEST_F(FaultTableTest, EventsOfAWatchThatRunsAreOnlyLate) {
  Start("slow");
  EXPECT_EQ(server_.FateOf(ApiCall::kWatchEvent).delay, 2s);
  Start("unauthorized");
  EXPECT_TRUE(server_.FateOf(ApiCall::kWatchEvent).refusal.ok());
}

// As in kube-apiserver, where authentication comes before priority and fairness.
TEST_F(FaultTableTest, NobodyUnknownIsToldToComeBackLater) {
  server_.faults().unauthorized = true;
  server_.faults().retry_after = 2s;
  EXPECT_TRUE(absl::IsUnauthenticated(server_.FateOf(ApiCall::kRead).refusal));
  EXPECT_EQ(server_.FateOf(ApiCall::kRead).retry_after, Duration{});
}

}  // namespace
}  // namespace wavetank::fakekube
