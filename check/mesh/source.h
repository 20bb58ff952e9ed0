// Where a mesh to be checked comes from, and how it is brought to rest in a world of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/kube/object.h"
#include "nlohmann/json.hpp"
#include "scenarios/language/scenario.h"
#include "scenarios/survey/mesh_survey.h"
#include "sim/inputs/kinds/traffic.h"
#include "sim/world.h"

namespace wavetank::check {

struct MeshSource {
  std::string scenario;                                   // file, or folder with a scenario.yaml
  std::string log;                                        // event log: a run's, or a recording of real clusters
  std::vector<scenario::SurveyCluster> clusters;          // manifests or dumps; neither of the above then
  std::vector<std::pair<std::string, std::string>> with;  // (cluster, path): manifests applied over all that
  std::optional<Duration> log_until;                      // of the log: what had been done until then
  bool live = false;                                      // recorded clusters of a log go on as live ones
  std::string profile;                                    // empty: the source's own, or istio-1.18
  uint64_t seed = 1;                                      // of worlds of manifests
  std::function<void(std::string_view)> progress;
  // Of a log that stands for something else: what, as its user named it, and who keeps the log's file meanwhile.
  std::string stands_for;
  std::shared_ptr<const void> keeper;

  // The first file or folder of it; empty without one.
  std::string FirstPath() const;
};

// An object of a manifest, as it was written.
struct BroughtObject {
  std::string cluster, file;
  int line = 0;
  nlohmann::json object;
  bool dumped = false;
  nlohmann::json status;   // of a dumped one
  bool laid_over = false;  // by MeshSource::with, in the place of what there is
};

// What a webhook in front of the API server did not let in.
struct RefusedObject {
  std::string cluster;
  kube::ObjectRef object;
  std::string words;
};

struct SettledMesh {
  scenario::Scenario scenario;  // of a log or manifests: clusters alone
  std::unique_ptr<sim::World> world;
  std::vector<BroughtObject> brought;
  std::vector<BroughtObject> operators;  // IstioOperators, of which others of the above were rendered
  std::vector<RefusedObject> refused;
  // Of a log: what was sent in it, before `log_until` or after, each flow once; nothing of it is under way here.
  std::vector<sim::inputs::StartTraffic> traffic;
  std::vector<std::string> notes;
};

// Errors are about the input: a file that cannot be read, an object that an API server refuses.
absl::StatusOr<SettledMesh> BringToRest(const MeshSource& source);

// What the one argument MESH names. A folder with a scenario.yaml, or a file that says `clusters:` or `extends:`, is a
// scenario; a file that begins as SQLite's do is a log; one whose top level has contexts beside clusters a kubeconfig;
// anything else is manifests.
enum class SourceKind : uint8_t { kScenario, kLog, kManifests, kKubeConfig };
SourceKind KindOfSource(const std::string& path);

}  // namespace wavetank::check
