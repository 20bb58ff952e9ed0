#include "core/base/containers/named_refs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace wavetank {
namespace {

using ::testing::ElementsAre;

struct Thing {
  std::string ns, name;
  int version = 0;
};
using Ref = std::shared_ptr<const Thing>;
struct Names {
  static std::string_view NamespaceOf(const Ref& thing) { return thing->ns; }
  static std::string_view NameOf(const Ref& thing) { return thing->name; }
};
using Things = NamedRefs<Ref, Names>;

Ref Make(std::string ns, std::string name, int version = 0) {
  return std::make_shared<const Thing>(Thing{std::move(ns), std::move(name), version});
}

std::vector<std::string> Shown(const std::vector<Ref>& things) {
  std::vector<std::string> out;
  for (const Ref& thing : things) out.push_back(thing->ns + "/" + thing->name + "@" + std::to_string(thing->version));
  return out;
}

TEST(NamedRefs, ListsByNamespaceThenNameWhateverTheOrderOfPutting) {
  Things things;
  for (const char* name : {"c", "a", "b"}) {
    things.Put(Make("z", name));
    things.Put(Make("y", name));
  }
  EXPECT_THAT(Shown(things.All()), ElementsAre("y/a@0", "y/b@0", "y/c@0", "z/a@0", "z/b@0", "z/c@0"));
  EXPECT_THAT(Shown(things.In("z")), ElementsAre("z/a@0", "z/b@0", "z/c@0"));
  EXPECT_TRUE(things.In("x").empty());
}

TEST(NamedRefs, PuttingAgainGivesBackWhatStoodThereAndKeepsItNoLonger) {
  Things things;
  EXPECT_EQ(things.Put(Make("n", "a", 1)), nullptr);
  std::weak_ptr<const Thing> first;
  {
    const Ref old = things.Put(Make("n", "a", 2));
    ASSERT_NE(old, nullptr);
    EXPECT_EQ(old->version, 1);
    first = old;
  }
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(things.size(), 1u);
  ASSERT_NE(things.Find("n", "a"), nullptr);
  EXPECT_EQ((*things.Find("n", "a"))->version, 2);
}

TEST(NamedRefs, OneNameInTwoNamespacesAreTwoThings) {
  Things things;
  things.Put(Make("n", "a", 1));
  things.Put(Make("m", "a", 2));
  EXPECT_EQ(things.Erase("n", "a")->version, 1);
  EXPECT_FALSE(things.Contains("n", "a"));
  EXPECT_EQ((*things.Find("m", "a"))->version, 2);
}

TEST(NamedRefs, ErasingWhatIsNotThereChangesNothing) {
  Things things;
  things.Put(Make("n", "a"));
  EXPECT_EQ(things.Erase("n", "b"), nullptr);
  EXPECT_EQ(things.Erase("m", "a"), nullptr);
  EXPECT_EQ(things.size(), 1u);
}

}  // namespace
}  // namespace wavetank
