#include "sim/network/dns.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "core/base/status.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::sim {
namespace {

IpAddress Ip(std::string_view text) { return *IpAddress::Parse(text); }

class DnsTest : public fakekube::ClusterTest {
 protected:
  std::string Says(std::string_view name) {
    const auto addresses = dns_.Resolve(name, "default");
    if (!addresses.ok()) return std::string(absl::StatusCodeToString(addresses.status().code()));
    std::string out;
    for (const IpAddress& ip : *addresses) out += (out.empty() ? "" : " ") + ip.ToString();
    return out;
  }
  void Wait(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }

  WorldDns world_;
  ClusterDns dns_{api(), world_};
};

TEST_F(DnsTest, AnAliasIsFollowedToItsAddresses) {
  world_.Set("www.example", {.alias = "lb.example"});
  EXPECT_EQ(Says("www.example."), "NOT_FOUND");
  world_.Set("lb.example", {.addresses = {Ip("203.0.113.1")}});
  EXPECT_EQ(Says("www.example."), "203.0.113.1");
}

TEST_F(DnsTest, ACircleOfAliasesIsNoAnswer) {
  world_.Set("a.example", {.alias = "b.example"});
  world_.Set("b.example", {.alias = "a.example"});
  EXPECT_EQ(Says("a.example."), "UNAVAILABLE");
}

TEST_F(DnsTest, AQueryThatFailsTakesItsAddressesAway) {
  DnsRecord record{.addresses = {Ip("203.0.113.1"), Ip("fd00::1")}};
  world_.Set("both.example", record);
  EXPECT_EQ(Says("both.example."), "203.0.113.1 fd00::1");
  record.a_fails = true;
  world_.Set("both.example", record);
  EXPECT_EQ(Says("both.example."), "fd00::1");
  record.aaaa_fails = true;
  world_.Set("both.example", record);
  EXPECT_EQ(Says("both.example."), "UNAVAILABLE");
}

TEST_F(DnsTest, AnAnswerIsKeptForItsTimeAndSaysWhatIsLeftOfIt) {
  world_.Set("a.example", {.addresses = {Ip("203.0.113.1")}, .ttl = 30s});
  EXPECT_EQ(Says("a.example."), "203.0.113.1");
  world_.Set("a.example", {.addresses = {Ip("203.0.113.2")}, .ttl = 30s});
  Wait(20s);
  EXPECT_EQ(Says("a.example."), "203.0.113.1");
  EXPECT_EQ(dns_.Ask("a.example.", "default")->ttl, 10s);
  Wait(10s);
  EXPECT_EQ(Says("a.example."), "203.0.113.2");
}

TEST_F(DnsTest, ThatThereIsNoneIsKeptTooAndAServersFailureIsNot) {
  world_.Set("a.example", {.ttl = 30s});
  EXPECT_EQ(Says("a.example."), "NOT_FOUND");
  world_.Set("a.example", {.addresses = {Ip("203.0.113.1")}});
  EXPECT_EQ(Says("a.example."), "NOT_FOUND");
  Wait(30s);
  EXPECT_EQ(Says("a.example."), "203.0.113.1");
  world_.Set("b.example", {.a_fails = true, .aaaa_fails = true, .ttl = 30s});
  EXPECT_EQ(Says("b.example."), "UNAVAILABLE");
  world_.Set("b.example", {.addresses = {Ip("203.0.113.1")}});
  EXPECT_EQ(Says("b.example."), "203.0.113.1");
}

// What follows says who answers by CoreDNS's own configuration.
class CorefileTest : public DnsTest {
 protected:
  void SetUp() override {
    world_.Set("www.example", {.addresses = {Ip("203.0.113.1")}});
    ApplyText(R"(
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.7.7, ports: [{port: 80}]}
)");
  }
  void Corefile(const std::string& text, const std::string& other_keys = "") {
    std::string lines;
    for (size_t from = 0, to; from < text.size(); from = to + 1) {
      to = std::min(text.find('\n', from), text.size());
      lines += "    " + text.substr(from, to - from) + "\n";
    }
    ApplyText(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: coredns, namespace: kube-system}\ndata:\n  Corefile: |\n" +
        lines + other_keys);
  }
};

TEST_F(CorefileTest, KubeadmsOwnAnswersForServicesAndForTheWorld) {
  Corefile(
      ".:53 {\n  errors\n  health {\n    lameduck 5s\n  }\n  ready\n  kubernetes cluster.local in-addr.arpa ip6.arpa "
      "{\n"
      "    pods insecure\n    fallthrough in-addr.arpa ip6.arpa\n    ttl 30\n  }\n  prometheus :9153\n"
      "  forward . /etc/resolv.conf {\n    max_concurrent 1000\n  }\n  cache 30\n  loop\n  reload\n  loadbalance\n}");
  EXPECT_EQ(Says("web"), "10.96.7.7");
  EXPECT_EQ(Says("www.example"), "203.0.113.1");
  EXPECT_EQ(Says("none.default.svc.cluster.local."), "NOT_FOUND");
}

TEST_F(CorefileTest, AServerOfALongerZoneAnswersAlone) {
  Corefile(".:53 {\n kubernetes cluster.local\n forward . 10.0.0.10\n}\nexample:53 {\n errors\n}");
  EXPECT_EQ(Says("www.example."), "UNAVAILABLE") << "it has no plugin that answers";
  EXPECT_EQ(Says("web"), "10.96.7.7");
}

TEST_F(CorefileTest, NamesAreRewrittenBeforeTheyAreLookedUp) {
  Corefile(
      ".:53 {\n rewrite name exact shop.example. web.default.svc.cluster.local.\n"
      " rewrite name suffix .global .svc.cluster.local\n rewrite name regex (.*)\\.old\\. "
      "{1}.default.svc.cluster.local\n"
      " kubernetes cluster.local\n forward . /etc/resolv.conf\n}");
  EXPECT_EQ(Says("shop.example."), "10.96.7.7");
  EXPECT_EQ(Says("web.default.global."), "10.96.7.7");
  EXPECT_EQ(Says("web.old."), "10.96.7.7");
  EXPECT_EQ(Says("www.example."), "203.0.113.1");
}

TEST_F(CorefileTest, HostsAnswerAndWhatTheyDoNotKnowFallsThroughOnlyIfTheySaySo) {
  Corefile(".:53 {\n hosts {\n  192.0.2.7 db.internal db\n  fallthrough\n }\n forward . /etc/resolv.conf\n}");
  EXPECT_EQ(Says("db.internal."), "192.0.2.7");
  EXPECT_EQ(dns_.Ask("db.internal.", "default")->ttl, 1h);
  EXPECT_EQ(Says("www.example."), "203.0.113.1");
}

TEST_F(CorefileTest, HostsWithoutFallthroughAnswerForAll) {
  Corefile(".:53 {\n hosts {\n  192.0.2.7 db.internal\n }\n forward . /etc/resolv.conf\n}");
  EXPECT_EQ(Says("www.example."), "NOT_FOUND");
}

TEST_F(CorefileTest, ATemplateAnswersWithWhatItsPatternFound) {
  Corefile(
      ".:53 {\n template IN A nip.example {\n  match \"^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)[.]nip[.]example[.]$\"\n"
      "  answer \"{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ index .Match 2 }}\"\n  fallthrough\n }\n"
      " template IN ANY gone.example {\n  rcode NXDOMAIN\n }\n forward . /etc/resolv.conf\n}");
  EXPECT_EQ(Says("ip-3-4.nip.example."), "10.0.3.4");
  EXPECT_EQ(Says("www.gone.example."), "NOT_FOUND");
  EXPECT_EQ(Says("www.example."), "203.0.113.1");
}

TEST_F(CorefileTest, ADomainOfAnotherNameIsServedIfThePluginSaysIt) {
  Corefile(".:53 {\n kubernetes corp.local\n forward . /etc/resolv.conf\n}");
  EXPECT_EQ(Says("web.default.svc.corp.local."), "10.96.7.7");
  EXPECT_EQ(Says("web.default.svc.cluster.local."), "NOT_FOUND");
}

TEST_F(CorefileTest, AStubDomainAtAnAddressOfServicesThatNoneHasIsNoAnswer) {
  Corefile(".:53 {\n kubernetes cluster.local\n forward . 1.1.1.1\n}\nexample:53 {\n forward . 10.96.99.99\n}");
  EXPECT_EQ(Says("www.example."), "UNAVAILABLE");
}

TEST_F(CorefileTest, ANewOneActsIfTheOldOneReloads) {
  Corefile(".:53 {\n hosts {\n  192.0.2.7 db.internal\n }\n}");
  EXPECT_EQ(Says("db.internal."), "192.0.2.7");
  Corefile(".:53 {\n reload\n hosts {\n  192.0.2.8 db.internal\n }\n}");
  EXPECT_EQ(Says("db.internal."), "192.0.2.7") << "nobody looks at the file again";
}

class CorefileReloadTest : public CorefileTest {
 protected:
  static std::string With(const std::string& address) {
    return ".:53 {\n reload\n hosts {\n  " + address + " db.internal\n }\n}";
  }
  std::string Answer() {
    const auto addresses = slow_.Resolve("db.internal.", "default");
    return addresses.ok() ? addresses->front().ToString() : "";
  }
  ClusterDns slow_{api(), world_, {105s, 7}};
};

TEST_F(CorefileReloadTest, ANewOneActsWhenKubeletAndPluginHaveSeenIt) {
  Corefile(With("192.0.2.7"));
  EXPECT_EQ(Answer(), "192.0.2.7") << "it begins with what is there";
  Wait(10s);
  EXPECT_TRUE(slow_.Settled());
  Corefile(With("192.0.2.8"));
  EXPECT_EQ(Answer(), "192.0.2.7");
  EXPECT_FALSE(slow_.Settled());
  int waited = 0;
  while (Answer() == "192.0.2.7" && waited < 105) {
    Wait(1s);
    ++waited;
  }
  EXPECT_EQ(Answer(), "192.0.2.8");
  EXPECT_TRUE(slow_.Settled());
  EXPECT_GT(waited, 0);
}

TEST_F(CorefileReloadTest, WhatNobodyAskedForWasInForceAllTheSame) {
  Corefile(With("192.0.2.7"));
  Wait(10s);
  Corefile(With("192.0.2.8"));
  EXPECT_EQ(Answer(), "192.0.2.7");
  Wait(105s);
  EXPECT_EQ(Answer(), "192.0.2.8");
}

TEST_F(CorefileReloadTest, WhatComesWhileItsPodsStartIsWhatItBeginsWith) {
  Corefile(With("192.0.2.7"));
  EXPECT_EQ(Answer(), "192.0.2.7");
  Wait(500ms);
  Corefile(With("192.0.2.8"));
  EXPECT_EQ(Answer(), "192.0.2.8");
}

TEST_F(CorefileTest, OneThatCannotBeReadLeavesTheOneBefore) {
  Corefile(".:53 {\n reload\n hosts {\n  192.0.2.7 db.internal\n }\n}");
  EXPECT_EQ(Says("db.internal."), "192.0.2.7");
  Corefile(".:53 {\n hosts {\n  192.0.2.8 db.internal\n }\n");
  EXPECT_EQ(Says("db.internal."), "192.0.2.7");
}

// k3s: its own ConfigMap has the nodes' names, another one what its administrator adds.
TEST_F(CorefileTest, WhatItImportsStandsInItsPlace) {
  Corefile(
      "(outside) {\n forward . /etc/resolv.conf\n}\n.:53 {\n reload\n kubernetes cluster.local\n hosts "
      "/etc/coredns/NodeHosts {\n  ttl 60\n  reload 15s\n  fallthrough\n }\n import outside\n import "
      "custom/*.override\n}\nimport /etc/coredns/custom/*.server\n",
      "  NodeHosts: |\n    172.18.0.3 k3d-server-0 # itself\n    172.18.0.4 k3d-agent-0\n");
  EXPECT_EQ(Says("k3d-agent-0."), "172.18.0.4");
  EXPECT_EQ(Says("web"), "10.96.7.7");
  EXPECT_EQ(Says("www.example."), "203.0.113.1");
  EXPECT_EQ(Says("web.corp."), "NOT_FOUND");
  ApplyText(R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns-custom, namespace: kube-system}
data:
  a.override: "rewrite name suffix .corp .default.svc.cluster.local"
  b.server: "internal:53 {\n  hosts {\n    192.0.2.9 db.internal\n  }\n}"
  c.txt: "internal:53 {\n}"
)");
  EXPECT_EQ(Says("web.corp."), "10.96.7.7") << "the plugin reload looks at imports, too";
  EXPECT_EQ(Says("db.internal."), "192.0.2.9");
}

TEST_F(CorefileTest, ImportsThatLeadNowhereOrRoundAreNoConfiguration) {
  const auto why = [](const std::string& text, const sim::Corefile::Files& files) {
    const auto read = sim::Corefile::Read(text, &files);
    return read.ok() ? "read" : std::string(Message(read.status()));
  };
  EXPECT_EQ(why(".:53 {\n import none\n}", {}), "line 2: File to import not found: none");
  EXPECT_EQ(why("import custom/*.server\n.:53 {\n}", {}), "read");
  EXPECT_EQ(why("import */*.server\n.:53 {\n}", {}),
            "line 1: Glob pattern may only contain one wildcard (*), but has others: */*.server");
  EXPECT_EQ(why("import custom/a\n", {{"custom/a", "import b\n"}, {"custom/b", "import none\n"}}),
            "custom/b, line 1: File to import not found: none");
  EXPECT_EQ(why("import custom/a\n", {{"custom/a", "import a\n"}}), "custom/a, line 1: imports lead round in a circle");
  EXPECT_EQ(why(".:53 {\n import a b\n}", {}), "line 2: import takes one argument");
}

}  // namespace
}  // namespace wavetank::sim
