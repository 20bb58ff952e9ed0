// A recording: what the API servers of a mesh's clusters show of it, from a first full picture on, as the inputs of a
// world (sim::World) in an event log (replay/event_log.h).
//
// First everything is listed. When all of it is there, the picture becomes the log's inputs at time 0, and each change
// that a watch tells afterwards an input at the time of its arrival. What a break of a watch has hidden comes with the
// next list, as the differences to the one before.
//
// Fault model: any API server may fail at any time; what it showed last stays until it answers again. Before the first
// picture is whole that is an error instead, since a replay of half a mesh tells nothing.
//
// Knows no real clock: its host tells the time, and the transport brings the bytes.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "record/mesh_facts.h"
#include "record/normaliser.h"
#include "record/rest_client.h"
#include "replay/event_log.h"

namespace wavetank::record {

struct RecordedCluster {
  std::string context;
  Transport* transport = nullptr;
};

struct RecordingOptions {
  std::vector<RecordedCluster> clusters;
  // Of which namespaces, beside the system's. Empty: all.
  std::vector<std::string> namespaces;
  bool keep_secrets = false;
  std::string log;              // the file
  std::string program_version;  // of the log's header
  std::string started;          // when, for people: RFC 3339
  // The world's clock at the beginning; see sim::WorldOptions::start.
  Time world_start{};
  Duration patience = 60s;  // with the first lists
  // A recorder that is killed has lost no more than the last so much.
  Duration commit_after = 1s;
  RestLimits limits;
};

class Recording {
 public:
  // InvalidArgument, AlreadyExists, ...: the log cannot be written there. All that `options` points to and `host` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<Recording>> Start(Host& host, RecordingOptions options);
  ~Recording();  // an unfinished log is removed

  // Not OK: it has failed, and records nothing more. Unavailable, Unauthenticated, PermissionDenied: a first list could
  // not be had; otherwise the log's own errors.
  const absl::Status& status() const { return status_; }
  // The first picture is whole and in the log.
  bool recording() const { return writer_ != nullptr; }
  // Changes may follow, and the log ends here. FailedPrecondition: the first picture was never whole.
  absl::Status Finish();

  uint64_t inputs() const { return writer_ == nullptr ? 0 : writer_->inputs(); }
  const std::vector<std::string>& notes() const { return notes_; }
  const sim::WorldOptions& world() const { return facts_.world; }
  // How many lists have arrived, and of how many; for progress.
  std::pair<size_t, size_t> Progress() const;
  // Sees each note when it is made. May be empty.
  std::function<void(const std::string& note)> on_note;

  // What of a cluster is listed and watched.
  struct Source {
    kube::ResourceKind kind;
    kube::ListOptions options;
    bool required = false;  // without it there is no recording
  };
  static std::vector<Source> Sources(const RecordingOptions& options);

 private:
  struct Reflector;
  struct Cluster;
  using ObjectKey = std::pair<std::string, kube::NamespacedName>;  // kind with group

  Recording(Host& host, RecordingOptions options);
  void Problem(Cluster& cluster, const kube::ResourceKind& kind, const kube::ListOptions& options,
               const absl::Status& why);
  void Put(Cluster& cluster, const kube::ObjectRef& before, const kube::ObjectRef& now);
  void Remove(Cluster& cluster, const kube::Object& last);
  void Begin();
  void Write(Cluster& cluster, const kube::Object& object);
  void Append(const Cluster& cluster, std::string kind, nlohmann::json body);
  void CommitLater();
  void Note(std::string note);
  void Fail(absl::Status status);
  void Later(Callback fn);

  Host& host_;
  const RecordingOptions options_;
  const NormaliserOptions normaliser_;
  absl::Status status_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  MeshFacts facts_;
  std::vector<std::string> notes_;
  std::set<std::string> noted_;
  std::unique_ptr<replay::LogWriter> writer_;
  Time began_{};
  uint64_t seq_ = 0;
  TimerId patience_ = kNoTimer, commit_ = kNoTimer;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::record
