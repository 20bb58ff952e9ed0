#include "fakes/kube/store/ip_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/assert.h"
#include "core/base/random.h"

namespace wavetank::fakekube {
namespace {

// Draws before the pool is searched address by address.
constexpr uint64_t kDraws = 16;

}  // namespace

IpPool::IpPool(std::string cidr) : cidr_(std::move(cidr)) {
  const std::string_view text = cidr_;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const absl::StatusOr<IpAddress> from = IpAddress::Parse(text.substr(0, dash)),
                                    to = IpAddress::Parse(text.substr(dash + 1));
    if (!from.ok() || !to.ok() || !from->is_v4() || !to->is_v4() || to->low() < from->low()) return;
    first_ = *from;
    size_ = to->low() - from->low() + 1;
    last_ = static_cast<uint32_t>(size_ - 1);  // the first is the next
    whole_ = true;
    return;
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return;
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text.substr(0, slash));
  int prefix = -1;
  const auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), prefix);
  if (!ip.ok() || error != std::errc() || end != text.data() + text.size() || prefix < 1 ||
      prefix > (ip->is_v4() ? 32 : 128)) {
    return;
  }
  size_ = uint64_t{1} << std::min((ip->is_v4() ? 32 : 128) - prefix, 32);
  if (ip->is_v4()) {
    first_ = IpAddress::V4(static_cast<uint32_t>(ip->low()) & ~static_cast<uint32_t>(size_ - 1));
    WAVETANK_ASSERT((first_.low() & 0xffffffff) + size_ <= uint64_t{1} << 32, first_.low(), size_);
    return;
  }
  const absl::StatusOr<IpPrefix> network = IpPrefix::Parse(text);
  WAVETANK_ASSERT(network.ok(), cidr_);
  first_ = network->ip;
}

IpAddress IpPool::At(uint64_t offset) const {
  return first_.is_v4() ? IpAddress::V4(static_cast<uint32_t>(first_.low() + offset))
                        : IpAddress::V6(first_.high(), first_.low() + offset);
}

bool IpPool::Usable(uint64_t offset) const {
  if (whole_) return true;
  if (offset == 0) return false;
  if (!first_.is_v4()) return true;
  const uint64_t last_octet = At(offset).low() & 0xff;
  return last_octet != 0 && last_octet != 255 && offset != size_ - 1;
}

absl::StatusOr<std::string> IpPool::Scan(uint32_t from) {
  for (uint64_t i = 0; i < size_; ++i) {
    const auto offset = static_cast<uint32_t>((from + i) % size_);
    const IpAddress address = At(offset);
    if (Usable(offset) && taken_.insert(address).second) {
      last_ = offset;
      return address.ToString();
    }
  }
  if (absl::Status status = readable(); !status.ok()) return status;
  return absl::ResourceExhaustedError(
      fmt::format("all {} addresses of {} are taken; widen the range or remove what holds them", taken_.size(), cidr_));
}

absl::StatusOr<std::string> IpPool::Allocate(std::string_view key) {
  // Kubernetes keeps the low end of a range for addresses chosen by hand, min(max(16, size / 16), 256) of them
  // (KEP-3070); drawing leaves them out, and the last as many.
  const uint64_t kept = std::min<uint64_t>(std::max<uint64_t>(16, size_ / 16), 256);
  if (size_ <= 2 * kept) return Scan(size_ == 0 ? 0 : static_cast<uint32_t>(HashName(key, 0) % size_));
  uint32_t offset = 0;
  for (uint64_t attempt = 0; attempt < kDraws; ++attempt) {
    offset = static_cast<uint32_t>(HashName(key, attempt) % (size_ - 2 * kept) + kept);
    WAVETANK_ASSERT(offset >= kept, offset, kept);
    WAVETANK_ASSERT(offset < size_ - kept, offset, size_);
    if (Usable(offset) && taken_.insert(At(offset)).second) return At(offset).ToString();
  }
  return Scan(offset);
}

absl::StatusOr<std::string> IpPool::Next() { return Scan(last_ + 1); }

bool IpPool::Reserve(std::string_view address) {
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  return !ip.ok() || taken_.insert(*ip).second;
}

void IpPool::Release(std::string_view address) {
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  if (ip.ok()) taken_.erase(*ip);
}

absl::Status IpPool::readable() const {
  if (size_ > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is no CIDR; write one as 10.96.0.0/16, or one of each family as 10.96.0.0/16,fd00:96::/112", cidr_));
}

absl::Status CheckRanges(const std::string& cidrs) {
  const std::vector<IpPool> pools = IpPoolsOf(cidrs);
  for (const IpPool& pool : pools) {
    if (absl::Status status = pool.readable(); !status.ok()) return status;
  }
  // Kubernetes: pkg/controlplane/apiserver/options/validation.go, validateClusterIPFlags
  if (pools.size() > 2 || (pools.size() == 2 && pools[0].is_v4() == pools[1].is_v4())) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' names more than one range of an IP family; write one of each", cidrs));
  }
  return absl::OkStatus();
}

std::vector<IpPool> IpPoolsOf(const std::string& cidrs) {
  std::vector<IpPool> out;
  for (const absl::string_view each : absl::StrSplit(cidrs, ','))
    out.emplace_back(std::string(absl::StripAsciiWhitespace(each)));
  return out;
}

}  // namespace wavetank::fakekube
