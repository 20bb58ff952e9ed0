#include "core/istiod/files/config_sources.h"

#include <fmt/format.h>

#include <string_view>

#include "core/base/json_access.h"

namespace wavetank::pilot {
namespace {

struct Url {
  std::string_view scheme, host, path;
};

// What istiod asks of Go's url.Parse here: SCHEME://HOST/PATH.
Url SplitUrl(std::string_view text) {
  Url out;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {{}, {}, text};
  out.scheme = text.substr(0, colon);
  text.remove_prefix(colon + 1);
  if (!text.starts_with("//")) return {out.scheme, {}, text};
  text.remove_prefix(2);
  const size_t slash = text.find('/');
  out.host = text.substr(0, slash);
  if (slash != std::string_view::npos) out.path = text.substr(slash);
  return out;
}

}  // namespace

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
    const Url url = SplitUrl(address);
    if (url.scheme == "fs") {
      if (url.path.empty()) {
        return absl::InvalidArgumentError(fmt::format("invalid fs config URL {}, contains no file path", address));
      }
      out.sources.push_back({ConfigSource::Kind::kFolder, address, std::string(url.path)});
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
