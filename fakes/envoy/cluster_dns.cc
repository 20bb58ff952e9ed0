// Clusters whose endpoints are names.
// Envoy: source/extensions/clusters/{strict_dns,logical_dns}/*.cc
#include <algorithm>
#include <utility>

#include "fakes/envoy/envoy_impl.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

Envoy::Impl::DnsState* Envoy::Impl::FindDns(std::string_view cluster) const {
  for (const auto& d : dns_) {
    if (d->config->name == cluster) return d.get();
  }
  return nullptr;
}

void Envoy::Impl::ResolveDns(const std::shared_ptr<const ClusterConfig>& config) {
  DnsState* state = FindDns(config->name);
  if (state == nullptr) state = dns_.emplace_back(std::make_unique<DnsState>()).get();
  host_.Cancel(state->timer);
  state->timer = kNoTimer;
  state->config = config;
  state->answered = false;
  const std::vector<LbEndpoint>& endpoints = config->load_assignment->endpoints;
  state->answers.assign(endpoints.size(), {});
  state->outstanding = static_cast<uint32_t>(endpoints.size()) + 1;
  state->ttl = config->dns_refresh_rate;
  const std::string name = config->name;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    if (!endpoints[i].address.ip.empty()) {
      DnsAnswered(name, i, DnsAnswer{{endpoints[i].address.ip}, config->dns_refresh_rate});
      continue;
    }
    const std::weak_ptr<Life> life = life_;
    context_.dns().Resolve(endpoints[i].hostname,
                           [life, name, i, hash = config->hash](absl::StatusOr<DnsAnswer> answer) {
                             const std::shared_ptr<Life> alive = life.lock();
                             if (alive == nullptr) return;
                             const DnsState* asked = alive->envoy->FindDns(name);
                             if (asked != nullptr && asked->config->hash == hash)
                               alive->envoy->DnsAnswered(name, i, answer);
                           });
  }
  DnsAnswered(name, endpoints.size(), DnsAnswer{});  // the one for having asked them all
}

void Envoy::Impl::DnsAnswered(const std::string& cluster, size_t endpoint, const absl::StatusOr<DnsAnswer>& answer) {
  DnsState* state = FindDns(cluster);
  if (state == nullptr || state->outstanding == 0) return;
  if (endpoint < state->answers.size() && answer.ok()) {
    state->answers[endpoint] = answer->addresses;
    if (state->config->respect_dns_ttl && answer->ttl > Duration::zero()) state->ttl = answer->ttl;
  }
  if (--state->outstanding > 0) return;
  state->answered = true;
  state->resolved = host_.Now();
  if (const auto* active = active_.Find(cluster)) {
    if ((*active)->config->hash == state->config->hash) SetActive({{cluster, Activate(state->config)}});
  }
  PromoteClusters();
  ClustersMayBeWarm();
  // Only clusters with traffic ask again by themselves; the others do when traffic comes.
  if (runtimes_.contains(cluster)) RefreshDns(FindDns(cluster));
}

void Envoy::Impl::RefreshDns(DnsState* state) {
  if (state == nullptr || state->timer != kNoTimer || !state->answered) return;
  const Duration due = std::max<Duration>(state->resolved + state->ttl - host_.Now(), Duration::zero());
  state->timer = host_.RunAfter(due, [this, name = state->config->name] {
    DnsState* due_state = FindDns(name);
    if (due_state == nullptr) return;
    due_state->timer = kNoTimer;
    // Old addresses stay until new ones are known.
    const std::vector<std::vector<IpAddress>> before = due_state->answers;
    ResolveDns(due_state->config);
    if (DnsState* now = FindDns(name)) {
      for (size_t i = 0; i < before.size() && i < now->answers.size(); ++i) {
        if (now->answers[i].empty()) now->answers[i] = before[i];
      }
    }
  });
}

std::shared_ptr<const EndpointTable> Envoy::Impl::DnsTable(const DnsState& state) {
  const EndpointTable& names = *state.config->load_assignment;
  auto table = std::make_shared<EndpointTable>(names);
  table->endpoints.clear();
  std::string content;
  for (size_t i = 0; i < names.endpoints.size(); ++i) {
    const auto first = static_cast<std::ptrdiff_t>(table->endpoints.size());
    for (const IpAddress& ip : state.answers[i]) {
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
