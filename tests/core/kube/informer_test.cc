#include "core/kube/informer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

nlohmann::json ConfigMap(const std::string& name, const std::string& value = "") {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "ns"}}},
          {"data", {{"k", value}}}};
}

class InformerTest : public ::testing::Test {
 protected:
  InformerTest() {
    informer.AddHandler({[this](const ObjectRef& o) { log.push_back("+" + o->meta.name); },
                         [this](const ObjectRef&, const ObjectRef& o) { log.push_back("~" + o->meta.name); },
                         [this](const ObjectRef& o) { log.push_back("-" + o->meta.name); }});
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  MemoryClient client{host};
  Informer informer{host, client, kinds::kConfigMap, {}, RandomStream(1, "informer")};
  std::vector<std::string> log;
};

TEST_F(InformerTest, ListsThenFollows) {
  client.Put(ConfigMap("a"));
  informer.Start();
  EXPECT_FALSE(informer.synced());
  Run(10ms);
  EXPECT_TRUE(informer.synced());
  client.Put(ConfigMap("b"));
  client.Put(ConfigMap("a", "x"));
  client.Remove(kinds::kConfigMap, "ns", "b");
  Run(10ms);
  EXPECT_THAT(log, ElementsAre("+a", "+b", "~a", "-b"));
  EXPECT_EQ(informer.Get("ns", "a")->body["data"]["k"], "x");
  EXPECT_EQ(informer.Get("ns", "b"), nullptr);
  EXPECT_EQ(informer.List("other").size(), 0u);
}

TEST_F(InformerTest, LateHandlerSeesWhatIsThere) {
  client.Put(ConfigMap("a"));
  informer.Start();
  Run(10ms);
  std::vector<std::string> late;
  informer.AddHandler({[&](const ObjectRef& o) { late.push_back(o->meta.name); }, {}, {}});
  EXPECT_THAT(late, ElementsAre("a"));
}

TEST_F(InformerTest, GoneVersionIsListedAnewAndOnlyDifferencesAreDelivered) {
  client.Put(ConfigMap("a"));
  client.Put(ConfigMap("b"));
  informer.Start();
  Run(2s);
  log.clear();
  client.BreakWatches(absl::OutOfRangeError("gone"));
  client.Remove(kinds::kConfigMap, "ns", "a");
  client.Put(ConfigMap("c"));
  Run(5s);
  EXPECT_THAT(log, ElementsAre("+c", "-a"));
  EXPECT_EQ(client.lists, 2);
}

TEST_F(InformerTest, BrokenWatchIsResumedAtOnceWithoutListing) {
  informer.Start();
  Run(2s);
  client.BreakWatches(absl::UnavailableError("EOF"));
  Run(1ms);
  EXPECT_EQ(client.watches, 2);
  EXPECT_EQ(client.lists, 1);
}

TEST_F(InformerTest, RefusedConnectionsAreRetriedWithGrowingWaits) {
  client.refusing = true;
  informer.Start();
  Run(10s);
  const int tries = client.lists;
  EXPECT_GE(tries, 3);
  EXPECT_LE(tries, 6);
  client.Put(ConfigMap("a"));
  client.refusing = false;
  Run(60s);
  EXPECT_THAT(log, ElementsAre("+a"));
}

TEST_F(InformerTest, StoppedInformerSaysNothing) {
  informer.Start();
  Run(10ms);
  client.Put(ConfigMap("a"));
  informer.Stop();
  Run(10s);
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(InformerTest, HandlerMayStopTheInformer) {
  client.Put(ConfigMap("a"));
  client.Put(ConfigMap("b"));
  int seen = 0;
  informer.AddHandler({[&](const ObjectRef&) {
                         ++seen;
                         informer.Stop();
                       },
                       {},
                       {}});
  informer.Start();
  Run(10s);
  EXPECT_EQ(seen, 1);
  EXPECT_FALSE(informer.synced());
}

}  // namespace
}  // namespace wavetank::kube
