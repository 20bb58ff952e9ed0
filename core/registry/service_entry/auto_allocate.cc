#include "core/registry/service_entry/auto_allocate.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>

namespace wavetank::pilot {
namespace {

constexpr uint32_t kSlots = 255 * 255;
constexpr uint32_t kPrime = 65011;  // of the second hash

uint32_t Fnv1a(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

}  // namespace

bool NeedsAutoAllocation(const Service& service) {
  // istiod: ipallocate.go, keepHost.
  const bool some_host = service.hostname.starts_with('*') && service.resolution != Resolution::kDynamicDns;
  return service.default_address == kUnspecifiedIp && !some_host && !service.Passthrough();
}

std::vector<std::string> AutoAllocateIps(const std::vector<ServiceRef>& services) {
  std::vector<std::string> out(services.size());
  // The slot of each service: by a hash of its name, collisions by double hashing.
  std::map<uint32_t, size_t> slots;
  for (size_t i = 0; i < services.size(); ++i) {
    const Service& service = *services[i];
    if (!NeedsAutoAllocation(service) || service.hostname.starts_with('*')) continue;
    if (slots.size() >= kSlots) break;
    const uint32_t hash = Fnv1a(service.attributes.ns + "/" + service.hostname);
    uint32_t slot = hash % kSlots;
    for (uint32_t attempt = 1; slots.contains(slot); ++attempt) {
      slot = (hash + attempt * (kPrime - hash % kPrime)) % kSlots;
    }
    slots.emplace(slot, i);
  }
  // Numbers count with the slots, except that those divisible by 255 are left out and that a second service of the
  // same name takes the first one's and counts nothing.
  std::map<std::string, std::string> by_name;
  uint32_t reused = 0;
  for (const auto& [slot, i] : slots) {
    const Service& service = *services[i];
    const auto [it, fresh] = by_name.try_emplace(service.attributes.ns + "/" + service.hostname);
    if (fresh) {
      const uint32_t ordinal = slot + 1 - reused;
      const uint32_t number = ordinal + (ordinal - 1) / 254;
      it->second = fmt::format("240.240.{}.{}", number / 255, number % 255);
    } else {
      ++reused;
    }
    out[i] = it->second;
  }
  return out;
}

}  // namespace wavetank::pilot
