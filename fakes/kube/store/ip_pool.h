// Addresses of one IPv4 range, each handed out to one holder at a time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::fakekube {

class IpPool {
 public:
  // "10.96.0.0/16", or "172.18.255.200-172.18.255.250", of which every address is handed out. A text that is neither
  // makes a pool without addresses, whose errors say so.
  explicit IpPool(std::string cidr);

  // A free address, drawn by `key`, so that what one holder gets does not depend on which others exist (but for
  // collisions). Never the network's own, the broadcast address, or one that ends in 0 or 255. ResourceExhausted
  // when all are taken. O(log taken), O(size) once the pool is nearly full.
  absl::StatusOr<std::string> Allocate(std::string_view key);
  // The lowest free address after the one handed out last, going round.
  absl::StatusOr<std::string> Next();
  // Takes a certain address, of this CIDR or another. False if it is taken.
  bool Reserve(std::string_view address);
  // Unknown addresses are ignored.
  void Release(std::string_view address);

  size_t taken() const { return taken_.size(); }

 private:
  bool Usable(uint32_t address) const;
  absl::StatusOr<std::string> Scan(uint32_t from);

  std::string cidr_;
  uint32_t first_ = 0;  // the network's address
  uint64_t size_ = 0;   // 0: the CIDR cannot be read
  uint32_t last_ = 0;   // offset of the address that Next() gave
  bool whole_ = false;  // first and last address, too
  std::set<uint32_t> taken_;
};

}  // namespace wavetank::fakekube
