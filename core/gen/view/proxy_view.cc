#include "core/gen/view/proxy_view.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <utility>

#include "core/base/duration.h"
#include "core/base/ip.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {
namespace {

const nlohmann::json* Field(const nlohmann::json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

bool HasAddressOfFamily(const Proxy& proxy, bool v4) {
  return std::any_of(proxy.ip_addresses.begin(), proxy.ip_addresses.end(), [&](const std::string& text) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
    return ip.ok() && ip->is_v4() == v4;
  });
}

// Which family an address or a prefix is of; nullopt: it is neither.
std::optional<bool> IsV4(const std::string& text) {
  if (const absl::StatusOr<IpPrefix> prefix = IpPrefix::Parse(text); prefix.ok()) return prefix->ip.is_v4();
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
  return ip.ok() ? std::optional(ip->is_v4()) : std::nullopt;
}

// Those of a family that the proxy has; of both families the first one's, which without dual stack is the only one.
// istiod: pilot/pkg/util/network/ip.go, FilterAddressesByIPFamily.
std::vector<std::string> Reachable(const std::vector<std::string>& addresses, const Proxy& proxy) {
  std::vector<std::string> out;
  const bool v4 = SupportsIpv4(proxy), v6 = SupportsIpv6(proxy);
  const std::optional<bool> first = addresses.empty() ? std::nullopt : IsV4(addresses.front());
  for (const std::string& address : addresses) {
    const std::optional<bool> of = IsV4(address);
    if (of && (*of ? v4 : v6) && (!(v4 && v6) || !first || *of == *first)) out.push_back(address);
  }
  return out;
}

const std::string* FirstReachable(const std::vector<std::string>& addresses, const Proxy& proxy) {
  const bool v4 = SupportsIpv4(proxy), v6 = SupportsIpv6(proxy);
  const auto it = std::find_if(addresses.begin(), addresses.end(), [&](const std::string& address) {
    const std::optional<bool> of = IsV4(address);
    return of && (*of ? v4 : v6);
  });
  return it == addresses.end() ? nullptr : &*it;
}

const std::vector<std::string>& VipsOf(const Service& service, const Proxy& proxy) {
  static const auto* const none = new std::vector<std::string>();
  if (proxy.metadata.cluster_id.empty()) return *none;
  const auto it = service.cluster_vips.find(proxy.metadata.cluster_id);
  return it == service.cluster_vips.end() ? *none : it->second;
}

// istiod: nodeUsesAutoallocatedIPs; with a controller that allocates, the agent need not ask for it.
bool UsesAutomaticAddresses(const Proxy& proxy, const Profile& profile) {
  return proxy.metadata.dns_capture &&
         (proxy.metadata.dns_auto_allocate || profile.Has(Change::kAddressesByController));
}

// Go's netip.Addr.IsGlobalUnicast: private ranges count.
bool IsGlobalUnicast(const IpAddress& ip) {
  if (ip.empty() || ip.is_loopback()) return false;
  if (ip.is_v4()) {
    const uint32_t v4 = static_cast<uint32_t>(ip.low());
    return v4 != 0 && v4 != 0xffffffff && (v4 >> 28) != 0xe && (v4 >> 16) != 0xa9fe;
  }
  return (ip.high() >> 56) != 0xff && (ip.high() >> 54) != 0x3fa;
}

}  // namespace

const std::string& AddressForProxy(const Service& service, const Proxy& proxy, const Profile& profile) {
  const std::vector<std::string>& vips = VipsOf(service, proxy);
  const bool by_family = profile.Has(Change::kAddressesByFamily) && !vips.empty();
  const std::string* const vip = vips.empty() ? nullptr : by_family ? FirstReachable(vips, proxy) : &vips.front();
  if (vip != nullptr) return *vip;
  if (UsesAutomaticAddresses(proxy, profile) && service.default_address == kUnspecifiedIp &&
      !service.auto_allocated_ipv4.empty() && SupportsIpv4(proxy)) {
    return service.auto_allocated_ipv4;
  }
  return service.default_address;
}

std::vector<std::string> AddressesForProxy(const Service& service, const Proxy& proxy, const Profile& profile) {
  if (!profile.Has(Change::kAllAddressesTold)) return {AddressForProxy(service, proxy, profile)};
  std::vector<std::string> own = VipsOf(service, proxy);
  if (own.empty() && UsesAutomaticAddresses(proxy, profile) && !service.auto_allocated_ipv4.empty()) {
    own.push_back(service.auto_allocated_ipv4);
  }
  const bool both = profile.Has(Change::kDualStack) && SupportsIpv4(proxy) && SupportsIpv6(proxy);
  std::vector<std::string> out = both ? std::move(own) : Reachable(own, proxy);
  if (!out.empty()) return out;
  // Of another cluster, unless a ServiceEntry says it.
  if (service.cluster_vips.empty() || !profile.Has(Change::kAddressesByFamily)) return {service.default_address};
  return Reachable({service.default_address}, proxy);
}

std::vector<std::string> ExtraAddressesForProxy(const Service& service, const Proxy& proxy, const Profile& profile) {
  std::vector<std::string> out =
      profile.Has(Change::kAllAddressesTold) ? AddressesForProxy(service, proxy, profile) : VipsOf(service, proxy);
  if (!out.empty()) out.erase(out.begin());
  return out;
}

InterceptionMode GetInterceptionMode(const Proxy& proxy) {
  if (proxy.metadata.interception_mode == "TPROXY") return InterceptionMode::kTproxy;
  return proxy.metadata.interception_mode == "NONE" ? InterceptionMode::kNone : InterceptionMode::kRedirect;
}

bool IsVersionAtLeast(const Proxy& proxy, int major, int minor) {
  std::string_view text = proxy.metadata.istio_version;
  constexpr std::string_view kRelease = "release-";
  if (text.starts_with(kRelease)) text.remove_prefix(kRelease.size());
  // Only what starts with MAJOR.MINOR is a version, MAJOR without a zero.
  const size_t dot = text.find_first_not_of("123456789");
  if (dot == 0 || dot == std::string_view::npos || text[dot] != '.') return true;
  const char* const end = text.data() + text.size();
  int proxy_major = 0, proxy_minor = 0;
  if (std::from_chars(text.data(), text.data() + dot, proxy_major).ec != std::errc() ||
      std::from_chars(text.data() + dot + 1, end, proxy_minor).ec != std::errc() || proxy_minor < 0) {
    return true;
  }
  return std::pair(proxy_major, proxy_minor) >= std::pair(major, minor);
}

bool SupportsIpv4(const Proxy& proxy) { return HasAddressOfFamily(proxy, true); }
bool SupportsIpv6(const Proxy& proxy) { return HasAddressOfFamily(proxy, false); }

std::string_view WildcardAddress(const Proxy& proxy) {
  return SupportsIpv6(proxy) && !SupportsIpv4(proxy) ? "::" : kUnspecifiedIp;
}
std::string_view LocalhostAddress(const Proxy& proxy) {
  return SupportsIpv6(proxy) && !SupportsIpv4(proxy) ? "::1" : "127.0.0.1";
}

std::string_view ExtraWildcardAddress(const Proxy& proxy) {
  return SupportsIpv6(proxy) && SupportsIpv4(proxy) ? "::" : std::string_view();
}
std::string_view ExtraLocalhostAddress(const Proxy& proxy) {
  return SupportsIpv6(proxy) && SupportsIpv4(proxy) ? "::1" : std::string_view();
}

std::string_view GlobalUnicastIp(const Proxy& proxy) {
  for (const std::string& text : proxy.ip_addresses) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
    if (ip.ok() && IsGlobalUnicast(*ip)) return text;
  }
  return {};
}

StaticListeners::StaticListeners(const Proxy& proxy)
    : wildcard_(WildcardAddress(proxy)),
      status_port_(MetadataInteger(proxy, "ENVOY_STATUS_PORT")),
      prometheus_port_(MetadataInteger(proxy, "ENVOY_PROMETHEUS_PORT")) {}

bool StaticListeners::ConflictWith(std::string_view bind, int port, Protocol protocol) const {
  if (bind.empty() ? !IsHttp(protocol) : bind != wildcard_) return false;
  return port == status_port_ || port == prometheus_port_;
}

bool IsUnprivileged(const Proxy& proxy) { return proxy.metadata.unprivileged_pod == "true"; }

bool IsAllowAnyOutbound(const Proxy& proxy) {
  return proxy.sidecar_scope != nullptr &&
         proxy.sidecar_scope->outbound_traffic_policy.mode == config::OutboundTrafficPolicy::Mode::kAllowAny;
}

std::optional<Duration> IdleTimeout(const Proxy& proxy) {
  if (proxy.metadata.idle_timeout.empty()) return std::nullopt;
  return ParseGoDuration(proxy.metadata.idle_timeout);
}

bool AcceptsHttp10(const Proxy& proxy, const PushContext& push) {
  return push.env().features.http10 || proxy.metadata.http10;
}

bool MetadataFlag(const Proxy& proxy, std::string_view key) {
  const nlohmann::json* field = Field(*proxy.metadata.raw, key);
  if (field == nullptr) return false;
  if (field->is_boolean()) return field->get<bool>();
  if (!field->is_string()) return false;
  const std::string& text = field->get_ref<const std::string&>();
  return text == "true" || text == "1";
}

int MetadataInteger(const Proxy& proxy, std::string_view key) {
  const nlohmann::json* field = Field(*proxy.metadata.raw, key);
  if (field == nullptr) return 0;
  if (field->is_number()) {
    const double number = field->get<double>();  // a proxy may say any
    return number >= INT_MIN && number <= INT_MAX ? static_cast<int>(number) : 0;
  }
  if (!field->is_string()) return 0;
  const std::string& text = field->get_ref<const std::string&>();
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

const nlohmann::json* ProxyConfigOf(const Proxy& proxy, const config::MeshConfig& mesh) {
  if (const nlohmann::json* own = Field(*proxy.metadata.raw, "PROXY_CONFIG"); own != nullptr && own->is_object()) {
    return own;
  }
  const nlohmann::json* defaults = Field(mesh.raw, "defaultConfig");
  return defaults != nullptr && defaults->is_object() ? defaults : nullptr;
}

}  // namespace wavetank::pilot
