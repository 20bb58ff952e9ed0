// Requests in somebody else's name, as kube-apiserver lets them in (pkg/endpoints/filters/impersonation.go).
#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

constexpr const char* kReviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const std::string kRbac = "/apis/rbac.authorization.k8s.io/v1/";

class ImpersonationTest : public RestTest {
 protected:
  // What `kubectl auth whoami` shows.
  json WhoAmI(Impersonation as) {
    Request request = Ask("POST", kReviews, json::object());
    request.impersonate = std::move(as);
    return Send(request).body["status"]["userInfo"];
  }
  // A user who may impersonate what `rule` says, and nobody comes in unknown.
  void LetAlice(const json& rule) {
    rest_options_.demand_credentials = true;
    Restart();
    const json ref = {{"kind", "ClusterRole"}, {"name", "impersonator"}};
    const json subject = {{"kind", "User"}, {"name", "alice"}};
    const auto apply = [&](const char* kind, json object) {
      object["apiVersion"] = "rbac.authorization.k8s.io/v1";
      object["kind"] = kind;
      object["metadata"] = {{"name", "impersonator"}};
      ASSERT_TRUE(cluster_->api().Apply(object).ok());
    };
    apply("ClusterRole", {{"rules", json::array({rule})}});
    apply("ClusterRoleBinding", {{"roleRef", ref}, {"subjects", json::array({subject})}});
  }
  Answer AsAlice(Impersonation as) {
    Request request = Ask("POST", kReviews, json::object());
    request.certificate_user = "alice";
    request.impersonate = std::move(as);
    return Send(request);
  }
};

TEST_F(ImpersonationTest, AUserHasTheGroupsUidAndExtraThatAreNamed) {
  EXPECT_EQ(WhoAmI({.user = "dave"}), (json{{"username", "dave"}, {"groups", {"system:authenticated"}}}));
  EXPECT_EQ(WhoAmI({.user = "dave", .uid = "7", .groups = {"dev", "ops"}, .extra = {{"scopes", {"view"}}}}),
            (json{{"username", "dave"},
                  {"uid", "7"},
                  {"groups", {"dev", "ops", "system:authenticated"}},
                  {"extra", {{"scopes", {"view"}}}}}));
}

TEST_F(ImpersonationTest, AServiceAccountIsInItsGroupsUnlessOthersAreNamed) {
  EXPECT_EQ(WhoAmI({.user = "system:serviceaccount:a:b"})["groups"],
            (json{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}));
  EXPECT_EQ(WhoAmI({.user = "system:serviceaccount:a:b", .groups = {"c"}})["groups"],
            (json{"c", "system:authenticated"}));
}

TEST_F(ImpersonationTest, NobodyIsAuthenticatedWhoIsAnonymousOrSaysSo) {
  EXPECT_EQ(WhoAmI({.user = "system:anonymous"})["groups"], (json{"system:unauthenticated"}));
  EXPECT_EQ(WhoAmI({.user = "x", .groups = {"system:unauthenticated"}})["groups"], (json{"system:unauthenticated"}));
}

TEST_F(ImpersonationTest, AGroupDecidesWhatTheUserMayDo) {
  const auto list = [&](Impersonation as) {
    Request request = Ask("GET", "/api/v1/secrets");
    request.impersonate = std::move(as);
    return Send(request).code;
  };
  EXPECT_EQ(list({.user = "dave"}), 403);
  EXPECT_EQ(list({.user = "dave", .groups = {"system:masters"}}), 200);
}

TEST_F(ImpersonationTest, GroupsOfNobodyAreAnError) {
  Request request = Ask("GET", "/api/v1/pods?limit=5");
  request.impersonate = {.uid = "7", .groups = {"dev"}};
  Response response = rest_->Handle(request);
  EXPECT_EQ(response.code, 500);
  EXPECT_EQ(response.Text(),
            "Internal Server Error: \"/api/v1/pods?limit=5\": requested [{Group  dev    } {UID  7  "
            "authentication.k8s.io/v1  }] without impersonating a user\n");
}

TEST_F(ImpersonationTest, EachPartMustBeAllowedAndSomePartsByName) {
  LetAlice({{"apiGroups", {"", "authentication.k8s.io"}},
            {"resources", {"users", "userextras/scopes"}},
            {"verbs", {"impersonate"}},
            {"resourceNames", {"dave", "view"}}});
  EXPECT_EQ(AsAlice({.user = "dave"}).code, 201);
  EXPECT_EQ(AsAlice({.user = "dave", .extra = {{"scopes", {"view"}}}}).code, 201);
  EXPECT_EQ(AsAlice({.user = "bob"}).body["message"],
            "users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API group \"\" at the "
            "cluster scope");
  EXPECT_EQ(AsAlice({.user = "dave", .groups = {"dev"}}).body["details"], (json{{"kind", "groups"}, {"name", "dev"}}));
  EXPECT_EQ(AsAlice({.user = "dave", .extra = {{"scopes", {"edit"}}}}).body["message"],
            "userextras.authentication.k8s.io \"edit\" is forbidden: User \"alice\" cannot impersonate resource "
            "\"userextras/scopes\" in API group \"authentication.k8s.io\" at the cluster scope");
  EXPECT_EQ(AsAlice({.user = "system:serviceaccount:a:b"}).body["message"],
            "serviceaccounts \"b\" is forbidden: User \"alice\" cannot impersonate resource \"serviceaccounts\" in API "
            "group \"\" in the namespace \"a\"");
}

}  // namespace
}  // namespace wavetank::fakekube::http
