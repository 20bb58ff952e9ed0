#include "library/swarm/worst_moments.h"

#include <algorithm>

#include "core/base/assert.h"
#include "fmt/format.h"

namespace wavetank::swarm {
namespace {

constexpr int64_t kMostMoments = 3, kMostNth = 12;

template <TraceKind kKind>
bool Is(const sim::TraceEvent& event) {
  return event.record.kind == kKind;
}

}  // namespace

const std::vector<MomentRow>& MomentRows() {
  static const auto* const rows = new std::vector<MomentRow>{
      {"debounce-begins", "an istiod waits for further changes", Is<TraceKind::kConfigUpdate>},
      {"context-ready", "a push's context stands, and nobody has been told yet", Is<TraceKind::kPushContextReady>},
      {"push-dequeued", "a proxy's push is being generated", Is<TraceKind::kPushDequeued>},
      {"ack-owed", "a response is on its way, and its ACK is owed", Is<TraceKind::kXdsSent>},
      {"received", "an Envoy has configuration that is not in force yet", Is<TraceKind::kXdsReceived>},
      {"stream-opened", "a proxy has just connected", Is<TraceKind::kXdsConnected>},
      {"stream-broke", "a proxy has just lost its stream", Is<TraceKind::kXdsDisconnected>},
      {"cluster-added", "an istiod reads another cluster, and has not synced", Is<TraceKind::kClusterAdded>},
      {"cluster-removed", "an istiod has just dropped a cluster", Is<TraceKind::kClusterRemoved>},
      {"gateways-changed", "an istiod has just seen other gateways", Is<TraceKind::kGatewaysChanged>},
      {"certificate-signed", "a proxy's certificate is on its way to it", Is<TraceKind::kCertificateSigned>},
      {"pod-injected", "a pod has passed the webhook, and does not run yet", Is<TraceKind::kPodInjected>},
      {"fault-ended", "a line or an API server is back, and its clients are not", Is<TraceKind::kFaultEnded>},
  };
  return *rows;
}

std::string WorstMoment::Print() const { return fmt::format("{} at {} number {}", action.Print(), moment, nth); }

std::vector<WorstMoment> ArbitraryMoments(Choices& choices, const Mesh& mesh, const Sizes& sizes) {
  std::vector<WorstMoment> out;
  if (!sizes.faults) return out;
  const std::vector<MomentRow>& rows = MomentRows();
  Sizes one = sizes;
  one.events = 1;
  const int64_t count = choices.Between(0, kMostMoments);
  for (int64_t i = 0; i < count; ++i) {
    const MomentRow& row = rows[static_cast<size_t>(choices.Between(0, static_cast<int64_t>(rows.size()) - 1))];
    const int64_t nth = choices.Between(1, kMostNth);
    for (Event& event : ArbitraryHistory(choices, mesh, one))
      out.push_back({std::string(row.name), nth, std::move(event.action)});
  }
  return out;
}

MomentWatch::MomentWatch(sim::World& world, std::vector<WorstMoment> moments) {
  for (WorstMoment& moment : moments) {
    const auto row = std::find_if(MomentRows().begin(), MomentRows().end(),
                                  [&](const MomentRow& each) { return each.name == moment.moment; });
    WAVETANK_ASSERT(row != MomentRows().end(), moment.moment);
    waits_.push_back({std::move(moment), &*row});
  }
  if (waits_.empty()) return;
  world.kernel().AddObserver([this](const sim::TraceEvent& event) {
    if (!begun_) return;
    for (Wait& wait : waits_) {
      if (wait.seen >= wait.moment.nth || !wait.row->is(event) || ++wait.seen < wait.moment.nth) continue;
      ++came_;
      due_.push_back(wait.moment);
    }
  });
}

}  // namespace wavetank::swarm
