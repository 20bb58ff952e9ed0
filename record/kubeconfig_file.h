// A person's kubeconfig file, as kubectl reads it: several contexts, and certificates and tokens in files beside it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/credentials/kubeconfig.h"

namespace wavetank::record {

// `contexts` empty: all that the file has, in its order. Files that it names are looked for from its own folder.
// InvalidArgument or NotFound names the file, what is wrong and what helps; never what a file holds.
absl::StatusOr<std::vector<kube::KubeConfig>> LoadKubeConfigFile(const std::string& path,
                                                                 const std::vector<std::string>& contexts);

}  // namespace wavetank::record
