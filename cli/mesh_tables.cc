#include "cli/mesh_tables.h"

#include <algorithm>
#include <iostream>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "cli/verb.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

// As kubectl shows it.
std::string External(const scenario::ServiceRow& r) {
  if (!r.external.empty()) return r.external;
  return r.type == "LoadBalancer" ? "<pending>" : "<none>";
}

// In a larger mesh a table for each proxy is longer than anybody reads.
constexpr size_t kShownApart = 24, kNamed = 5;

struct HeldEndpoints {
  std::vector<std::string_view> proxies;
  std::vector<const scenario::EndpointRow*> rows;
};

auto Content(const scenario::EndpointRow& r) { return std::tie(r.endpoint, r.status, r.outlier, r.upstream); }

// Proxies that hold the same in one, in the place of the first.
std::vector<HeldEndpoints> OncePerContent(std::vector<HeldEndpoints> held) {
  std::vector<HeldEndpoints> out;
  absl::flat_hash_map<size_t, std::vector<size_t>> known;  // places in `out` by hash
  for (HeldEndpoints& each : held) {
    size_t hash = 0;
    for (const scenario::EndpointRow* r : each.rows) hash = absl::HashOf(hash, r->endpoint, r->status, r->upstream);
    std::vector<size_t>& alike = known[hash];
    const auto same = std::find_if(alike.begin(), alike.end(), [&](size_t place) {
      return std::equal(out[place].rows.begin(), out[place].rows.end(), each.rows.begin(), each.rows.end(),
                        [](const auto* a, const auto* b) { return Content(*a) == Content(*b); });
    });
    if (same != alike.end()) {
      out[*same].proxies.push_back(each.proxies.front());
    } else {
      alike.push_back(out.size());
      out.push_back(std::move(each));
    }
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

void PrintEndpoints(const std::vector<scenario::EndpointRow>& endpoints, bool all) {
  std::vector<HeldEndpoints> held;
  for (const auto& r : endpoints) {
    if (!all && r.upstream.rfind("outbound", 0) != 0) continue;
    if (held.empty() || held.back().proxies.front() != r.proxy) held.push_back({{r.proxy}, {}});
    held.back().rows.push_back(&r);
  }
  if (held.size() > kShownApart) held = OncePerContent(std::move(held));
  for (const HeldEndpoints& each : held) {
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

}  // namespace wavetank::cli
