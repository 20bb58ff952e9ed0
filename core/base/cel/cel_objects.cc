#include "core/base/cel/cel_objects.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

class Semver final : public NoFields {
 public:
  std::array<uint64_t, 3> numbers{};
  std::vector<std::string> pre;  // what goes before the release
};

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// blang/semver v4: ParseVersion
std::shared_ptr<const Semver> ReadSemver(std::string_view text) {
  auto out = std::make_shared<Semver>();
  const auto take = [&](char sign) {
    const size_t at = text.find(sign);
    std::optional<std::string_view> rest;
    if (at != text.npos) rest = text.substr(at + 1);
    text = text.substr(0, at);
    return rest;
  };
  const auto good = [](std::string_view part, bool number_is_plain) {
    if (part.empty()) return false;
    for (const char c : part) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') return false;
    }
    return !number_is_plain || !IsDigits(part) || part.size() == 1 || part[0] != '0';
  };
  const auto split = [](std::string_view list) {
    return std::vector<std::string>(absl::StrSplit(absl::string_view(list.data(), list.size()), '.'));
  };
  if (const auto build = take('+')) {
    for (const std::string& part : split(*build)) {
      if (!good(part, false)) return nullptr;
    }
  }
  if (const auto pre = take('-')) {
    out->pre = split(*pre);
    for (const std::string& part : out->pre) {
      if (!good(part, true)) return nullptr;
    }
  }
  const std::vector<std::string> numbers = split(text);
  if (numbers.size() != 3) return nullptr;
  for (size_t i = 0; i < 3; ++i) {
    const std::string& each = numbers[i];
    if (!IsDigits(each) || (each.size() > 1 && each[0] == '0') || !absl::SimpleAtoi(each, &out->numbers[i]))
      return nullptr;
  }
  return out;
}

// library/semverlib.go, normalizeAndParse
std::string NormalSemver(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const size_t end = std::min(text.find('-'), text.find('+'));
  std::vector<std::string> numbers;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(text.data(), std::min(end, text.size())), '.')) {
    absl::string_view rest = part;
    while (rest.size() > 1 && rest[0] == '0') rest.remove_prefix(1);
    numbers.emplace_back(rest);
  }
  while (numbers.size() < 3) numbers.emplace_back("0");
  return absl::StrJoin(numbers, ".") + std::string(end < text.size() ? text.substr(end) : std::string_view());
}

// blang/semver v4: Version.CompareSemver
int CompareSemver(const Semver& a, const Semver& b) {
  if (a.numbers != b.numbers) return a.numbers < b.numbers ? -1 : 1;
  if (a.pre.empty() || b.pre.empty()) return static_cast<int>(a.pre.empty()) - static_cast<int>(b.pre.empty());
  for (size_t i = 0; i < std::min(a.pre.size(), b.pre.size()); ++i) {
    const std::string &x = a.pre[i], &y = b.pre[i];
    if (x == y) continue;
    if (IsDigits(x) != IsDigits(y)) return IsDigits(x) ? -1 : 1;
    if (IsDigits(x) && x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    return x < y ? -1 : 1;
  }
  return a.pre.size() == b.pre.size() ? 0 : a.pre.size() < b.pre.size() ? -1 : 1;
}

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
    if (value > absl::int128(1) << (124 - two)) return std::nullopt;
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

// Kubernetes knows larger ones; here those are a failure, and no sum of two that are none overflows.
CelValue QuantityOf(absl::int128 nanos) {
  constexpr int kBits = 125;
  if (nanos >= absl::int128(1) << kBits || nanos <= -(absl::int128(1) << kBits))
    return CelFailure("quantity out of range");
  return ObjectOf(std::make_shared<Quantity>(nanos));
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
      return other ? QuantityOf(q.nanos + *other) : CelValue{};
    case CelFunction::kMinus:
      return other ? QuantityOf(q.nanos - *other) : CelValue{};
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

CelValue OfSemver(CelFunction f, const Semver& version, const std::vector<CelValue>& of) {
  const auto number = [&](size_t i) { return CelValue{static_cast<int64_t>(version.numbers[i])}; };
  if (f == CelFunction::kMajor) return number(0);
  if (f == CelFunction::kMinor) return number(1);
  if (f == CelFunction::kPatch) return number(2);
  const auto* const map = of.size() > 1 ? of[1].As<std::shared_ptr<const CelMap>>() : nullptr;
  const auto* const other = map == nullptr ? nullptr : dynamic_cast<const Semver*>(map->get());
  if (other == nullptr) return {};
  const int order = CompareSemver(version, *other);
  if (f == CelFunction::kIsLess) return {order < 0};
  if (f == CelFunction::kIsGreater) return {order > 0};
  return f == CelFunction::kCompareTo ? CelValue{int64_t{order}} : CelValue{};
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

CelValue MakeSemver(std::string_view text, bool normal) {
  std::shared_ptr<const Semver> version = normal ? ReadSemver(NormalSemver(text)) : ReadSemver(text);
  return version != nullptr ? ObjectOf(std::move(version)) : CelFailure("Semver parse error: " + std::string(text));
}

CelValue ObjectCall(CelFunction f, const CelMap& object, const std::vector<CelValue>& of) {
  if (const auto* quantity = dynamic_cast<const Quantity*>(&object)) return OfQuantity(f, *quantity, of);
  if (const auto* ip = dynamic_cast<const Ip*>(&object)) return OfIp(f, ip->ip);
  if (const auto* cidr = dynamic_cast<const Cidr*>(&object)) return OfCidr(f, *cidr, of);
  if (const auto* version = dynamic_cast<const Semver*>(&object)) return OfSemver(f, *version, of);
  return {};
}

std::optional<bool> SameObjects(const CelMap& a, const CelMap& b) {
  if (const auto* x = dynamic_cast<const Quantity*>(&a), *y = dynamic_cast<const Quantity*>(&b); x && y)
    return x->nanos == y->nanos;
  if (const auto* x = dynamic_cast<const Ip*>(&a), *y = dynamic_cast<const Ip*>(&b); x && y) return x->ip == y->ip;
  if (const auto* x = dynamic_cast<const Cidr*>(&a), *y = dynamic_cast<const Cidr*>(&b); x && y)
    return x->range == y->range && x->written == y->written;
  if (const auto* x = dynamic_cast<const Semver*>(&a), *y = dynamic_cast<const Semver*>(&b); x && y)
    return CompareSemver(*x, *y) == 0;
  return std::nullopt;
}

std::optional<std::string> ObjectText(const CelMap& object) {
  if (const auto* ip = dynamic_cast<const Ip*>(&object)) return ip->ip.ToString();
  if (const auto* cidr = dynamic_cast<const Cidr*>(&object))
    return fmt::format("{}/{}", cidr->written.ToString(), cidr->range.length);
  return std::nullopt;
}

}  // namespace wavetank::cel
