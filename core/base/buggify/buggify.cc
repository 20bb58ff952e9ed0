#include "core/base/buggify/buggify.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/assert.h"

namespace wavetank {
namespace {

constexpr std::array<BuggifyRow, kBuggifyPoints> kRows{{
    {BuggifyPoint::kWatchEventLate, "watch-event-late", "a watch's event comes later; other watches overtake it",
     100'000, 3s},
    {BuggifyPoint::kWatchBroken, "watch-broken", "a watch ends before its next event", 10'000},
    {BuggifyPoint::kWatchExpired, "watch-expired", "a watch cannot go on where it was (410), and all is listed anew",
     100'000},
    {BuggifyPoint::kRequestLate, "request-late", "an API server takes its time for a request", 100'000, 3s},
    {BuggifyPoint::kRequestThrottled, "request-throttled", "an API server says 429 with Retry-After", 50'000},
    {BuggifyPoint::kAnswerLost, "answer-lost", "an API server does what it was asked for, and its answer is lost",
     30'000},
    {BuggifyPoint::kControllerLate, "controller-late", "a controller comes to an object later", 100'000, 2s},
    {BuggifyPoint::kSlicesLate, "slices-late", "the EndpointSlices of a Service are written later", 200'000, 3s},
    {BuggifyPoint::kPodLate, "pod-late", "a kubelet takes its time to start a pod", 250'000, 10s},
    {BuggifyPoint::kLoadBalancerLate, "load-balancer-late", "a load balancer's address comes later", 250'000, 10s},
    {BuggifyPoint::kKubeProxyLate, "kube-proxy-late", "a node's rules for Services lag behind", 200'000, 2s},
    {BuggifyPoint::kRegistryLate, "registry-late", "an istiod's registry falls behind its informers", 50'000, 500ms},
    {BuggifyPoint::kDebounceLate, "debounce-late", "the debounce timer of an istiod is late", 200'000, 300ms},
    {BuggifyPoint::kPushOrder, "push-order", "proxies are queued for a push in another order", 500'000},
    {BuggifyPoint::kGenerationLate, "generation-late", "what an istiod does for a proxy starts later", 50'000, 1s},
    {BuggifyPoint::kCacheForgets, "cache-forgets", "an istiod's cache drops what it was just given", 200'000},
    {BuggifyPoint::kCertificateLate, "certificate-late", "an istiod takes its time to sign", 200'000, 3s},
    {BuggifyPoint::kMessageLate, "message-late", "a message on an ADS stream, an ACK perhaps, is late", 50'000, 1s},
    {BuggifyPoint::kStreamBroken, "stream-broken", "an ADS stream breaks, and a message on it, an ACK perhaps, is lost",
     5'000},
    {BuggifyPoint::kApplyLate, "apply-late", "an Envoy's main thread is busy with something else first", 100'000, 1s},
    {BuggifyPoint::kDnsOrder, "dns-order", "addresses come from a name server in another order", 500'000},
    {BuggifyPoint::kDnsFails, "dns-fails", "a name server does not answer an Envoy", 50'000},
}};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].point) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

// Those of this process, by their runs: few, and looked at only while there is one. Worlds live in threads of their
// own.
struct Table {
  std::mutex mutex;
  std::vector<std::pair<const assertion::RunContext*, Buggify*>> runs;
};
Table& Runs() {
  static auto* const table = new Table;
  return *table;
}

}  // namespace

std::span<const BuggifyRow> BuggifyRows() { return kRows; }

std::optional<BuggifyPoint> FindBuggifyPoint(std::string_view name) {
  const auto* const row = std::find_if(kRows.begin(), kRows.end(), [&](const BuggifyRow& r) { return r.name == name; });
  if (row == kRows.end()) return std::nullopt;
  return row->point;
}

Buggify::Buggify(assertion::RunContext& run, uint64_t seed) {
  WAVETANK_ASSERT(Of(&run) == nullptr, seed);  // two would halve each other's streams
  for (const BuggifyRow& row : kRows)
    points_.push_back({RandomStream(seed, "buggify/" + std::string(row.name)), false, 0});
  last_word_ = assertion::RunContext::Registration(run, [this] {
    const std::string fired = Fired();
    return fired.empty() ? "" : "buggify: " + fired;
  });
  const std::lock_guard<std::mutex> lock(Runs().mutex);
  Runs().runs.emplace_back(&run, this);
  ++buggify_runs;
}

Buggify::~Buggify() {
  const std::lock_guard<std::mutex> lock(Runs().mutex);
  const size_t gone = std::erase_if(Runs().runs, [this](const auto& each) { return each.second == this; });
  WAVETANK_ASSERT(gone == 1, gone);
  --buggify_runs;
}

Buggify* Buggify::Of(const assertion::RunContext* run) {
  const std::lock_guard<std::mutex> lock(Runs().mutex);
  for (const auto& [of, buggify] : Runs().runs) {
    if (of == run) return buggify;
  }
  return nullptr;
}

void Buggify::Switch(const std::vector<BuggifyPoint>& on) {
  for (State& point : points_) point.on = false;
  for (const BuggifyPoint point : on) At(point).on = true;
}

bool Buggify::Fires(BuggifyPoint point) {
  State& state = At(point);
  if (!state.on || !state.stream.Chance(kRows[static_cast<size_t>(point)].chance_ppm)) return false;
  ++state.fired;
  return true;
}

std::string Buggify::Fired() const {
  std::string out;
  for (const BuggifyRow& row : kRows) {
    if (fired(row.point) == 0) continue;
    out += (out.empty() ? "" : ", ") + std::string(row.name) + " " + std::to_string(fired(row.point));
  }
  return out;
}

namespace buggify_internal {

bool Fires(BuggifyPoint point) {
  if (assertion::current_run == nullptr) return false;  // outside of any run's events
  Buggify* const buggify = Buggify::Of(assertion::current_run);
  return buggify != nullptr && buggify->Fires(point);
}

Duration Delay(BuggifyPoint point) {
  const Duration most = kRows[static_cast<size_t>(point)].most;
  WAVETANK_ASSERT(most > Duration::zero(), point);  // a row without it is no delay
  if (!Fires(point)) return Duration::zero();
  return Duration(1 + static_cast<int64_t>(BuggifyBelow(point, static_cast<uint64_t>(most.count()))));
}

}  // namespace buggify_internal

uint64_t BuggifyBelow(BuggifyPoint point, uint64_t bound) {
  Buggify* const buggify = Buggify::Of(assertion::current_run);
  WAVETANK_ASSERT(buggify != nullptr, point);  // it has fired
  return buggify->Below(point, bound);
}

}  // namespace wavetank
