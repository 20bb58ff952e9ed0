#include "core/registry/services_by_selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/registry/objects.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ServicesBySelectorTest : public ::testing::Test {
 protected:
  std::vector<std::string> Selecting(const kube::Labels& labels, const std::string& ns = "shop") {
    kernel.RunUntil(kernel.Now() + 50ms);
    std::vector<std::string> out;
    for (const kube::ObjectRef& service : index.Selecting(ns, labels)) out.push_back(service->meta.name);
    return out;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  bool passes = true;
  kube::FilteredInformer services{client, host, kube::kinds::kService, [this](const kube::Object&) { return passes; }};
  ServicesBySelector index{services};
};

TEST_F(ServicesBySelectorTest, AllLabelsOfASelectorHaveToMatch) {
  client.Put(ServiceOf("all", {{"app", "web"}}));
  client.Put(ServiceOf("v1", {{"app", "web"}, {"version", "v1"}}));
  client.Put(ServiceOf("none", json::object()));
  services.informer().Start();
  EXPECT_THAT(Selecting({{"app", "web"}, {"version", "v1"}}), ElementsAre("all", "v1"));
  EXPECT_THAT(Selecting({{"app", "web"}}), ElementsAre("all"));
  EXPECT_THAT(Selecting({{"version", "v1"}}), IsEmpty());
  EXPECT_THAT(Selecting({{"app", "web"}}, "other"), IsEmpty());
}

TEST_F(ServicesBySelectorTest, FollowsItsInformerAndItsFilter) {
  client.Put(ServiceOf("web", {{"app", "web"}}));
  services.informer().Start();
  EXPECT_THAT(Selecting({{"app", "web"}}), ElementsAre("web"));
  client.Put(ServiceOf("web", {{"app", "other"}}));
  EXPECT_THAT(Selecting({{"app", "web"}}), IsEmpty());
  EXPECT_THAT(Selecting({{"app", "other"}}), ElementsAre("web"));
  passes = false;
  EXPECT_THAT(Selecting({{"app", "other"}}), IsEmpty()) << "no Service changed, but the filter did";
  passes = true;
  client.Remove(kube::kinds::kService, "shop", "web");
  EXPECT_THAT(Selecting({{"app", "other"}}), IsEmpty());
}

}  // namespace
}  // namespace wavetank::pilot
