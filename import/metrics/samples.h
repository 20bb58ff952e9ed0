// Samples of metrics: Prometheus' text (exposition format 0.0.4, and OpenMetrics), as an endpoint or a backfill has it,
// and what its HTTP API answers to a query or a range query (resultType vector, matrix).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "import/evidence/evidence.h"

namespace wavetank::importing {

using MetricLabels = std::map<std::string, std::string>;

struct Sample {
  std::string metric;
  MetricLabels labels;
  WallNs at = kNoTime;  // none: whenever the text was made
  double value = 0;
  uint64_t line = 0;  // of text; a query's answer has one line
};

enum class MetricsFile : uint8_t { kNone, kText, kQuery };
MetricsFile KindOfMetricsFile(std::string_view head);

// Values that are no numbers (NaN, infinities) and lines that are none are counted; the rest is read. O(text).
void ReadSamples(MetricsFile kind, std::string_view text, const std::string& file, Refusals& refusals,
                 const std::function<void(Sample&& sample)>& each);

}  // namespace wavetank::importing
