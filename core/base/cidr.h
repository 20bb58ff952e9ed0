// IP addresses and prefixes, as far as the control plane needs them: parse, contain.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wavetank {

// 16 bytes; IPv4 in its mapped form (::ffff:a.b.c.d).
struct IpBytes {
  std::array<uint8_t, 16> bytes{};
  bool v4 = false;
};
std::optional<IpBytes> ParseIp(std::string_view text);
inline bool IsIpAddress(std::string_view text) { return ParseIp(text).has_value(); }

struct Cidr {
  IpBytes network;  // bits past `length` are zero
  int length = 0;   // in bits of the mapped form: 96 more than written for IPv4
  bool Contains(const IpBytes& ip) const;
};
// "10.0.0.0/8" or an IPv6 prefix; nullopt if it is none.
std::optional<Cidr> ParseCidr(std::string_view text);

}  // namespace wavetank
