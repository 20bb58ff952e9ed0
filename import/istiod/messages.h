// The messages of istiod's log that say something about its mesh, told apart by their beginnings. One row for each is
// in messages.cc, with the source file that prints it.
#pragma once

#include <cstdint>
#include <string_view>

#include "import/istiod/record_reader.h"

namespace wavetank::importing {

enum class MessageKind : uint8_t {
  kNone,
  kResponse,         // "CDS: PUSH for node:a.b resources:1 ...", PUSH INC and PUSH request
  kDebounced,        // "Push debounce stable[1] 2 for config ...: 100ms since last change, ..."
  kPushing,          // "XDS: Pushing:VERSION Services:4 ConnectedEndpoints:2 Version:VERSION", later without the first
  kPushingPartly,    // "XDS: Incremental Pushing:..."
  kNoEndpoints,      // "Incremental push, service HOST at shard Kubernetes/c1 has no endpoints"
  kNewService,       // "Full push, new service NS/HOST"
  kNewAccounts,      // "Full push, service accounts changed, HOST"
  kConnected,        // "ADS: new connection for node:ID-1"
  kTerminated,       // "ADS: "ADDRESS" ID-1 terminated..."
  kRateLimited,      // "ADS: "ADDRESS" exceeded rate limit: ..."
  kNack,             // "ADS:CDS: ACK ERROR ID-1 CODE:TEXT"
  kSecretEvent,      // "processing secret event for secret NS/NAME"
  kClusterAction,    // "Adding cluster", "Updating cluster"
  kClusterFailed,    // "Adding cluster: create remote cluster failed: ..."
  kClusterSame,      // "skipping update (kubeconfig are identical)"
  kClusterOwn,       // "ignoring cluster as it would overwrite the config cluster"
  kClusterTaken,     // "cluster has already been registered"
  kClusterDeleted,   // "Deleting cluster_id=C configured by secret=NS/NAME"
  kClusterCount,     // "Number of remote clusters: 2"
  kRetry,            // "error handling NS/NAME, retrying (retry count: 1): ..."
  kSynced,           // "kube controller for C synced after ..."
  kSyncTimeout,      // "kube controller for C initial sync timed out"
  kClusterTimeout,   // "remote cluster C failed to sync after ..."
  kReady,            // "All caches have been synced up in ..., marking server ready"
  kGatewaysReload,   // "reloading network gateways"
  kGatewaysChanged,  // "gateways changed, triggering push"
  kMeshNetworks,     // "mesh networks configuration updated to: {...}"
  kMeshConfig,       // "mesh configuration updated to: {...}"
  kMeshConfigRead,   // "mesh configuration: {...}", once at the start
  kMeshRefused,      // "failed to read mesh config from ConfigMap: ..."
  kPrimary,          // "Starting Istiod Server with primary cluster C"
  kVersion,          // "version: 1.18.2-..."
  kFlags,            // "flags: {...}"
  kStarting,         // "initializing mesh configuration": the first that every process prints
  kUnresolved,       // "could not resolve hostname "H" for 1 gateways"
};

// `rest`: what follows the beginning that told the kind. O(1).
MessageKind KindOfMessage(const LogRecord& record, std::string_view& rest);

}  // namespace wavetank::importing
