#include "core/gen/view/proxy_view.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/base/ip.h"
#include "core/config/schema/proto_json.h"
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

const std::string& AddressForProxy(const Service& service, const Proxy& proxy) {
  if (!proxy.metadata.cluster_id.empty()) {
    const auto it = service.cluster_vips.find(proxy.metadata.cluster_id);
    if (it != service.cluster_vips.end() && !it->second.empty()) return it->second.front();
  }
  if (proxy.metadata.dns_capture && proxy.metadata.dns_auto_allocate && service.default_address == kUnspecifiedIp &&
      !service.auto_allocated_ipv4.empty() && SupportsIpv4(proxy)) {
    return service.auto_allocated_ipv4;
  }
  return service.default_address;
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
  return config::ParseGoDuration(proxy.metadata.idle_timeout);
}

bool AcceptsHttp10(const Proxy& proxy) { return proxy.metadata.http10; }

bool MetadataFlag(const Proxy& proxy, std::string_view key) {
  const nlohmann::json* field = Field(proxy.metadata.raw, key);
  if (field == nullptr) return false;
  if (field->is_boolean()) return field->get<bool>();
  if (!field->is_string()) return false;
  const std::string& text = field->get_ref<const std::string&>();
  return text == "true" || text == "1";
}

int MetadataInteger(const Proxy& proxy, std::string_view key) {
  const nlohmann::json* field = Field(proxy.metadata.raw, key);
  if (field == nullptr) return 0;
  if (field->is_number()) return field->get<int>();
  if (!field->is_string()) return 0;
  const std::string& text = field->get_ref<const std::string&>();
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

const nlohmann::json* ProxyConfigOf(const Proxy& proxy, const config::MeshConfig& mesh) {
  if (const nlohmann::json* own = Field(proxy.metadata.raw, "PROXY_CONFIG"); own != nullptr && own->is_object()) {
    return own;
  }
  const nlohmann::json* defaults = Field(mesh.raw, "defaultConfig");
  return defaults != nullptr && defaults->is_object() ? defaults : nullptr;
}

}  // namespace wavetank::pilot
