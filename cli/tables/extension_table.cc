#include <algorithm>
#include <utility>
#include <vector>

#include "cli/tables/proxy_tables.h"
#include "cli/tables/table_text.h"

namespace wavetank::cli::tables {

// istioctl: pkg/writer/envoy/configdump/ecds.go.
absl::StatusOr<std::string> ExtensionTable(const EnvoyDump& dump, Output output) {
  const json& section = dump.ExtensionSection();
  if (section.is_null()) {
    return absl::NotFoundError(
        "config dump has no configuration type type.googleapis.com/envoy.admin.v3.EcdsConfigDump: the proxy has no "
        "extension configurations");
  }
  if (output != Output::kShort) {
    return Document(AsPrinted(section, "envoy.admin.v3.EcdsConfigDump"), output);
  }
  constexpr std::string_view kPrefix = "type.googleapis.com/";
  std::vector<std::pair<std::string, std::string>> found;  // type, name
  for (const json& entry : List(section, "ecds_filters")) {
    const json& filter = Field(entry, "ecds_filter");
    std::string type = TextField(Field(filter, "typed_config"), "@type");
    if (type.starts_with(kPrefix)) type.erase(0, kPrefix.size());
    found.emplace_back(std::move(type), TextField(filter, "name"));
  }
  std::sort(found.begin(), found.end());
  std::vector<Row> rows = {{"ECDS NAME", "TYPE"}};
  for (const auto& [type, name] : found) rows.push_back({name, type});
  return TableText(rows, 5);
}

}  // namespace wavetank::cli::tables
