// What `istioctl install` makes beside what it renders: which installation injects and validates where no revision is
// named. istioctl is a script here that renders an injector, an istiod unless the profile is remote, and what the
// values ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/json_access.h"
#include "fmt/format.h"
#include "scenarios/mesh/manifests.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::scenario {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kIstioctl[] = R"(#!/bin/sh
revision=$(grep -o '"revision":"[a-z0-9-]*"' "$4" | cut -d'"' -f4)
namespace=$(grep -o '"istioNamespace":"[a-z0-9-]*"' "$4" | cut -d'"' -f4 | grep -vx istio-system)
tag() { cat <<EOF
---
apiVersion: admissionregistration.k8s.io/v1
kind: $1
metadata: {name: $2, labels: {app: $3, istio.io/rev: ${revision:-default}$4}}
webhooks: [{name: namespace.sidecar-injector.istio.io, namespaceSelector: {matchLabels: {istio-injection: enabled}},
  clientConfig: {service: {name: istiod, namespace: ${namespace:-istio-system}, path: /inject}}}]
EOF
}
tag MutatingWebhookConfiguration istio-sidecar-injector${revision:+-$revision} sidecar-injector
grep -q remote "$4" || cat <<EOF
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system, labels: {app: istiod}}
spec:
  selector: {matchLabels: {app: istiod}}
  template: {metadata: {labels: {app: istiod}}, spec: {containers: [{name: discovery, image: pilot}]}}
EOF
case "$*" in *values.defaultRevision=${revision:-default}*) tag ValidatingWebhookConfiguration istiod-default-validator istiod;; esac
case "$*" in *revisionTags?0?=default*) tag MutatingWebhookConfiguration istio-revision-tag-default${namespace:+-$namespace} sidecar-injector ", istio.io/tag: default";; esac
exit 0
)";

class Installations : public testing::Test {
 protected:
  Installations() {
    const std::string script = folder_ / "istioctl";
    std::ofstream(script) << kIstioctl;
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    setenv("ISTIOCTL", script.c_str(), 1);
  }
  ~Installations() override { unsetenv("ISTIOCTL"); }

  // An IstioOperator with this specification, as a manifest of the cluster; anything else as it is.
  void Add(const std::string& text) {
    const std::string path = folder_ / fmt::format("{}.yaml", cluster_.manifests.size());
    const std::string head =
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nmetadata: {name: istio}\nspec: ";
    std::ofstream(path) << (text.starts_with('{') ? head : "") << text << "\n";
    cluster_.manifests.push_back({path, "", ""});
  }
  // "name of revision" of the webhooks by which objects without a revision are taken.
  std::vector<std::string> Defaults() {
    const auto objects = LoadClusterManifests(cluster_, nullptr);
    std::vector<std::string> out;
    if (!objects.ok()) return {std::string(objects.status().message())};
    for (const nlohmann::json& object : *objects) {
      const std::string name = Text(At(object, "metadata"), "name");
      if (name == "istiod-default-validator" || name.starts_with("istio-revision-tag-default"))
        out.push_back(name + " of " + Text(At(object, {"metadata", "labels"}), "istio.io/rev"));
    }
    return out;
  }

  TempFolder folder_;
  ClusterSpec cluster_;
};

TEST_F(Installations, OneWithoutARevisionValidatesWhatNamesNone) {
  Add("{profile: default}");
  EXPECT_THAT(Defaults(), testing::UnorderedElementsAre("istiod-default-validator of default",
                                                        "istio-revision-tag-default of default"));
}

TEST_F(Installations, TheTagTakesThePlaceOfAnInjectorWithoutARevision) {
  Add("{profile: default}");
  const auto objects = LoadClusterManifests(cluster_, nullptr);
  ASSERT_TRUE(objects.ok()) << objects.status();
  std::vector<std::string> said;
  for (const nlohmann::json& object : *objects) {
    if (Text(object, "kind") != "MutatingWebhookConfiguration") continue;
    const nlohmann::json& labels = At(object["webhooks"][0], {"namespaceSelector", "matchLabels"});
    for (const auto& [key, value] : labels.items())
      said.push_back(Text(object["metadata"], "name") + " " + key + "=" + value.get<std::string>());
  }
  EXPECT_THAT(said, testing::UnorderedElementsAre("istio-sidecar-injector istio.io/deactivated=never-match",
                                                  "istio-revision-tag-default istio-injection=enabled"));
}

TEST_F(Installations, TheTagOfAnotherNamespaceHasItInItsName) {
  Add("{revision: one, values: {global: {istioNamespace: mesh-system}}}");
  EXPECT_THAT(Defaults(), testing::UnorderedElementsAre("istiod-default-validator of one",
                                                        "istio-revision-tag-default-mesh-system of one"));
}

TEST_F(Installations, TheFirstOfARevisionInjectsAndValidatesWhatNamesNone) {
  Add("{revision: one}");
  Add("{revision: two}");
  EXPECT_THAT(Defaults(),
              testing::UnorderedElementsAre("istiod-default-validator of one", "istio-revision-tag-default of one"));
}

TEST_F(Installations, OneWithoutARevisionComesBeforeThoseThatHaveOne) {
  Add("{revision: one}");
  Add("{profile: default}");
  EXPECT_THAT(Defaults(), testing::UnorderedElementsAre("istiod-default-validator of default",
                                                        "istio-revision-tag-default of default"));
}

TEST_F(Installations, OneBesideAnInjectorThatIsThereTakesNothingFromIt) {
  Add("apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n"
      "metadata: {name: istio-sidecar-injector, labels: {app: sidecar-injector, istio.io/rev: default}}\n");
  Add("{revision: one}");
  EXPECT_THAT(Defaults(), IsEmpty());
}

TEST_F(Installations, ARemoteClustersFirstIsItsDefault) {
  Add("{profile: remote}");
  EXPECT_THAT(Defaults(), testing::UnorderedElementsAre("istiod-default-validator of default",
                                                        "istio-revision-tag-default of default"));
}

TEST_F(Installations, WebhooksThatTheOperatorManagesAreLeftToIt) {
  Add("{values: {global: {operatorManageWebhooks: true}}}");
  EXPECT_THAT(Defaults(), IsEmpty());
}

}  // namespace
}  // namespace wavetank::scenario
