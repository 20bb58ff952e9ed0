// Which pods a name means that a person says.
#include "scenarios/answers/pod_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::scenario {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PodNamesTest : public testing::Test {
 protected:
  PodNamesTest() {
    for (const char* name : {"api-0.sample@cluster1", "api-1.sample@cluster1", "sleep-jsdn7bjgc5-aaaaa.sample@cluster1",
                             "sleep-jsdn7bjgc5-bbbbb.sample@cluster2", "sleep-jsdn7bjgc5-ccccc.other@cluster2",
                             "web-abcdefgh12-aaaaa.sample@cluster1", "web-abcdefgh12-bbbbb.sample@cluster1"}) {
      all_.push_back(PodNameOf(name));
    }
  }
  std::vector<std::string> Found(std::string_view said) const {
    std::vector<std::string> out;
    for (const PodName& pod : FindPods(said, all_)) out.push_back(pod.Full());
    return out;
  }
  std::vector<PodName> all_;
};

TEST_F(PodNamesTest, AFullNameMeansItself) {
  for (const PodName& pod : all_) EXPECT_THAT(Found(pod.Full()), ElementsAre(pod.Full()));
}

TEST_F(PodNamesTest, AWorkloadMayBeNarrowedByNamespaceAndCluster) {
  EXPECT_THAT(Found("sleep@cluster1"), ElementsAre("sleep-jsdn7bjgc5-aaaaa.sample@cluster1"));
  EXPECT_THAT(Found("sleep.other"), ElementsAre("sleep-jsdn7bjgc5-ccccc.other@cluster2"));
  EXPECT_EQ(Found("sleep@cluster2").size(), 2u);
  EXPECT_EQ(Found("sleep").size(), 3u);
  EXPECT_THAT(Found("deploy/sleep.sample@cluster2"), ElementsAre("sleep-jsdn7bjgc5-bbbbb.sample@cluster2"));
  EXPECT_THAT(Found("deploy/api"), IsEmpty()) << "these pods are no Deployment's";
}

TEST_F(PodNamesTest, ANumberCountsTheWorkloadsPods) {
  EXPECT_THAT(Found("web-1@cluster1"), ElementsAre("web-abcdefgh12-bbbbb.sample@cluster1"));
  EXPECT_THAT(Found("web-2@cluster1"), IsEmpty());
  EXPECT_THAT(Found("api-1"), ElementsAre("api-1.sample@cluster1")) << "a pod's own name comes first";
  EXPECT_EQ(Found("sleep-0@cluster2").size(), 2u) << "two namespaces: no one knows which is meant";
}

TEST_F(PodNamesTest, TheBeginningOfAFullNameWillDo) {
  EXPECT_THAT(Found("web-abcdefgh12-a"), ElementsAre("web-abcdefgh12-aaaaa.sample@cluster1"));
}

TEST_F(PodNamesTest, WhatIsNotOneIsRefusedWithWhatThereIs) {
  EXPECT_THAT(std::string(FindOnePod("proxy", "sleep", all_).status().message()),
              AllOf(HasSubstr("more than one proxy is named 'sleep'"), HasSubstr("ccccc.other@cluster2")));
  EXPECT_THAT(std::string(FindOnePod("proxy", "nobody", all_).status().message()),
              AllOf(HasSubstr("no proxy is named 'nobody'"), HasSubstr("api-0.sample@cluster1")));
  EXPECT_EQ(std::string(FindOnePod("proxy", "nobody", {}).status().message()),
            "no proxy is named 'nobody': there is none at all");
  EXPECT_THAT(Found(""), IsEmpty());
  EXPECT_THAT(Found("@"), IsEmpty());
  EXPECT_THAT(Found("-0"), IsEmpty());
}

TEST_F(PodNamesTest, OfManyTwentyAreNamed) {
  std::vector<PodName> many;
  for (int i = 0; i < 500; ++i) many.push_back(PodNameOf("api-" + std::to_string(i) + ".sample@cluster1"));
  const std::string said(FindOnePod("proxy", "nobody", many).status().message());
  EXPECT_THAT(said, AllOf(HasSubstr("api-19.sample@cluster1, ... (500 in all)"), testing::Not(HasSubstr("api-20."))));
}

}  // namespace
}  // namespace wavetank::scenario
