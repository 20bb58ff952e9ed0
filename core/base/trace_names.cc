#include "core/base/trace_names.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"

namespace wavetank {
namespace {

// A number whose name ends in "Ns" is a time in nanoseconds. What a kind gives no name to is not shown unless it is
// set.
struct KindRow {
  TraceKind kind;
  std::string_view name, a, b;
};
constexpr KindRow kKinds[] = {
    {TraceKind::kNone, "None", "", ""},
    {TraceKind::kObjectApplied, "ObjectApplied", "resourceVersion", ""},
    {TraceKind::kObjectDeleted, "ObjectDeleted", "resourceVersion", ""},
    {TraceKind::kWatchDelivered, "WatchDelivered", "resourceVersion", "latencyNs"},
    {TraceKind::kRegistryEvent, "RegistryEvent", "", ""},
    {TraceKind::kClusterAdded, "ClusterAdded", "", ""},
    {TraceKind::kClusterRemoved, "ClusterRemoved", "", ""},
    {TraceKind::kClusterSynced, "ClusterSynced", "", ""},
    {TraceKind::kClusterRejected, "ClusterRejected", "", ""},
    {TraceKind::kGatewaysChanged, "GatewaysChanged", "gateways", ""},
    {TraceKind::kMeshConfigChanged, "MeshConfigChanged", "", ""},
    {TraceKind::kConfigUpdate, "ConfigUpdate", "full", ""},
    {TraceKind::kDebounced, "Debounced", "events", "full"},
    {TraceKind::kPushContextReady, "PushContextReady", "push", ""},
    {TraceKind::kPushQueued, "PushQueued", "", ""},
    {TraceKind::kPushDequeued, "PushDequeued", "queuedNs", ""},
    {TraceKind::kPushSkipped, "PushSkipped", "", ""},
    {TraceKind::kPushDone, "PushDone", "", ""},
    {TraceKind::kXdsSent, "XdsSent", "resources", "bytes"},
    {TraceKind::kXdsReceived, "XdsReceived", "resources", ""},
    {TraceKind::kXdsApplied, "XdsApplied", "resources", ""},
    {TraceKind::kXdsAck, "XdsAck", "", ""},
    {TraceKind::kXdsNack, "XdsNack", "", ""},
    {TraceKind::kXdsConnected, "XdsConnected", "", ""},
    {TraceKind::kXdsDisconnected, "XdsDisconnected", "", ""},
    {TraceKind::kXdsRejected, "XdsRejected", "", ""},
    {TraceKind::kCertificateSigned, "CertificateSigned", "serial", "validityNs"},
    {TraceKind::kSecretPushed, "SecretPushed", "", ""},
    {TraceKind::kPodInjected, "PodInjected", "", ""},
    {TraceKind::kRequest, "Request", "code", "latencyNs"},
    {TraceKind::kConnection, "Connection", "reused", ""},
    {TraceKind::kHandshake, "Handshake", "verified", ""},
    {TraceKind::kGatewayHop, "GatewayHop", "", ""},
    {TraceKind::kFaultStarted, "FaultStarted", "", ""},
    {TraceKind::kFaultEnded, "FaultEnded", "", ""},
    {TraceKind::kStep, "Step", "", ""},
    {TraceKind::kConverged, "Converged", "", ""},
    {TraceKind::kExpectation, "Expectation", "held", ""},
    {TraceKind{900}, "InvariantViolated", "", ""},  // sim/invariants/invariant.h
};

const KindRow* Find(TraceKind kind) {
  const auto* const row =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& r) { return r.kind == kind; });
  return row == std::end(kKinds) ? nullptr : row;
}

std::string Number(std::string_view name, std::string_view fallback, int64_t value) {
  if (name.empty()) return value == 0 ? std::string() : fmt::format(" {}={}", fallback, value);
  return fmt::format(" {}={}", name, value);
}

}  // namespace

std::string TraceKindName(TraceKind kind) {
  const KindRow* const row = Find(kind);
  return row == nullptr ? fmt::format("kind {}", static_cast<int>(kind)) : std::string(row->name);
}

std::string TraceNumbers(TraceKind kind, int64_t a, int64_t b) {
  const KindRow* const row = Find(kind);
  return Number(row == nullptr ? "" : row->a, "a", a) + Number(row == nullptr ? "" : row->b, "b", b);
}

}  // namespace wavetank
