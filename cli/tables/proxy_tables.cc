#include "cli/tables/proxy_tables.h"

#include "absl/strings/str_split.h"
#include "cli/tables/yaml_text.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::cli::tables {

std::string Document(const json& value, Output output) {
  return output == Output::kYaml ? YamlText(value) : JsonText(value, 4) + "\n";
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
  return Document(CamelCase(dump.Bootstrap(), "envoy.admin.v3.BootstrapConfigDump"),
                  output == Output::kYaml ? Output::kYaml : Output::kJson);
}

}  // namespace wavetank::cli::tables
