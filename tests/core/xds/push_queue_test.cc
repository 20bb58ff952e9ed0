#include "core/xds/push_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;

struct Proxy {
  PushQueueSlot slot;
};
using ProxyRef = std::shared_ptr<Proxy>;

class PushQueueTest : public ::testing::Test {
 protected:
  static PushRequestRef Change(const std::string& service) {
    auto out = std::make_shared<PushRequest>();
    out->configs_updated = {{ConfigKind::kServiceEntry, service, "shop"}};
    return out;
  }
  static std::vector<std::string> Names(const PushRequestRef& request) {
    std::vector<std::string> out;
    for (const ConfigKey& key : request->configs_updated) out.push_back(key.name);
    return out;
  }

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("istiod", 0, nullptr);
  PushQueue<Proxy> queue_{host_};
  ProxyRef first_ = std::make_shared<Proxy>(), second_ = std::make_shared<Proxy>();
};

TEST_F(PushQueueTest, ProxiesLeaveInTheOrderInWhichTheyBeganToWait) {
  queue_.Enqueue({second_, first_}, Change("a"));
  queue_.Enqueue(second_, Change("b"));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.Dequeue().client, second_);
  EXPECT_EQ(queue_.Dequeue().client, first_);
}

TEST_F(PushQueueTest, WhatComesForOneThatWaitsIsMerged) {
  queue_.Enqueue(first_, Change("a"));
  queue_.Enqueue(first_, Change("b"));
  const auto item = queue_.Dequeue();
  EXPECT_THAT(Names(item.request), ElementsAre("a", "b"));
  EXPECT_EQ(item.request->events, 2);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(PushQueueTest, WhatComesDuringAPushIsPushedBehindIt) {
  queue_.Enqueue(first_, Change("a"));
  queue_.Dequeue();
  queue_.Enqueue({first_, second_}, Change("b"));
  queue_.Enqueue({first_, second_}, Change("c"));
  EXPECT_EQ(queue_.size(), 1u);  // the second alone
  queue_.MarkDone(first_);
  EXPECT_EQ(queue_.Dequeue().client, second_);
  EXPECT_THAT(Names(queue_.Dequeue().request), ElementsAre("b", "c"));
}

TEST_F(PushQueueTest, ProxiesThatWaitForTheSameShareWhatItComesTo) {
  const ProxyRef late = std::make_shared<Proxy>();
  queue_.Enqueue({first_, second_}, Change("a"));
  queue_.Enqueue(late, Change("b"));
  queue_.Enqueue({first_, late, second_}, Change("c"));
  const auto a = queue_.Dequeue(), b = queue_.Dequeue(), c = queue_.Dequeue();
  EXPECT_EQ(a.request, b.request);
  EXPECT_THAT(Names(a.request), ElementsAre("a", "c"));
  EXPECT_THAT(Names(c.request), ElementsAre("b", "c"));  // it has waited for something else
}

}  // namespace
}  // namespace wavetank::pilot
