#include "capacity/plan/curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "capacity/fleet/churn.h"
#include "core/base/status.h"
#include "core/base/time.h"

namespace wavetank::capacity {
namespace {

constexpr size_t kMostSpans = 300;
constexpr int kRampSteps = 40;

// So long that the whole time has at most 150 of it.
Duration SpanOf(Duration whole) {
  for (const Duration span :
       {Duration(100ms), Duration(250ms), Duration(500ms), Duration(1s), Duration(2s), Duration(5s), Duration(10s),
        Duration(30s), Duration(1min), Duration(2min), Duration(5min), Duration(10min), Duration(30min)}) {
    if (whole / span <= 150) return span;
  }
  return whole / 150;
}

// Two neighbours become one until there are few enough: a queue that does not keep up goes on long after the time.
void Merge(std::vector<QueueBucket>* buckets, Duration* span) {
  while (buckets->size() > kMostSpans) {
    *span *= 2;
    for (size_t i = 0; i < buckets->size(); i += 2) {
      QueueBucket sum = (*buckets)[i];
      if (i + 1 < buckets->size()) {
        const QueueBucket& next = (*buckets)[i + 1];
        sum.busy += next.busy;
        sum.pushes += next.pushes;
        sum.full_pushes += next.full_pushes;
        sum.most_waiting = std::max(sum.most_waiting, next.most_waiting);
        sum.kilobytes += next.kilobytes;
      }
      (*buckets)[i / 2] = sum;
    }
    buckets->resize((buckets->size() + 1) / 2);
  }
}

absl::Status DrawChurn(const CostModel& model, const Plan& plan, const PlanOptions& options, Curves* out) {
  for (const double times : ChurnsToDraw(plan.most_churn)) {
    if (options.progress) options.progress(fmt::format("churn {:.3g} times as fast", times));
    const absl::StatusOr<Outcome> o = Evaluate(model, plan.fleet, options.samples, times);
    if (absl::IsResourceExhausted(o.status())) {
      out->churn_ends = fmt::format("{:.3g} times: {}", times, Message(o.status()));
      return absl::OkStatus();
    }
    if (!o.ok()) return o.status();
    out->churn.push_back({times, o->p50, o->p99, o->p99_low, o->p99_high, o->cpus, o->changes, o->missing,
                          Breaks(plan.slo, plan.fleet, *o).empty()});
  }
  return absl::OkStatus();
}

absl::Status DrawTime(const CostModel& model, const Plan& plan, Curves* out) {
  const absl::StatusOr<std::vector<ChangeEvent>> events = Churn(plan.fleet);
  if (!events.ok()) return events.status();
  QueueOptions options = QueueOf(plan.fleet);
  const Duration whole = plan.fleet.duration;
  options.bucket = SpanOf(whole);
  const MeshSize& mesh = plan.outcome.mesh;
  QueueResult result = RunQueue(model, mesh, options, *events);
  result.buckets.resize(
      std::max(result.buckets.size(), static_cast<size_t>((whole + options.bucket - Duration(1)) / options.bucket)));
  out->span = options.bucket;
  Merge(&result.buckets, &out->span);
  const double seconds = static_cast<double>(out->span.count()) / 1e9, idle = IdleCpus(model, mesh);
  bool full = false;  // the heap keeps what full pushes made it grow to
  for (size_t i = 0; i < result.buckets.size(); ++i) {
    const QueueBucket& bucket = result.buckets[i];
    full = full || bucket.full_pushes > 0;
    out->time.push_back(
        {static_cast<int64_t>(i) * out->span, static_cast<double>(bucket.busy.count()) / 1e9 / seconds + idle,
         model.Resident({mesh, Change::kConnect, 0, full}), bucket.most_waiting, bucket.kilobytes / seconds});
  }
  return absl::OkStatus();
}

void DrawRamps(const CostModel& model, const Plan& plan, Curves* out) {
  const Fleet& fleet = plan.fleet;
  const double all = ProxiesOf(fleet), lost = ProxiesOfOne(fleet);
  out->istiod_death.push_back({Duration::zero(), all - lost});
  for (int i = 0; i <= kRampSteps; ++i) {
    const double share = static_cast<double>(i) / kRampSteps;
    out->istiod_death.push_back({ServedAgain(model, fleet, plan.outcome, share * lost), all - lost + share * lost});
    out->all_connect.push_back({AllServed(model, fleet, plan.outcome, share * all), share * all});
  }
}

}  // namespace

std::vector<double> ChurnsToDraw(const std::optional<double>& most_churn) {
  constexpr double kLimit = 512;  // twice of what is looked for
  const double most = most_churn.value_or(1.0 / 16);
  const double least = std::min(0.25, most / 2), end = std::min(kLimit, std::max(4.0, 2 * most));
  const double factor = end / least > 256 ? 4 : 2;
  std::vector<double> out = {end};
  for (double times = 1; times >= least; times /= factor) out.push_back(times);
  for (double times = factor; times < end; times *= factor) out.push_back(times);
  if (most_churn) out.push_back(most);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

absl::StatusOr<Curves> DrawCurves(const CostModel& model, const Plan& plan, const PlanOptions& options) {
  Curves out;
  if (absl::Status status = DrawChurn(model, plan, options, &out); !status.ok()) return status;
  if (absl::Status status = DrawTime(model, plan, &out); !status.ok()) return status;
  DrawRamps(model, plan, &out);
  return out;
}

}  // namespace wavetank::capacity
