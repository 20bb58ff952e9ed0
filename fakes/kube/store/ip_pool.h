// Addresses of one range, each handed out to one holder at a time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/ip.h"

namespace wavetank::fakekube {

class IpPool {
 public:
  // "10.96.0.0/16", "fd00:96::/112" (of a larger one the first 2^32 addresses), or "172.18.255.200-172.18.255.250", of
  // which every address is handed out. A text that is none of these makes a pool without addresses, whose errors say
  // so.
  explicit IpPool(std::string cidr);

  // A free address, drawn by `key`, so that what one holder gets does not depend on which others exist (but for
  // collisions). Never the network's own, the broadcast address, or one that ends in 0 or 255. ResourceExhausted
  // when all are taken. O(log taken), O(size) once the pool is nearly full.
  absl::StatusOr<std::string> Allocate(std::string_view key);
  bool is_v4() const { return first_.is_v4(); }
  // OK, or why it has no addresses.
  absl::Status readable() const;
  // The lowest free address after the one handed out last, going round.
  absl::StatusOr<std::string> Next();
  // Takes a certain address, of this CIDR or another. False if it is taken.
  bool Reserve(std::string_view address);
  // Unknown addresses are ignored.
  void Release(std::string_view address);

  size_t taken() const { return taken_.size(); }

 private:
  IpAddress At(uint64_t offset) const;
  bool Usable(uint64_t offset) const;
  absl::StatusOr<std::string> Scan(uint32_t from);

  std::string cidr_;
  IpAddress first_ = IpAddress::V4(0);  // the network's address
  uint64_t size_ = 0;                   // 0: the CIDR cannot be read
  uint32_t last_ = 0;                   // offset of the address that Next() gave
  bool whole_ = false;                  // first and last address, too
  std::set<IpAddress> taken_;
};

// A cluster's ranges, the first of which is the one of its first IP family: "10.1.0.0/16,fd00:10:1::/64".
std::vector<IpPool> IpPoolsOf(const std::string& cidrs);

// Whether pools of these ranges have addresses, and no two of them are of one IP family.
absl::Status CheckRanges(const std::string& cidrs);

}  // namespace wavetank::fakekube
