#include "fakes/kube/services/network_policies.h"

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using testing::IsNull;
using testing::NotNull;

class NetworkPoliciesTest : public ClusterTest {
 protected:
  NetworkPoliciesTest() : policies_(cluster_->api()) {
    ApplyText(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: sample, labels: {team: a}}\n---\n"
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: edge, labels: {team: b}}\n");
  }

  static kube::ObjectRef Pod(const std::string& ns, const std::string& app, bool host_network = false) {
    return *kube::Object::FromJson(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", {{"name", app}, {"namespace", ns}, {"labels", {{"app", app}}}}},
         {"spec",
          {{"hostNetwork", host_network},
           {"containers", {{{"name", "c"}, {"ports", {{{"name", "serve"}, {"containerPort", 8080}}}}}}}}}});
  }
  void Policy(const std::string& name, const std::string& spec) {
    ApplyText("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + name +
              ", namespace: sample}\nspec: " + spec + "\n");
  }
  kube::ObjectRef In(const kube::ObjectRef& from, uint16_t port = 8080, const std::string& ip = "10.1.0.9") {
    return policies_.Refuses(PolicyDirection::kIngress, *web_, {from.get(), *IpAddress::Parse(ip), false}, port);
  }
  kube::ObjectRef Out(const kube::ObjectRef& to, uint16_t port = 8080, const std::string& ip = "10.1.0.9") {
    return policies_.Refuses(PolicyDirection::kEgress, *web_, {to.get(), *IpAddress::Parse(ip), false}, port);
  }

  NetworkPolicies policies_;
  kube::ObjectRef web_ = Pod("sample", "web"), client_ = Pod("sample", "client"), gateway_ = Pod("edge", "gateway");
};

TEST_F(NetworkPoliciesTest, APodThatNoPolicySelectsIsOpen) {
  EXPECT_FALSE(policies_.any());
  Policy("other", "{podSelector: {matchLabels: {app: other}}}");
  EXPECT_TRUE(policies_.any());
  EXPECT_THAT(In(client_), IsNull());
  EXPECT_THAT(Out(client_), IsNull());
}

TEST_F(NetworkPoliciesTest, APolicyWithoutRulesClosesTheWayInAlone) {
  Policy("closed", "{podSelector: {}}");
  ASSERT_THAT(In(client_), NotNull());
  EXPECT_EQ(In(client_)->meta.name, "closed");
  EXPECT_THAT(Out(client_), IsNull());
  EXPECT_TRUE(cluster_->api().Delete("NetworkPolicy.networking.k8s.io", {"sample", "closed"}).ok());
  EXPECT_THAT(In(client_), IsNull());
}

TEST_F(NetworkPoliciesTest, WithRulesOfEgressAndNoTypesItIsOfBothDirections) {
  Policy("both", "{podSelector: {}, egress: [{to: [{podSelector: {matchLabels: {app: client}}}]}]}");
  EXPECT_THAT(In(client_), NotNull());
  EXPECT_THAT(Out(client_), IsNull());
  EXPECT_THAT(Out(gateway_), NotNull());
}

TEST_F(NetworkPoliciesTest, WhatOnePolicyLetsThroughPassesWhateverAnotherSays) {
  Policy("closed", "{podSelector: {}}");
  Policy("open", "{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {}}]}]}");
  EXPECT_THAT(In(client_), IsNull());
  EXPECT_THAT(In(gateway_), NotNull()) << "a peer without namespaceSelector is of the policy's own namespace";
}

TEST_F(NetworkPoliciesTest, NamespacesAreSelectedByTheirLabelsAndByTheirName) {
  Policy("p", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: b}}}]}]}");
  EXPECT_THAT(In(gateway_), IsNull());
  EXPECT_THAT(In(client_), NotNull());
  Policy("p",
         "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: edge}}, "
         "podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [gateway]}]}}]}]}");
  EXPECT_THAT(In(gateway_), NotNull());
  EXPECT_THAT(In(Pod("edge", "other")), IsNull());
}

TEST_F(NetworkPoliciesTest, WhoIsNoPodOfTheClusterIsAnAddress) {
  Policy("p", "{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.2.0.0/16, except: [10.2.9.0/24]}}]}]}");
  EXPECT_THAT(In(nullptr, 8080, "10.2.1.1"), IsNull());
  EXPECT_THAT(In(nullptr, 8080, "10.2.9.1"), NotNull());
  EXPECT_THAT(In(nullptr, 8080, "10.3.1.1"), NotNull());
  Policy("p", "{podSelector: {}, ingress: [{from: [{podSelector: {}}, {namespaceSelector: {}}]}]}");
  EXPECT_THAT(In(nullptr), NotNull());
  EXPECT_THAT(In(Pod("sample", "agent", true)), NotNull()) << "a pod in its node's network is its node";
}

TEST_F(NetworkPoliciesTest, PortsAreTheReceiversByNumberRangeOrName) {
  Policy("p", "{podSelector: {}, ingress: [{ports: [{port: 8000, endPort: 8090}]}]}");
  EXPECT_THAT(In(client_, 8080), IsNull());
  EXPECT_THAT(In(client_, 9000), NotNull());
  Policy("p", "{podSelector: {}, ingress: [{ports: [{port: serve}]}]}");
  EXPECT_THAT(In(client_, 8080), IsNull());
  EXPECT_THAT(In(client_, 8081), NotNull());
  Policy("p", "{podSelector: {}, ingress: [{ports: [{protocol: UDP, port: 8080}]}]}");
  EXPECT_THAT(In(client_, 8080), NotNull());
  Policy("p", "{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: serve}]}]}");
  EXPECT_THAT(Out(client_, 8080), IsNull());
  EXPECT_THAT(Out(nullptr, 8080), NotNull()) << "an address has no names of ports";
}

// Resolvers ask by UDP; a port without protocol is TCP. Without pods of CoreDNS they are taken to be in kube-system.
TEST_F(NetworkPoliciesTest, QueriesPassWhereUdpToKubeDnsIsLetOut) {
  const auto dns = [&] { return policies_.RefusesDns(*web_, *IpAddress::Parse("10.1.0.5")); };
  EXPECT_THAT(dns(), IsNull());
  Policy("p", "{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53}]}]}");
  ASSERT_THAT(dns(), NotNull());
  EXPECT_EQ(dns()->meta.name, "p");
  Policy("p", "{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53, protocol: UDP}]}]}");
  EXPECT_THAT(dns(), IsNull());
  const std::string to_kube_system =
      "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {";
  Policy("p", to_kube_system + "name: kube-system}}}]}]}");
  EXPECT_THAT(dns(), NotNull()) << "a namespace has its name as kubernetes.io/metadata.name";
  Policy("p", to_kube_system +
                  "kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]}]}");
  EXPECT_THAT(dns(), IsNull());
  Policy("p", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.96.0.10/32}}]}]}");
  EXPECT_THAT(dns(), IsNull()) << "whose address nobody knows may be in any block";
  Policy("p", "{podSelector: {}, policyTypes: [Ingress]}");
  EXPECT_THAT(dns(), IsNull());
}

}  // namespace
}  // namespace wavetank::fakekube
