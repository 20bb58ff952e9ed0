#include "core/base/cidr.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace wavetank {

std::optional<IpBytes> ParseIp(std::string_view text) {
  const std::string copy(text);
  IpBytes out;
  in_addr v4;
  if (inet_pton(AF_INET, copy.c_str(), &v4) == 1) {
    out.v4 = true;
    out.bytes[10] = out.bytes[11] = 0xff;
    const auto* octets = reinterpret_cast<const uint8_t*>(&v4.s_addr);
    for (size_t i = 0; i < 4; ++i) out.bytes[12 + i] = octets[i];
    return out;
  }
  if (inet_pton(AF_INET6, copy.c_str(), out.bytes.data()) == 1) return out;
  return std::nullopt;
}

bool Cidr::Contains(const IpBytes& ip) const {
  if (ip.v4 != network.v4) return false;
  for (int bit = 0; bit < length; bit += 8) {
    const auto i = static_cast<size_t>(bit / 8);
    const int kept = std::min(8, length - bit);
    const auto mask = static_cast<uint8_t>(0xff << (8 - kept));
    if ((ip.bytes[i] & mask) != (network.bytes[i] & mask)) return false;
  }
  return true;
}

std::optional<Cidr> ParseCidr(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<IpBytes> ip = ParseIp(text.substr(0, slash));
  int length = 0;
  const std::string_view digits = text.substr(slash + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (!ip || digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (length < 0 || length > (ip->v4 ? 32 : 128)) return std::nullopt;
  Cidr out{*ip, length + (ip->v4 ? 96 : 0)};
  for (int bit = out.length; bit < 128; ++bit) {
    out.network.bytes[static_cast<size_t>(bit / 8)] &= static_cast<uint8_t>(~(0x80 >> (bit % 8)));
  }
  return out;
}

}  // namespace wavetank
