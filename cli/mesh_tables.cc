#include "cli/mesh_tables.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cli/verb.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

// As kubectl shows it.
std::string External(const scenario::ServiceRow& r) {
  if (!r.external.empty()) return r.external;
  return r.type == "LoadBalancer" ? "<pending>" : "<none>";
}

// In a larger mesh a table for each proxy, or a row for each client, is longer than anybody reads.
constexpr size_t kShownApart = 24, kNamed = 5;

struct HeldEndpoints {
  std::vector<std::string_view> proxies;
  std::vector<const scenario::EndpointRow*> rows;
};

bool SameRows(const HeldEndpoints& a, const HeldEndpoints& b) {
  return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                    [](const auto* one, const auto* other) { return *one == *other; });
}

// Proxies that hold the same in one, in the place of the first. `shown` is of one list: proxies share equal ones.
template <typename Shown>
std::vector<HeldEndpoints> OncePerContent(const std::vector<scenario::ProxyEndpoints>& endpoints, Shown shown) {
  std::vector<HeldEndpoints> out;
  absl::flat_hash_map<const void*, size_t> places;  // in `out`, of lists
  for (const scenario::ProxyEndpoints& each : endpoints) {
    const auto [known, fresh] = places.try_emplace(each.rows.get(), out.size());
    if (fresh) {
      HeldEndpoints held{{}, shown(*each.rows)};
      // Lists that differ in what is not shown look the same.
      const auto same = std::find_if(out.begin(), out.end(), [&](const auto& other) { return SameRows(other, held); });
      known->second = static_cast<size_t>(same - out.begin());
      if (same == out.end()) out.push_back(std::move(held));
    }
    out[known->second].proxies.push_back(each.proxy);
  }
  return out;
}

void Add(const std::map<std::string, int64_t>& counts, std::map<std::string, int64_t>* sums) {
  for (const auto& [name, count] : counts) (*sums)[name] += count;
}

std::string Counts(const std::map<std::string, int64_t>& counts) {
  std::string out;
  for (const auto& [name, count] : counts) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count);
  return out.empty() ? "-" : out;
}

struct ClientsAlike {
  scenario::ReachabilityRow row;  // the first's, with the sums of all
  size_t more = 0;
};

// Clients of a cluster whose requests to a Service are answered by the same clusters and fail for the same reasons.
std::vector<ClientsAlike> AsTheyFare(const std::vector<scenario::ReachabilityRow>& rows) {
  std::vector<ClientsAlike> out;
  std::map<std::vector<std::string>, size_t> places;  // in `out`
  for (const scenario::ReachabilityRow& row : rows) {
    std::vector<std::string> fare = {row.client_cluster, row.service};
    for (const auto& [cluster, count] : row.answered_by) fare.push_back("answered by " + cluster);
    for (const auto& [why, count] : row.failed) fare.push_back("failed " + why);
    const auto [known, fresh] = places.try_emplace(std::move(fare), out.size());
    if (fresh) {
      out.push_back({row, 0});
      continue;
    }
    ClientsAlike& alike = out[known->second];
    ++alike.more;
    Add(row.answered_by, &alike.row.answered_by);
    Add(row.failed, &alike.row.failed);
  }
  return out;
}

}  // namespace

void PrintServices(const std::vector<scenario::ServiceRow>& services) {
  Rows rows = {{"CLUSTER", "NAMESPACE", "SERVICE", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORTS"}};
  for (const auto& r : services) {
    rows.push_back({r.cluster, r.ns, r.name, r.type, r.cluster_ip, External(r), r.ports});
  }
  PrintTable(rows);
}

void PrintEndpoints(const std::vector<scenario::ProxyEndpoints>& endpoints, bool all) {
  const auto shown = [all](const std::vector<scenario::EndpointRow>& rows) {
    std::vector<const scenario::EndpointRow*> out;
    for (const scenario::EndpointRow& r : rows) {
      if (all || r.upstream.starts_with("outbound")) out.push_back(&r);
    }
    return out;
  };
  std::vector<HeldEndpoints> held;
  if (endpoints.size() > kShownApart) {
    held = OncePerContent(endpoints, shown);
  } else {
    for (const scenario::ProxyEndpoints& each : endpoints) held.push_back({{each.proxy}, shown(*each.rows)});
  }
  for (const HeldEndpoints& each : held) {
    if (each.rows.empty()) continue;
    std::cout << "\n" << each.proxies.front();
    if (const size_t more = each.proxies.size() - 1; more > 0) {
      std::cout << fmt::format(" and {} more that hold the same: ", more);
      for (size_t i = 1; i <= std::min(more, kNamed); ++i) std::cout << (i == 1 ? "" : ", ") << each.proxies[i];
      if (more > kNamed) std::cout << ", ...";
    }
    std::cout << "\n";
    Rows rows = {{"ENDPOINT", "STATUS", "OUTLIER CHECK", "CLUSTER"}};
    for (const scenario::EndpointRow* r : each.rows) rows.push_back({r->endpoint, r->status, r->outlier, r->upstream});
    PrintTable(rows);
  }
}

void PrintReachability(const std::vector<scenario::ReachabilityRow>& reachability) {
  std::set<std::pair<std::string_view, std::string_view>> clients;
  for (const auto& r : reachability) clients.insert({r.client_cluster, r.client});
  std::vector<ClientsAlike> alike;
  if (clients.size() > kShownApart) {
    alike = AsTheyFare(reachability);
  } else {
    for (const auto& r : reachability) alike.push_back({r, 0});
  }
  Rows rows = {{"CLIENT", "IN", "SERVICE", "ANSWERED BY", "FAILED"}};
  for (const auto& [r, more] : alike) {
    rows.push_back({more == 0 ? r.client : fmt::format("{} and {} more", r.client, more), r.client_cluster, r.service,
                    Counts(r.answered_by), Counts(r.failed)});
  }
  PrintTable(rows);
}

}  // namespace wavetank::cli
