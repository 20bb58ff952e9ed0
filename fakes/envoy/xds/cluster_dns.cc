// Clusters whose endpoints are names.
// Envoy: source/extensions/clusters/dns/dns_cluster.cc
#include <algorithm>
#include <utility>

#include "core/base/buggify/buggify.h"
#include "fakes/envoy/xds/xds_state.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

XdsState::DnsState* XdsState::FindDns(std::string_view cluster) const {
  for (const auto& d : dns_) {
    if (d->config->name == cluster) return d.get();
  }
  return nullptr;
}

XdsState::DnsState* XdsState::FindDns(const ClusterConfig& config) const {
  DnsState* state = FindDns(config.name);
  return state != nullptr && state->config->hash == config.hash ? state : nullptr;
}

void XdsState::CancelDns(const DnsState& state) {
  for (const DnsName& name : state.names) host_.Cancel(name.timer);
}

void XdsState::ForgetDns(std::string_view cluster) {
  for (auto it = dns_.begin(); it != dns_.end(); ++it) {
    if ((*it)->config->name != cluster) continue;
    CancelDns(**it);
    dns_.erase(it);
    return;
  }
}

void XdsState::ResolveDns(const std::shared_ptr<const ClusterConfig>& config) {
  ForgetDns(config->name);
  DnsState* state = dns_.emplace_back(std::make_unique<DnsState>()).get();
  state->config = config;
  const size_t count = config->load_assignment->endpoints.size();
  state->names.resize(count);
  state->answered = count == 0;
  for (size_t i = 0; i < count; ++i) ResolveName(config, i);
}

void XdsState::ResolveName(const std::shared_ptr<const ClusterConfig>& config, size_t endpoint) {
  const LbEndpoint& e = config->load_assignment->endpoints[endpoint];
  if (!e.address.ip.empty()) {
    DnsAnswered(config, endpoint, DnsAnswer{{e.address.ip}, {}});
    return;
  }
  const std::weak_ptr<Life> life = life_;
  process_.context().dns().Resolve(e.hostname, [life, config, endpoint](absl::StatusOr<DnsAnswer> answer) {
    const std::shared_ptr<Life> alive = life.lock();
    if (alive == nullptr) return;
    if (BuggifyFires(BuggifyPoint::kDnsFails)) answer = absl::UnavailableError("DNS query timed out");
    if (answer.ok() && answer->addresses.size() > 1 && BuggifyFires(BuggifyPoint::kDnsOrder)) {
      std::vector<IpAddress>& ips = answer->addresses;
      const uint64_t turn = BuggifyBelow(BuggifyPoint::kDnsOrder, ips.size());
      std::rotate(ips.begin(), ips.begin() + static_cast<std::ptrdiff_t>(turn), ips.end());
    }
    alive->xds->DnsAnswered(config, endpoint, answer);
  });
}

// Each name is asked for on its own, again and again; a cluster is warm with the first answer of any. A name without
// addresses empties its part of a STRICT_DNS cluster; whatever else is wrong changes nothing.
// Envoy: dns_cluster.cc, onResolutionComplete; dns_resolver/cares/dns_impl.cc, isResponseWithNoRecords
void XdsState::DnsAnswered(const std::shared_ptr<const ClusterConfig>& config, size_t endpoint,
                           const absl::StatusOr<DnsAnswer>& answer) {
  DnsState* state = FindDns(*config);
  if (state == nullptr) return;
  DnsName& name = state->names[endpoint];
  static const std::vector<IpAddress> kNone;
  const std::vector<IpAddress>& addresses = answer.ok() ? answer->addresses : kNone;
  const bool counts = !addresses.empty() ||
                      (config->type == DiscoveryType::kStrictDns && (answer.ok() || absl::IsNotFound(answer.status())));
  Duration again = config->dns_refresh_rate;
  if (!addresses.empty() && config->respect_dns_ttl && answer->ttl > Duration::zero()) again = answer->ttl;
  host_.Cancel(name.timer);
  name.timer = host_.RunAfter(again, [this, config, endpoint] {
    DnsState* due = FindDns(*config);
    if (due == nullptr) return;
    due->names[endpoint].timer = kNoTimer;
    const auto* active = view_.active().Find(config->name);
    const auto warming = FindWarming(config->name);
    const bool wanted = (active != nullptr && (*active)->config->hash == config->hash) ||
                        (warming != warming_clusters_.end() && warming->config->hash == config->hash);
    wanted ? ResolveName(config, endpoint) : ForgetDns(config->name);
  });
  const bool first = !std::exchange(state->answered, true);
  if (counts && name.addresses != addresses) {
    name.addresses = addresses;
    if (const auto* active = view_.active().Find(config->name)) {
      if ((*active)->config->hash == config->hash) SetActive({{config->name, Activate(config)}});
    }
  }
  if (!first) return;
  PromoteClusters();
  ClustersMayBeWarm();
}

std::shared_ptr<const EndpointTable> XdsState::DnsTable(const DnsState& state) {
  const EndpointTable& names = *state.config->load_assignment;
  auto table = std::make_shared<EndpointTable>(names);
  table->endpoints.clear();
  std::string content;
  for (size_t i = 0; i < names.endpoints.size(); ++i) {
    const auto first = static_cast<std::ptrdiff_t>(table->endpoints.size());
    for (const IpAddress& ip : state.names[i].addresses) {
      LbEndpoint e = names.endpoints[i];
      e.address.ip = ip;
      if (e.hostname.empty()) e.hostname = ip.ToString();
      content += fmt::format("{}/{} ", i, ip.ToString());
      // Names that lead to the same address are hosts of their own.
      const bool known = std::any_of(table->endpoints.begin() + first, table->endpoints.end(),
                                     [&](const LbEndpoint& other) { return other.address == e.address; });
      if (!known) table->endpoints.push_back(std::move(e));
      // One logical host, whatever the number of addresses.
      if (state.config->type == DiscoveryType::kLogicalDns) break;
    }
  }
  table->hash = HashBytes(content, state.config->hash.low);
  return table;
}

}  // namespace wavetank::envoysim
