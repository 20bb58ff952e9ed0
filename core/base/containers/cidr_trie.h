// Which of many prefixes contain an address: a binary trie, one for each family.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/ip.h"

namespace wavetank {

// Insert and find take a step per bit (32 or 128 at most), whatever the number of prefixes.
template <typename T>
class CidrTrie {
 public:
  // False if the very same prefix is there already; its value stays.
  bool Insert(const IpPrefix& prefix, T value) {
    uint32_t node = Root(prefix.ip);
    for (uint32_t depth = 0; depth < prefix.length; ++depth) {
      const bool bit = Bit(prefix.ip, depth);
      if (nodes_[node].child[bit] == 0) {
        nodes_[node].child[bit] = static_cast<uint32_t>(nodes_.size());
        nodes_.emplace_back();
      }
      node = nodes_[node].child[bit];
    }
    if (nodes_[node].value.has_value()) return false;
    nodes_[node].value.emplace(std::move(value));
    ++size_;
    return true;
  }

  // Of the shortest prefix that contains `ip`; nullptr if none does. The pointer holds until the next Insert.
  const T* FindWidest(const IpAddress& ip) const { return Find(ip, true); }
  // Of the longest.
  const T* FindNarrowest(const IpAddress& ip) const { return Find(ip, false); }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void clear() { *this = CidrTrie(); }

 private:
  struct Node {
    uint32_t child[2] = {0, 0};  // 0: none, since no node has a root for its child
    std::optional<T> value;
  };

  static uint32_t Root(const IpAddress& ip) { return ip.is_v4() ? 0 : 1; }
  static uint32_t Width(const IpAddress& ip) { return ip.is_v4() ? 32 : 128; }
  static bool Bit(const IpAddress& ip, uint32_t depth) {
    const uint32_t at = depth + 128 - Width(ip);
    return ((at < 64 ? ip.high() >> (63 - at) : ip.low() >> (127 - at)) & 1) != 0;
  }

  const T* Find(const IpAddress& ip, bool widest) const {
    const T* found = nullptr;
    uint32_t node = Root(ip);
    for (uint32_t depth = 0;; ++depth) {
      if (nodes_[node].value.has_value()) {
        found = &*nodes_[node].value;
        if (widest) return found;
      }
      if (depth == Width(ip)) return found;
      node = nodes_[node].child[Bit(ip, depth)];
      if (node == 0) return found;
    }
  }

  std::vector<Node> nodes_{2};
  size_t size_ = 0;
};

}  // namespace wavetank
