// Which token manager an agent has, where it is to exchange tokens (istiod:
// security/pkg/stsservice/tokenmanager/tokenmanager.go, pilot/cmd/pilot-agent/options/security.go).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wavetank::pilot {

inline constexpr std::string_view kGoogleTokenExchange = "GoogleTokenExchange";  // --tokenManagerPlugin's default

struct GoogleProject {
  std::string number;       // empty: it is not known
  std::string cluster_url;  // empty: not all of it is known
};
// GCP_METADATA, "PROJECT_ID|PROJECT_NUMBER|CLUSTER_NAME|CLUSTER_ZONE"; any other form says nothing. Nobody asks a
// machine's metadata server here.
GoogleProject ParseGoogleMetadata(std::string_view text);

// InvalidArgument, with which the agent ends: Google's plugin, and no project. Any other plugin's name is none.
absl::Status CheckTokenManager(std::string_view plugin, std::string_view google_metadata);

}  // namespace wavetank::pilot
