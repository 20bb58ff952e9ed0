#include "core/inject/token_manager.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "fmt/format.h"

namespace wavetank::pilot {

GoogleProject ParseGoogleMetadata(std::string_view text) {
  // istiod: pkg/bootstrap/platform/gcp.go
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), '|');
  GoogleProject out;
  if (parts.size() != 4) return out;
  out.number = parts[1];
  if (!parts[0].empty() && !parts[2].empty() && !parts[3].empty()) {
    out.cluster_url = fmt::format("https://container.googleapis.com/v1/projects/{}/locations/{}/clusters/{}", parts[0],
                                  parts[3], parts[2]);
  }
  return out;
}

absl::Status CheckTokenManager(std::string_view plugin, std::string_view google_metadata) {
  if (plugin != kGoogleTokenExchange || !ParseGoogleMetadata(google_metadata).number.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} token manager specified but failed to ready GCP project information", kGoogleTokenExchange));
}

}  // namespace wavetank::pilot
