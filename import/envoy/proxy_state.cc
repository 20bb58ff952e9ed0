#include "import/envoy/proxy_state.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

// A field in either of protobuf's spellings.
const json& Either(const json& in, std::string_view snake, std::string_view camel) {
  const json& value = At(in, snake);
  return value.is_null() ? At(in, camel) : value;
}

std::string AddressOf(const json& address) {
  const json& socket = Either(address, "socket_address", "socketAddress");
  const std::string ip = wavetank::Text(socket, "address");
  if (ip.empty()) return {};
  return fmt::format("{}:{}", ip, NumberOf(Either(socket, "port_value", "portValue")));
}

class Reader {
 public:
  Reader(const std::string& file, Refusals& refusals, ProxyState& out) : file_(file), refusals_(refusals), out_(out) {}

  // envoy: admin/v3/config_dump.proto
  void ConfigDump(const json& dump) {
    out_.form = "config_dump";
    for (const json& config : Items(At(dump, "configs"))) {
      const std::string type = wavetank::Text(config, "@type");
      if (type.ends_with("BootstrapConfigDump")) Node(At(At(config, "bootstrap"), "node"));
      if (type.ends_with(".ClustersConfigDump")) {
        out_.names[kClusterNames];
        for (const json& one : Items(Either(config, "dynamic_active_clusters", "dynamicActiveClusters")))
          AddClusterName(wavetank::Text(At(one, "cluster"), "name"), out_.names);
      }
      if (type.ends_with(".ListenersConfigDump")) {
        out_.names[kListenerNames];
        for (const json& one : Items(Either(config, "dynamic_listeners", "dynamicListeners"))) {
          if (!Either(one, "active_state", "activeState").is_null())
            AddListenerName(wavetank::Text(one, "name"), out_.names);
        }
      }
      if (type.ends_with(".RoutesConfigDump")) {
        out_.names[kRouteNames];
        for (const json& one : Items(Either(config, "dynamic_route_configs", "dynamicRouteConfigs")))
          AddRouteName(wavetank::Text(Either(one, "route_config", "routeConfig"), "name"), out_.names);
      }
      if (!type.ends_with("EndpointsConfigDump")) continue;
      for (const auto& [snake, camel] : {std::pair{"dynamic_endpoint_configs", "dynamicEndpointConfigs"},
                                         std::pair{"static_endpoint_configs", "staticEndpointConfigs"}}) {
        for (const json& one : Items(Either(config, snake, camel))) {
          Assignment(Either(one, "endpoint_config", "endpointConfig"));
        }
      }
    }
    if (out_.endpoints.empty()) refusals_.Add("config_dump without endpoints: take it with ?include_eds", {file_, 0});
  }

  // A list that `istioctl proxy-config ... -o json` prints: of hosts, clusters, listeners or routes.
  void List(const json& list) {
    const json& first = list.empty() ? Null() : list.front();
    if (!Either(first, "virtual_hosts", "virtualHosts").is_null()) {
      out_.form = "istioctl's routes";
      for (const json& one : list) AddRouteName(wavetank::Text(one, "name"), out_.names);
    } else if (At(first, "address").is_object()) {
      out_.form = "istioctl's listeners";
      for (const json& one : list) {
        const json& socket = Either(At(one, "address"), "socket_address", "socketAddress");
        if (socket.is_object())
          AddListener(wavetank::Text(socket, "address"),
                      fmt::format("{}", NumberOf(Either(socket, "port_value", "portValue"))), out_.names);
      }
    } else if (IsCluster(first)) {
      out_.form = "istioctl's clusters";
      for (const json& one : list) AddClusterName(wavetank::Text(one, "name"), out_.names);
    } else {
      Statuses(list);
    }
  }

  // istioctl: pkg/writer/envoy/configdump/{cluster,listener,route}.go
  void Table(std::string_view text) {
    std::string header;
    for (const absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      const std::vector<std::string> words = absl::StrSplit(raw, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
      if (words.empty()) continue;
      if (header.empty()) {
        header = words[0];
        out_.form = "istioctl's table";
        out_.names[header == "SERVICE" ? kClusterNames : header.starts_with("ADDRESS") ? kListenerNames : kRouteNames];
      } else if (header == "SERVICE") {
        ClusterRow(words);
      } else if (header.starts_with("ADDRESS")) {
        // "ADDRESSES" since 1.19: its own first, then those besides (retrieveListenerAddresses).
        if (words.size() > 1) AddListener(words[0].substr(0, words[0].find(',')), words[1], out_.names);
      } else if (raw.front() != ' ' && raw.front() != '\t') {
        AddRouteName(words[0], out_.names);  // those of a listener's own may have none
      }
    }
  }

  // envoy: admin/v3/clusters.proto
  void Statuses(const json& statuses) {
    out_.form = "clusters";
    for (const json& status : Items(statuses)) {
      const std::string name = wavetank::Text(status, "name");
      if (name.empty()) continue;
      std::set<std::string>& held = out_.endpoints[name];
      for (const json& host : Items(Either(status, "host_statuses", "hostStatuses"))) {
        const std::string address = AddressOf(At(host, "address"));
        if (address.empty()) continue;
        held.insert(address);
        Weight(name, address, NumberOf(At(host, "weight")));
      }
    }
  }

  // "outbound|80||web.shop.svc.cluster.local::10.1.0.7:8080::cx_active::0", or istioctl's table:
  // "10.1.0.7:8080  HEALTHY  OK  outbound|80||web.shop.svc.cluster.local"
  void Lines(std::string_view text) {
    uint64_t number = 0;
    for (const absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      ++number;
      const std::string_view line(raw.data(), raw.size());
      const size_t first = line.find("::");
      if (first != line.npos && first > 0) {
        const std::string_view rest = line.substr(first + 2);
        const size_t second = rest.find("::");
        if (second == rest.npos) continue;
        std::set<std::string>& held = out_.endpoints[std::string(line.substr(0, first))];
        const std::string_view address = rest.substr(0, second);
        if (address.find(':') != address.npos) {
          held.insert(std::string(address));
          constexpr std::string_view kWeight = "weight::";
          const std::string_view counter = rest.substr(second + 2);
          int64_t weight = 0;
          if (counter.starts_with(kWeight) &&
              absl::SimpleAtoi(absl::string_view(counter.data() + kWeight.size(), counter.size() - kWeight.size()),
                               &weight)) {
            Weight(line.substr(0, first), address, weight);
          }
        }
        out_.form = "clusters as text";
        continue;
      }
      const std::vector<std::string> words = absl::StrSplit(raw, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
      if (words.size() >= 4 && words[0].find(':') != std::string::npos && words.back().find('|') != std::string::npos) {
        out_.endpoints[words.back()].insert(words[0]);
        out_.form = "istioctl's table";
      } else if (!words.empty() && words[0] != "ENDPOINT") {
        refusals_.Add("line of no known form", {file_, number}, line);
      }
    }
  }

 private:
  // envoy: config/cluster/v3/cluster.proto
  static bool IsCluster(const json& of) {
    return of.is_object() &&
           (of.contains("edsClusterConfig") || of.contains("eds_cluster_config") || of.contains("connectTimeout") ||
            of.contains("connect_timeout") || of.contains("clusterType") || of.contains("cluster_type"));
  }

  // "web.shop.svc.cluster.local  80  -  outbound  EDS  web.shop"; an inbound cluster has no host, others nothing but a
  // name.
  void ClusterRow(const std::vector<std::string>& words) {
    for (const size_t at : {size_t{3}, size_t{2}}) {
      if (words.size() <= at || (words[at] != "outbound" && words[at] != "inbound")) continue;
      const std::string& subset = words[at - 1];
      return AddClusterName(
          fmt::format("{}|{}|{}|{}", words[at], words[at - 2], subset == "-" ? "" : subset, at == 3 ? words[0] : ""),
          out_.names);
    }
    AddClusterName(words[0], out_.names);
  }

  void Node(const json& node) {
    // "sidecar~10.1.0.7~sleep-1.sample~sample.svc.cluster.local"
    const std::vector<std::string> parts = absl::StrSplit(wavetank::Text(node, "id"), '~');
    if (parts.size() == 4) out_.proxy = parts[2];
    out_.cluster = wavetank::Text(At(node, "metadata"), "CLUSTER_ID");
  }

  void Assignment(const json& assignment) {
    const std::string name = TextOf(Either(assignment, "cluster_name", "clusterName"));
    if (name.empty()) return;
    std::set<std::string>& held = out_.endpoints[name];
    for (const json& locality : Items(At(assignment, "endpoints"))) {
      for (const json& endpoint : Items(Either(locality, "lb_endpoints", "lbEndpoints"))) {
        const std::string address = AddressOf(At(At(endpoint, "endpoint"), "address"));
        if (address.empty()) continue;
        held.insert(address);
        Weight(name, address, NumberOf(Either(endpoint, "load_balancing_weight", "loadBalancingWeight")));
      }
    }
  }

  void Weight(std::string_view upstream, std::string_view address, int64_t weight) {
    if (weight > 0) out_.weights[std::string(upstream)][std::string(address)] = weight;
  }

  const std::string& file_;
  Refusals& refusals_;
  ProxyState& out_;
};

}  // namespace

ProxyState ReadProxyState(std::string_view text, const std::string& file, Refusals& refusals) {
  ProxyState out;
  Reader reader(file, refusals, out);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) {
    refusals.Add("empty file", {file, 0});
  } else if (text[first] != '{' && text[first] != '[') {
    const std::string_view head = text.substr(first, 12);
    const bool table = head.starts_with("SERVICE FQDN") || head.starts_with("ADDRESS") || head.starts_with("NAME ");
    table ? reader.Table(text) : reader.Lines(text);
  } else if (const json value = ParseJson(text); value.is_discarded()) {
    refusals.Add("no JSON", {file, 0});
  } else if (value.is_object() && value.contains("configs")) {
    reader.ConfigDump(value);
  } else if (value.is_array()) {
    reader.List(value);
  } else if (value.contains("cluster_statuses") || value.contains("clusterStatuses")) {
    reader.Statuses(Either(value, "cluster_statuses", "clusterStatuses"));
  } else {
    refusals.Add("JSON that no Envoy prints", {file, 0});
  }
  return out;
}

}  // namespace wavetank::importing
