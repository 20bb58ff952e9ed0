#include "sim/invariants/held.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "core/xds/messages.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"

namespace wavetank::sim {

using pilot::XdsType;

bool Assignment::Holds(const SocketAddress& address) const {
  return std::any_of(endpoints.begin(), endpoints.end(), [&](const Endpoint& e) { return e.address == address; });
}

SubsetName ReadSubsetName(std::string_view cluster) {
  SubsetName out;
  std::string_view* const parts[] = {&out.direction, &out.port, &out.subset};
  for (std::string_view* part : parts) {
    const size_t bar = cluster.find('|');
    if (bar == std::string_view::npos) return {};
    *part = cluster.substr(0, bar);
    cluster.remove_prefix(bar + 1);
  }
  out.host = cluster;
  return out;
}

std::map<std::string_view, BytesRef> Held::Proxy::Resources(XdsType type) const {
  std::map<std::string_view, BytesRef> out;
  if (const auto list = lists.find(type); list != lists.end()) {
    for (const pilot::Resource& resource : list->second) out[resource.name] = resource.bytes;
  }
  if (const auto delta = deltas.find(type); delta != deltas.end()) {
    for (const auto& [name, bytes] : delta->second) out[name] = bytes;
  }
  return out;
}

const Held::Proxy* Held::Find(std::string_view proxy) const {
  const auto it = proxies_.find(proxy);
  return it == proxies_.end() ? nullptr : &it->second;
}

AssignmentRef Held::Read(const pilot::Resource& resource) {
  if (const auto known = read_.find(resource.bytes.get()); known != read_.end()) return known->second;
  if (read_.size() >= sweep_at_) {
    absl::erase_if(read_, [](const auto& entry) { return entry.second.use_count() == 1; });
    sweep_at_ = std::max<size_t>(1024, read_.size() * 2);
  }
  auto out = std::make_shared<Assignment>();
  out->bytes = resource.bytes;
  out->cluster = resource.name;
  envoy::config::endpoint::v3::ClusterLoadAssignment message;
  // What cannot be read is the Envoy's to refuse.
  if (message.ParseFromArray(resource.bytes->data(), static_cast<int>(resource.bytes->size()))) {
    absl::flat_hash_set<SocketAddress> seen;
    for (const auto& locality : message.endpoints()) {
      uint64_t sum = 0;
      for (const auto& each : locality.lb_endpoints()) {
        const uint32_t weight = each.has_load_balancing_weight() ? each.load_balancing_weight().value() : 1;
        sum += weight;
        const auto& socket = each.endpoint().address().socket_address();
        const absl::StatusOr<IpAddress> ip = IpAddress::Parse(socket.address());
        if (!ip.ok()) continue;
        const SocketAddress address{*ip, static_cast<uint16_t>(socket.port_value())};
        if (!seen.insert(address).second && out->twice.empty()) out->twice = address;
        out->endpoints.push_back({address, weight, locality.priority()});
      }
      if (locality.has_load_balancing_weight() && locality.load_balancing_weight().value() != sum) out->weighted = true;
    }
  }
  return read_[resource.bytes.get()] = std::move(out);
}

void Held::Take(const std::string& name, Proxy& proxy, const pilot::ResourceList& resources, const OnAssignment& tell) {
  for (const pilot::Resource& resource : resources) {
    AssignmentRef now = Read(resource);
    const auto [it, fresh] = proxy.assignments.try_emplace(std::string(resource.name));
    if (it->second == now) continue;
    const AssignmentRef before = std::exchange(it->second, std::move(now));
    tell(name, *it->second, before.get());
  }
}

void Held::Apply(const std::string& proxy, const pilot::DiscoveryResponse& response, const OnAssignment& tell) {
  if (response.type == XdsType::kEds) {
    Take(proxy, proxies_[proxy], response.resources, tell);
  } else if (response.type == XdsType::kCds || response.type == XdsType::kLds) {
    Proxy& held = proxies_[proxy];
    held.lists[response.type] = response.resources;
    held.deltas.clear();
  }
}

void Held::Apply(const std::string& proxy, const pilot::DeltaDiscoveryResponse& response, const OnAssignment& tell) {
  Proxy& held = proxies_[proxy];
  if (response.type == XdsType::kEds) {
    Take(proxy, held, response.resources, tell);
    for (const std::string& gone : response.removed_resources) held.assignments.erase(gone);
  } else if (response.type == XdsType::kCds || response.type == XdsType::kLds) {
    auto& resources = held.deltas[response.type];
    held.lists.clear();
    for (const pilot::Resource& each : response.resources) resources[std::string(each.name)] = each.bytes;
    for (const std::string& gone : response.removed_resources) resources.erase(gone);
  }
}

}  // namespace wavetank::sim
