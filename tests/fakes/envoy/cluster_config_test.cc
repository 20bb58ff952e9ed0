#include "fakes/envoy/config/cluster_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/hash128.h"

namespace wavetank::envoysim {
namespace {

using envoy::config::cluster::v3::Cluster;
using ::testing::HasSubstr;

absl::Status WithMaglevTable(Cluster::LbPolicy policy, uint64_t size) {
  Cluster cluster;
  cluster.set_name("c");
  cluster.set_lb_policy(policy);
  cluster.mutable_maglev_lb_config()->mutable_table_size()->set_value(size);
  return CompileCluster(cluster, Hash128{}, Extensions(ExtensionSet::kIstioProxy)).status();
}

// A real Envoy 1.40 beside it: tests/oracles/envoy/cases/refused.json, but for a table of one entry, by which that
// ends.
TEST(ClusterConfig, AMaglevTableHasAPrimeNumberOfEntriesAndMoreThanOne) {
  for (const uint64_t size : {2, 3, 65537, 5'000'011}) {
    EXPECT_TRUE(WithMaglevTable(Cluster::MAGLEV, size).ok()) << size;
  }
  for (const uint64_t size : {0, 4, 65536}) {
    EXPECT_THAT(std::string(WithMaglevTable(Cluster::MAGLEV, size).message()), HasSubstr("must be prime")) << size;
  }
  EXPECT_THAT(std::string(WithMaglevTable(Cluster::MAGLEV, 1).message()), HasSubstr("size 1"));
}

TEST(ClusterConfig, AMaglevTableIsBoundedForEveryPolicyAndElseConcernsNoOther) {
  for (const Cluster::LbPolicy policy : {Cluster::MAGLEV, Cluster::ROUND_ROBIN}) {
    EXPECT_THAT(std::string(WithMaglevTable(policy, INT64_MAX).message()),
                HasSubstr("MaglevLbConfigValidationError.TableSize: value must be less than or equal to 5000011"));
  }
  for (const uint64_t size : {0, 1, 100}) {
    EXPECT_TRUE(WithMaglevTable(Cluster::ROUND_ROBIN, size).ok()) << size;
  }
}

}  // namespace
}  // namespace wavetank::envoysim
