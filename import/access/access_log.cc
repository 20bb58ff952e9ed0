#include "import/access/access_log.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_split.h"

namespace wavetank::importing {
namespace {

constexpr size_t kMostFlows = 200'000;
constexpr uint64_t kMostPaths = 50;
constexpr size_t kMostUpstreams = 200;
constexpr size_t kMostName = 300;
constexpr int64_t kGatewayPort = 15443;

// "10.1.0.7" of "10.1.0.7:5000", "fd00::7" of "[fd00::7]:5000"; of anything else nothing.
std::string_view IpOf(std::string_view address) {
  if (address.starts_with('[')) return address.substr(1, std::min(address.find(']'), address.size()) - 1);
  const size_t colon = address.find(':');
  if (colon == address.npos) return {};
  // A second one: an address of version 6 without its port.
  return address.find(':', colon + 1) == address.npos ? address.substr(0, colon) : address;
}

int64_t PortOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  int64_t port = 0;
  if (colon == address.npos || !ReadInteger(address.substr(colon + 1), port) || port < 1 || port > 65535) return 0;
  return port;
}

struct Upstream {
  std::string host, subset;
  int64_t port = 0;
};
// "outbound|5000|v1|HOST", "outbound_.5000_.v1_.HOST"
Upstream ReadUpstream(std::string_view cluster) {
  Upstream out;
  const std::string_view between = cluster.starts_with("outbound_.") ? "_." : "|";
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(cluster.data(), cluster.size()),
                                                        absl::string_view(between.data(), between.size()));
  if (parts.size() != 4) return out;
  if (!ReadInteger(parts[1], out.port) || out.port < 1 || out.port > 65535) out.port = 0;
  out.subset = parts[2];
  out.host = parts[3];
  return out;
}

WallNs WindowOf(WallNs at) { return at - ((at % kTrafficWindow) + kTrafficWindow) % kTrafficWindow; }

// "/a" of "/a/b?c".
std::string_view Stem(std::string_view path) {
  path = path.substr(0, std::min(path.find('?'), path.size()));
  const size_t second = path.find('/', 1);
  return path.substr(0, second == path.npos ? path.size() : second);
}

}  // namespace

AccessLog::AccessLog(PodName proxy, Traffic& traffic, Refusals& refusals)
    : proxy_(std::move(proxy)), traffic_(traffic), refusals_(refusals) {}

AccessLog::Side AccessLog::SideOf(const AccessLine& line) const {
  const std::string_view cluster = line[AccessField::kUpstreamCluster];
  const std::string_view remote = IpOf(line[AccessField::kDownstreamRemote]);
  if (cluster.starts_with("inbound|") || cluster.starts_with("InboundPassthroughCluster")) return Side::kServer;
  if (cluster.starts_with("outbound_.")) return Side::kGateway;
  // A sidecar's clients have its own address; a gateway's have not.
  const std::string_view local = IpOf(line[AccessField::kUpstreamLocal]);
  const std::string_view own = own_ip_.empty() ? local : std::string_view(own_ip_);
  if (!cluster.empty()) return own.empty() || remote.empty() || remote == own ? Side::kClient : Side::kOutside;
  if (line[AccessField::kServerName].starts_with("outbound_.")) return Side::kServer;
  if (!own.empty() && !remote.empty() && remote != own) {
    return IpOf(line[AccessField::kDownstreamLocal]) == own ? Side::kServer : Side::kOutside;
  }
  return Side::kClient;
}

void AccessLog::Add(const AccessLine& line, const Place& place) {
  ++traffic_.lines;
  if (traffic_.from == kNoTime || line.start < traffic_.from) traffic_.from = line.start;
  if (traffic_.to == kNoTime || line.start > traffic_.to) traffic_.to = line.start;
  const std::string_view cluster = line[AccessField::kUpstreamCluster];
  if (own_ip_.empty()) {
    const std::string_view own = cluster.starts_with("outbound|")  ? IpOf(line[AccessField::kUpstreamLocal])
                                 : cluster.starts_with("inbound|") ? IpOf(line[AccessField::kDownstreamLocal])
                                                                   : std::string_view();
    if (!own.empty() && own.size() < 50) traffic_.addresses[proxy_] = own_ip_ = std::string(own);
  }
  switch (SideOf(line)) {
    case Side::kGateway:
      ++traffic_.at_gateways;
      return;
    case Side::kOutside:
      ++traffic_.from_outside;
      return;
    case Side::kServer:
      AddServed(line, place, proxy_);
      return AddRequest(line, place, true);
    case Side::kClient: {
      AddRequest(line, place, false);
      // What an upstream answered, where nothing on the way failed: its own log may be missing.
      const std::string_view upstream = line[AccessField::kUpstreamHost];
      if (line[AccessField::kFlags].empty() && line.code > 0 && PortOf(upstream) != kGatewayPort &&
          !IpOf(upstream).empty() && IpOf(upstream).size() < 50) {
        AddServed(line, place, {"", "", "@" + std::string(IpOf(upstream))});
      }
      return;
    }
  }
}

void AccessLog::AddRequest(const AccessLine& line, const Place& place, bool from_server) {
  FlowKey key;
  Flow fresh;
  const Upstream upstream = ReadUpstream(line[AccessField::kUpstreamCluster]);
  const std::string_view authority = line[AccessField::kAuthority].substr(0, kMostName);
  key.tcp = line[AccessField::kMethod].empty();
  key.method = line[AccessField::kMethod].substr(0, 20);
  if (from_server) {
    // "outbound_.5000_._.HOST"; without mTLS there is none.
    const Upstream asked = ReadUpstream(line[AccessField::kServerName]);
    key.client_ip = IpOf(line[AccessField::kDownstreamRemote]);
    key.port = asked.port != 0 ? asked.port : PortOf(line[AccessField::kDownstreamLocal]);
    key.host = asked.host;
    fresh.service = asked.host;
    if (key.client_ip.empty() || key.client_ip.size() > 50) return;
  } else {
    key.client = proxy_;
    key.port = upstream.port != 0 ? upstream.port : PortOf(line[AccessField::kDownstreamLocal]);
    fresh.service = upstream.host;
  }
  if (!authority.empty() && !key.tcp) {
    const int64_t port = PortOf(authority);
    key.host =
        port != 0 && authority.find(']') == authority.npos ? authority.substr(0, authority.rfind(':')) : authority;
    if (key.port == 0) key.port = port != 0 ? port : 80;
  } else if (key.host.empty()) {
    key.host = !upstream.host.empty() ? upstream.host : std::string(IpOf(line[AccessField::kDownstreamLocal]));
  }
  if (key.host.empty() || key.port == 0) {
    return refusals_.Add("access log line that does not tell what was asked for", place);
  }
  const std::string_view path = line[AccessField::kPath].substr(0, kMostName);
  key.path = Stem(path);
  auto it = traffic_.flows.find(key);
  if (it == traffic_.flows.end()) {
    if (++paths_[key.host] > kMostPaths) key.path = "/";
    if (traffic_.flows.size() >= kMostFlows && !traffic_.flows.contains(key)) {
      return refusals_.Add("request of more clients, hosts and paths than are kept", place);
    }
    fresh.path = path.empty() ? std::string("/") : std::string(path.substr(0, std::min(path.find('?'), path.size())));
    it = traffic_.flows.try_emplace(key, std::move(fresh)).first;
  }
  if (it->second.service.empty()) it->second.service = fresh.service.empty() ? upstream.host : fresh.service;
  TrafficWindow one;
  one.first = one.last = line.start;
  one.requests = 1;
  one.codes[line.code] = 1;
  one.flags[line[AccessField::kFlags].empty() ? "-" : std::string(line[AccessField::kFlags].substr(0, 60))] = 1;
  TrafficWindow& window = it->second.windows[WindowOf(line.start)];
  const std::string upstream_host(line[AccessField::kUpstreamHost].substr(0, 60));
  if (!from_server && !upstream_host.empty() &&
      (window.upstreams.size() < kMostUpstreams || window.upstreams.contains(upstream_host))) {
    one.upstreams[upstream_host] = 1;
  }
  if (line.duration_ms >= 0) one.durations.Add(line.duration_ms);
  one.place = place;
  window.Add(one);
}

void AccessLog::AddServed(const AccessLine& line, const Place& place, const PodName& server) {
  // What the proxy itself answered says nothing of the application.
  if (!line[AccessField::kFlags].empty() || line.code == 0) return;
  const std::string_view details = line[AccessField::kDetails];
  if (!details.empty() && details != "via_upstream") return;
  ServedWindow& window = traffic_.served[server][WindowOf(line.start)];
  if (window.requests++ == 0) window.place = place;
  ++window.codes[line.code];
  if (line.duration_ms >= 0) window.durations.Add(line.duration_ms);
}

}  // namespace wavetank::importing
