// `wavetank manifest diff`: what an operator reads before an installation is changed.
#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace wavetank {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ManifestDiffTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("manifest-diff-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "old");
    std::filesystem::create_directories(folder_ / "new");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file) << text;
    return (folder_ / file).string();
  }
  static std::string Deployment(const std::string& image, const std::string& env) {
    return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: istiod, namespace: istio-system}\n"
           "spec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: discovery\n        image: " +
           image + "\n        env:\n" + env + "---\n";
  }

  std::filesystem::path folder_;
};

TEST_F(ManifestDiffTest, TheSameManifestsAreIdentical) {
  const std::string a = Write("a.yaml", Deployment("pilot:1.18.2", "        - {name: REVISION, value: default}\n"));
  const Ran ran = Call("manifest diff " + a + " " + a);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.output, "Manifests are identical\n");
}

TEST_F(ManifestDiffTest, ChangedPathsAreShownAsATreeOfOldAndNew) {
  const std::string a = Write("a.yaml", Deployment("pilot:1.18.1", "        - {name: REVISION, value: default}\n"));
  const std::string b = Write("b.yaml", Deployment("pilot:1.18.2", "        - {name: REVISION, value: default}\n"));
  const Ran ran = Call("manifest diff " + a + " " + b);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.output,
            "Differences in manifests are:\n\n\nObject Deployment:istio-system:istiod has diffs:\n\n"
            "spec:\n  template:\n    spec:\n      containers:\n        '[#0]':\n"
            "          image: pilot:1.18.1 -> pilot:1.18.2\n\n");
}

TEST_F(ManifestDiffTest, AnItemThatCameIntoAListIsShownAtItsPlace) {
  const std::string a = Write("a.yaml", Deployment("x", "        - {name: REVISION, value: default}\n"));
  const std::string b = Write("b.yaml", Deployment("x",
                                                   "        - {name: CLUSTER_ID, value: east}\n"
                                                   "        - {name: REVISION, value: default}\n"));
  EXPECT_THAT(Call("manifest diff " + a + " " + b).output,
              HasSubstr("'[?->0]': <empty> -> map[name:CLUSTER_ID value:east] (ADDED)"));
}

// As a real istioctl 1.18.2 says it: an item that went, one that came, and one that is alike enough to have changed.
TEST_F(ManifestDiffTest, ItemsOfAListAreToldApartByHowAlikeTheyAre) {
  const std::string a = Write("a.yaml", Deployment("x",
                                                   "        - {name: REVISION, value: default}\n"
                                                   "        - {name: B, value: \"2\"}\n"
                                                   "        - {name: C, value: \"3\"}\n"));
  const std::string b = Write("b.yaml", Deployment("x",
                                                   "        - {name: CLUSTER_ID, value: east}\n"
                                                   "        - {name: REVISION, value: default}\n"
                                                   "        - {name: C, value: \"4\"}\n"));
  EXPECT_THAT(Call("manifest diff " + a + " " + b).output,
              HasSubstr("          env:\n            '[#2]':\n              value: 3 -> 4\n"
                        "            '[?->0]': <empty> -> map[name:CLUSTER_ID value:east] (ADDED)\n"
                        "            '[1->?]': map[name:B value:2] -> <empty> (REMOVED)\n"));
}

TEST_F(ManifestDiffTest, ObjectsOfOneSideAloneAreNamed) {
  const std::string map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n";
  const std::string a = Write("a.yaml", Deployment("x", "        - {name: A, value: b}\n"));
  const std::string b = Write("b.yaml", Deployment("x", "        - {name: A, value: b}\n") + map);
  EXPECT_THAT(Call("manifest diff " + a + " " + b).output,
              HasSubstr("Object ConfigMap:istio-system:istio is missing in A:"));
  EXPECT_THAT(Call("manifest diff " + b + " " + a).output,
              HasSubstr("Object ConfigMap:istio-system:istio is missing in B:"));
}

TEST_F(ManifestDiffTest, TextsOfAConfigMapAreComparedAsWhatTheySay) {
  const auto map = [](const std::string& domain) {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata:\n  mesh: |\n"
           "    enableTracing: true\n    trustDomain: " +
           domain + "\n";
  };
  EXPECT_THAT(
      Call("manifest diff " + Write("a.yaml", map("cluster.local")) + " " + Write("b.yaml", map("mesh.east"))).output,
      HasSubstr("data:\n  mesh:\n    trustDomain: cluster.local -> mesh.east\n"));
}

TEST_F(ManifestDiffTest, ACredentialThatChangesIsAChangeAndIsShownToNobody) {
  const auto secret = [](const std::string& key) {
    return "apiVersion: v1\nkind: Secret\nmetadata: {name: cacerts, namespace: istio-system}\ndata: {ca-key.pem: " +
           key + "}\n";
  };
  const std::string one = "c2VjcmV0LWtleS1vbmU=", two = "c2VjcmV0LWtleS10d28=";
  const Ran ran = Call("manifest diff " + Write("a.yaml", secret(one)) + " " + Write("b.yaml", secret(two)));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("ca-key.pem: "));
  EXPECT_THAT(ran.output, testing::Not(testing::AnyOf(HasSubstr(one), HasSubstr(two))));
}

TEST_F(ManifestDiffTest, ObjectsCanBeSelectedIgnoredAndRenamed) {
  const std::string a = Write("a.yaml", Deployment("x", "        - {name: A, value: b}\n"));
  std::string renamed = Deployment("x", "        - {name: A, value: b}\n");
  renamed.replace(renamed.find("name: istiod"), 12, "name: istiod-canary");
  const std::string b = Write("b.yaml", renamed);
  EXPECT_EQ(Call("manifest diff --select Service:: " + a + " " + b).code, 0);
  EXPECT_EQ(Call("manifest diff --ignore ::istiod " + a + " " + b).code, 0);
  const Ran ran = Call("manifest diff --rename 'Deployment:*:istiod->Deployment:*:istiod-canary' " + a + " " + b);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("name: istiod -> istiod-canary"), Not(HasSubstr("missing"))));
}

TEST_F(ManifestDiffTest, FoldersNeedTheirOption) {
  Write("old/a.yaml", Deployment("x", "        - {name: A, value: b}\n"));
  Write("new/a.yaml", Deployment("z", "        - {name: A, value: b}\n"));
  const std::string folders = (folder_ / "old").string() + " " + (folder_ / "new").string();
  EXPECT_EQ(Call("manifest diff " + folders).code, 2);
  EXPECT_THAT(Call("manifest diff --directory " + folders).output, HasSubstr("image: x -> z"));
}

TEST_F(ManifestDiffTest, APatternThatIsNoneIsBadInput) {
  const std::string a = Write("a.yaml", Deployment("x", "        - {name: A, value: b}\n"));
  const Ran ran = Call("manifest diff --select '(' " + a + " " + a);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, HasSubstr("--select: '(' is no pattern"));
}

}  // namespace
}  // namespace wavetank
