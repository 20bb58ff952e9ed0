#include <algorithm>
#include <tuple>

#include "cli/tables/proxy_tables.h"
#include "cli/tables/table_text.h"

namespace wavetank::cli::tables {
namespace {

struct HostRow {
  std::string address, cluster, status;
  int64_t port = 0;
  bool failed_outlier_check = false;
};

void PutAddress(const json& address, HostRow& out) {
  const json& socket = Field(address, "socket_address");
  const json& internal = Field(address, "envoy_internal_address");
  if (socket.is_object()) {
    out.address = TextField(socket, "address");
    out.port = NumberField(socket, "port_value");
  } else if (Field(address, "pipe").is_object()) {
    out.address = "unix://" + TextField(Field(address, "pipe"), "path");
  } else if (internal.is_object()) {
    out.address = "envoy://" + TextField(internal, "server_listener_name") + "/" + TextField(internal, "endpoint_id");
  } else {
    out.address = "unknown";
  }
}

bool Matches(const EndpointFilter& filter, const HostRow& host) {
  return (filter.address.empty() || SameLetters(filter.address, host.address)) &&
         (filter.port == 0 || filter.port == host.port) &&
         (filter.cluster.empty() || SameLetters(filter.cluster, host.cluster)) &&
         (filter.status.empty() || SameLetters(filter.status, host.status));
}

HostRow OfStatus(const json& host, const std::string& cluster) {
  HostRow out;
  out.cluster = cluster;
  PutAddress(Field(host, "address"), out);
  const json& health = Field(host, "health_status");
  out.status = TextField(health, "eds_health_status");
  if (out.status.empty()) out.status = "UNKNOWN";
  const json& failed = Field(health, "failed_outlier_check");
  out.failed_outlier_check = failed.is_boolean() && failed.get<bool>();
  return out;
}

// What Envoy takes a host without a status for.
HostRow OfEndpoint(const json& endpoint, const std::string& cluster) {
  HostRow out;
  out.cluster = cluster;
  PutAddress(Field(Field(endpoint, "endpoint"), "address"), out);
  out.status = TextField(endpoint, "health_status");
  if (out.status.empty() || out.status == "UNKNOWN") out.status = "HEALTHY";
  return out;
}

struct Found {
  std::vector<HostRow> hosts;
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();  // clusters with at least one of them
};

Found OfStatuses(const json& statuses, const EndpointFilter& filter) {
  Found out;
  for (const json& cluster : statuses) {
    const size_t before = out.hosts.size();
    for (const json& host : List(cluster, "host_statuses")) {
      HostRow row = OfStatus(host, TextField(cluster, "name"));
      if (Matches(filter, row)) out.hosts.push_back(std::move(row));
    }
    if (out.hosts.size() > before) out.documents.push_back(AsPrinted(cluster, "envoy.admin.v3.ClusterStatus"));
  }
  return out;
}

Found OfAssignments(const std::vector<json>& assignments, const EndpointFilter& filter) {
  Found out;
  for (const json& assignment : assignments) {
    const size_t before = out.hosts.size();
    for (const json& locality : List(assignment, "endpoints")) {
      for (const json& endpoint : List(locality, "lb_endpoints")) {
        HostRow row = OfEndpoint(endpoint, TextField(assignment, "cluster_name"));
        if (Matches(filter, row)) out.hosts.push_back(std::move(row));
      }
    }
    if (out.hosts.size() > before) {
      out.documents.push_back(AsPrinted(assignment, "envoy.config.endpoint.v3.ClusterLoadAssignment"));
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> EndpointTable(const EnvoyDump& dump, const EndpointFilter& filter, Output output) {
  const json& statuses = dump.ClusterStatuses();
  if (!statuses.is_array() && !dump.HasSection("EndpointsConfigDump")) {
    return absl::NotFoundError(
        "the document holds no endpoints; take /clusters?format=json, or /config_dump?include_eds, of the admin port");
  }
  Found found = statuses.is_array() ? OfStatuses(statuses, filter) : OfAssignments(dump.Endpoints(), filter);
  if (output != Output::kShort) return ListDocument(found.documents, output);
  std::stable_sort(found.hosts.begin(), found.hosts.end(), [](const HostRow& a, const HostRow& b) {
    return std::tie(a.address, a.port, a.cluster) < std::tie(b.address, b.port, b.cluster);
  });
  std::vector<Row> rows = {{"ENDPOINT", "STATUS", "OUTLIER CHECK", "CLUSTER"}};
  for (const HostRow& host : found.hosts) {
    rows.push_back({host.port == 0 ? host.address : host.address + ":" + std::to_string(host.port), host.status,
                    host.failed_outlier_check ? "FAILED" : "OK", host.cluster});
  }
  return TableText(rows, 5);
}

}  // namespace wavetank::cli::tables
