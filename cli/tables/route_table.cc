#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "cli/tables/match_words.h"
#include "cli/tables/proxy_tables.h"
#include "cli/tables/table_text.h"
#include "fmt/format.h"

namespace wavetank::cli::tables {
namespace {

// Short forms stand for the long ones of the same name (istioctl: unexpandDomains).
std::vector<std::string> WithoutExpansions(const std::vector<std::string>& domains) {
  const std::set<std::string> all(domains.begin(), domains.end());
  std::set<std::string> longer;
  for (const std::string& domain : domains) {
    for (const std::string_view suffix : {".svc.cluster.local", ".svc"}) {
      if (domain.ends_with(suffix) && all.contains(domain.substr(0, domain.size() - suffix.size()))) {
        longer.insert(domain);
      }
    }
  }
  std::vector<std::string> out;
  for (const std::string& domain : domains) {
    if (!longer.contains(domain)) out.push_back(domain);
  }
  return out;
}

// istioctl: describeRouteDomains.
std::string Domains(const json& host) {
  std::vector<std::string> all, without_port;
  for (const json& domain : List(host, "domains")) {
    if (domain.is_string()) all.push_back(domain.get<std::string>());
  }
  if (all.size() <= 1) return all.empty() ? "" : all.front();
  for (const std::string& domain : all) {
    const auto colons = std::count(domain.begin(), domain.end(), ':');
    if (colons == 0 || (colons > 2 && domain.ends_with("]"))) without_port.push_back(domain);
  }
  without_port = WithoutExpansions(without_port);
  constexpr size_t kShown = 2;
  if (without_port.size() <= kShown) return absl::StrJoin(without_port, ", ");
  return fmt::format("{}, {} + {} more...", without_port[0], without_port[1], without_port.size() - kShown);
}

bool Passthrough(const json& route) { return TextField(Field(route, "route"), "cluster") == "PassthroughCluster"; }

void VerboseRows(const json& config, std::vector<Row>& rows) {
  const std::string name = TextField(config, "name");
  for (const json& host : List(config, "virtual_hosts")) {
    const std::string domains = Domains(host);
    if (List(host, "routes").empty()) rows.push_back({name, TextField(host, "name"), domains, "/*", "404"});
    for (const json& route : List(host, "routes")) {
      if (Passthrough(route)) continue;
      rows.push_back({name, TextField(host, "name"), domains, MatchWords(Field(route, "match")), Management(route)});
    }
  }
}

std::optional<int64_t> NumberName(const json& config) {
  int64_t number = 0;
  return absl::SimpleAtoi(TextField(config, "name"), &number) ? std::optional<int64_t>(number) : std::nullopt;
}

// istioctl compares names that are numbers, and takes all others for equal to everything, so that its order is that of
// how Go sorts: up to twelve by insertion (sort: zsortfunc.go, insertionSort_func). More of them stand here with the
// names that are no numbers first, as they were.
void SortAsGo(std::vector<json>& routes) {
  constexpr size_t kByInsertion = 12;
  if (routes.size() > kByInsertion) {
    std::stable_sort(routes.begin(), routes.end(), [](const json& a, const json& b) {
      return NumberName(a).value_or(-1) < NumberName(b).value_or(-1);
    });
    return;
  }
  const auto less = [](const json& a, const json& b) {
    const std::optional<int64_t> of_a = NumberName(a), of_b = NumberName(b);
    return of_a && of_b && *of_a < *of_b;
  };
  for (size_t i = 1; i < routes.size(); ++i) {
    for (size_t j = i; j > 0 && less(routes[j], routes[j - 1]); --j) std::swap(routes[j], routes[j - 1]);
  }
}

}  // namespace

absl::StatusOr<std::string> RouteTable(const EnvoyDump& dump, const RouteFilter& filter, Output output) {
  std::vector<json> routes = dump.Routes();
  if (routes.empty()) return absl::NotFoundError("no routes found");
  SortAsGo(routes);
  std::vector<Row> rows = {filter.verbose ? Row{"NAME", "VHOST NAME", "DOMAINS", "MATCH", "VIRTUAL SERVICE"}
                                          : Row{"NAME", "VIRTUAL HOSTS"}};
  nlohmann::ordered_json chosen = nlohmann::ordered_json::array();
  for (const json& config : routes) {
    if (!filter.name.empty() && filter.name != TextField(config, "name")) continue;
    if (output != Output::kShort) {
      chosen.push_back(AsPrinted(config, "envoy.config.route.v3.RouteConfiguration"));
    } else if (filter.verbose) {
      VerboseRows(config, rows);
    } else {
      rows.push_back({TextField(config, "name"), std::to_string(List(config, "virtual_hosts").size())});
    }
  }
  return output == Output::kShort ? TableText(rows, 5) : ListDocument(chosen, output);
}

}  // namespace wavetank::cli::tables
