// Pod IPs, cluster IPs, node ports and load balancers' addresses: each has one holder, is given back, and may run out.
#include <map>
#include <set>

#include "core/base/status.h"
#include "fakes/kube/store/ip_pool.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::literals::json_literals::operator""_json_pointer;
using ::testing::HasSubstr;

TEST(IpPool, HandsOutEveryAddressOnceThenSaysThatNoneIsLeft) {
  IpPool pool("10.9.0.0/23");
  std::set<std::string> given;
  for (int i = 0; i < 508; ++i) {
    const absl::StatusOr<std::string> ip = pool.Allocate("key" + std::to_string(i));
    ASSERT_TRUE(ip.ok()) << ip.status();
    EXPECT_TRUE(given.insert(*ip).second) << *ip;
    EXPECT_TRUE(ip->starts_with("10.9.0.") || ip->starts_with("10.9.1."));
  }
  EXPECT_EQ(given.count("10.9.0.0") + given.count("10.9.1.255") + given.count("10.9.0.255"), 0u);
  const absl::Status none = pool.Allocate("one more").status();
  EXPECT_TRUE(absl::IsResourceExhausted(none));
  EXPECT_THAT(std::string(Message(none)), HasSubstr("10.9.0.0/23"));
  pool.Release("10.9.1.7");
  EXPECT_EQ(*pool.Allocate("one more"), "10.9.1.7");
}

TEST(IpPool, AnAddressDoesNotDependOnWhichOthersExist) {
  IpPool empty("10.1.0.0/16"), used("10.1.0.0/16");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(used.Allocate("other" + std::to_string(i)).ok());
  EXPECT_EQ(*empty.Allocate("sample/web"), *used.Allocate("sample/web"));
}

TEST(IpPool, ATextThatIsNoCidrGivesNothing) {
  for (const char* text : {"", "10.0.0.0", "10.0.0.0/33", "fd00::/129", "x/8"}) {
    IpPool pool(text);
    EXPECT_TRUE(absl::IsInvalidArgument(pool.Allocate("k").status())) << text;
  }
}

TEST(IpPool, GivesAddressesOfIpv6) {
  IpPool pool("fd00:10:1::/64");
  const absl::StatusOr<std::string> ip = pool.Allocate("sample/web");
  ASSERT_TRUE(ip.ok()) << ip.status();
  EXPECT_TRUE(ip->starts_with("fd00:10:1::")) << *ip;
  EXPECT_FALSE(pool.Reserve(*ip));
  pool.Release(*ip);
  EXPECT_EQ(*pool.Allocate("sample/web"), *ip);
}

// A cluster whose pods and Services have ranges of both IP families.
class DualStackCluster : public ClusterTest {
 protected:
  DualStackCluster() {
    options_.pod_cidr = "10.1.0.0/16,fd00:10:1::/64";
    options_.service_cidr = "10.96.0.0/16,fd00:10:96::/112";
    Restart();
    ApplyText(kWeb);
    Settle();
  }
  json Spec() { return api().Get("Service", {"sample", "web"})->body["spec"]; }
  void SetPolicy(const char* policy) {
    const auto patched = api().Patch("Service", {"sample", "web"}, {{"spec", {{"ipFamilyPolicy", policy}}}});
    ASSERT_TRUE(patched.ok()) << patched.status();
    Settle();
  }
  // Of the Service's slices, by type.
  std::map<std::string, std::set<std::string>> Slices() {
    std::map<std::string, std::set<std::string>> out;
    for (const ObjectRef& slice : api().List("EndpointSlice", "sample")) {
      std::set<std::string>& addresses = out[slice->body["addressType"]];
      for (const json& endpoint : slice->body["endpoints"]) addresses.insert(endpoint["addresses"][0]);
    }
    return out;
  }
};

TEST_F(DualStackCluster, PodsHaveAnAddressOfEachFamily) {
  for (const ObjectRef& pod : api().List("Pod", "sample")) {
    const json& ips = pod->body["status"]["podIPs"];
    ASSERT_EQ(ips.size(), 2u);
    EXPECT_EQ(ips[0]["ip"], pod->body["status"]["podIP"]);
    EXPECT_TRUE(ips[1]["ip"].get<std::string>().starts_with("fd00:10:1::")) << ips;
  }
}

TEST_F(DualStackCluster, AServiceIsOfTheFirstFamilyUnlessItPrefersBoth) {
  EXPECT_EQ(Spec()["ipFamilies"], json::array({"IPv4"}));
  EXPECT_EQ(Spec()["clusterIPs"].size(), 1u);
  EXPECT_EQ(Slices().count("IPv6"), 0u);
  SetPolicy("PreferDualStack");
  EXPECT_EQ(Spec()["ipFamilies"], json::array({"IPv4", "IPv6"}));
  ASSERT_EQ(Spec()["clusterIPs"].size(), 2u);
  EXPECT_EQ(Spec()["clusterIPs"][0], Spec()["clusterIP"]);
  EXPECT_TRUE(Spec()["clusterIPs"][1].get<std::string>().starts_with("fd00:10:96::")) << Spec();
  EXPECT_EQ(Slices()["IPv4"].size(), 2u);
  EXPECT_EQ(Slices()["IPv6"].size(), 2u);
}

TEST_F(DualStackCluster, AServiceThatIsOfOneFamilyAgainGivesTheOtherAddressBack) {
  SetPolicy("PreferDualStack");
  const json other = Spec()["clusterIPs"][1];
  SetPolicy("SingleStack");
  EXPECT_EQ(Spec()["ipFamilies"], json::array({"IPv4"}));
  EXPECT_EQ(Spec()["clusterIPs"], json::array({Spec()["clusterIP"]}));
  EXPECT_EQ(Slices().count("IPv6"), 0u);
  SetPolicy("RequireDualStack");
  EXPECT_EQ(Spec()["clusterIPs"][1], other);
}

TEST_F(DualStackCluster, WithIPv6FirstServicesAndPodsAreOfThatFirst) {
  options_.pod_cidr = "fd00:10:1::/64,10.1.0.0/16";
  options_.service_cidr = "fd00:10:96::/112,10.96.0.0/16";
  Restart();
  ApplyText(kWeb);
  Settle();
  EXPECT_EQ(Spec()["ipFamilies"], json::array({"IPv6"}));
  EXPECT_TRUE(Spec()["clusterIP"].get<std::string>().starts_with("fd00:10:96::")) << Spec();
  EXPECT_EQ(Slices()["IPv6"].size(), 2u);
  SetPolicy("PreferDualStack");
  EXPECT_EQ(Spec()["ipFamilies"], json::array({"IPv6", "IPv4"}));
}

TEST_F(DualStackCluster, OfIPv6AloneKnowsNoOtherFamily) {
  options_.pod_cidr = "fd00:10:1::/64";
  options_.service_cidr = "fd00:10:96::/112";
  Restart();
  ApplyText(kWeb);
  Settle();
  EXPECT_EQ(Spec()["ipFamilies"], json::array({"IPv6"}));
  EXPECT_EQ(Slices()["IPv6"].size(), 2u);
  EXPECT_THAT(
      std::string(Message(api().Patch("Service", {"sample", "web"}, {{"spec", {{"ipFamilies", {"IPv4"}}}}}).status())),
      HasSubstr("not configured on this cluster"));
}

// Kubernetes: pkg/registry/core/service/storage/alloc.go, initIPFamilyFields.
TEST_F(ClusterTest, AClusterOfOneFamilyRefusesServicesThatRequireBoth) {
  ApplyText(kWeb);
  EXPECT_THAT(
      std::string(Message(
          api().Patch("Service", {"sample", "web"}, {{"spec", {{"ipFamilyPolicy", "RequireDualStack"}}}}).status())),
      HasSubstr("this cluster is not configured for dual-stack services"));
}

TEST_F(ClusterTest, MorePodsThanAddressesWaitUntilOneIsFree) {
  options_.pod_cidr = "10.1.0.0/29";  // six
  Restart();
  ApplyText(kWeb);
  ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 8}}}}).ok());
  kernel_.RunUntil(kernel_.Now() + 10s);
  std::set<std::string> ips;
  int waiting = 0;
  for (const ObjectRef& pod : api().List("Pod", "sample")) {
    const json& status = pod->body["status"];
    if (status.contains("podIP")) {
      EXPECT_TRUE(ips.insert(status["podIP"].get<std::string>()).second);
      continue;
    }
    ++waiting;
    EXPECT_EQ(status["phase"], "Pending");
    EXPECT_THAT(status.value("message", ""), HasSubstr("10.1.0.0/29 are taken"));
  }
  EXPECT_EQ(ips.size(), 6u);
  EXPECT_EQ(waiting, 2);
  EXPECT_FALSE(cluster_->Settled());
  ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 6}}}}).ok());
  Settle();
  EXPECT_EQ(ReadyAddresses("web").size(), 6u);
}

json NumberedService(int i, const char* type) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", "s" + std::to_string(i)}, {"namespace", "default"}}},
          {"spec", {{"type", type}, {"ports", {{{"name", "a"}, {"port", 80}}, {{"name", "b"}, {"port", 81}}}}}}};
}

TEST_F(ClusterTest, NodePortsAreUniqueStayWithTheirServiceAndRunOut) {
  std::set<int> ports;
  for (int i = 0; i < 1384; ++i) {  // two each of 2768
    const absl::StatusOr<ObjectRef> service = api().Apply(NumberedService(i, "NodePort"));
    ASSERT_TRUE(service.ok()) << service.status();
    for (const json& port : (*service)->body["spec"]["ports"]) {
      EXPECT_TRUE(ports.insert(port["nodePort"].get<int>()).second);
    }
  }
  EXPECT_EQ(*ports.begin(), 30000);
  EXPECT_EQ(*ports.rbegin(), 32767);
  const ObjectRef before = api().Get("Service", {"default", "s7"});
  EXPECT_EQ(*api().Apply(NumberedService(7, "NodePort")), before);
  EXPECT_TRUE(absl::IsResourceExhausted(api().Apply(NumberedService(9999, "NodePort")).status()));
  // One that goes back to ClusterIP lets go of its ports.
  ASSERT_TRUE(api().Apply(NumberedService(7, "ClusterIP")).ok());
  EXPECT_FALSE(api().Get("Service", {"default", "s7"})->body["spec"]["ports"][0].contains("nodePort"));
  EXPECT_TRUE(api().Apply(NumberedService(9999, "NodePort")).ok());
}

TEST_F(ClusterTest, WhatAnotherServiceHoldsIsRefusedWithARemedy) {
  ASSERT_TRUE(api().Apply(NumberedService(1, "NodePort")).ok());
  const json held = api().Get("Service", {"default", "s1"})->body["spec"];
  json other = NumberedService(2, "NodePort");
  other["spec"]["ports"][0]["nodePort"] = held["ports"][0]["nodePort"];
  EXPECT_THAT(std::string(Message(api().Apply(other).status())), HasSubstr("already allocated"));
  other["spec"]["ports"][0]["nodePort"] = 80;
  EXPECT_THAT(std::string(Message(api().Apply(other).status())), HasSubstr("30000-32767"));
  other = NumberedService(2, "ClusterIP");
  other["spec"]["clusterIP"] = held["clusterIP"];
  EXPECT_THAT(std::string(Message(api().Apply(other).status())), HasSubstr("already allocated"));
  EXPECT_EQ(api().Get("Service", {"default", "s2"}), nullptr);
  ASSERT_TRUE(api().Delete("Service", {"default", "s1"}).ok());
  EXPECT_TRUE(api().Apply(other).ok());
}

TEST_F(ClusterTest, ClusterIpsRunOutWithAnErrorThatNamesTheRange) {
  options_.service_cidr = "10.96.0.0/30";  // two
  Restart();
  EXPECT_TRUE(api().Apply(NumberedService(1, "ClusterIP")).ok());
  EXPECT_TRUE(api().Apply(NumberedService(2, "ClusterIP")).ok());
  const absl::Status none = api().Apply(NumberedService(3, "ClusterIP")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(none));
  EXPECT_THAT(std::string(Message(none)), HasSubstr("Service default/s3: spec.clusterIP: all 2 addresses of"));
}

TEST_F(ClusterTest, LoadBalancersShareNoAddressAndOneWithoutWaits) {
  options_.load_balancer_cidr = "172.30.1.0/30";  // two
  Restart();
  const auto address = [&](int i) {
    return api()
        .Get("Service", {"default", "s" + std::to_string(i)})
        ->body.value("/status/loadBalancer/ingress/0/ip"_json_pointer, "none");
  };
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(api().Apply(NumberedService(i, "LoadBalancer")).ok());
  Settle();
  EXPECT_EQ(address(1), "172.30.1.1");
  EXPECT_EQ(address(2), "172.30.1.2");
  EXPECT_EQ(address(3), "none");
  EXPECT_TRUE(absl::IsInvalidArgument(cluster_->SetLoadBalancerAddress({"default", "s3"}, "172.30.1.2")));
  ASSERT_TRUE(api().Patch("Service", {"default", "s1"}, {{"spec", {{"type", "ClusterIP"}}}}).ok());
  EXPECT_EQ(address(1), "none");
  Settle();
  EXPECT_EQ(address(3), "172.30.1.1");
}

TEST_F(ClusterTest, ALoadBalancerMayHaveAHostNameInstead) {
  options_.load_balancer_hostname = true;
  Restart();
  ASSERT_TRUE(api().Apply(NumberedService(1, "LoadBalancer")).ok());
  Settle();
  EXPECT_EQ(api().Get("Service", {"default", "s1"})->body["status"]["loadBalancer"]["ingress"],
            json::array({{{"hostname", "lb-172-30-1-1.cluster1.example"}}}));
}

}  // namespace
}  // namespace wavetank::fakekube
