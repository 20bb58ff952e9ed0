#include "core/base/json/json_map.h"

#include <array>
#include <cstring>
#include <mutex>
#include <set>

namespace wavetank {
namespace {

constexpr size_t kLongest = 64;
constexpr size_t kMost = 16384;  // Kubernetes', Istio's and Envoy's are some three thousand

struct Names {
  std::mutex mutex;
  std::set<std::string, std::less<>> all;  // each stays where it is
};

// Where a thread looks first: few names are in use at a time.
constexpr size_t kNear = 1024;
size_t NearIndex(std::string_view name) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15, kOther = 0xC2B2AE3D27D4EB4F;
  uint64_t head = 0, tail = 0;
  const size_t known = std::min(name.size(), sizeof head);
  std::memcpy(&head, name.data(), known);
  std::memcpy(&tail, name.data() + name.size() - known, known);
  const uint64_t mixed = (head * kOdd) ^ (tail * kOther) ^ name.size();
  return ((mixed ^ (mixed >> 32)) * kOdd) >> 54;
}
static_assert(kNear == size_t{1} << (64 - 54));

}  // namespace

const std::string* SharedJsonName(std::string_view name) {
  if (name.size() > kLongest) return nullptr;
  thread_local std::array<const std::string*, kNear> near{};
  const std::string*& here = near[NearIndex(name)];
  if (here != nullptr && *here == name) return here;
  static Names& names = *new Names;  // outlives all JSON
  const std::lock_guard lock(names.mutex);
  auto it = names.all.find(name);
  if (it == names.all.end()) {
    if (names.all.size() >= kMost) return nullptr;
    it = names.all.emplace(name).first;
  }
  return here = &*it;
}

}  // namespace wavetank
