#include "core/kube/filtered_informer.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

nlohmann::json SettingIn(const std::string& ns, const std::string& name, const std::string& value = "") {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", ns}, {"labels", {{"value", value}}}}}};
}

class FilteredInformerTest : public ::testing::Test {
 protected:
  FilteredInformerTest() {
    informer.AddHandler({[this](const ObjectRef& o) { log.push_back("+" + o->meta.name); },
                         [this](const ObjectRef&, const ObjectRef& o) { log.push_back("~" + o->meta.name); },
                         [this](const ObjectRef& o) { log.push_back("-" + o->meta.name); }});
  }
  void Run() { kernel.RunUntil(kernel.Now() + 10ms); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  MemoryClient client{host};
  std::set<std::string> hidden = {"dark"};
  FilteredInformer informer{client, host, kinds::kConfigMap, [this](const Object& object) {
                              const auto value = object.meta.labels.find("value");
                              return hidden.count(object.meta.ns) == 0 &&
                                     (value == object.meta.labels.end() || value->second != "secret");
                            }};
  std::vector<std::string> log;
};

TEST_F(FilteredInformerTest, WhatDoesNotPassIsNeitherToldNorRead) {
  client.Put(SettingIn("lit", "a"));
  client.Put(SettingIn("dark", "b"));
  informer.informer().Start();
  Run();
  client.Put(SettingIn("dark", "b", "x"));
  client.Remove(kinds::kConfigMap, "dark", "b");
  Run();
  EXPECT_THAT(log, ElementsAre("+a"));
  EXPECT_EQ(informer.List().size(), 1u);
  EXPECT_EQ(informer.Get({"dark", "b"}), nullptr);
}

TEST_F(FilteredInformerTest, AnUpdateAcrossTheFilterComesOrGoes) {
  client.Put(SettingIn("lit", "a", "secret"));
  informer.informer().Start();
  Run();
  EXPECT_THAT(log, IsEmpty());
  client.Put(SettingIn("lit", "a", "open"));
  client.Put(SettingIn("lit", "a", "more open"));
  client.Put(SettingIn("lit", "a", "secret"));
  Run();
  EXPECT_THAT(log, ElementsAre("+a", "~a", "-a"));
}

TEST_F(FilteredInformerTest, AFilterThatOpensTellsNobodyButIsSeenByReads) {
  client.Put(SettingIn("dark", "b"));
  informer.informer().Start();
  Run();
  EXPECT_THAT(informer.List("dark"), IsEmpty());
  EXPECT_EQ(informer.ListUnfiltered("dark").size(), 1u);
  hidden.clear();
  EXPECT_EQ(informer.List("dark").size(), 1u);
  EXPECT_THAT(log, IsEmpty());
}

}  // namespace
}  // namespace wavetank::kube
