#include "capacity/calibrate/calibrate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "core/base/status.h"

namespace wavetank::capacity {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Scrape(double cpu, double rss_mb, double cds, double eds, const std::string& version = "1.18.2") {
  return fmt::format(
      "# HELP pilot_info x\n# TYPE pilot_info gauge\npilot_info{{version=\"{}\"}} 1\nprocess_cpu_seconds_total {}\n"
      "process_resident_memory_bytes {}\npilot_xds{{version=\"1.18.2\"}} 500\npilot_services 100\n"
      "pilot_xds_pushes{{type=\"cds\"}} {}\npilot_xds_pushes{{type=\"eds\"}} {}\npilot_debounce_time_count {}\n"
      "pilot_inbound_updates{{type=\"config\"}} {}\nistiod_uptime_seconds 100\n",
      version, cpu, rss_mb * 1024 * 1024, cds, eds, cds / 500, cds / 500);
}

Samples Read(const std::string& text) {
  const auto samples = Samples::Parse(text, "m.txt");
  EXPECT_TRUE(samples.ok()) << samples.status();
  return samples.ok() ? *samples : Samples();
}

std::string Why(const absl::Status& status) { return std::string(Message(status)); }

TEST(Samples, AreReadFromTextAndFromJson) {
  const Samples text = Read("a{x=\"1\",y=\"q\\\"\\\\\"} 2 1700000000\na{x=\"2\"} 3\nb 1e3\n");
  EXPECT_EQ(text.Sum("a"), 5);
  EXPECT_EQ(text.Sum("a", "x", "2"), 3);
  EXPECT_EQ(text.Sum("b"), 1000);
  EXPECT_EQ(text.Sum("c"), -1);
  EXPECT_EQ(text.LabelOf("a", "y"), "q\"\\");
  const Samples json = Read(R"({"status":"success","data":{"resultType":"vector","result":[
    {"metric":{"__name__":"a","x":"1"},"value":[1700000000,"2.5"]}]}})");
  EXPECT_EQ(json.Sum("a", "x", "1"), 2.5);
}

TEST(Samples, ThatAreNoneAreRefusedWithTheirLine) {
  const auto why = [](const std::string& text) { return Why(Samples::Parse(text, "m.txt").status()); };
  EXPECT_THAT(why("a 1\n!\n"), HasSubstr("m.txt:2: no sample"));
  EXPECT_THAT(why("a{x=\"1\n"), HasSubstr("m.txt:1: no labels"));
  EXPECT_THAT(why("a one\n"), HasSubstr("no value"));
  EXPECT_THAT(why("a{x=\"1\"} 1 1000\na{x=\"2\"} 1 1000\na{x=\"1\"} 2 16000\n"), HasSubstr("m.txt:3: a a second time"));
  EXPECT_THAT(why("{\"data\": 1}"), HasSubstr("no answer of Prometheus' API"));
  EXPECT_THAT(why("{\"data\":{\"result\":[{\"metric\":{},\"value\":[1,2]}]}}"), HasSubstr("no answer"));
}

TEST(Samples, OutlastWhateverComes) {
  const std::string good = Scrape(1, 2, 3, 4);
  RandomStream random(5, "samples");
  for (int i = 0; i < 5000; ++i) {
    std::string text = good;
    for (int64_t n = random.Between(1, 8); n > 0; --n)
      text[random.Below(text.size())] = static_cast<char>(random.Below(256));
    (void)Samples::Parse(text, "m.txt");
  }
}

TEST(Calibrate, FindsAnIstiodThatIsTwiceAsDear) {
  const CostModel model;
  const MeshSize mesh{.proxies = 500, .services = 100, .endpoints = 1000};
  // Twenty full pushes to all.
  const double each = model.Cpu({mesh, Change::kService, 1, true});
  const double rss = model.Resident({mesh, Change::kConnect, 0, true});
  const double base = Parameters::OfIstiod()["rss.process"];
  const auto c = Calibrate(Parameters::OfIstiod(), Read(Scrape(10, 300, 0, 0)),
                           Read(Scrape(10 + 2 * 20 * each / 1000, base + 1.5 * (rss - base), 10000, 10000)), 1000, 1);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_NEAR(c->cpu_factor, 2, 0.02);
  EXPECT_NEAR(c->memory_factor, 1.5, 0.01);
  EXPECT_THAT(c->told, Contains("full.proxy"));
  EXPECT_THAT(c->untold, Contains("eds.proxy"));
  EXPECT_THAT(c->untold, Contains("connect.client"));
  EXPECT_NEAR(c->parameters["full.proxy"], 2 * Parameters::OfIstiod()["full.proxy"], 0.01);
  EXPECT_EQ(c->parameters["eds.proxy"], Parameters::OfIstiod()["eds.proxy"]);
}

TEST(Calibrate, AnIstiodThatTakesLessThanAnEmptyOneLeavesTheTermsAsTheyAre) {
  const Parameters& own = Parameters::OfIstiod();
  // No processor time at all in between, and less memory than the model says of an empty mesh.
  const auto c = Calibrate(own, Read(Scrape(10, 90, 0, 0)), Read(Scrape(10, 90, 1000, 1000)), 1000, 1);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->cpu_factor, 1);
  EXPECT_EQ(c->memory_factor, 1);
  EXPECT_THAT(c->told, ElementsAre());
  EXPECT_THAT(c->untold, Contains("rss.endpoint"));
  EXPECT_THAT(c->untold, Contains("full.proxy"));
  EXPECT_EQ(c->parameters["rss.endpoint"], own["rss.endpoint"]);
  EXPECT_EQ(c->parameters["push.event"], own["push.event"]);
}

TEST(Calibrate, RefusesWhatItCannotLearnFrom) {
  const Parameters& own = Parameters::OfIstiod();
  const auto why = [&](const std::string& before, const std::string& after) {
    return Why(Calibrate(own, Read(before), Read(after), 100, 1).status());
  };
  const std::string good = Scrape(10, 300, 0, 0), later = Scrape(20, 300, 1000, 1000);
  EXPECT_EQ(why(good, later), "");
  EXPECT_THAT(Why(Calibrate(own, Read(good), Read(later), std::nan(""), 1).status()), HasSubstr("--endpoints 4000"));
  EXPECT_THAT(why(good, Scrape(20, 300, 1000, 1000, "1.22.3")), HasSubstr("after: of Istio 1.22.3"));
  EXPECT_THAT(why("a 1\n", later), HasSubstr("no metrics of istiod"));
  EXPECT_THAT(why(later, good), HasSubstr("wrong way round"));
  EXPECT_THAT(why(good, Scrape(20, 300, 0, 0)), HasSubstr("nothing was pushed"));
  EXPECT_THAT(why(good, later + "process_cpu_seconds_total{pod=\"istiod-b\"} 4\n"),
              HasSubstr("after: of 2 processes (without labels, and pod=istiod-b)"));
  EXPECT_THAT(why(good, "pilot_info{version=\"1.18.2\"} 1\n"), HasSubstr("lacks process_cpu_seconds_total"));
}

}  // namespace
}  // namespace wavetank::capacity
