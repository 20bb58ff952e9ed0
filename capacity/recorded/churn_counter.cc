#include "capacity/recorded/churn_counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/base/json_access.h"
#include "core/kube/types.h"
#include "core/security/remote_secret.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::capacity {
namespace {

using kube::WatchEventType;

constexpr int64_t kWhole = 1'000'000;

// The revision of a pod's template, by whichever controller made it; empty: none did.
std::string RevisionOf(const kube::Object& pod) {
  for (const char* label : {"pod-template-hash", "controller-revision-hash"}) {
    if (const auto it = pod.meta.labels.find(label); it != pod.meta.labels.end()) return it->second;
  }
  return "";
}

bool IsIstiod(const kube::Object& pod) {
  const auto it = pod.meta.labels.find("app");
  return it != pod.meta.labels.end() && it->second == "istiod";
}

bool NodeIsReady(const kube::Object& node) {
  for (const nlohmann::json& condition : Items(At(node.body, {"status", "conditions"}))) {
    if (Text(condition, "type") == "Ready") return Text(condition, "status") == "True";
  }
  return true;  // nobody says otherwise
}

// Kubernetes' counts are int32 and none is negative; a log's objects may say anything.
int64_t Count(int64_t said) { return std::clamp<int64_t>(said, 0, INT32_MAX); }

int64_t Replicas(const kube::Object& workload) { return Count(NumberOf(At(workload.body, {"spec", "replicas"}), 1)); }

// maxSurge in parts of a million of `replicas`.
int64_t SurgePpm(const kube::Object& workload, int64_t replicas) {
  const nlohmann::json& surge = At(workload.body, {"spec", "strategy", "rollingUpdate", "maxSurge"});
  if (surge.is_number_integer())
    return std::min(kWhole, Count(surge.get<int64_t>()) * kWhole / std::max<int64_t>(1, replicas));
  int64_t percent = 0;
  for (const char c : TextOf(surge, "25%")) {
    if (c >= '0' && c <= '9' && percent < 1000) percent = 10 * percent + (c - '0');
  }
  return std::min(kWhole, percent * kWhole / 100);
}

Duration Every(Duration over, int64_t times) { return times == 0 ? Duration::zero() : over / times; }

}  // namespace

const std::vector<std::string>& ChurnCounter::Kinds() {
  static const auto* const kinds = new std::vector<std::string>{"Pod",
                                                                "Node",
                                                                "Secret",
                                                                "Service",
                                                                "Deployment",
                                                                "StatefulSet",
                                                                "VirtualService.networking.istio.io",
                                                                "DestinationRule.networking.istio.io",
                                                                "ServiceEntry.networking.istio.io",
                                                                "Gateway.networking.istio.io",
                                                                "Sidecar.networking.istio.io",
                                                                "EnvoyFilter.networking.istio.io",
                                                                "WorkloadEntry.networking.istio.io",
                                                                "AuthorizationPolicy.security.istio.io",
                                                                "PeerAuthentication.security.istio.io",
                                                                "RequestAuthentication.security.istio.io",
                                                                "Telemetry.telemetry.istio.io",
                                                                "WasmPlugin.extensions.istio.io"};
  return *kinds;
}

void ChurnCounter::OnChange(const std::string& cluster, Time at, const fakekube::Change& change) {
  const std::string& kind = change.object->kind;
  if (kind == "Pod") return OnPod(cluster, at, change);
  if (kind == "Node") return OnNode(cluster, change);
  if (kind == "Secret") return OnSecret(cluster, change);
  if (kind == "Deployment" || kind == "StatefulSet") return OnWorkload(change);
  OnConfiguration(change);
}

void ChurnCounter::OnPod(const std::string& cluster, Time at, const fakekube::Change& change) {
  const kube::Object& object = *change.object;
  const PodKey key{cluster, {object.meta.ns, object.meta.name}};
  const kube::Pod& pod = kube::ParsePod(object);
  if (change.type == WatchEventType::kDeleted) {
    pods_.erase(key);
    if (begun_ && IsIstiod(object)) ++istiods_gone_;
    return;
  }
  const auto [it, fresh] = pods_.try_emplace(key);
  Pod& known = it->second;
  if (fresh) {
    known.created = at;
    if (const std::string revision = RevisionOf(object); !revision.empty()) {
      const kube::WorkloadReference workload = kube::WorkloadOf(object, pod);
      std::set<std::string>& seen =
          revisions_[fmt::format("{}/{}/{}/{}", cluster, object.meta.ns, workload.kind, workload.name)];
      // The first is the workload itself; an istiod's rollout is its pods' restarts.
      if (seen.insert(revision).second && seen.size() > 1 && begun_ && !IsIstiod(object)) ++deploys_;
    }
  }
  if (pod.ready == known.ready) return;
  known.ready = pod.ready;
  if (pod.ready) {
    if (!known.was_ready && begun_ && known.created >= *begun_) starts_.push_back(at - known.created);
    known.was_ready = true;
    return;
  }
  const bool going = object.meta.deleting || pod.phase == "Succeeded" || pod.phase == "Failed";
  if (!begun_ || going || lost_nodes_.contains({cluster, pod.node_name})) return;
  ++turns_;
  flapped_.insert(key);
}

void ChurnCounter::OnWorkload(const fakekube::Change& change) {
  if (!begun_ || change.type != WatchEventType::kModified || change.previous == nullptr) return;
  const int64_t before = Replicas(*change.previous), now = Replicas(*change.object);
  if (At(change.object->body, {"spec", "template"}) != At(change.previous->body, {"spec", "template"})) {
    ++surges_;
    surge_ppm_ += SurgePpm(*change.object, now);
  }
  if (before == now) return;
  ++scalings_;
  swing_ppm_ += std::min(kWhole, std::abs(now - before) * kWhole / std::max<int64_t>(1, before));
}

void ChurnCounter::OnNode(const std::string& cluster, const fakekube::Change& change) {
  const std::pair<std::string, std::string> node{cluster, change.object->meta.name};
  const bool gone = change.type == WatchEventType::kDeleted;
  if (!gone && NodeIsReady(*change.object)) {
    lost_nodes_.erase(node);
    if (begun_ && change.type == WatchEventType::kAdded) ++others_["nodes that came"];
  } else if (lost_nodes_.insert(node).second) {
    nodes_lost_ += begun_ ? 1 : 0;
  }
}

void ChurnCounter::OnConfiguration(const fakekube::Change& change) {
  if (!begun_) return;
  const kube::Object& object = *change.object;
  if (change.type == WatchEventType::kModified && change.previous != nullptr &&
      At(object.body, "spec") == At(change.previous->body, "spec") &&
      object.meta.labels == change.previous->meta.labels) {
    if (object.kind == "Service" && At(object.body, "status") != At(change.previous->body, "status")) {
      ++others_["addresses of load balancers that changed"];
    }
    return;
  }
  if (object.kind == "WorkloadEntry") {
    ++others_["changes of WorkloadEntries"];
    return;
  }
  ++edits_;
}

void ChurnCounter::OnSecret(const std::string& cluster, const fakekube::Change& change) {
  const kube::Object& object = *change.object;
  const auto label = object.meta.labels.find(security::kMultiClusterLabel);
  if (!begun_ || label == object.meta.labels.end() || label->second != "true") return;
  const std::pair<std::string, kube::NamespacedName> key{cluster, {object.meta.ns, object.meta.name}};
  if (change.type == WatchEventType::kDeleted) {
    ++rotations_;
    deleted_secrets_.insert(key);
  } else if (change.type == WatchEventType::kAdded) {
    if (deleted_secrets_.erase(key) == 0) ++others_["remote clusters that were added"];
  } else if (change.previous != nullptr && At(object.body, "data") != At(change.previous->body, "data")) {
    ++rotations_;
  }
}

ChurnSpec ChurnCounter::Spec(Time end) const {
  ChurnSpec out;
  if (!begun_ || end <= *begun_) return out;
  const Duration over = end - *begun_;
  out.deploys = Every(over, deploys_);
  out.autoscaling = Every(over, scalings_);
  out.node_loss = Every(over, nodes_lost_);
  out.config_edits = Every(over, edits_);
  out.secret_rotation = Every(over, rotations_);
  out.istiod_restarts = Every(over, istiods_gone_);
  if (turns_ > 0) {
    out.flapping = static_cast<int64_t>(flapped_.size());
    out.flapping_every = over * out.flapping / turns_;
  }
  if (surges_ > 0) out.surge_ppm = std::max<int64_t>(10'000, surge_ppm_ / surges_);
  if (scalings_ > 0) out.swing_ppm = std::max<int64_t>(10'000, swing_ppm_ / scalings_);
  if (!starts_.empty()) {
    std::vector<Duration> starts = starts_;
    const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    out.pod_start = std::max<Duration>(1ms, *middle);
  }
  return out;
}

}  // namespace wavetank::capacity
