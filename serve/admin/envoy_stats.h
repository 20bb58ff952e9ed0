// Counters and gauges of a simulated Envoy as its admin interface prints them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace wavetank::serve {

struct StatsQuery {
  enum class Format { kText, kJson, kPrometheus };
  Format format = Format::kText;
  bool used_only = false;
  std::string filter;  // an RE2 expression that a name holds; empty: all
};

// `stats`: by Envoy's names ("cluster.NAME.upstream_rq_total"). For Prometheus, what Istio's tags take out of a name is
// a label (core/agent/stats_tags.h). InvalidArgument: the filter is no RE2 expression. Envoy:
// source/server/admin/stats_handler.cc; prometheus_stats.cc
absl::StatusOr<std::string> StatsPage(const std::map<std::string, uint64_t>& stats, const StatsQuery& query);

}  // namespace wavetank::serve
