// Controllers that keep a cluster in order: budgets, certificates of namespaces, roles made of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/json_access.h"
#include "fakes/kube/client/client.h"
#include "fmt/format.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class HousekeepingTest : public ClusterTest {
 protected:
  json Budget(const json& spec) {
    json whole = spec;
    whole["selector"] = {{"matchLabels", {{"app", "web"}}}};
    EXPECT_TRUE(api()
                    .Apply({{"apiVersion", "policy/v1"},
                            {"kind", "PodDisruptionBudget"},
                            {"metadata", {{"name", "web"}, {"namespace", "sample"}}},
                            {"spec", whole}})
                    .ok());
    Settle();
    return api().Get("PodDisruptionBudget", {"sample", "web"})->body["status"];
  }
};

TEST_F(HousekeepingTest, ABudgetSaysHowManyPodsMayGo) {
  ApplyText(kWeb);  // two replicas
  Settle();
  json status = Budget({{"minAvailable", 1}});
  EXPECT_EQ(status["currentHealthy"], 2);
  EXPECT_EQ(status["desiredHealthy"], 1);
  EXPECT_EQ(status["expectedPods"], 2);
  EXPECT_EQ(status["disruptionsAllowed"], 1);
  EXPECT_EQ(status["conditions"][0]["reason"], "SufficientPods");
  ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 5}}}}).ok());
  Settle();
  EXPECT_EQ(api().Get("PodDisruptionBudget", {"sample", "web"})->body["status"]["disruptionsAllowed"], 4);
  status = Budget({{"minAvailable", "50%"}});
  EXPECT_EQ(status["desiredHealthy"], 3);  // rounded up
  EXPECT_EQ(status["disruptionsAllowed"], 2);
  EXPECT_EQ(status["observedGeneration"], 2);
  ASSERT_TRUE(api().Delete("PodDisruptionBudget", {"sample", "web"}).ok());
  status = Budget({{"maxUnavailable", 1}});
  EXPECT_EQ(status["desiredHealthy"], 4);
  EXPECT_EQ(status["disruptionsAllowed"], 1);
}

// An API server refuses both; what a log holds, nobody has looked at.
TEST_F(HousekeepingTest, ABudgetOfANegativeOrBoundlessNumberLetsNoMoreGoThanThereAre) {
  ApplyText(kWeb);
  Settle();
  json status = Budget({{"minAvailable", -5}});
  EXPECT_EQ(status["desiredHealthy"], 0);
  EXPECT_EQ(status["disruptionsAllowed"], 2);
  for (const char* percent : {"-50%", "9223372036854775807%"}) {
    status = Budget({{"minAvailable", percent}});
    EXPECT_EQ(status["disruptionsAllowed"], percent[0] == '-' ? 2 : 0) << percent;
  }
  ASSERT_TRUE(api().Delete("PodDisruptionBudget", {"sample", "web"}).ok());
  status = Budget({{"maxUnavailable", std::numeric_limits<int64_t>::min()}});
  EXPECT_EQ(status["disruptionsAllowed"], 0);
}

// cert-manager's.
TEST_F(HousekeepingTest, ACertificateThatIsMadeAnewIsRenewedOnceAtATime) {
  ApplyText(kWeb);
  ApplyText(R"(
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self, namespace: sample}
spec: {selfSigned: {}}
)");
  const auto certificate = [](const char* label) {
    return fmt::format(R"(
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {{name: web, namespace: sample, labels: {{made: {}}}}}
spec: {{dnsNames: [web], secretName: web-tls, duration: 1h, renewBefore: 30m, issuerRef: {{name: self}}}}
)",
                       label);
  };
  ApplyText(certificate("first"));
  Settle();
  kernel_.RunUntil(kernel_.Now() + 10min);
  ASSERT_TRUE(api().Delete("Secret", {"sample", "web-tls"}).ok());
  ApplyText(certificate("anew"));
  Settle();
  ASSERT_NE(api().Get("Secret", {"sample", "web-tls"}), nullptr);
  int renewals = 0;
  const Subscription watch = api().Observe(
      "Secret", [&renewals](const Change& change) { renewals += change.object->meta.name == "web-tls" ? 1 : 0; });
  kernel_.RunUntil(kernel_.Now() + 100min);
  EXPECT_EQ(renewals, 3) << "each half an hour";
}

TEST_F(HousekeepingTest, EveryNamespaceGetsTheRootCertificateOnceThereIsOne) {
  ApplyText(kWeb);
  Settle();
  EXPECT_EQ(api().Get("ConfigMap", {"sample", "kube-root-ca.crt"}), nullptr);
  const auto source = [](const std::string& pem) -> json {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", "kube-root-ca.crt"}, {"namespace", "kube-system"}}},
            {"data", {{"ca.crt", pem}}}};
  };
  ASSERT_TRUE(api().Apply(source("one")).ok());
  ASSERT_TRUE(api().Apply({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "late"}}}}).ok());
  Settle();
  for (const char* ns : {"sample", "default", "late"}) {
    const ObjectRef map = api().Get("ConfigMap", {ns, "kube-root-ca.crt"});
    ASSERT_NE(map, nullptr) << ns;
    EXPECT_EQ(map->body["data"]["ca.crt"], "one");
  }
  ASSERT_TRUE(api().Delete("ConfigMap", {"late", "kube-root-ca.crt"}).ok());
  ASSERT_TRUE(api().Apply(source("two")).ok());
  Settle();
  EXPECT_EQ(api().Get("ConfigMap", {"late", "kube-root-ca.crt"})->body["data"]["ca.crt"], "two");
}

TEST_F(HousekeepingTest, RolesAreMadeOfOthers) {
  const auto role = [&](const std::string& name, const json& more) {
    json body = {
        {"apiVersion", "rbac.authorization.k8s.io/v1"}, {"kind", "ClusterRole"}, {"metadata", {{"name", name}}}};
    body.update(more, true);
    ASSERT_TRUE(api().Apply(body).ok());
    Settle();
  };
  const auto rules = [&](const std::string& name) { return api().Get("ClusterRole", {"", name})->body["rules"]; };
  role("all", {{"aggregationRule", {{"clusterRoleSelectors", {{{"matchLabels", {{"to", "all"}}}}}}}}});
  role("pods", {{"metadata", {{"labels", {{"to", "all"}}}}},
                {"rules", {{{"apiGroups", {""}}, {"resources", {"pods"}}, {"verbs", {"get"}}}}}});
  EXPECT_EQ(rules("all"), rules("pods"));
  ASSERT_TRUE(api().Delete("ClusterRole", {"", "pods"}).ok());
  Settle();
  EXPECT_EQ(rules("all"), json::array());
}

// As istiod's certificates do: a client that writes on must not bring a deleted namespace back.
TEST_F(HousekeepingTest, AClientDoesNotBringADeletedNamespaceBack) {
  options_.create_namespaces = true;
  Restart();
  ApplyText(kWeb);
  Settle();
  auto client = MakeClient(api(), host_, "istiod", 1, {});
  const json map = {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "c"}, {"namespace", "sample"}}}};
  absl::Status status = absl::UnknownError("no answer");
  const auto write = [&] {
    client->Apply(*kube::Object::FromJson(map), [&](const absl::StatusOr<ObjectRef>& done) { status = done.status(); });
    kernel_.RunUntil(kernel_.Now() + 1s);
  };
  write();
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_TRUE(api().Delete("Namespace", {"", "sample"}).ok());
  EXPECT_TRUE(api().Get("Namespace", {"", "sample"})->meta.deleting);
  client->Apply(*kube::Object::FromJson(map), [&](const absl::StatusOr<ObjectRef>& done) { status = done.status(); });
  Settle();
  kernel_.RunUntil(kernel_.Now() + 1s);
  EXPECT_EQ(api().Get("Namespace", {"", "sample"}), nullptr);
  write();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(api().Get("Namespace", {"", "sample"}), nullptr);
  // A scenario's manifest makes it, as it did.
  EXPECT_TRUE(api().Apply(map).ok());
}

}  // namespace
}  // namespace wavetank::fakekube
