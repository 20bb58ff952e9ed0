#include "scenarios/mesh/unheeded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::scenario {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unheeded, KindsThatNothingActsUpon) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "autoscaling/v2"}, {"kind", "HorizontalPodAutoscaler"}}),
              ElementsAre("HorizontalPodAutoscaler (autoscaling) is stored here, and has no effect"));
}

TEST(Unheeded, FieldsOfServicesUnlessTheySayWhatIsSoAnyway) {
  EXPECT_THAT(UnheededIn({{"apiVersion", "v1"}, {"kind", "Service"}, {"spec", {{"sessionAffinity", "None"}}}}),
              IsEmpty());
  EXPECT_THAT(UnheededIn({{"apiVersion", "v1"}, {"kind", "Service"}, {"spec", {{"sessionAffinity", "ClientIP"}}}}),
              ElementsAre("Service: spec.sessionAffinity has no effect here"));
}

TEST(Unheeded, FieldsOfPodsAndTemplates) {
  const json spec = {{"dnsPolicy", "None"},
                     {"containers", json::array({{{"name", "web"}, {"livenessProbe", {{"a", 1}}}}})}};
  EXPECT_THAT(
      UnheededIn({{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"spec", {{"template", {{"spec", spec}}}}}}),
      ElementsAre("Deployment: spec.template.spec.dnsPolicy has no effect here",
                  "Deployment: spec.template.spec.containers[].livenessProbe has no effect here"));
}

TEST(Unheeded, VariablesOfIstiod) {
  const json pod = {
      {"metadata", {{"labels", {{"app", "istiod"}}}}},
      {"spec",
       {{"containers", json::array({{{"name", "discovery"},
                                     {"readinessProbe", {{"a", 1}}},
                                     {"env", json::array({{{"name", "PILOT_HTTP10"}, {"value", "true"}}})}}})}}}};
  EXPECT_THAT(UnheededIn({{"apiVersion", "apps/v1"},
                          {"kind", "Deployment"},
                          {"metadata", {{"name", "istiod"}, {"namespace", "istio-system"}}},
                          {"spec", {{"template", pod}}}}),
              ElementsAre("Deployment istio-system/istiod: variable PILOT_HTTP10=true has no effect here"));
}

}  // namespace
}  // namespace wavetank::scenario
