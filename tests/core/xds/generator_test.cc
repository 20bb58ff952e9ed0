#include "core/xds/generator.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

bool SameBlock(const Resource& a, const Resource& b) {
  return !a.bytes.owner_before(b.bytes) && !b.bytes.owner_before(a.bytes);
}

TEST(Resource, OutlivesWhatItWasMadeFromAndItsCopies) {
  Resource kept;
  {
    const std::string name = "outbound|80||web.shop", bytes(300, 'x');
    const Resource made(name, bytes);
    kept = made;
  }
  EXPECT_EQ(kept.name, "outbound|80||web.shop");
  EXPECT_EQ(*kept.bytes, std::string(300, 'x'));
  EXPECT_EQ(kept, Resource("outbound|80||web.shop", std::string(300, 'x')));
  EXPECT_FALSE(kept == Resource("outbound|80||web.shop", std::string(300, 'y')));
}

TEST(ResourceMaker, ManySmallResourcesShareAFewBlocks) {
  std::vector<Resource> made;
  {
    ResourceMaker maker;
    for (int i = 0; i < 1000; ++i) made.push_back(maker.Make("name-" + std::to_string(i), std::string(50, 'b')));
  }
  int blocks = 1;
  for (size_t i = 1; i < made.size(); ++i) blocks += SameBlock(made[i], made[i - 1]) ? 0 : 1;
  EXPECT_LT(blocks, 20);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(made[static_cast<size_t>(i)].name, "name-" + std::to_string(i));
    EXPECT_EQ(*made[static_cast<size_t>(i)].bytes, std::string(50, 'b'));
  }
  const Resource last = made.back();
  made.clear();
  EXPECT_EQ(last.name, "name-999");
}

TEST(ResourceMaker, ALargeResourceHasMemoryOfItsOwnAndAnEmptyOneIsOne) {
  ResourceMaker maker;
  const Resource small = maker.Make("small", "s");
  const Resource large = maker.Make("large", std::string(1 << 20, 'l'));
  const Resource next = maker.Make("next", "n");
  EXPECT_FALSE(SameBlock(large, small));
  EXPECT_FALSE(SameBlock(large, next));
  EXPECT_EQ(large.bytes->size(), size_t{1} << 20);
  EXPECT_EQ(*maker.Make("", "").bytes, "");
  EXPECT_EQ(small.name, "small");
}

TEST(ResourceList, CopiesShareUntilOneIsChanged) {
  ResourceList list(std::vector<Resource>{{"a", "1"}});
  ResourceList copy = list;
  copy.push_back({"b", "22"});
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(copy.size(), 2u);
  EXPECT_EQ(copy.front().bytes, list.front().bytes) << "the resources themselves stay shared";
  EXPECT_EQ(copy.Bytes(), 3);
}

}  // namespace
}  // namespace wavetank::pilot
