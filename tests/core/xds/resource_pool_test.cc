#include "core/xds/resource_pool.h"

#include <string>

#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

TEST(ResourcePool, WhatIsMadeAgainIsTheSameObject) {
  ResourcePool pool;
  ResourceMaker maker;
  const Resource first = pool.Make("a", "bytes", maker);
  EXPECT_EQ(pool.Make("a", "bytes", maker).bytes, first.bytes);
  EXPECT_EQ(pool.Same(Resource("a", "bytes")).bytes, first.bytes);
  EXPECT_EQ(pool.Same(Resource("a", "bytes")).name, "a");
  EXPECT_NE(pool.Make("a", "others", maker).bytes, first.bytes);
}

TEST(ResourcePool, ANameTellsEqualBytesApart) {
  ResourcePool pool;
  const Resource a = pool.Same(Resource("a", "bytes")), b = pool.Same(Resource("b", "bytes"));
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(*b.bytes, "bytes");
}

TEST(ResourcePool, KeepsNothingThatNobodyHolds) {
  ResourcePool pool;
  std::weak_ptr<const std::string_view> bytes = pool.Same(Resource("a", "bytes")).bytes;
  EXPECT_TRUE(bytes.expired());
  const Resource again = pool.Same(Resource("a", "bytes"));
  EXPECT_EQ(again.name, "a");
  EXPECT_EQ(*again.bytes, "bytes");
}

TEST(ResourcePool, AnAnswerOfTheSameResourcesIsTheSameAnswer) {
  ResourcePool pool;
  const Resource a("a", "1"), b("b", "2"), like_a("a", "1");
  ResourceList one = pool.Same(ResourceList(std::vector<Resource>{a, b}));
  EXPECT_EQ(&pool.Same(ResourceList(std::vector<Resource>{a, b})).list(), &one.list());
  EXPECT_NE(&pool.Same(ResourceList(std::vector<Resource>{b, a})).list(), &one.list());
  EXPECT_NE(&pool.Same(ResourceList(std::vector<Resource>{like_a, b})).list(), &one.list());
  EXPECT_TRUE(pool.Same(ResourceList()).empty());
  // One that was changed since is not found as what it was.
  const std::vector<Resource>* const before = &one.list();
  one.Replace(0, b);
  EXPECT_EQ(&one.list(), before);
  const ResourceList anew = pool.Same(ResourceList(std::vector<Resource>{a, b}));
  EXPECT_EQ(anew[0].bytes, a.bytes);
}

TEST(ResourcePool, ManyComeAndGo) {
  ResourcePool pool;
  std::vector<Resource> held;
  for (int i = 0; i < 5000; ++i) {
    const Resource made = pool.Same(Resource("r", std::to_string(i)));
    if (i % 7 == 0) held.push_back(made);
  }
  for (const Resource& resource : held) {
    EXPECT_EQ(pool.Same(Resource("r", *resource.bytes)).bytes, resource.bytes);
  }
}

}  // namespace
}  // namespace wavetank::pilot
