#include "core/istiod/files/config_sources.h"

#include <fmt/format.h>

#include "core/base/json_access.h"
#include "core/validation/go_text.h"

namespace wavetank::pilot {
absl::StatusOr<ConfigSources> ChooseConfigSources(const nlohmann::json& mesh, const std::string& config_dir) {
  ConfigSources out;
  const auto named = Items(At(mesh, "configSources"));
  if (named.empty()) {
    if (config_dir.empty()) {
      out.sources.push_back({ConfigSource::Kind::kCluster, "", ""});
    } else {
      out.sources.push_back({ConfigSource::Kind::kFolder, "", config_dir});
    }
    return out;
  }
  for (const nlohmann::json& source : named) {
    const std::string address = Text(source, "address");
    const validation::UrlParts url = validation::ParseUrl(address);
    if (!url.error.empty())
      return absl::InvalidArgumentError(fmt::format("invalid config URL {} {}", address, url.error));
    if (url.scheme == "fs") {
      if (url.path.empty()) {
        return absl::InvalidArgumentError(fmt::format("invalid fs config URL {}, contains no file path", address));
      }
      out.sources.push_back({ConfigSource::Kind::kFolder, address, url.path});
    } else if (url.scheme == "k8s") {
      if (url.path.empty() || url.path == "/") {
        out.sources.push_back({ConfigSource::Kind::kCluster, address, ""});
      } else {
        out.warnings.push_back(fmt::format("Not implemented, ignore: {}", address));
      }
    } else if (url.scheme == "xds") {
      return absl::UnavailableError(
          fmt::format("MCP: failed running rpc error: code = Unavailable desc = connection error: desc = \"transport: "
                      "Error while dialing: dial tcp {}: connect: connection refused\"",
                      url.host));
    } else {
      out.warnings.push_back(fmt::format("Ignoring unsupported config source: {}", address));
    }
  }
  return out;
}

}  // namespace wavetank::pilot
