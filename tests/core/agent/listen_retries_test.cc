#include "core/agent/listen_retries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wavetank::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class ListenRetriesTest : public ::testing::Test {
 protected:
  // A server that can be made at that attempt.
  absl::StatusOr<int> Listen(int succeeds) {
    return ListenWithRetries(
        [this, succeeds]() -> absl::StatusOr<int> {
          if (++tries == succeeds) return 42;
          return absl::UnavailableError("address already in use");
        },
        [this](Level, std::string_view, std::string_view text) { said.emplace_back(text); },
        [this](Duration pause) { pauses.push_back(pause); });
  }
  int tries = 0;
  std::vector<std::string> said;
  std::vector<Duration> pauses;
};

TEST_F(ListenRetriesTest, ASocketThatIsFreeIsTakenAtOnce) {
  EXPECT_EQ(*Listen(1), 42);
  EXPECT_THAT(pauses, IsEmpty());
  EXPECT_THAT(said, IsEmpty());
}

TEST_F(ListenRetriesTest, PausesBetweenAttemptsDouble) {
  EXPECT_EQ(*Listen(4), 42);
  EXPECT_THAT(pauses, ElementsAre(1s, 2s, 4s));
  EXPECT_THAT(said, Not(Contains("SDS grpc server could not be started")));
}

TEST_F(ListenRetriesTest, AfterFiveAttemptsItGivesUpWithTheLastReason) {
  const absl::StatusOr<int> server = Listen(6);
  EXPECT_EQ(server.status().message(), "address already in use");
  EXPECT_EQ(tries, 5);
  EXPECT_THAT(pauses, ElementsAre(1s, 2s, 4s, 8s));
  EXPECT_THAT(said, Contains("SDS grpc server could not be started"));
}

}  // namespace
}  // namespace wavetank::agent
