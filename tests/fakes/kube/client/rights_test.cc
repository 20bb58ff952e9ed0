// What a client's writes ask its server's authorizer for.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "fakes/kube/client/client.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;
using testing::ElementsAre;

class RightsTest : public ClusterTest {
 protected:
  json Entry(const char* resolution, const char* address) {
    return {{"apiVersion", "networking.istio.io/v1"},
            {"kind", "ServiceEntry"},
            {"metadata", {{"name", "a"}, {"namespace", "default"}}},
            {"spec", {{"hosts", {"a.example"}}, {"resolution", resolution}}},
            {"status", {{"addresses", {{{"value", address}}}}}}};
  }
  // "verb group/resource" of each question, of which those with a verb of `allowed` are granted.
  std::vector<std::string> Asked(const json& object, const std::string& allowed) {
    std::vector<std::string> asked;
    const auto client =
        MakeClient(api(), host_, "client", 1, {}, [&](const kube::AccessRequest& request) -> absl::Status {
          asked.push_back(absl::StrCat(request.verb, " ", request.group, "/", request.resource));
          return allowed.find(request.verb) != std::string::npos ? absl::OkStatus() : absl::PermissionDeniedError("no");
        });
    absl::Status done = absl::UnknownError("");
    client->Apply(*kube::Object::FromJson(object), [&](const absl::StatusOr<ObjectRef>& r) { done = r.status(); });
    kernel_.RunUntil(kernel_.Now() + 1s);
    EXPECT_EQ(done.ok(), allowed.find(asked.back().substr(0, asked.back().find(' '))) != std::string::npos) << done;
    return asked;
  }
};

TEST_F(RightsTest, ACreationIsOfTheResourceAsItsKindIsWritten) {
  const json of_class = {{"apiVersion", "gateway.networking.k8s.io/v1"},
                         {"kind", "GatewayClass"},
                         {"metadata", {{"name", "istio"}}},
                         {"spec", {{"controllerName", "istio.io/gateway-controller"}}}};
  EXPECT_THAT(Asked(of_class, "create"), ElementsAre("create gateway.networking.k8s.io/gatewayclasses"));
  EXPECT_THAT(Asked(Entry("STATIC", ""), "create"), ElementsAre("create networking.istio.io/serviceentries"));
}

TEST_F(RightsTest, AStatusAloneNeedsTheRightToItAlone) {
  ASSERT_TRUE(api().Apply(Entry("STATIC", "240.240.0.1")).ok());
  EXPECT_THAT(Asked(Entry("STATIC", "240.240.0.2"), "update"),
              ElementsAre("update networking.istio.io/serviceentries/status"));
  EXPECT_THAT(Asked(Entry("STATIC", "240.240.0.3"), "patch"),
              ElementsAre("update networking.istio.io/serviceentries/status",
                          "patch networking.istio.io/serviceentries/status"));
  EXPECT_THAT(Asked(Entry("NONE", "240.240.0.3"), "update"), ElementsAre("update networking.istio.io/serviceentries"));
}

}  // namespace
}  // namespace wavetank::fakekube
