// Real clusters into an event log, at the pace of the real clock: what `record` does, and what `check` of a kubeconfig
// begins with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/kube/credentials/kubeconfig.h"
#include "sim/world_options.h"

namespace wavetank::cli {

struct ClustersToRecord {
  std::vector<kube::KubeConfig> configs;  // each is a cluster of the mesh
  std::vector<std::string> namespaces;    // beside istio-system; empty: all
  bool keep_secrets = false;
  std::string log;                 // the file
  std::optional<Duration> length;  // from the first full picture on; without it until SIGINT or SIGTERM
};

struct RecordedClusters {
  uint64_t inputs = 0;
  Duration took{};
  std::vector<sim::WorldCluster> clusters;  // by configs
  bool interrupted = false;                 // by a signal
};

// Says on standard error how far it is, and each note. Errors are those of record::Recording, and the log is gone then.
absl::StatusOr<RecordedClusters> RecordClusters(const ClustersToRecord& what);

// A log that goes when the last who holds it does: the first full picture of all contexts of some kubeconfigs.
// InvalidArgument, NotFound: of the files. Cancelled: a signal came first.
struct LivePicture {
  LivePicture() = default;
  LivePicture(const LivePicture&) = delete;
  LivePicture& operator=(const LivePicture&) = delete;
  ~LivePicture();
  std::string folder, log;
};
absl::StatusOr<std::shared_ptr<const LivePicture>> TakeLivePicture(const std::vector<std::string>& kubeconfigs,
                                                                   const std::vector<std::string>& contexts);

}  // namespace wavetank::cli
