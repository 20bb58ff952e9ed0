#include "cli/tables/proxy_tables.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/tables/table_text.h"
#include "cli/tables/yaml_text.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::cli::tables {

namespace {

// "1.26.0/Clean/RELEASE" (istioctl: getUserAgentVersionInfo).
std::string EnvoyVersion(const json& node) {
  const json& build = Field(node, "user_agent_build_version");
  const json& version = Field(build, "version");
  const json& metadata = Field(build, "metadata");
  std::string out = fmt::format("{}.{}.{}", NumberField(version, "major_number"), NumberField(version, "minor_number"),
                                NumberField(version, "patch"));
  for (const auto& [key, before] : {std::pair("build.label", "-"), std::pair("revision.status", "/"),
                                    std::pair("build.type", "/"), std::pair("ssl.version", "/")}) {
    if (metadata.contains(key)) out += before + Text(metadata, key);
  }
  return out;
}

std::string Versions(const json& bootstrap) {
  const json& node = Field(Field(bootstrap, "bootstrap"), "node");
  const json& metadata = Field(node, "metadata");
  std::vector<Row> rows;
  if (const std::string istio = Text(metadata, "ISTIO_VERSION"); !istio.empty())
    rows.push_back({"Istio Version:", istio});
  if (std::string sha = Text(metadata, "ISTIO_PROXY_SHA"); !sha.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(sha, ':');
    rows.push_back({"Istio Proxy Version:", parts.size() > 1 ? parts[1] : sha});
  }
  rows.push_back({"Envoy Version:", EnvoyVersion(node)});
  return TableText(rows, 1);
}

}  // namespace

std::string Document(const nlohmann::ordered_json& value, Output output) {
  return (output == Output::kYaml ? YamlText(ParseJson(JsonText(value))) : JsonText(value, 4)) + "\n";
}

std::string ListDocument(const nlohmann::ordered_json& list, Output output) {
  const std::string text = Document(list, output);
  if (output == Output::kYaml) return text;
  return absl::StrReplaceAll(text, {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

// istioctl: describeManagement, renderConfig.
std::string Management(const json& resource) {
  const json& istio = At(Field(Field(resource, "metadata"), "filter_metadata"), "istio");
  const json& config = At(istio, "config");
  if (!config.is_string()) return "";
  const std::string& path = config.get_ref<const std::string&>();
  if (!path.starts_with("/apis/networking.istio.io/v1alpha3/namespaces/")) return "<unknown>";
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  return parts.size() == 8 ? parts[7] + "." + parts[5] : "";
}

absl::StatusOr<std::string> BootstrapText(const EnvoyDump& dump, Output output) {
  if (dump.Bootstrap().is_null()) return absl::NotFoundError("unable to find bootstrap in the config dump");
  if (output == Output::kShort) return Versions(dump.Bootstrap());
  return Document(AsPrinted(dump.Bootstrap(), "envoy.admin.v3.BootstrapConfigDump"), output);
}

}  // namespace wavetank::cli::tables
