#include "cli/mesh_tables.h"

#include <iostream>

#include "cli/verb.h"

namespace wavetank::cli {
namespace {

// As kubectl shows it.
std::string External(const scenario::ServiceRow& r) {
  if (!r.external.empty()) return r.external;
  return r.type == "LoadBalancer" ? "<pending>" : "<none>";
}

}  // namespace

void PrintServices(const std::vector<scenario::ServiceRow>& services) {
  Rows rows = {{"CLUSTER", "NAMESPACE", "SERVICE", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORTS"}};
  for (const auto& r : services) {
    rows.push_back({r.cluster, r.ns, r.name, r.type, r.cluster_ip, External(r), r.ports});
  }
  PrintTable(rows);
}

void PrintEndpoints(const std::vector<scenario::EndpointRow>& endpoints, bool all) {
  std::string proxy;
  Rows rows;
  for (const auto& r : endpoints) {
    if (!all && r.upstream.rfind("outbound", 0) != 0) continue;
    if (r.proxy != proxy) {
      PrintTable(rows);
      proxy = r.proxy;
      std::cout << "\n" << r.proxy << "\n";
      rows = {{"ENDPOINT", "STATUS", "OUTLIER CHECK", "CLUSTER"}};
    }
    rows.push_back({r.endpoint, r.status, r.outlier, r.upstream});
  }
  PrintTable(rows);
}

}  // namespace wavetank::cli
