#include "core/base/cel/cel_objects.h"

#include <array>
#include <string>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "core/base/ip.h"
#include "fmt/format.h"

namespace wavetank::cel {
namespace {

class NoFields : public CelMap {
 public:
  CelValue Get(const CelValue&) const final { return {}; }
  std::optional<int64_t> size() const final { return std::nullopt; }
};

// In billionths, as much as a resource.Quantity tells apart.
class Quantity final : public NoFields {
 public:
  explicit Quantity(absl::int128 billionths) : nanos(billionths) {}
  const absl::int128 nanos;
};
class Ip final : public NoFields {
 public:
  explicit Ip(const IpAddress& address) : ip(address) {}
  const IpAddress ip;
};
class Cidr final : public NoFields {
 public:
  Cidr(const IpPrefix& prefix, const IpAddress& address) : range(prefix), written(address) {}
  const IpPrefix range;
  const IpAddress written;  // with the bits behind the prefix
};

CelValue ObjectOf(std::shared_ptr<const CelMap> object) { return {std::move(object)}; }

constexpr int64_t kUnit = 1'000'000'000;

// Kubernetes: apimachinery/pkg/api/resource/quantity.go: a sign, digits with a point, and a suffix or an exponent.
std::optional<absl::int128> Nanos(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  absl::int128 value = 0;
  int fraction = 0;  // digits behind the point that were taken
  bool digits = false, point = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
    } else if (text[i] >= '0' && text[i] <= '9') {
      digits = true;
      if (point && fraction == 9) continue;
      if (value > absl::int128(1) << 90) return std::nullopt;
      value = value * 10 + (text[i] - '0');
      fraction += point ? 1 : 0;
    } else {
      break;
    }
  }
  if (!digits) return std::nullopt;
  for (; fraction < 9; ++fraction) value *= 10;
  const std::string_view suffix = text.substr(i);
  constexpr std::pair<std::string_view, int> kDecimal[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
                                                           {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
  constexpr std::pair<std::string_view, int> kBinary[] = {{"Ki", 10}, {"Mi", 20}, {"Gi", 30},
                                                          {"Ti", 40}, {"Pi", 50}, {"Ei", 60}};
  std::optional<int> power;
  for (const auto& [name, ten] : kDecimal) {
    if (name == suffix) power = ten;
  }
  for (const auto& [name, two] : kBinary) {
    if (name != suffix) continue;
    if (value > absl::int128(1) << (126 - two)) return std::nullopt;
    value <<= two;
    power = 0;
  }
  if (int exponent = 0; !power && (suffix[0] == 'e' || suffix[0] == 'E') &&
                        absl::SimpleAtoi(absl::string_view(suffix.data() + 1, suffix.size() - 1), &exponent) &&
                        exponent >= -9 && exponent <= 18)
    power = exponent;
  if (!power) return std::nullopt;
  for (; *power > 0; --*power) {
    if (value > absl::int128(1) << 122) return std::nullopt;
    value *= 10;
  }
  for (; *power < 0; ++*power) value = (value + 9) / 10;  // what is smaller is rounded up
  return negative ? -value : value;
}

std::optional<absl::int128> OperandOf(const CelValue& value) {
  if (const auto* number = value.As<int64_t>()) return absl::int128(*number) * kUnit;
  const auto* const map = value.As<std::shared_ptr<const CelMap>>();
  const auto* const quantity = map == nullptr ? nullptr : dynamic_cast<const Quantity*>(map->get());
  if (quantity == nullptr) return std::nullopt;
  return quantity->nanos;
}

CelValue OfQuantity(CelFunction f, const Quantity& q, const std::vector<CelValue>& of) {
  const std::optional<absl::int128> other = of.size() > 1 ? OperandOf(of[1]) : std::nullopt;
  const absl::int128 whole = q.nanos / kUnit;
  const bool is_integer = q.nanos % kUnit == 0 && whole >= INT64_MIN && whole <= INT64_MAX;
  switch (f) {
    case CelFunction::kIsInteger:
      return {is_integer};
    case CelFunction::kAsInteger:
      return is_integer ? CelValue{static_cast<int64_t>(whole)} : CelFailure("cannot convert value to integer");
    case CelFunction::kAsFloat:
      return {static_cast<double>(q.nanos) / 1e9};
    case CelFunction::kSignOf:
      return {int64_t{q.nanos < 0 ? -1 : q.nanos > 0 ? 1 : 0}};
    case CelFunction::kPlus:
      return other ? ObjectOf(std::make_shared<Quantity>(q.nanos + *other)) : CelValue{};
    case CelFunction::kMinus:
      return other ? ObjectOf(std::make_shared<Quantity>(q.nanos - *other)) : CelValue{};
    case CelFunction::kIsLess:
      return other ? CelValue{q.nanos < *other} : CelValue{};
    case CelFunction::kIsGreater:
      return other ? CelValue{q.nanos > *other} : CelValue{};
    case CelFunction::kCompareTo:
      return other ? CelValue{int64_t{q.nanos < *other ? -1 : q.nanos > *other ? 1 : 0}} : CelValue{};
    default:
      return {};
  }
}

bool Within(std::string_view range, const IpAddress& ip) { return IpPrefix::Parse(range)->Contains(ip); }

// Go: net/netip, netip.Addr.
CelValue OfIp(CelFunction f, const IpAddress& ip) {
  const bool v4 = ip.is_v4(), none = v4 ? ip == IpAddress::V4(0) : ip.high() == 0 && ip.low() == 0;
  const bool multicast = Within(v4 ? "224.0.0.0/4" : "ff00::/8", ip);
  const bool local = Within(v4 ? "169.254.0.0/16" : "fe80::/10", ip);
  switch (f) {
    case CelFunction::kFamily:
      return {int64_t{v4 ? 4 : 6}};
    case CelFunction::kIsUnspecified:
      return {none};
    case CelFunction::kIsLoopback:
      return {ip.is_loopback()};
    case CelFunction::kIsLinkLocalMulticast:
      return {v4 ? Within("224.0.0.0/24", ip) : ip.high() >> 56 == 0xff && ((ip.high() >> 48) & 0xf) == 2};
    case CelFunction::kIsLinkLocalUnicast:
      return {local};
    case CelFunction::kIsGlobalUnicast:
      return {!none && !ip.is_loopback() && !multicast && !local && !(v4 && ip == IpAddress::V4(0xffffffff))};
    default:
      return {};
  }
}

CelValue OfCidr(CelFunction f, const Cidr& cidr, const std::vector<CelValue>& of) {
  const auto* const text = of.size() > 1 ? of[1].As<std::string>() : nullptr;
  const auto* const map = of.size() > 1 ? of[1].As<std::shared_ptr<const CelMap>>() : nullptr;
  switch (f) {
    case CelFunction::kContainsIp: {
      const auto* const ip = map == nullptr ? nullptr : dynamic_cast<const Ip*>(map->get());
      if (ip != nullptr) return {cidr.range.Contains(ip->ip)};
      if (text == nullptr) return {};
      const auto parsed = IpAddress::Parse(*text);
      return parsed.ok() ? CelValue{cidr.range.Contains(*parsed)} : CelFailure("IP Address parse error: " + *text);
    }
    case CelFunction::kContainsCidr: {
      std::optional<IpPrefix> other;
      if (text != nullptr) {
        const auto parsed = IpPrefix::Parse(*text);
        if (!parsed.ok()) return CelFailure("network address parse error: " + *text);
        other = *parsed;
      } else if (const auto* in = map == nullptr ? nullptr : dynamic_cast<const Cidr*>(map->get())) {
        other = in->range;
      }
      if (!other) return {};
      return {other->length >= cidr.range.length && cidr.range.Contains(other->ip)};
    }
    case CelFunction::kIpOfCidr:
      return ObjectOf(std::make_shared<Ip>(cidr.written));
    case CelFunction::kMasked:
      return ObjectOf(std::make_shared<Cidr>(cidr.range, cidr.range.ip));
    case CelFunction::kPrefixLength:
      return {int64_t{cidr.range.length}};
    default:
      return {};
  }
}

}  // namespace

bool IsQuantity(std::string_view text) { return Nanos(text).has_value(); }

CelValue MakeQuantity(std::string_view text) {
  const std::optional<absl::int128> nanos = Nanos(text);
  if (!nanos) {
    return CelFailure("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  }
  return ObjectOf(std::make_shared<Quantity>(*nanos));
}

CelValue MakeIp(std::string_view text) {
  const auto ip = IpAddress::Parse(text);
  return ip.ok() ? ObjectOf(std::make_shared<Ip>(*ip))
                 : CelFailure(fmt::format("IP Address \"{}\" parse error during conversion from string", text));
}

CelValue MakeCidr(std::string_view text) {
  const auto range = IpPrefix::Parse(text);
  const auto written = IpAddress::Parse(text.substr(0, text.find('/')));
  if (!range.ok() || !written.ok())
    return CelFailure("network address parse error during conversion from string: " + std::string(text));
  return ObjectOf(std::make_shared<Cidr>(*range, *written));
}

CelValue ObjectCall(CelFunction f, const CelMap& object, const std::vector<CelValue>& of) {
  if (const auto* quantity = dynamic_cast<const Quantity*>(&object)) return OfQuantity(f, *quantity, of);
  if (const auto* ip = dynamic_cast<const Ip*>(&object)) return OfIp(f, ip->ip);
  if (const auto* cidr = dynamic_cast<const Cidr*>(&object)) return OfCidr(f, *cidr, of);
  return {};
}

std::optional<bool> SameObjects(const CelMap& a, const CelMap& b) {
  if (const auto* x = dynamic_cast<const Quantity*>(&a), *y = dynamic_cast<const Quantity*>(&b); x && y)
    return x->nanos == y->nanos;
  if (const auto* x = dynamic_cast<const Ip*>(&a), *y = dynamic_cast<const Ip*>(&b); x && y) return x->ip == y->ip;
  if (const auto* x = dynamic_cast<const Cidr*>(&a), *y = dynamic_cast<const Cidr*>(&b); x && y)
    return x->range == y->range && x->written == y->written;
  return std::nullopt;
}

std::optional<std::string> ObjectText(const CelMap& object) {
  if (const auto* ip = dynamic_cast<const Ip*>(&object)) return ip->ip.ToString();
  if (const auto* cidr = dynamic_cast<const Cidr*>(&object))
    return fmt::format("{}/{}", cidr->written.ToString(), cidr->range.length);
  return std::nullopt;
}

}  // namespace wavetank::cel
