// What the one argument MESH names, by what stands in it.
#include "check/mesh/source.h"

#include <gtest/gtest.h>

#include <fstream>

namespace wavetank::check {
namespace {

SourceKind KindOfText(const std::string& text) {
  const std::string path = testing::TempDir() + "/source-of-a-mesh";
  std::ofstream(path) << text;
  return KindOfSource(path);
}

TEST(KindOfSource, AKubeconfigHasContextsBesideClustersInAnyOrderAndAlsoInJson) {
  EXPECT_EQ(KindOfText("apiVersion: v1\nclusters:\n- name: a\ncontexts:\n- name: a\nkind: Config\n"),
            SourceKind::kKubeConfig);
  EXPECT_EQ(KindOfText("kind: Config\ncurrent-context: a\nclusters: []\n"), SourceKind::kKubeConfig);
  EXPECT_EQ(KindOfText("{\"kind\": \"Config\", \"clusters\": []}"), SourceKind::kKubeConfig);
}

TEST(KindOfSource, ScenariosAndManifestsAreNone) {
  EXPECT_EQ(KindOfText("---\nname: x\nclusters:\n  - name: a\n"), SourceKind::kScenario);
  EXPECT_EQ(KindOfText("name: x\nsteps: []\n"), SourceKind::kScenario);
  EXPECT_EQ(KindOfText("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"), SourceKind::kManifests);
  EXPECT_EQ(KindOfText("apiVersion: v1\nkind: A\n---\nclusters: []\ncontexts: []\n"), SourceKind::kManifests);
  EXPECT_EQ(KindOfText("{\"apiVersion\": \"v1\", \"kind\": \"List\"}"), SourceKind::kManifests);
}

TEST(KindOfSource, AFileThatNeverEndsIsReadAsFarAsAScenarioMayBeLong) {
  EXPECT_EQ(KindOfSource("/dev/zero"), SourceKind::kManifests);
}

}  // namespace
}  // namespace wavetank::check
