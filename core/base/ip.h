// Addresses as sockets know them: 128-bit IPs (IPv4 in its mapped form), ports, prefixes. Values, cheap to hash.
// The one address type of the house: core, the fakes and the modelled network all use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace wavetank {

class IpAddress {
 public:
  constexpr IpAddress() = default;  // no address
  static constexpr IpAddress V4(uint32_t host_order) { return IpAddress(0, 0xffff00000000ull | host_order); }
  static constexpr IpAddress V4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    return V4(static_cast<uint32_t>(a) << 24 | static_cast<uint32_t>(b) << 16 | static_cast<uint32_t>(c) << 8 | d);
  }
  static constexpr IpAddress V6(uint64_t high, uint64_t low) { return IpAddress(high, low); }

  // Literals only ("10.1.0.10", "fd00::1"); a host name is kInvalidArgument.
  static absl::StatusOr<IpAddress> Parse(std::string_view text);

  constexpr bool empty() const { return high_ == 0 && low_ == 0; }
  constexpr bool is_v4() const { return high_ == 0 && (low_ >> 32) == 0xffff; }
  constexpr bool is_loopback() const { return is_v4() ? ((low_ >> 24) & 0xff) == 127 : (high_ == 0 && low_ == 1); }
  constexpr uint64_t high() const { return high_; }
  constexpr uint64_t low() const { return low_; }
  std::string ToString() const;

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const IpAddress& a) {
    return H::combine(std::move(h), a.high_, a.low_);
  }

 private:
  constexpr IpAddress(uint64_t high, uint64_t low) : high_(high), low_(low) {}
  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

struct SocketAddress {
  IpAddress ip;
  uint16_t port = 0;

  // "10.1.0.10:5000", "[fd00::1]:5000". InvalidArgument: it is neither.
  static absl::StatusOr<SocketAddress> Parse(std::string_view text);
  std::string ToString() const;
  bool empty() const { return ip.empty() && port == 0; }

  friend constexpr auto operator<=>(const SocketAddress&, const SocketAddress&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SocketAddress& a) {
    return H::combine(std::move(h), a.ip, a.port);
  }
};

struct IpPrefix {
  IpAddress ip;        // bits past `length` are zero
  uint8_t length = 0;  // of the address's own family: 0..32 or 0..128

  // "10.0.0.0/8" or "fd00::/8"; bits past the length may be set and are cleared, as Go's net.ParseCIDR does.
  static absl::StatusOr<IpPrefix> Parse(std::string_view text);
  // `length` larger than the family allows is kInvalidArgument.
  static absl::StatusOr<IpPrefix> Make(std::string_view address, uint32_t length);
  bool Contains(const IpAddress& a) const;
  std::string ToString() const;
  friend constexpr auto operator<=>(const IpPrefix&, const IpPrefix&) = default;
};

inline bool IsIpAddress(std::string_view text) { return IpAddress::Parse(text).ok(); }

}  // namespace wavetank
