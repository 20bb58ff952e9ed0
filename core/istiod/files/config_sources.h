// Where istiod reads Istio's configurations: the config cluster, folders of files, or both (istiod:
// pilot/pkg/bootstrap/configcontroller.go, initConfigController and initConfigSources).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

struct ConfigSource {
  enum class Kind : uint8_t { kCluster, kFolder };
  Kind kind = Kind::kCluster;
  std::string address;  // as written; empty if the mesh's configuration names no sources
  std::string folder;   // of kFolder
};

struct ConfigSources {
  std::vector<ConfigSource> sources;  // in order; none: there is no configuration
  std::vector<std::string> warnings;  // in istiod's words, of what it leaves out
};

// Of the mesh's `configSources`, else of `--configDir`, else the config cluster. InvalidArgument, Unavailable: istiod
// does not start, in its words; of an xds:// source always, as nothing here serves MCP.
absl::StatusOr<ConfigSources> ChooseConfigSources(const nlohmann::json& mesh, const std::string& config_dir);

}  // namespace wavetank::pilot
