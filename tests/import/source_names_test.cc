// Several sources: what belongs to one process or cluster is not mixed with another's of the same name.
#include "import/source_names.h"

#include <gmock/gmock.h>

#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::string_view kLine =
    "2024-05-06T07:08:01.100000Z\tinfo\tads\tPush debounce stable[2] 1 for config Sidecar/shop/default: 100ms since "
    "last change, 100ms since last push, full=true\n";

TEST(ReplicaOf, KnowsHowRotationsNameFiles) {
  for (const char* name :
       {"istiod.log", "istiod.log.1", "istiod.log.2.gz", "istiod-20240506.log", "istiod.log-20240506",
        "istiod.log-20240506-1715000000.gz", "istiod-2024-05-06T07-08-09.123.log", "istiod.log.20240506-070809",
        "istiod_2024-05-06.log", "istiod.log.2024-05-06", "istiod-previous.log", "istiod.1.log"}) {
    EXPECT_EQ(ReplicaOf(name), "istiod") << name;
  }
  for (const char* name :
       {"istiod-7d4f9b5c6-24567", "istiod-1", "logs/2024-05-06/istiod", "istiod-1-18-2", "2024-05-06"})
    EXPECT_EQ(ReplicaOf(name), name);
}

TEST(SourceNames, AsMuchOfAPathAsTellsSourcesApartIsTheirName) {
  const SourceNames names({"x/east/istiod.log", "x/east/istiod.log.1", "x/west/istiod.log", "other.log"});
  EXPECT_EQ(names.Shown({"x/east/istiod.log", "istiod.log"}), "east/istiod.log");
  EXPECT_EQ(names.Shown({"x/east/istiod.log.1", "istiod.log.1"}), "east/istiod.log.1");
  EXPECT_EQ(names.Shown({"x/west/istiod.log", "istiod.log"}), "west/istiod.log");
  EXPECT_EQ(names.Shown({"other.log", "other.log"}), "other.log");
  EXPECT_EQ(names.ClusterOf("x/west/istiod.log"), "west-istiod");
  const SourceNames folders({"east", "west.tgz"});
  EXPECT_EQ(folders.Shown({"east", "istiod.log"}), "east/istiod.log");
  EXPECT_EQ(folders.Shown({"west.tgz", "a/istiod.log"}), "west.tgz/a/istiod.log");
  EXPECT_EQ(SourceNames({"x/east"}).Shown({"x/east", "istiod.log"}), "istiod.log");
}

TEST(NamedPaths, TheClosestNameCountsAndABeginningOfAnotherIsNone) {
  NamedPaths paths;
  for (const char* path : {"dump", "dump/second", "./dump2/", "istiod.log", "nothing"}) paths.Add(path);
  EXPECT_EQ(paths.Closest({"dump", "first/a.yaml"}), 0u);
  EXPECT_EQ(paths.Closest({"dump", "second/a.yaml"}), 1u);
  EXPECT_EQ(paths.Closest({"dump2", "a.yaml"}), 2u) << "dump is no folder above it";
  EXPECT_EQ(paths.Closest({"dump2/", "a.yaml"}), 2u);
  EXPECT_EQ(paths.Closest({"logs", "istiod.log"}), 3u);
  EXPECT_EQ(paths.Closest({"logs", "other.log"}), std::nullopt);
  EXPECT_THAT(paths.Unused(), ElementsAre(4u));
}

class ManySources : public ImportTest {};

TEST_F(ManySources, LogsOfOneNameInTwoFoldersAreOfTwoIstiods) {
  const Imported imported = Read({Put("east/istiod.log", kLine), Put("west/istiod.log", kLine)});
  std::vector<std::string> replicas;
  for (const IstiodRun& run : imported.evidence.runs) replicas.push_back(run.replica);
  EXPECT_THAT(replicas, UnorderedElementsAre("east/istiod", "west/istiod"));
  EXPECT_EQ(imported.evidence.claims.size(), 2u) << "each made a push";
}

TEST_F(ManySources, DumpsOfOneNameInTwoFoldersAreOfTwoClusters) {
  constexpr std::string_view kObject =
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},
      "spec":{"clusterIP":"10.96.0.7","ports":[{"name":"http","port":80}]}})";
  const Imported imported = Read({Put("east/dump.json", kObject), Put("west/dump.json", kObject)});
  ASSERT_EQ(imported.kube.state.size(), 2u);
  EXPECT_NE(imported.kube.state[0].cluster, imported.kube.state[1].cluster);
  EXPECT_TRUE(imported.evidence.refusals.empty());
}

TEST_F(ManySources, ALogThatIsNamedTwiceCountsOnce) {
  const std::string log = Put("istiod.log", kLine);
  Put("again/istiod.log.1", kLine);
  const Imported once = Read({log}), twice = Read({log, log}), copied = Read({folder_.path()});
  EXPECT_EQ(twice.evidence.inputs.size(), once.evidence.inputs.size());
  EXPECT_EQ(twice.evidence.claims.size(), once.evidence.claims.size());
  EXPECT_EQ(copied.evidence.claims.size(), 2u) << "another folder's is another process";
}

TEST_F(ManySources, OverlappingFilesOfOneProcessCountOnce) {
  const std::string second(kLine), later = "2024-05-06T07:08:09" + second.substr(19);
  const Imported imported = Read({Put("istiod.log.1", second), Put("istiod.log", second + later)});
  EXPECT_EQ(imported.evidence.inputs.size(), 2u);
  EXPECT_EQ(imported.evidence.claims.size(), 2u);
  EXPECT_THAT(imported.evidence.notes, testing::Contains(HasSubstr("told by two files; they count once")));
}

TEST_F(ManySources, AnOptionThatNamesNothingIsRefused) {
  ImportOptions options;
  options.sources = {Put("istiod.log", kLine)};
  options.clusters = {{"east", folder_ / "dmp"}};
  EXPECT_THAT(std::string(Import(options).status().message()),
              AllOf(HasSubstr("--cluster east="), HasSubstr("nothing that was read is called so")));
  options.clusters.clear();
  options.skews = {{"istio.log", 1}};
  EXPECT_THAT(std::string(Import(options).status().message()), HasSubstr("--skew istio.log=..."));
}

TEST_F(ManySources, AClockThatWasToldIsNotMovedAgain) {
  std::string east, west;
  for (int i = 1; i <= 4; ++i) {
    for (auto [log, hour] : {std::pair(&east, "07"), std::pair(&west, "06")}) {
      *log += "2024-05-06T" + std::string(hour) + ":08:0" + std::to_string(2 * i) +
              ".100000Z\tinfo\tads\tPush debounce stable[2] 1 for config Sidecar/shop/s" + std::to_string(i) +
              ": 100ms since last change, 100ms since last push, full=true\n";
    }
  }
  Put("east/istiod.log", east);
  Put("west/istiod.log", west);
  ImportOptions options;
  options.sources = {folder_ / "east", folder_ / "west"};
  options.skews = {{folder_ / "west", 0}};
  const auto imported = Import(options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->evidence.notes, ElementsAre(HasSubstr("the clock of east/istiod is")));
}

}  // namespace
}  // namespace wavetank::importing
