#include "fakes/envoy/lb/consistent_hash.h"

#include <algorithm>
#include <limits>
#include <string>

#include "fakes/envoy/lb/load_balancer.h"
#include "fmt/format.h"
#include "xxhash.h"

namespace wavetank::envoysim {
namespace {

constexpr uint32_t kFree = std::numeric_limits<uint32_t>::max();

uint64_t Hash(std::string_view key, uint64_t seed = 0) { return XXH64(key.data(), key.size(), seed); }

std::string HashKey(const EndpointTable& table, uint32_t host, const LbConfig& config) {
  const LbEndpoint& endpoint = table.endpoints[host];
  return config.use_hostname_for_hashing && !endpoint.hostname.empty() ? endpoint.hostname
                                                                       : endpoint.address.ToString();
}

// Relative weights of `hosts`. With locality weights a host's share is the locality's, divided by the hosts' weights.
std::vector<uint64_t> Weights(const EndpointTable& table, const std::vector<uint32_t>& hosts, const LbConfig& config) {
  std::vector<uint64_t> weights;
  weights.reserve(hosts.size());
  if (!config.locality_weighted) {
    for (uint32_t host : hosts) weights.push_back(std::max<uint32_t>(table.endpoints[host].weight, 1));
    return weights;
  }
  std::vector<uint64_t> sums(table.localities.size(), 0);
  for (uint32_t host : hosts) sums[table.endpoints[host].locality] += table.endpoints[host].weight;
  for (uint32_t host : hosts) {
    const LbEndpoint& e = table.endpoints[host];
    const uint64_t share = (uint64_t{e.weight} << 24) / std::max<uint64_t>(sums[e.locality], 1);
    weights.push_back(share * table.localities[e.locality].weight);
  }
  return weights;
}

}  // namespace

uint64_t HashOfText(std::string_view text) { return Hash(text); }

std::vector<std::pair<uint64_t, uint32_t>> BuildHashRing(const EndpointTable& table, const std::vector<uint32_t>& hosts,
                                                         const LbConfig& config) {
  using Wide = unsigned __int128;
  std::vector<std::pair<uint64_t, uint32_t>> ring;
  const std::vector<uint64_t> weights = Weights(table, hosts, config);
  uint64_t sum = 0, lightest = std::numeric_limits<uint64_t>::max();
  for (uint64_t w : weights) {
    sum += w;
    if (w > 0) lightest = std::min(lightest, w);
  }
  if (sum == 0) return ring;
  // Points per unit of weight, as a fraction: a whole number for the lightest host, unless that makes the ring too big.
  Wide numerator = (static_cast<Wide>(lightest) * config.minimum_ring_size + sum - 1) / sum;
  Wide denominator = lightest;
  if (numerator * sum > static_cast<Wide>(config.maximum_ring_size) * denominator) {
    numerator = config.maximum_ring_size;
    denominator = sum;
  }
  Wide cumulated = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string key = HashKey(table, hosts[i], config);
    cumulated += weights[i];
    const Wide target = (numerator * cumulated + denominator - 1) / denominator;
    for (uint64_t point = 0; ring.size() < target; ++point) {
      ring.emplace_back(Hash(fmt::format("{}_{}", key, point)), hosts[i]);
    }
  }
  std::sort(ring.begin(), ring.end());
  return ring;
}

std::vector<uint32_t> BuildMaglevTable(const EndpointTable& table, const std::vector<uint32_t>& hosts,
                                       const LbConfig& config) {
  struct Entry {
    std::string key;
    uint32_t host;
    uint64_t weight, target, offset, skip, next;
  };
  const std::vector<uint64_t> weights = Weights(table, hosts, config);
  const uint64_t size = config.maglev_table_size;
  std::vector<Entry> entries;
  uint64_t heaviest = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string key = HashKey(table, hosts[i], config);
    if (weights[i] == 0) continue;
    entries.push_back({key, hosts[i], weights[i], 0, Hash(key) % size, Hash(key, 1) % (size - 1) + 1, 0});
    heaviest = std::max(heaviest, weights[i]);
  }
  if (entries.empty()) return {};
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  std::vector<uint32_t> slots(size, kFree);
  uint64_t filled = 0;
  // Each round the heaviest host takes one free slot of its permutation, the others proportionally fewer.
  for (uint64_t round = 1; filled < size; ++round) {
    for (Entry& e : entries) {
      if (filled == size) break;
      if (round * e.weight < e.target) continue;
      e.target += heaviest;
      uint64_t slot = 0;
      do {
        slot = (e.offset + e.skip * e.next++) % size;
      } while (slots[slot] != kFree);
      slots[slot] = e.host;
      ++filled;
    }
  }
  return slots;
}

}  // namespace wavetank::envoysim
