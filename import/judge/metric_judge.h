// Claims of metrics and of counted requests, judged by a simulated mesh.
//
// A scrape sees an instant: between it and its neighbours anything may have happened. So a simulated value agrees if it
// lies between those of the scrapes before and after the one that is judged, counters since their first sample. Of a
// mesh that is made of logs alone a part is known ("partial" in the claim): it may count less than was scraped, never
// more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/judge/judge.h"
#include "import/metrics/samples.h"

namespace wavetank::importing {

class MetricJudge {
 public:
  void AskWorld(MetricInWorld metric) { metric_ = std::move(metric); }
  // A claim that is for it; nothing: a sample that counters are counted from.
  std::optional<JudgedClaim> OnMetric(const replay::LogInput& input);
  void OnRequestsClaim(const replay::LogInput& input);
  void OnRequest(const replay::LoggedEvent& event);
  JudgedClaim JudgeRequests(const replay::LogInput& input) const;

 private:
  // What was claimed of a client's requests to a service within a window, and what became of those that it sent here.
  struct Window {
    uint64_t seq = 0;
    std::string service;
    Time from{}, until{};
    uint64_t requests = 0;
    std::map<std::string, uint64_t> codes, flags;
  };
  struct Counter {
    double last = 0, total = 0;
  };
  MetricInWorld metric_;
  std::map<std::string, Counter> counters_;
  std::map<std::string, std::vector<Window>> windows_;  // by client: "sleep.sample"
};

}  // namespace wavetank::importing
