// The arguments by which verbs name a mesh: of manifests alone, or of whatever it is made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/mesh/source.h"
#include "scenarios/answers/moment.h"
#include "scenarios/language/setting.h"
#include "scenarios/survey/mesh_survey.h"
#include "sim/mending/mending.h"

namespace CLI {
class App;
}

namespace wavetank::cli {

struct MeshArguments {
  std::vector<std::string> folders, clusters, control_planes, install;
  std::string ns;

  // `folder`: what the positional argument is called in the help.
  void AddTo(CLI::App* verb, const char* folder, const char* help);
  // InvalidArgument: not NAME=VALUE, or nothing is named at all.
  absl::StatusOr<std::vector<scenario::SurveyCluster>> Clusters() const;
  // InvalidArgument: something is said of manifests, and `path` is a scenario, or an event log, which says it itself.
  absl::Status CheckBeside(const std::string& path, bool scenario) const;
};

// --charts: as $ISTIO_CHARTS.
void AddCharts(CLI::App* verb);

// --mend and --date. `mend`, `date`: the options' texts.
void AddMending(CLI::App* verb, std::string* mend, std::string* date);
// InvalidArgument: a text is none. What is empty leaves what is there.
absl::Status TakeMending(const std::string& mend, const std::string& date, sim::Mending* mending,
                         std::optional<Time>* begins);

// --set PATH=VALUE, any number of times.
void AddSettings(CLI::App* verb, std::vector<std::string>* settings);
// scenario::LoadScenario() with them. "[CLUSTER:][FILE:]PATH=VALUE" is laid over an IstioOperator, as `istioctl install
// --set` would, where CLUSTER or FILE is the scenario's, or PATH begins with a field that only IstioOperators have.
absl::StatusOr<scenario::Scenario> LoadScenarioWith(const std::string& path,
                                                    const std::vector<scenario::ClusterSpec>& mesh,
                                                    const std::vector<std::string>& settings);

// Whether a scenario is meant rather than manifests: a folder with a scenario.yaml, or a file whose top level has
// clusters or steps and no kind.
bool LooksLikeScenario(const std::string& path);

// A moment in a run: since the world's beginning, or since one of the scenario's steps (null: there are none).
// InvalidArgument: the text names neither.
absl::StatusOr<scenario::Moment> ParseMomentOf(const char* option, const std::string& text,
                                               const scenario::Scenario* scenario);

// "NAME=VALUE". InvalidArgument names the option if there is no "=" or a side is empty.
absl::StatusOr<std::pair<std::string, std::string>> SplitPair(const std::string& text, const char* option);

// The arguments by which `check` and `diff` name a mesh, of whatever it is made.
struct MeshSourceArguments {
  MeshArguments manifests;
  std::vector<std::string> with;
  std::vector<std::string> kubeconfigs, contexts;
  std::string profile;
  std::optional<uint64_t> seed;

  void AddTo(CLI::App* verb);
  // InvalidArgument: nothing is named, or what is named does not go together. Of kubeconfigs the picture of the
  // clusters as they are now is taken here, with what errors `record` has.
  absl::StatusOr<check::MeshSource> Source() const;

 private:
  absl::StatusOr<check::MeshSource> OfLiveClusters(std::vector<std::string> files) const;
};

// "CLUSTER=PATH", or a folder that holds a file or folder named after each cluster. InvalidArgument otherwise.
absl::Status AddOverlay(const std::string& text, std::vector<std::pair<std::string, std::string>>* out);

// The folders (or files) of manifests in a folder, each named after its cluster; sorted. InvalidArgument: none is
// there.
absl::StatusOr<std::vector<std::string>> ClusterFolders(const std::string& folder);

}  // namespace wavetank::cli
