// Ketama rings and Maglev tables, point for point as Envoy builds them, in integers.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/envoy/lb/endpoint_table.h"

namespace wavetank::envoysim {

struct LbConfig;

// What hash policies make of a header, an address, ... Envoy: source/common/common/hash.h, HashUtil::xxHash64
uint64_t HashOfText(std::string_view text);

// (point, index into table.endpoints), sorted. About minimum_ring_size points; the lightest host has a whole number.
// Envoy: source/extensions/load_balancing_policies/ring_hash/ring_hash_lb.cc
std::vector<std::pair<uint64_t, uint32_t>> BuildHashRing(const EndpointTable& table, const std::vector<uint32_t>& hosts,
                                                         const LbConfig& config);

// maglev_table_size (a prime) entries, each an index into table.endpoints; empty without hosts.
// Envoy: source/extensions/load_balancing_policies/maglev/maglev_lb.cc
std::vector<uint32_t> BuildMaglevTable(const EndpointTable& table, const std::vector<uint32_t>& hosts,
                                       const LbConfig& config);

}  // namespace wavetank::envoysim
