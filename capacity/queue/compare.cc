#include "capacity/queue/compare.h"

#include <algorithm>
#include <cmath>

#include "capacity/queue/istiod_queue.h"

namespace wavetank::capacity {
namespace {

// The response in which the bench looked for the change.
int ObservedType(Change change) {
  if (change == Change::kService) return CostModel::kCds;
  return change == Change::kPolicy ? CostModel::kLds : CostModel::kEds;
}

}  // namespace

Predicted Predict(const CostModel& model, const Situation& situation) {
  Predicted out;
  const Situation& s = situation;
  out.cpu_ms = model.Cpu(s);
  out.rss_mb = model.Resident(s);
  if (s.change < Change::kEndpoints) return out;
  out.kilobytes = model.Kilobytes(s);
  QueueOptions options;
  options.client_message_ms = model.parameters()["bench.message"];
  options.client_kilobyte_ms = model.parameters()["bench.kilobyte"];
  options.observed_type = ObservedType(s.change);
  options.wire = Duration::zero();
  options.before_debounce = Duration(static_cast<int64_t>(model.parameters()["bench.start"] * 1e6));
  std::vector<ChangeEvent> events;
  const int writes = std::max(1, static_cast<int>(s.events));
  for (int i = 0; i < writes; ++i) events.push_back({20ms * i, s.change});
  const QueueResult result = RunQueue(model, s.mesh, options, events);
  if (result.arrivals.empty()) return out;
  out.half_ms = ToMillis(result.arrivals.back().half);
  out.most_ms = ToMillis(result.arrivals.back().most);
  return out;
}

std::vector<Comparison> Compare(const CostModel& model, const std::vector<Measured>& rows) {
  std::vector<Comparison> out;
  for (const Measured& row : rows) out.push_back({row, Predict(model, row.situation)});
  return out;
}

Error ErrorOf(const std::vector<Comparison>& rows, double Predicted::*predicted, double Measured::*measured) {
  Error out;
  for (const Comparison& row : rows) {
    const double seen = row.measured.*measured;
    if (seen <= 0) continue;
    const double off = std::abs(row.predicted.*predicted / seen - 1);
    ++out.rows;
    out.within += off <= 0.2 ? 1 : 0;
    out.mean += off;
    out.worst = std::max(out.worst, off);
  }
  if (out.rows > 0) out.mean /= out.rows;
  return out;
}

}  // namespace wavetank::capacity
