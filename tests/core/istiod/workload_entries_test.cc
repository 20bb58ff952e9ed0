#include "core/istiod/workload_entries.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::pilot {
namespace {

constexpr const char* kEntryName = "machines-10.0.0.7-west";

class WorkloadEntriesTest : public ::testing::Test {
 protected:
  WorkloadEntriesTest() {
    client.Put({{"apiVersion", "networking.istio.io/v1alpha3"},
                {"kind", "WorkloadGroup"},
                {"metadata", {{"name", "machines"}, {"namespace", "sample"}, {"uid", "u-1"}}},
                {"spec", {{"template", {{"labels", {{"app", "template"}, {"tier", "back"}}}}}}}});
    proxy.id = "vm-1.sample";
    proxy.metadata.ns = "sample";
    proxy.metadata.network = NetworkId("west");
    proxy.metadata.auto_register_group = "machines";
    proxy.metadata.labels = {{"app", "node"}};
    proxy.ip_addresses = {"10.0.0.7"};
    proxy.verified_identity = "spiffe://cluster.local/ns/sample/sa/vm";
  }
  std::unique_ptr<WorkloadEntryController> Istiod(const std::string& name) {
    auto out = std::make_unique<WorkloadEntryController>(
        host, client, [this] { return Entry() == nullptr ? std::vector<kube::ObjectRef>{} : std::vector{Entry()}; },
        WorkloadEntryController::Options{name, 10s, true});
    out->Start();
    return out;
  }
  absl::Status Connect(WorkloadEntryController& istiod, Time at) {
    absl::Status out = absl::UnavailableError("not answered");
    istiod.Register(proxy, {}, at, [&](absl::Status status) { out = std::move(status); });
    Run(100ms);
    return out;
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }
  std::vector<kube::ObjectRef> Entries() {
    std::vector<kube::ObjectRef> out;
    client.List(kube::kinds::kWorkloadEntry, {}, [&](const absl::StatusOr<kube::ObjectList>& list) {
      for (const kube::ObjectRef& object : list->items) out.push_back(object);
    });
    Run(2ms);
    return out;
  }
  kube::ObjectRef Entry() { return client.Find(kube::kinds::kWorkloadEntry, "sample", kEntryName); }
  std::string Annotation(const char* name) {
    const auto& all = Entry()->meta.annotations;
    return all.contains(name) ? all.at(name) : "";
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  Proxy proxy;
};

TEST_F(WorkloadEntriesTest, LabelsOfTheNodeHoldBeforeThoseOfTheTemplate) {
  const auto istiod = Istiod("istiod-1");
  ASSERT_TRUE(Connect(*istiod, kernel.Now()).ok());
  const nlohmann::json expected = {{"app", "node"}, {"tier", "back"}};
  EXPECT_EQ(Entry()->body["spec"]["labels"], expected);
  EXPECT_EQ(Entry()->body["spec"]["network"], "west");
  EXPECT_EQ(Entry()->body["metadata"]["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(Annotation("istio.io/workloadController"), "istiod-1");
}

TEST_F(WorkloadEntriesTest, AnEntryGoesAGracePeriodAfterItsLastStream) {
  const auto istiod = Istiod("istiod-1");
  const Time first = kernel.Now();
  ASSERT_TRUE(Connect(*istiod, first).ok());
  const Time second = kernel.Now();
  ASSERT_TRUE(Connect(*istiod, second).ok());
  istiod->Unregister(proxy, first);
  Run(1min);
  EXPECT_NE(Annotation("istio.io/connectedAt"), "");
  istiod->Unregister(proxy, second);
  Run(9s);
  ASSERT_NE(Entry(), nullptr);
  EXPECT_EQ(Annotation("istio.io/connectedAt"), "");
  EXPECT_NE(Annotation("istio.io/disconnectedAt"), "");
  Run(2s);
  EXPECT_EQ(Entry(), nullptr);
}

TEST_F(WorkloadEntriesTest, WhatTheAgentReportsIsConditionHealthy) {
  const auto istiod = Istiod("istiod-1");
  ASSERT_TRUE(Connect(*istiod, kernel.Now()).ok());
  istiod->OnHealth(proxy, false, "refused");
  Run(1s);
  const nlohmann::json failed = Entry()->body["status"]["conditions"];
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0]["type"], "Healthy");
  EXPECT_EQ(failed[0]["status"], "False");
  EXPECT_EQ(failed[0]["message"], "refused");
  istiod->OnHealth(proxy, true, "");
  Run(1s);
  const nlohmann::json healthy = Entry()->body["status"]["conditions"];
  ASSERT_EQ(healthy.size(), 1u);
  EXPECT_EQ(healthy[0]["status"], "True");
  EXPECT_FALSE(healthy[0].contains("message"));
}

TEST_F(WorkloadEntriesTest, AnotherIstiodsEntryIsNotReportedOn) {
  const auto istiod = Istiod("istiod-1"), other = Istiod("istiod-2");
  ASSERT_TRUE(Connect(*istiod, kernel.Now()).ok());
  ASSERT_TRUE(Connect(*other, kernel.Now()).ok());
  istiod->OnHealth(proxy, false, "refused");
  Run(1s);
  EXPECT_FALSE(Entry()->body.contains("status"));
}

TEST_F(WorkloadEntriesTest, WhoComesBackInTimeKeepsIt) {
  const auto istiod = Istiod("istiod-1");
  const Time first = kernel.Now();
  ASSERT_TRUE(Connect(*istiod, first).ok());
  istiod->Unregister(proxy, first);
  Run(5s);
  ASSERT_TRUE(Connect(*istiod, kernel.Now()).ok());
  EXPECT_EQ(Annotation("istio.io/disconnectedAt"), "");
  Run(10min);
  EXPECT_NE(Entry(), nullptr);
}

TEST_F(WorkloadEntriesTest, WhatAnotherIstiodHasTakenOverIsNotGivenUp) {
  const auto istiod = Istiod("istiod-1"), other = Istiod("istiod-2");
  const Time first = kernel.Now();
  ASSERT_TRUE(Connect(*istiod, first).ok());
  ASSERT_TRUE(Connect(*other, kernel.Now()).ok());
  istiod->Unregister(proxy, first);
  Run(10min);
  EXPECT_EQ(Annotation("istio.io/workloadController"), "istiod-2");
  EXPECT_NE(Annotation("istio.io/connectedAt"), "");
}

TEST_F(WorkloadEntriesTest, WhatADeadIstiodLeftIsFoundByAnother) {
  auto istiod = Istiod("istiod-1");
  const Time first = kernel.Now();
  ASSERT_TRUE(Connect(*istiod, first).ok());
  istiod->Unregister(proxy, first);
  Run(1s);
  istiod = nullptr;
  const auto other = Istiod("istiod-2");
  Run(99s);
  EXPECT_NE(Entry(), nullptr);  // every ten grace periods
  Run(2s);
  EXPECT_EQ(Entry(), nullptr);
}

TEST_F(WorkloadEntriesTest, TwentyEntriesASecondAreCleanedUp) {
  const std::string long_ago = "2001-01-01T00:00:00Z";
  std::vector<kube::ObjectRef> left;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "vm-" + std::to_string(i);
    client.Put(
        {{"apiVersion", "networking.istio.io/v1alpha3"},
         {"kind", "WorkloadEntry"},
         {"metadata",
          {{"name", name},
           {"namespace", "sample"},
           {"annotations", {{"istio.io/autoRegistrationGroup", "machines"}, {"istio.io/disconnectedAt", long_ago}}}}},
         {"spec", {{"address", "10.0.0.1"}}}});
    left.push_back(client.Find(kube::kinds::kWorkloadEntry, "sample", name));
  }
  WorkloadEntryController istiod(host, client,
                                 [&] {
                                   std::erase_if(left, [&](const auto& each) {
                                     return client.Find(kube::kinds::kWorkloadEntry, "sample", each->meta.name) ==
                                            nullptr;
                                   });
                                   return left;
                                 },
                                 {"istiod-1", 10s, true});
  istiod.Start();
  Run(101s);
  EXPECT_NEAR(static_cast<double>(Entries().size()), 40 - 21, 1);
  Run(2s);
  EXPECT_THAT(Entries(), testing::IsEmpty());
}

TEST_F(WorkloadEntriesTest, EntriesThatSomebodyWroteByHandStay) {
  client.Put({{"apiVersion", "networking.istio.io/v1alpha3"},
              {"kind", "WorkloadEntry"},
              {"metadata", {{"name", kEntryName}, {"namespace", "sample"}}},
              {"spec", {{"address", "10.0.0.7"}}}});
  const auto istiod = Istiod("istiod-1");
  Run(10min);
  EXPECT_NE(Entry(), nullptr);
}

TEST_F(WorkloadEntriesTest, OnlyTheNamespacesOwnIdentityRegisters) {
  const auto istiod = Istiod("istiod-1");
  proxy.verified_identity = "spiffe://cluster.local/ns/elsewhere/sa/vm";
  EXPECT_EQ(Connect(*istiod, kernel.Now()).message(),
            "registration of WorkloadEntry namespace mismatch: \"elsewhere\" vs \"sample\"");
  proxy.verified_identity.clear();
  EXPECT_EQ(Connect(*istiod, kernel.Now()).message(), "registration of WorkloadEntry requires a verified identity");
  EXPECT_EQ(Entry(), nullptr);
}

TEST_F(WorkloadEntriesTest, NamesAreOfGroupAddressAndNetwork) {
  EXPECT_EQ(AutoRegisteredName(proxy), kEntryName);
  proxy.ip_addresses = {"2001:db8::7"};
  EXPECT_EQ(AutoRegisteredName(proxy), "machines-2001-db8--7-west");
  proxy.metadata.auto_register_group = std::string(300, 'g') + "end";
  EXPECT_EQ(AutoRegisteredName(proxy).size(), 253U);
  EXPECT_TRUE(AutoRegisteredName(proxy).ends_with("gend-2001-db8--7-west"));
  proxy.metadata.auto_register_group.clear();
  EXPECT_EQ(AutoRegisteredName(proxy), "");
}

}  // namespace
}  // namespace wavetank::pilot
