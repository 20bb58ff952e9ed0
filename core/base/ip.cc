#include "core/base/ip.h"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstring>

#include "fmt/format.h"

namespace wavetank {

absl::StatusOr<IpAddress> IpAddress::Parse(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN + 1> buffer{};
  if (text.empty() || text.size() >= buffer.size()) {
    return absl::InvalidArgumentError(fmt::format("malformed IP address: {}", text));
  }
  std::memcpy(buffer.data(), text.data(), text.size());
  in_addr v4{};
  if (inet_pton(AF_INET, buffer.data(), &v4) == 1) return V4(ntohl(v4.s_addr));
  in6_addr v6{};
  if (inet_pton(AF_INET6, buffer.data(), &v6) == 1) {
    uint64_t words[2] = {0, 0};
    for (int i = 0; i < 16; ++i) words[i / 8] = words[i / 8] << 8 | v6.s6_addr[i];
    return V6(words[0], words[1]);
  }
  return absl::InvalidArgumentError(fmt::format("malformed IP address: {}", text));
}

std::string IpAddress::ToString() const {
  if (empty()) return "";
  if (is_v4()) {
    return fmt::format("{}.{}.{}.{}", (low_ >> 24) & 0xff, (low_ >> 16) & 0xff, (low_ >> 8) & 0xff, low_ & 0xff);
  }
  in6_addr v6{};
  for (int i = 0; i < 8; ++i) {
    v6.s6_addr[i] = static_cast<uint8_t>(high_ >> (56 - 8 * i));
    v6.s6_addr[8 + i] = static_cast<uint8_t>(low_ >> (56 - 8 * i));
  }
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return inet_ntop(AF_INET6, &v6, buffer.data(), buffer.size()) == nullptr ? "" : buffer.data();
}

absl::StatusOr<SocketAddress> SocketAddress::Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format("expected ADDRESS:PORT, got {}", text));
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  uint32_t port = 0;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port > 65535) {
    return absl::InvalidArgumentError(fmt::format("malformed port in {}", text));
  }
  absl::StatusOr<IpAddress> ip = IpAddress::Parse(host);
  if (!ip.ok()) return ip.status();
  return SocketAddress{*ip, static_cast<uint16_t>(port)};
}

std::string SocketAddress::ToString() const {
  if (ip.is_v4() || ip.empty()) return fmt::format("{}:{}", ip.ToString(), port);
  return fmt::format("[{}]:{}", ip.ToString(), port);
}

namespace {

// Keeps the first `bits` of a 128-bit value.
IpAddress Mask(const IpAddress& ip, uint32_t bits) {
  const uint64_t high_mask = bits == 0 ? 0 : (bits >= 64 ? ~0ull : ~0ull << (64 - bits));
  const uint64_t low_mask = bits <= 64 ? 0 : (bits >= 128 ? ~0ull : ~0ull << (128 - bits));
  return IpAddress::V6(ip.high() & high_mask, ip.low() & low_mask);
}

}  // namespace

absl::StatusOr<IpPrefix> IpPrefix::Make(std::string_view address, uint32_t length) {
  absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  if (!ip.ok()) return ip.status();
  const uint32_t width = ip->is_v4() ? 32 : 128;
  if (length > width) {
    return absl::InvalidArgumentError(fmt::format("invalid prefix length {} of {}", length, address));
  }
  return IpPrefix{Mask(*ip, length + 128 - width), static_cast<uint8_t>(length)};
}

absl::StatusOr<IpPrefix> IpPrefix::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  uint32_t length = 0;
  const std::string_view digits = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return absl::InvalidArgumentError(fmt::format("expected ADDRESS/LENGTH such as 10.0.0.0/8, got {}", text));
  }
  return Make(text.substr(0, slash), length);
}

bool IpPrefix::Contains(const IpAddress& a) const {
  if (ip.is_v4() != a.is_v4()) return false;
  return Mask(a, length + (a.is_v4() ? 96u : 0u)) == ip;
}

std::string IpPrefix::ToString() const { return fmt::format("{}/{}", ip.ToString(), static_cast<int>(length)); }

}  // namespace wavetank
