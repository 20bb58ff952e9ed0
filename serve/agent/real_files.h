// Files below the working folder (or wherever a path leads), as a real agent sees them.
#pragma once

#include "core/agent/files.h"

namespace wavetank::serve {

class RealFiles final : public agent::Files {
 public:
  absl::StatusOr<std::string> Read(std::string_view path) override;
  std::vector<std::string> List(std::string_view folder) override;
  // Into a file beside it, which then takes its place. Only its owner may read it, unless it is in a cluster
  // (KUBERNETES_SERVICE_HOST), where other containers of the pod may.
  absl::Status Write(std::string_view path, std::string_view bytes) override;
};

}  // namespace wavetank::serve
