// What physical networks keep from proxies, as lint tells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/lint/lint.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Of a scenario of the catalogue, its physical network changed.
std::vector<std::string> Found(const std::string& name) {
  MeshSource source;
  source.scenario = WAVETANK_SOURCE_DIR "/scenarios/" + name;
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  EXPECT_TRUE(settled.ok()) << settled.status();
  if (!settled.ok()) return {};
  const Mesh mesh(*std::move(settled));
  const absl::StatusOr<LintResult> result = Lint(mesh, {});
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<std::string> out;
  if (!result.ok()) return out;
  for (const Finding& f : result->findings)
    out.push_back(
        fmt::format("{} {}{}{}: {}", f.rule->code, f.cluster, f.object.empty() ? "" : " ", f.object, f.message));
  return out;
}

TEST(Reach, AnAddressBehindNatIsFoundWithWhoSendsThereAndWhy) {
  const std::vector<std::string> found = Found("incidents/A08-address-behind-nat");
  EXPECT_THAT(found, Contains(HasSubstr("WT116 cluster2 Service istio-system/istio-eastwestgateway: ")));
  EXPECT_THAT(found, Contains(HasSubstr("192.168.7.1:15443 and do not reach it: no route leads from network1")));
}

TEST(Reach, OneNameForTwoNetworksIsToldWithWhatStandsInTheWay) {
  const std::vector<std::string> found = Found("shared-network-name");
  EXPECT_THAT(found, Contains(HasSubstr("WT106 cluster2 Namespace istio-system: ")));
  EXPECT_THAT(found, Contains(HasSubstr("no route leads from network1 to 10.2.")));
}

TEST(Reach, WhereRoutesLeadNothingIsFound) {
  const std::vector<std::string> found = Found("sites-and-firewalls");
  EXPECT_THAT(found, Not(Contains(HasSubstr("WT106"))));
  EXPECT_THAT(found, Not(Contains(HasSubstr("WT116"))));
}

}  // namespace
}  // namespace wavetank::check
