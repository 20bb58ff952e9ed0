#include <algorithm>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "cli/tables/proxy_tables.h"
#include "cli/tables/table_text.h"

namespace wavetank::cli::tables {
namespace {

// "outbound|5000|v1|host", or "outbound_.5000_.v1_.host" of a DNS SRV name, which istioctl takes for a plain name.
struct ClusterName {
  std::string direction, subset, host;
  int64_t port = 0;
  bool parts = false;
};

ClusterName ParseClusterName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '|');
  ClusterName out;
  if (parts.size() <= 3) {
    out.host = name;
    return out;
  }
  out.parts = true;
  out.direction = parts[0];
  if (!absl::SimpleAtoi(parts[1], &out.port)) out.port = 0;
  out.subset = parts[2];
  out.host = parts[3];
  return out;
}

bool Matches(const ClusterFilter& filter, const std::string& name) {
  const auto holds = [&](const std::string& part) { return part.empty() || name.find(part) != std::string::npos; };
  return holds(filter.fqdn) && holds(filter.direction) && holds(filter.subset) &&
         (filter.port == 0 || holds("|" + std::to_string(filter.port) + "|"));
}

// Absent: the API's default.
std::string TypeOf(const json& cluster) {
  if (const json& custom = Field(cluster, "cluster_type"); custom.is_object()) return "STATIC";
  const std::string type = TextField(cluster, "type");
  return type.empty() ? "STATIC" : type;
}

}  // namespace

absl::StatusOr<std::string> ClusterTable(const EnvoyDump& dump, const ClusterFilter& filter, Output output) {
  std::vector<json> clusters = dump.Clusters();
  if (clusters.empty()) return absl::NotFoundError("no clusters found");
  const auto key = [](const json& cluster) {
    const ClusterName name = ParseClusterName(TextField(cluster, "name"));
    return std::make_tuple(name.host, name.subset, name.port, name.direction);
  };
  std::stable_sort(clusters.begin(), clusters.end(), [&](const json& a, const json& b) { return key(a) < key(b); });
  std::vector<Row> rows = {{"SERVICE FQDN", "PORT", "SUBSET", "DIRECTION", "TYPE", "DESTINATION RULE"}};
  nlohmann::ordered_json chosen = nlohmann::ordered_json::array();
  for (const json& cluster : clusters) {
    const std::string full = TextField(cluster, "name");
    if (!Matches(filter, full)) continue;
    if (output != Output::kShort) {
      chosen.push_back(AsPrinted(cluster, "envoy.config.cluster.v3.Cluster"));
      continue;
    }
    const ClusterName name = ParseClusterName(full);
    if (name.parts) {
      rows.push_back({name.host, std::to_string(name.port), name.subset.empty() ? "-" : name.subset, name.direction,
                      TypeOf(cluster), Management(cluster)});
    } else {
      rows.push_back({full, "-", "-", "-", TypeOf(cluster), Management(cluster)});
    }
  }
  return output == Output::kShort ? TableText(rows, 5) : ListDocument(chosen, output);
}

}  // namespace wavetank::cli::tables
