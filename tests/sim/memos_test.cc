// What is kept of certificates, tokens, patches and TLS contexts (core/base/containers/memo.h) shows in no trace.
#include <gtest/gtest.h>

#include "core/base/containers/memo.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using Memos = TwoClusterWorld;

TEST_F(Memos, ShowInNoTrace) {
  Build(/*remote=*/false);
  ASSERT_GT(world_->kernel().digest().records(), 1000u);
  const std::string with = world_->kernel().digest().Hex();
  const MemosOff off;
  Build(/*remote=*/false);
  EXPECT_EQ(world_->kernel().digest().Hex(), with);
}

// Their answers to the second world come from the first one's.
TEST_F(Memos, OfOneWorldShowInNoOther) {
  Build(/*remote=*/true);
  const std::string first = world_->kernel().digest().Hex();
  Build(/*remote=*/true);
  EXPECT_EQ(world_->kernel().digest().Hex(), first);
}

}  // namespace
}  // namespace wavetank::sim
