// `apply` of a mesh of more clients than anybody reads a row of.
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kApps = 26;

std::string Mesh() {
  std::string out = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n";
  for (int i = 0; i < kApps; ++i) {
    out += fmt::format(R"(---
apiVersion: v1
kind: Service
metadata: {{name: app-{0:02}, namespace: shop}}
spec: {{selector: {{app: app-{0:02}}}, ports: [{{name: http, port: 80, targetPort: 8080}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: app-{0:02}, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: app-{0:02}}}}}
  template:
    metadata: {{labels: {{app: app-{0:02}}}}}
    spec: {{containers: [{{name: app, image: shop/app:1, ports: [{{containerPort: 8080}}]}}]}}
)",
                       i);
  }
  // Who is not answered there has a row of its own.
  return out +
         "---\napiVersion: security.istio.io/v1beta1\nkind: AuthorizationPolicy\nmetadata: {name: closed, namespace: "
         "shop}\n"
         "spec:\n  selector: {matchLabels: {app: app-07}}\n  action: DENY\n  rules: [{from: [{source: {principals: "
         "['cluster.local/ns/shop/sa/other']}}]}]\n"
         "---\napiVersion: security.istio.io/v1beta1\nkind: AuthorizationPolicy\nmetadata: {name: shut, namespace: "
         "shop}\n"
         "spec:\n  selector: {matchLabels: {app: app-09}}\n";
}

class LargeMesh : public ProgramTest {};

TEST_F(LargeMesh, ClientsThatFareAlikeAndProxiesThatHoldTheSameAreToldOnce) {
  const std::string mesh = Write("mesh.yaml", Mesh());
  const Ran ran = Call("apply --cluster c1=" + mesh);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output,
              AllOf(ContainsRegex("app-00.shop and 25 more +c1 +app-01.shop:80 +c1 520 +-"),
                    ContainsRegex("app-00.shop and 25 more +c1 +app-09.shop:80 +- +rbac_access_denied[^ ]* 520"),
                    Not(HasSubstr("\napp-03.shop ")), HasSubstr(" and 25 more that hold the same: ")));
  // Each by itself.
  const json rows = json::parse(Call("apply --json --cluster c1=" + mesh).output)["reachability"];
  ASSERT_EQ(rows.size(), static_cast<size_t>(kApps * kApps));
  for (const json& row : rows) {
    const char* const counts = row["service"] == "app-09.shop:80" ? "failed" : "answeredBy";
    ASSERT_EQ(row[counts].size(), 1u) << row;
    EXPECT_EQ(row[counts].front(), 20) << row;
  }
}

}  // namespace
}  // namespace wavetank
