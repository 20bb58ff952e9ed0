#include "serve/loop/fair_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace wavetank::serve {
namespace {

TEST(FairQueue, WhoWantsMuchWaitsForWhoWantsLittle) {
  FairQueue<std::string> queue;
  for (int i = 0; i < 1000; ++i) queue.Push("greedy", "g" + std::to_string(i));
  queue.Push("a", "a0");
  queue.Push("b", "b0");
  queue.Push("b", "b1");
  std::string order;
  for (int i = 0; i < 6; ++i) order += queue.Pop() + " ";
  EXPECT_EQ(order, "g0 a0 b0 g1 b1 g2 ");
}

TEST(FairQueue, EachClientsOwnStayInOrder) {
  FairQueue<std::pair<std::string, int>> queue;
  for (int i = 0; i < 50; ++i) {
    for (const char* client : {"a", "b", "c"}) {
      if (i % (client[0] - 'a' + 1) == 0) queue.Push(client, {client, i});
    }
  }
  std::map<std::string, int> last;
  int count = 0;
  for (; !queue.empty(); ++count) {
    const auto [client, i] = queue.Pop();
    EXPECT_TRUE(!last.contains(client) || i > last[client]) << client << i;
    last[client] = i;
  }
  EXPECT_EQ(count, 50 + 25 + 17);
}

// A client whose things have all been done begins at the end of the line again: nobody gets two turns for coming often.
TEST(FairQueue, ComingAgainIsComingLast) {
  FairQueue<std::string> queue;
  queue.Push("a", "a0");
  queue.Push("b", "b0");
  EXPECT_EQ(queue.Pop(), "a0");
  queue.Push("a", "a1");
  EXPECT_EQ(queue.Pop(), "b0");
  EXPECT_EQ(queue.Pop(), "a1");
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace wavetank::serve
