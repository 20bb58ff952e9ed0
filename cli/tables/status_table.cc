#include "cli/tables/status_table.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "cli/tables/table_text.h"
#include "core/base/json_access.h"

namespace wavetank::cli::tables {
namespace {

std::string StatusWords(const std::string& sent, const std::string& acked) {
  if (sent.empty()) return "NOT SENT";
  if (sent == acked) return "SYNCED";
  return acked.empty() ? "STALE (Never Acknowledged)" : "STALE";
}

}  // namespace

std::string StatusTable(const std::map<std::string, nlohmann::json>& syncz, const std::string& proxy) {
  std::vector<Row> found;
  for (const auto& [istiod, statuses] : syncz) {
    for (const nlohmann::json& status : Items(statuses)) {
      const std::string id = Text(status, "proxy");
      if (id.find(proxy) == std::string::npos) continue;
      Row row = {id, Text(status, "cluster_id")};
      for (const char* type : {"cluster", "listener", "endpoint", "route", "extensionconfig"}) {
        const std::string name = type;
        row.push_back(StatusWords(Text(status, name + "_sent"), Text(status, name + "_acked")));
      }
      row.push_back(istiod);
      const std::string version = Text(status, "istio_version");
      row.push_back(version.empty() ? Text(status, "proxy_version") + "*" : version);
      found.push_back(std::move(row));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Row& a, const Row& b) { return std::tie(a[1], a[0]) < std::tie(b[1], b[0]); });
  std::vector<Row> rows = {{"NAME", "CLUSTER", "CDS", "LDS", "EDS", "RDS", "ECDS", "ISTIOD", "VERSION"}};
  rows.insert(rows.end(), found.begin(), found.end());
  return TableText(rows, 5);
}

}  // namespace wavetank::cli::tables
