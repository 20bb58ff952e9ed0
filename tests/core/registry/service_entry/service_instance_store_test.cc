#include "core/registry/service_entry/service_instance_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const InstanceSource kEntry{InstanceSource::Kind::kServiceEntry, "e", "shop"};
const InstanceSource kPod{InstanceSource::Kind::kPod, "p", "shop"};
const HostKey kWeb{"web.example", "shop"};

InstanceRef InstanceOf(const std::string& address, const std::string& hostname = "web.example", int port = 80,
                       Resolution resolution = Resolution::kClientSideLb) {
  auto service = std::make_shared<Service>();
  service->hostname = hostname;
  service->attributes.ns = "shop";
  service->resolution = resolution;
  auto out = std::make_shared<ServiceInstance>();
  out->service = service;
  out->service_port = {"http", port, Protocol::kHttp};
  out->endpoint.address = address;
  return out;
}

TEST(ServiceInstanceStoreTest, FindsByAddressAndByServiceInTheOrderOfTheSources) {
  ServiceInstanceStore store;
  const InstanceRef pod = InstanceOf("10.1.0.5"), written = InstanceOf("192.0.2.1");
  store.Add(kPod, {pod});
  store.Add(kEntry, {written});
  EXPECT_THAT(store.ByIp("10.1.0.5"), ElementsAre(pod));
  EXPECT_THAT(store.ByIp("10.1.0.6"), IsEmpty());
  EXPECT_THAT(store.ByService(kWeb), ElementsAre(written, pod));
  EXPECT_TRUE(store.HasInstances(kWeb));
  EXPECT_FALSE(store.HasInstances({"web.example", "other"}));
}

TEST(ServiceInstanceStoreTest, ALogicalDnsServiceHasOneInstancePerPortTheFirst) {
  ServiceInstanceStore store;
  const auto dns = [](const std::string& address, int port) {
    return InstanceOf(address, "web.example", port, Resolution::kDnsRoundRobinLb);
  };
  store.Add(kEntry, {dns("a.example", 80), dns("b.example", 80), dns("c.example", 81)});
  EXPECT_THAT(store.ByService(kWeb), SizeIs(2));
  EXPECT_THAT(store.ByIp("b.example"), IsEmpty());
}

// As 1.18.2: an address that two services share is forgotten for both.
TEST(ServiceInstanceStoreTest, DeletingForgetsEverythingAtTheSameAddress) {
  ServiceInstanceStore store;
  const InstanceRef gone = InstanceOf("192.0.2.1"), other = InstanceOf("192.0.2.1", "other.example");
  store.Add(kEntry, {gone});
  store.Add(kPod, {other});
  store.Delete(kEntry, {gone});
  EXPECT_THAT(store.ByIp("192.0.2.1"), IsEmpty());
  EXPECT_THAT(store.ByService(kWeb), IsEmpty());
  EXPECT_THAT(store.ByService({"other.example", "shop"}), ElementsAre(other)) << "the service still has it";
}

TEST(ServiceInstanceStoreTest, AnUpdateReplacesWhatItsSourceGave) {
  ServiceInstanceStore store;
  store.Add(kEntry, {InstanceOf("192.0.2.1"), InstanceOf("192.0.2.2")});
  const InstanceRef now = InstanceOf("192.0.2.3");
  store.Update(kEntry, {now});
  EXPECT_THAT(store.ByService(kWeb), ElementsAre(now));
}

TEST(ServiceInstanceStoreTest, AServiceEntryKeepsWhatEachSourceGaveIt) {
  ServiceInstanceStore store;
  const kube::NamespacedName entry{"shop", "e"};
  const InstanceRef pod = InstanceOf("10.1.0.5");
  EXPECT_THAT(store.OfServiceEntry(entry), IsEmpty());
  store.SetServiceEntrySource(entry, kPod, {pod});
  store.SetServiceEntrySource(entry, kEntry, {});
  EXPECT_THAT(store.OfServiceEntry(entry).at(kPod), ElementsAre(pod));
  store.DeleteServiceEntrySource(entry, kPod);
  EXPECT_THAT(store.OfServiceEntry(entry), SizeIs(1));
  store.DeleteServiceEntry(entry);
  EXPECT_THAT(store.OfServiceEntry(entry), IsEmpty());
  store.DeleteServiceEntrySource(entry, kPod);  // it is gone: nothing to do
}

}  // namespace
}  // namespace wavetank::pilot
