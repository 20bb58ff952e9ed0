// `wavetank apply --server`: manifests to the Kubernetes APIs of a running `wavetank serve --kube`.
#pragma once

#include <string>
#include <vector>

#include "scenarios/survey/mesh_survey.h"

namespace wavetank::cli {

// Applies each cluster's manifests on the server side, Namespaces and definitions first, and says so line by line. The
// exit code: kNo when the server refuses an object (the others are applied all the same).
int ApplyToServer(const std::vector<scenario::SurveyCluster>& clusters, const std::string& server,
                  const std::string& token_file);

}  // namespace wavetank::cli
