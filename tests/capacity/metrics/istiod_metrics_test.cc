#include "capacity/metrics/istiod_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "capacity/metrics/run_metrics.h"
#include "core/base/host.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/kernel/kernel.h"
#include "sim/world.h"

namespace wavetank::capacity {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Exposition, IsPrometheusText) {
  Exposition out;
  Exposition::Histogram h({0.1, 1});
  h.Record(0.1);
  h.Record(0.5);
  h.Record(7);
  out.Add("t", "Time.", Label("type", "a"), h);
  out.Counter("c", "Count.", "", 3);
  EXPECT_EQ(out.Text(),
            "# HELP c Count.\n# TYPE c counter\nc 3\n"
            "# HELP t Time.\n# TYPE t histogram\n"
            "t_bucket{type=\"a\",le=\"0.1\"} 1\nt_bucket{type=\"a\",le=\"1\"} 2\nt_bucket{type=\"a\",le=\"+Inf\"} 3\n"
            "t_sum{type=\"a\"} 7.6\nt_count{type=\"a\"} 3\n");
}

TEST(Exposition, KeepsFamiliesTogetherAndStampsSamples) {
  Exposition out;
  for (const int64_t at : {1000, 2000}) {
    out.At(at);
    out.Gauge("g", "G.", "", static_cast<double>(at));
    out.Gauge("h", "H.", "", 1);
  }
  EXPECT_EQ(out.Text(),
            "# HELP g G.\n# TYPE g gauge\ng 1000 1000\ng 2000 2000\n# HELP h H.\n# TYPE h gauge\nh 1 1000\nh 1 2000\n");
}

TEST(Exposition, ANoteIsACommentAboveItsSamples) {
  Exposition out;
  for (int i = 0; i < 2; ++i) {
    out.At(1000 * i);
    out.Note("b", "", i == 0 ? "a first one" : "another");
    out.Note("b", "pod=\"x\"", "its own");
    out.Gauge("b", "B.", "", i);
  }
  EXPECT_EQ(out.Text(), "# HELP b B.\n# TYPE b gauge\n# another\n# pod=\"x\" its own\nb 0 0\nb 1 1000\n");
}

TEST(Exposition, QuotesLabels) { EXPECT_EQ(Label("a", "x\"y\\z\n"), "a=\"x\\\"y\\\\z\\n\""); }

TEST(IstiodMetrics, ARunTellsWhatItsIstiodsCount) {
  const auto loaded = scenario::LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  IstiodMetrics metrics;
  scenario::RunOptions options;
  options.until_step = 2;
  std::map<std::string, int> sent, applied;
  int ticks = 0;
  std::string text;
  options.on_world = [&](sim::World& world) {
    metrics.Every(1s, [&](Time) { ++ticks; });
    metrics.Observe(world.kernel());
    sim::Kernel& kernel = world.kernel();
    kernel.AddObserver([&](const sim::TraceEvent& event) {
      if (event.record.kind == TraceKind::kXdsSent) ++sent[std::string(kernel.names().Text(event.record.object))];
    });
  };
  std::string own;
  options.on_end = [&](sim::World&) {
    text = metrics.Text();
    own = metrics.TextOf("cluster1");
    EXPECT_EQ(metrics.TextOf("cluster9"), "");
  };
  ASSERT_TRUE(scenario::Run(*loaded, options).ok());
  EXPECT_GT(ticks, 10);
  // Both istiods' pushes of a type together are what the trace has.
  std::map<std::string, double> pushes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("pilot_xds_pushes{", 0) != 0) continue;
    const size_t from = line.find("type=\"") + 6;
    pushes[line.substr(from, 3)] += std::stod(line.substr(line.rfind(' ')));
  }
  for (const char* type : {"cds", "eds", "lds", "rds"}) {
    std::string upper(type);
    for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
    EXPECT_GT(pushes[type], 0) << text;
    EXPECT_EQ(pushes[type], sent[upper]) << type;
  }
  for (const char* name :
       {"pilot_xds{version=\"1.18.2\"", "pilot_proxy_convergence_time_bucket", "pilot_debounce_time_count",
        "pilot_k8s_reg_events{event=\"add\"", "process_cpu_seconds_total", "process_resident_memory_bytes",
        "pilot_services{", "citadel_server_csr_count", "sidecar_injection_success_total",
        "pilot_info{version=\"1.18.2\""}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
  EXPECT_THAT(own, HasSubstr("pilot_xds{version=\"1.18.2\"} "));
  EXPECT_THAT(own, Not(HasSubstr("pod=")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("pod=\"\"")));
  // What is told of a cluster's remote Secrets is told of its istiods, and is none itself.
  EXPECT_THAT(text, Not(HasSubstr("pod=\"cluster1\"")));
}

TEST(RunMetrics, HasASampleOfEachIntervalAsOfItsTimeAlsoWhereNothingHappens) {
  const auto loaded = scenario::LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  RunMetrics metrics("100ms");
  scenario::RunOptions options;
  options.until_step = 2;
  metrics.Attach(&options);
  ASSERT_TRUE(scenario::Run(*loaded, options).ok());
  const std::string path = testing::TempDir() + "/metrics.txt";
  ASSERT_TRUE(metrics.Write(path).ok());
  struct Sampled {
    double uptime;
    int64_t stamp;
  };
  std::map<std::string, std::vector<Sampled>> pods;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("istiod_uptime_seconds{", 0) != 0) continue;
    std::istringstream words(line);
    std::string pod;
    Sampled sample{};
    words >> pod >> sample.uptime >> sample.stamp;
    pods[pod].push_back(sample);
  }
  ASSERT_EQ(pods.size(), 2u);
  for (const auto& [pod, samples] : pods) {
    ASSERT_GT(samples.size(), 100u) << pod;
    for (size_t i = 1; i < samples.size(); ++i) {
      const int64_t later = samples[i].stamp - samples[i - 1].stamp;
      if (i + 1 < samples.size()) {
        ASSERT_EQ(later, 100) << pod << " at " << samples[i].stamp;
      }
      ASSERT_NEAR(samples[i].uptime - samples[i - 1].uptime, static_cast<double>(later) / 1000, 0.0015) << pod;
    }
  }
}

TEST(RunMetrics, RefusesAnIntervalThatIsNone) {
  EXPECT_TRUE(RunMetrics::Check("15s").ok());
  EXPECT_FALSE(RunMetrics::Check("15").ok());
  EXPECT_FALSE(RunMetrics::Check("0s").ok());
}

}  // namespace
}  // namespace wavetank::capacity
