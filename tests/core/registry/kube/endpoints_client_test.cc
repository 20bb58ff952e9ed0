#include "core/registry/kube/endpoints_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/kube/informer.h"
#include "core/kube/types.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EndpointsClientTest : public ::testing::Test {
 protected:
  EndpointsClientTest() {
    slices.AddHandler({[this](const kube::ObjectRef& o) { log.push_back("+" + o->meta.name); },
                       [this](const kube::ObjectRef&, const kube::ObjectRef& o) { log.push_back("~" + o->meta.name); },
                       [this](const kube::ObjectRef& o) { log.push_back("-" + o->meta.name); }});
  }
  void Put(const json& subsets) {
    memory.Put({{"apiVersion", "v1"},
                {"kind", "Endpoints"},
                {"metadata", {{"name", "web"}, {"namespace", "sample"}}},
                {"subsets", subsets}});
  }
  static json Subset(const std::string& ip, int port) {
    return {{"addresses", {{{"ip", ip}, {"targetRef", {{"kind", "Pod"}, {"name", "p"}, {"namespace", "sample"}}}}}},
            {"ports", {{{"name", "http"}, {"port", port}}}}};
  }
  void Run() { kernel.RunUntil(kernel.Now() + 100ms); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient memory{host};
  EndpointsClient client{memory};
  kube::Informer slices{client, host, kube::kinds::kEndpointSlice};
  std::vector<std::string> log;
};

TEST_F(EndpointsClientTest, ASubsetIsASliceOfItsServiceWithItsAddressesAndPorts) {
  Put(json::array({Subset("10.0.0.1", 8080)}));
  slices.Start();
  Run();
  const kube::ObjectRef slice = slices.Get("sample", "web");
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->meta.labels.at("kubernetes.io/service-name"), "web");
  const kube::EndpointSlice& parsed = kube::ParseEndpointSlice(*slice);
  ASSERT_THAT(parsed.endpoints, SizeIs(1));
  EXPECT_THAT(parsed.endpoints[0].addresses, ElementsAre("10.0.0.1"));
  EXPECT_EQ(parsed.endpoints[0].target_name, "p");
  EXPECT_EQ(parsed.ports[0].port, 8080);
}

TEST_F(EndpointsClientTest, AddressesThatAreNotReadyAreEndpointsThatAreNot) {
  json subset = Subset("10.0.0.1", 8080);
  subset["notReadyAddresses"] = subset["addresses"];
  subset.erase("addresses");
  Put(json::array({subset}));
  slices.Start();
  Run();
  EXPECT_EQ(kube::ParseEndpointSlice(*slices.Get("sample", "web")).endpoints[0].ready, false);
}

TEST_F(EndpointsClientTest, SubsetsOfDifferentPortsAreSlicesThatComeAndGo) {
  Put(json::array({Subset("10.0.0.1", 8080), Subset("10.0.0.2", 9090)}));
  slices.Start();
  Run();
  EXPECT_THAT(log, ElementsAre("+web", "+web-2"));
  Put(json::array({Subset("10.0.0.1", 8080)}));
  Run();
  EXPECT_THAT(log, ElementsAre("+web", "+web-2", "~web", "-web-2"));
  memory.Remove(kube::kinds::kEndpoints, "sample", "web");
  Run();
  EXPECT_THAT(slices.List(), IsEmpty());
}

TEST_F(EndpointsClientTest, WithoutSubsetsThereIsASliceWithoutEndpoints) {
  slices.Start();
  Run();
  Put(json::array());
  Run();
  ASSERT_NE(slices.Get("sample", "web"), nullptr);
  EXPECT_THAT(kube::ParseEndpointSlice(*slices.Get("sample", "web")).endpoints, IsEmpty());
}

}  // namespace
}  // namespace wavetank::pilot
