// Remote Secrets, as istiod's multicluster controller tells of them: pkg/kube/multicluster/secretcontroller.go and its
// queue, pkg/kube/controllers/queue.go.
#include <algorithm>

#include "import/istiod/istiod_log.h"

namespace wavetank::importing {
namespace {

constexpr WallNs kMillisecond = 1'000'000;
// So long after its back-off an istiod that is short of processor time takes it from its queue (11 ms were seen).
constexpr WallNs kRetryLate = 20 * kMillisecond;
// Times of a Secret, which comes again by itself while it fails: within a burst, as often as its back-off allows.
constexpr size_t kRemembered = 64;

}  // namespace

void IstiodLog::Secret(WallNs at, std::string_view key, const Place& place) {
  secret_.reset();
  secret_key_ = key;
  std::vector<WallNs>& processed = remote_secrets_[secret_key_];
  if (processed.size() >= kRemembered) processed.erase(processed.begin());
  processed.push_back(at);
  // A failed one comes again by itself, when its back-off is over; that is no change of the Secret.
  if (const auto it = retries_.find(secret_key_); it != retries_.end()) {
    const Retry retry = it->second;
    if (std::abs(at - retry.expected) <= retry.tolerance) {
      retries_.erase(it);
      return;
    }
    if (at > retry.expected + retry.tolerance) retries_.erase(it);
  }
  InferredInput& input = Emit(InputKind::kRemoteSecret, at, place);
  const size_t slash = key.find('/');
  input.ns = key.substr(0, slash == key.npos ? 0 : slash);
  input.name = slash == key.npos ? key : key.substr(slash + 1);
  secret_ = evidence_.inputs.size() - 1;
}

void IstiodLog::Retrying(WallNs at, std::string_view rest) {
  // NS/NAME, retrying (retry count: N): ...
  const size_t comma = rest.find(", retrying (retry count: ");
  if (comma == rest.npos) return;
  const std::string key(rest.substr(0, comma));
  if (!remote_secrets_.contains(key)) return;
  int64_t count = 0;
  const std::string_view number = rest.substr(comma + 25);
  if (!ReadInteger(number.substr(0, number.find(')')), count) || count < 1) return;
  // client-go: workqueue.DefaultControllerRateLimiter: 5 ms, doubled each time, 1000 s at most.
  const WallNs delay =
      std::min<WallNs>((5 * kMillisecond) << std::min<int64_t>(count - 1, 20), 1'000'000 * kMillisecond);
  retries_[key] = {at + delay, std::max(kRetryLate, delay / 20)};
}

void IstiodLog::ClusterEffect(const LogRecord& record, MessageKind kind, std::string_view rest) {
  std::string cluster(record.Label("cluster"));
  std::string key(record.Label("secret"));
  if (key.empty()) key = record.Label("config");  // 1.30
  std::string effect;
  switch (kind) {
    case MessageKind::kClusterAction:
      effect = record.message.starts_with("Add") ? "added" : "updated";
      break;
    case MessageKind::kClusterFailed:
      effect = "failed";
      break;
    case MessageKind::kClusterSame:
      effect = "unchanged";
      break;
    case MessageKind::kClusterOwn:
      effect = "ownCluster";
      break;
    case MessageKind::kClusterTaken:
      effect = "duplicate";
      break;
    default: {
      // C configured by secret=NS/NAME
      effect = "removed";
      const size_t by = rest.find(" configured by secret=");
      if (by == rest.npos) return;
      cluster = rest.substr(0, by);
      key = rest.substr(by + 22);
    }
  }
  if (cluster.empty()) return;
  if (effect == "added" || effect == "updated") {
    syncing_[cluster] = {record.at, kNoTime, false};
  } else if (effect == "failed" || effect == "removed") {
    syncing_.erase(cluster);
  }
  if (!secret_ || key != secret_key_) return;
  InferredInput& input = evidence_.inputs[*secret_];
  if (effect == "failed" && !input.clusters.empty() && input.clusters.back().first == cluster) {
    input.clusters.back().second = effect;
    input.detail = rest;
  } else {
    input.clusters.emplace_back(cluster, effect);
  }
  if (input.cluster.empty()) input.cluster = cluster;
  input.change = effect;
}

}  // namespace wavetank::importing
