#include "core/base/json/json_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank {
namespace {

using nlohmann::json;
using Map = json::object_t;
using Reference = std::map<std::string, json>;

static_assert(std::is_same_v<Map::value_type, JsonMember<json>>, "the library's objects are made of it");

std::vector<std::pair<std::string, json>> Members(const Map& map) {
  std::vector<std::pair<std::string, json>> out;
  for (const auto& [name, value] : map) out.emplace_back(name, value);
  return out;
}

TEST(JsonMapTest, HoldsWhatAnOrderedMapHoldsAfterAnyOperations) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Map map;
    Reference reference;
    for (int step = 0; step < 300; ++step) {
      std::string name = "name" + std::to_string(random() % 40);
      if (random() % 8 == 0) name += std::string(80, 'x');  // no shared one
      const json value = random() % 1000;
      switch (random() % 7) {
        case 0:
          EXPECT_EQ(map.erase(name), reference.erase(name));
          break;
        case 1:
          EXPECT_EQ(map.emplace(name, value).second, reference.emplace(name, value).second);
          break;
        case 2:
          map.emplace_hint(map.end(), name, value);
          reference.emplace_hint(reference.end(), name, value);
          break;
        case 3:
          map[name] = value;
          reference[name] = value;
          break;
        case 4:
          EXPECT_EQ(map.count(name), reference.count(name));
          break;
        case 5:
          if (const auto it = map.find(name); it != map.end()) {
            reference.erase(reference.find(name));
            map.erase(it);
          }
          break;
        default: {
          const Map copy = map;
          EXPECT_TRUE(copy == map);
          map = copy;
        }
      }
      ASSERT_EQ(map.size(), reference.size());
      ASSERT_EQ(Members(map), (std::vector<std::pair<std::string, json>>(reference.begin(), reference.end())));
    }
  }
}

TEST(JsonMapTest, AMemberStaysWhereItIsWhileOthersComeAndGo) {
  json object = {{"metadata", {{"name", "web"}}}};
  json& metadata = object["metadata"];
  for (int i = 0; i < 100; ++i) object["label" + std::to_string(i)] = i;
  for (int i = 0; i < 100; i += 2) object.erase("label" + std::to_string(i));
  EXPECT_EQ(&metadata, &object["metadata"]);
  metadata["name"] = "db";
  EXPECT_EQ(object["metadata"]["name"], "db");
}

TEST(JsonMapTest, AnIteratorOutlastsOthersThatComeAndGo) {
  json object = {{"b", "of b"}, {"d", "of d"}};
  const auto at = object.find("d"), first = object.find("b");
  object["a"] = object["c"] = "new";
  for (int i = 0; i < 20; ++i) object["b" + std::to_string(i)] = i;
  EXPECT_EQ(*at, "of d");
  EXPECT_EQ(std::next(at), object.end());
  EXPECT_EQ(std::prev(at).key(), "c");
  EXPECT_EQ(std::next(first).key(), "b0");
  object.erase("c");
  EXPECT_EQ(*at, "of d");
  EXPECT_EQ(object.erase(at), object.end());
}

TEST(JsonMapTest, ARangeIsErasedAndTheNextMemberReturned) {
  Map map;
  for (const char* name : {"a", "b", "c", "d", "e"}) map.emplace(name, name);
  const auto next = map.erase(std::next(map.begin()), std::next(map.begin(), 4));
  EXPECT_EQ(next->first, "e");
  EXPECT_EQ(json(map), (json{{"a", "a"}, {"e", "e"}}));
}

TEST(JsonMapTest, ObjectsCompareAsListsOfPairsDo) {
  const json a = {{"a", 1}, {"b", 2}}, more = {{"a", 1}, {"b", 3}}, shorter = {{"a", 1}}, other = {{"b", 0}};
  EXPECT_LT(a, more);
  EXPECT_LT(shorter, a);
  EXPECT_LT(a, other);
  EXPECT_NE(a, more);
  EXPECT_EQ(a, json(a));
}

TEST(JsonMapTest, ANameIsKeptOnceForAll) {
  const json one = {{"topology.istio.io/network", 1}}, other = {{"topology.istio.io/network", 2}};
  EXPECT_EQ(&one.begin().key(), &other.begin().key());
}

TEST(JsonMapTest, LongNamesAreKeptByEachMember) {
  const std::string name(65, 'n');
  EXPECT_EQ(SharedJsonName(name), nullptr);
  json one = {{name, 1}};
  const json other = one;
  one.erase(name);
  EXPECT_EQ(other.begin().key(), name);
}

// Names come from outside, too. In a process of its own, as the table is the process's.
TEST(JsonMapTest, NamesBeyondThoseThatAreSharedAreKeptAsWell) {
  const auto hold_many = [] {
    json object = json::object();
    for (int i = 0; i < 40000; ++i) object["outside" + std::to_string(i)] = i;
    const json copy = object;
    bool kept = SharedJsonName("outside39999") == nullptr;
    for (int i = 0; i < 40000; ++i) kept = kept && copy["outside" + std::to_string(i)] == i;
    return kept;
  };
  EXPECT_EXIT(std::_Exit(hold_many() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(JsonMapTest, ThreadsShareNames) {
  std::vector<std::thread> threads;
  std::vector<const std::string*> names(8);
  for (size_t i = 0; i < names.size(); ++i) {
    threads.emplace_back([&, i] {
      json object;
      for (int n = 0; n < 200; ++n) object["of" + std::to_string(n)] = n;
      names[i] = SharedJsonName("metadata");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(names, testing::Each(names.front()));
}

}  // namespace
}  // namespace wavetank
