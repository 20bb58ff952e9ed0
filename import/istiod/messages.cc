#include "import/istiod/messages.h"

#include <array>

namespace wavetank::importing {
namespace {

struct Row {
  std::string_view beginning;
  MessageKind kind;
};

// istiod: the file that prints the rows below it.
constexpr Row kRows[] = {
    // pilot/pkg/xds/discovery.go
    {"Push debounce stable[", MessageKind::kDebounced},
    {"All caches have been synced up in ", MessageKind::kReady},
    // pilot/pkg/xds/ads.go
    // Behind them a colon and the version until 1.20, a blank since (ads.go, AdsPushAll).
    {"XDS: Incremental Pushing", MessageKind::kPushingPartly},
    {"XDS: Pushing", MessageKind::kPushing},
    {"ADS: new connection for node:", MessageKind::kConnected},
    // pilot/pkg/xds/delta.go
    {"ADS: new delta connection for node:", MessageKind::kConnected},
    // pilot/pkg/xds/eds.go
    {"Incremental push, service ", MessageKind::kNoEndpoints},
    {"Full push, new service ", MessageKind::kNewService},
    {"Full push, service accounts changed, ", MessageKind::kNewAccounts},
    // pkg/kube/multicluster/secretcontroller.go
    {"processing secret event for secret ", MessageKind::kSecretEvent},
    // 1.30: of Secrets and of files alike.
    {"processing remote config event for ", MessageKind::kSecretEvent},
    {"Add cluster: ", MessageKind::kClusterFailed},
    {"Update cluster: ", MessageKind::kClusterFailed},
    {"Add cluster", MessageKind::kClusterAction},
    {"Update cluster", MessageKind::kClusterAction},
    {"Adding cluster: ", MessageKind::kClusterFailed},
    {"Updating cluster: ", MessageKind::kClusterFailed},
    {"Adding cluster", MessageKind::kClusterAction},
    {"Updating cluster", MessageKind::kClusterAction},
    {"skipping update (kubeconfig are identical)", MessageKind::kClusterSame},
    {"ignoring cluster as it would overwrite the config cluster", MessageKind::kClusterOwn},
    {"cluster has already been registered", MessageKind::kClusterTaken},
    {"Deleting cluster_id=", MessageKind::kClusterDeleted},
    {"Number of remote clusters: ", MessageKind::kClusterCount},
    // pkg/kube/multicluster/cluster.go
    {"remote cluster ", MessageKind::kClusterTimeout},
    // pkg/kube/controllers/queue.go
    {"error handling ", MessageKind::kRetry},
    // pilot/pkg/serviceregistry/kube/controller/controller.go
    {"kube controller for ", MessageKind::kSynced},
    // pilot/pkg/model/network.go
    {"reloading network gateways", MessageKind::kGatewaysReload},
    {"gateways changed, triggering push", MessageKind::kGatewaysChanged},
    {"could not resolve hostname ", MessageKind::kUnresolved},
    // pkg/config/mesh/networks_watcher.go, watcher.go, kubemesh/watcher.go
    {"mesh networks configuration updated to: ", MessageKind::kMeshNetworks},
    {"mesh configuration updated to: ", MessageKind::kMeshConfig},
    {"mesh configuration: ", MessageKind::kMeshConfigRead},
    {"failed to read mesh config from ConfigMap: ", MessageKind::kMeshRefused},
    // pilot/pkg/bootstrap/server.go, mesh.go
    {"Starting Istiod Server with primary cluster ", MessageKind::kPrimary},
    {"initializing mesh configuration", MessageKind::kStarting},
    {"version: ", MessageKind::kVersion},
    {"flags: ", MessageKind::kFlags},
};

// By the first letter: a few rows for each.
struct Index {
  std::array<uint8_t, 256> first{}, last{};
  std::array<Row, std::size(kRows)> rows{};
};

constexpr Index MakeIndex() {
  Index index;
  size_t at = 0;
  for (int letter = 0; letter < 256; ++letter) {
    index.first[letter] = static_cast<uint8_t>(at);
    for (const Row& row : kRows) {
      if (static_cast<unsigned char>(row.beginning[0]) == letter) index.rows[at++] = row;
    }
    index.last[letter] = static_cast<uint8_t>(at);
  }
  return index;
}
constexpr Index kIndex = MakeIndex();

}  // namespace

MessageKind KindOfMessage(const LogRecord& record, std::string_view& rest) {
  const std::string_view message = record.message;
  if (message.size() < 8) return MessageKind::kNone;
  // istiod: pilot/pkg/xds/xdsgen.go: a type's three or four letters, then what was done.
  for (const size_t colon : {size_t{3}, size_t{4}}) {
    if (message[colon] == ':' && message.substr(colon).starts_with(": PUSH")) {
      rest = message.substr(colon + 6);
      return MessageKind::kResponse;
    }
  }
  if (message.starts_with("ADS:") && record.level != "debug") {
    // istiod: pilot/pkg/xds/ads.go
    if (message.starts_with("ADS: \"")) {
      rest = message.substr(6);
      if (rest.find("\" exceeded rate limit: ") != rest.npos) return MessageKind::kRateLimited;
      return rest.find(" terminated") != rest.npos ? MessageKind::kTerminated : MessageKind::kNone;
    }
    if (const size_t at = message.find(": ACK ERROR "); at != message.npos && at <= 10) {
      rest = message.substr(at + 12);
      return MessageKind::kNack;
    }
  }
  const auto letter = static_cast<unsigned char>(message[0]);
  for (size_t i = kIndex.first[letter]; i < kIndex.last[letter]; ++i) {
    const Row& row = kIndex.rows[i];
    if (!message.starts_with(row.beginning)) continue;
    rest = message.substr(row.beginning.size());
    if (row.kind == MessageKind::kSynced && rest.find(" initial sync timed out") != rest.npos) {
      return MessageKind::kSyncTimeout;
    }
    if (row.kind == MessageKind::kNoEndpoints && !rest.ends_with(" has no endpoints")) return MessageKind::kNone;
    if (row.kind == MessageKind::kReady && rest.find("marking server ready") == rest.npos) return MessageKind::kNone;
    if (row.kind == MessageKind::kClusterTimeout && rest.find(" failed to sync after ") == rest.npos) {
      return MessageKind::kNone;
    }
    return row.kind;
  }
  return MessageKind::kNone;
}

}  // namespace wavetank::importing
