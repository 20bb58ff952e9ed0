#include "capacity/model/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "capacity/model/fit.h"
#include "capacity/model/measurements.h"
#include "core/base/status.h"

namespace wavetank::capacity {
namespace {

using ::testing::HasSubstr;

constexpr char kMeasured[] = WAVETANK_SOURCE_DIR "/capacity/data/measured.csv";

std::string Why(const absl::Status& status) { return std::string(Message(status)); }

std::string File(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(Parameters, AreReadAsTheyAreWritten) {
  const Parameters& own = Parameters::OfIstiod();
  const auto again = Parameters::Parse(own.Text(), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  for (const Term& term : Terms()) {
    EXPECT_NEAR((*again)[term.name], own[term.name], own[term.name] * 1e-5) << term.name;
    EXPECT_EQ(again->Get(term.name).source, own.Get(term.name).source);
  }
}

TEST(Parameters, ThatAreWrongAreNamedWithLineAndRemedy) {
  const std::string good = Parameters::OfIstiod().Text();
  const auto why = [&](const std::string& text) { return Why(Parameters::Parse(text, "t.tsv").status()); };
  EXPECT_THAT(why(good + "push.fix\tms\t1\tx\n"), HasSubstr("'push.fix' is no term"));
  EXPECT_THAT(why(good + "push.fixed\tms\t1\tx\n"), HasSubstr("told twice"));
  EXPECT_THAT(why("push.fixed\ts\t1\tx\n"), HasSubstr("t.tsv:1: 'push.fixed' is told in ms"));
  EXPECT_THAT(why("push.fixed\tms\t-1\tx\n"), HasSubstr("not negative"));
  EXPECT_THAT(why("push.fixed\tms\tnan\tx\n"), HasSubstr("is no cost"));
  EXPECT_THAT(why("push.fixed ms 1\n"), HasSubstr("tabs"));
  EXPECT_THAT(why("push.fixed\tms\t1\tx\n"), HasSubstr("'start.process' is missing"));
}

TEST(Terms, HaveNamesOfTheirOwnAndStandOnTheirPage) {
  std::ifstream in(WAVETANK_SOURCE_DIR
                   "/docs/"
                   "cost-model.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  std::set<std::string_view> names;
  for (const Term& term : Terms()) {
    EXPECT_TRUE(names.insert(term.name).second) << term.name;
    EXPECT_NE(page.find("`" + std::string(term.name) + "`"), std::string::npos) << term.name;
  }
}

TEST(CostModel, CostsGrowWithWhatTheyAreMadeOf) {
  const CostModel model;
  const MeshSize small{.proxies = 100, .services = 100, .endpoints = 1000};
  for (int kind = 0; kind < kChanges; ++kind) {
    const Situation s{small, static_cast<Change>(kind), 1, true};
    Situation more = s;
    more.mesh.proxies *= 2;
    more.mesh.services *= 2;
    more.mesh.endpoints *= 2;
    EXPECT_GT(model.Cpu(more), model.Cpu(s)) << NameOf(s.change);
    EXPECT_GT(model.Resident(more), model.Resident(s)) << NameOf(s.change);
  }
}

TEST(CostModel, ASidecarThatScopesMakesFullPushesCheaper) {
  const CostModel model;
  Situation s{{.proxies = 500, .services = 300, .endpoints = 3000}, Change::kPolicy, 1, true};
  const double whole = model.Cpu(s), resident = model.Resident(s), bytes = model.Kilobytes(s);
  s.mesh.scope = 30;
  EXPECT_LT(model.Cpu(s), whole * 0.6);
  EXPECT_LT(model.Resident(s), resident);
  EXPECT_LT(model.Kilobytes(s), bytes * 0.2);
}

// The sum over a push's parts is what the closed form says.
TEST(CostModel, AnIstiodThatPushesSpendsWhatTheFormulaSays) {
  const CostModel model;
  for (int kind = static_cast<int>(Change::kEndpoints); kind < kChanges; ++kind) {
    const Situation s{{.proxies = 40, .services = 50, .endpoints = 700}, static_cast<Change>(kind), 1, true};
    const CostModel::PushCost push = model.Push(s);
    double sum = push.before_ms + push.misses * push.miss_ms, bytes = 0;
    for (const CostModel::Stage& stage : push.stages) {
      sum += 40 * stage.ms;
      bytes += stage.kilobytes;
    }
    EXPECT_NEAR(sum, model.Cpu(s), 1e-9) << NameOf(s.change);
    EXPECT_NEAR(bytes, model.Kilobytes(s), 1e-9) << NameOf(s.change);
  }
}

TEST(Fit, FindsTheParametersThatMadeTheRows) {
  std::vector<Measured> rows;
  Parameters truth = Parameters::OfIstiod();
  for (const Term& term : Terms()) {
    if (term.count != nullptr) truth.Set(term.name, 2 * truth[term.name] + 0.001, "truth");
  }
  const CostModel model(truth);
  for (const double proxies : {1.0, 20.0, 300.0}) {
    for (const double services : {10.0, 80.0, 200.0}) {
      for (const double endpoints : {100.0, 900.0, 4000.0}) {
        for (int kind = 0; kind < kChanges; ++kind) {
          Measured row;
          row.situation = {{proxies, services, endpoints, 1.0 + kind % 3, 0}, static_cast<Change>(kind), 1, kind > 2};
          row.cpu_ms = model.Cpu(row.situation);
          row.rss_mb = model.Resident(row.situation);
          row.kilobytes = model.Kilobytes(row.situation);
          rows.push_back(row);
        }
      }
    }
  }
  const CostModel fitted(Fit(rows, Parameters::OfIstiod(), "test"));
  for (const Measured& row : rows) {
    EXPECT_NEAR(fitted.Cpu(row.situation), row.cpu_ms, row.cpu_ms * 0.01);
    EXPECT_NEAR(fitted.Resident(row.situation), row.rss_mb, row.rss_mb * 0.01);
  }
}

TEST(Fit, LeavesWhatTheRowsDoNotTell) {
  Measured row;
  row.situation = {{100, 10, 100, 1, 0}, Change::kEndpoints, 1, false};
  row.cpu_ms = 20;
  const Parameters fitted = Fit({row}, Parameters::OfIstiod(), "test");
  EXPECT_EQ(fitted.Get("full.proxy").source, Parameters::OfIstiod().Get("full.proxy").source);
  EXPECT_EQ(fitted.Get("eds.proxy").source, "test");
}

TEST(LeastSquares, GoesNotBelowZero) {
  EXPECT_EQ(LeastSquares({{1, 1}, {1, 2}}, {2, 1})[1], 0);
  EXPECT_NEAR(LeastSquares({{1, 0}, {0, 2}}, {3, 8})[1], 4, 1e-9);
}

TEST(Measurements, AreMediansOfTheRepetitions) {
  const auto rows = ReadMeasurements(File("m.csv",
                                          "tag,clients,endpoints,services,op,rep,istiod_cpu_ms,rss_kb,bytes\n"
                                          "a,10,100,5,svc-add,0,3,1024,1000\n"
                                          "a,10,100,5,svc-add,1,9,3072,3000\n"
                                          "a,10,100,5,svc-add,2,4,2048,2000\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().cpu_ms, 4);
  EXPECT_EQ(rows->front().rss_mb, 2);
  EXPECT_NEAR(rows->front().kilobytes, 0.2, 1e-12);
  EXPECT_EQ(rows->front().repetitions, 3);
}

TEST(Measurements, ThatCannotBeReadAreNamedWithLineAndRemedy) {
  const std::string head = "tag,clients,endpoints,services,op,istiod_cpu_ms\n";
  const auto why = [&](const std::string& text) { return Why(ReadMeasurements(File("bad.csv", text)).status()); };
  EXPECT_THAT(why(head + "a,10,100,5,svc-ad,3\n"), HasSubstr("bad.csv:2: op 'svc-ad' is unknown; there are start"));
  EXPECT_THAT(why(head + "a,10,100,5,svc-add,x\n"), HasSubstr("istiod_cpu_ms: no number"));
  EXPECT_THAT(why(head + "a,10,100,5,svc-add,inf\n"), HasSubstr("istiod_cpu_ms: no number"));
  EXPECT_THAT(why(head + "a,10\n"), HasSubstr("2 fields where the first line has 6"));
  EXPECT_THAT(why("x,y\n1,2\n"), HasSubstr("must name the columns"));
  EXPECT_THAT(why(""), HasSubstr("is empty"));
  EXPECT_THAT(Why(ReadMeasurements("/nowhere.csv").status()), HasSubstr("cannot be read"));
}

TEST(Measurements, OfTheRepositoryAreWhole) {
  const auto rows = ReadMeasurements(kMeasured);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), 133u);
}

TEST(Extrapolates, SaysWhatLiesBeyondTheMeasurements) {
  EXPECT_EQ(Extrapolates({.proxies = 1000, .services = 301, .endpoints = 10002, .clusters = 2}), "");
  EXPECT_EQ(Extrapolates({.proxies = 8000, .services = 300, .endpoints = 1000, .clusters = 12}),
            "8000 proxies (1000 measured), 12 clusters (2 measured)");
}

}  // namespace
}  // namespace wavetank::capacity
