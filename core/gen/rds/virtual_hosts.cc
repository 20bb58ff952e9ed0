#include "core/gen/rds/virtual_hosts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/ip.h"
#include "core/gen/rds/default_routes.h"
#include "core/gen/wire/wire.h"
#include "core/model/addresses.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"

namespace wavetank::pilot {
namespace {

using HostPb = ::envoy::config::route::v3::VirtualHost;
using ConfigPb = ::envoy::config::route::v3::RouteConfiguration;

constexpr uint32_t kMaxDirectResponseBytes = 1024 * 1024;  // as istiod's validation allows

// Of a field of text or a message, with its tag and length; its number is below 16.
size_t FieldSize(size_t length) {
  size_t size = 2 + length;
  for (size_t rest = length >> 7; rest != 0; rest >>= 7) ++size;
  return size;
}

template <typename Host>  // VirtualHost, VirtualHostView
void WriteHost(const Host& host, wire::Writer& w) {
  // Its length first: routes may be many.
  size_t length = host.name.empty() ? 0 : FieldSize(host.name.size());
  for (const auto& domain : host.domains) length += FieldSize(domain.size());
  for (const auto& route : host.routes) length += FieldSize(route->bytes.size());
  constexpr size_t kFlag = 2;  // of fields below 16
  length += (host.require_tls ? kFlag : 0) + (host.include_attempt_count ? kFlag : 0);
  w.Header(ConfigPb::kVirtualHostsFieldNumber, length);
  w.NonEmpty(HostPb::kNameFieldNumber, host.name);
  w.Repeated(HostPb::kDomainsFieldNumber, host.domains);
  for (const auto& route : host.routes) w.Bytes(HostPb::kRoutesFieldNumber, route->bytes);
  if (host.require_tls) w.Varint(HostPb::kRequireTlsFieldNumber, HostPb::ALL);
  if (host.include_attempt_count) w.Bool(HostPb::kIncludeRequestAttemptCountFieldNumber, true);
}

std::vector<std::string> KubernetesDomains(std::string_view hostname, int port, std::string_view proxy_domain) {
  std::vector<std::string> out;
  const size_t svc = hostname.find(".svc.");
  if (svc == std::string_view::npos || svc == 0) return out;
  const size_t dot = hostname.find('.');
  if (dot + 1 > svc) return out;
  const std::string_view name = hostname.substr(0, dot), name_ns = hostname.substr(0, svc);
  const std::string_view with_svc = hostname.substr(0, svc + 4);
  out.reserve(port != 0 ? 6 : 3);
  // Only a proxy of the same namespace may leave the namespace out.
  if (hostname.substr(dot + 1, svc - dot - 1) == proxy_domain.substr(0, proxy_domain.find(".svc."))) {
    AddDomain(name, port, out);
    AddDomain(with_svc, port, out);
    AddDomain(name_ns, port, out);
  } else {
    AddDomain(name_ns, port, out);
    AddDomain(with_svc, port, out);
  }
  return out;
}

// Outside Kubernetes: by the labels that host and proxy domain share at the end.
std::vector<std::string> SharedSuffixDomains(std::string_view hostname, int port, std::string_view proxy_domain) {
  const auto labels = [](std::string_view name) { return std::count(name.begin(), name.end(), '.') + 1; };
  // What is left of both as their last labels are taken off; nothing once there was no dot.
  struct Rest {
    std::string_view text;
    bool any = true;
    std::string_view Last() const { return text.substr(text.rfind('.') + 1); }
    void Drop() {
      const size_t dot = text.rfind('.');
      any = dot != text.npos;
      text = any ? text.substr(0, dot) : std::string_view();
    }
  };
  Rest host{hostname}, domain{proxy_domain};
  int64_t shared = 0;
  for (; host.any && domain.any && host.Last() == domain.Last(); ++shared) {
    host.Drop();
    domain.Drop();
  }
  std::vector<std::string> out;
  if (shared == 0) return out;
  const std::string_view unique = host.text;
  AddDomain(unique, port, out);
  if (labels(hostname) - shared == 2) {  // with the first of the shared labels
    AddDomain(hostname.substr(0, hostname.find('.', unique.size() + 1)), port, out);
  }
  return out;
}

}  // namespace

std::string EncodeRouteConfiguration(const RouteConfiguration& routes) {
  const auto for_each_host = [&](auto visit) {
    for (const VirtualHost& host : routes.virtual_hosts) visit(host);
    if (routes.shared_hosts == nullptr) return;
    for (const VirtualHost& host : *routes.shared_hosts) visit(host);
  };
  size_t size = 64 + routes.name.size() + routes.last_virtual_host.size();
  for_each_host([&](const VirtualHost& host) {
    size += 32 + host.name.size();
    for (const std::string& domain : host.domains) size += 4 + domain.size();
    for (const EncodedRouteRef& route : host.routes) size += 4 + route->bytes.size();
  });
  std::string out;
  out.reserve(size);
  RouteConfigurationWriter writer(routes.name, &out);
  wire::Writer w(&out);
  for_each_host([&](const VirtualHost& host) { WriteHost(host, w); });
  w.NonEmpty(ConfigPb::kVirtualHostsFieldNumber, routes.last_virtual_host);
  if (routes.empty) {
    writer.FinishEmpty();
  } else if (!routes.bare) {
    writer.Finish(routes.ignore_port);
  }
  return out;
}

RouteConfigurationWriter::RouteConfigurationWriter(std::string_view name, std::string* out) : out_(out) {
  out->clear();
  wire::Writer(out).Bytes(ConfigPb::kNameFieldNumber, name);
}

void RouteConfigurationWriter::Add(const VirtualHostView& host) {
  wire::Writer w(out_);
  WriteHost(host, w);
}

void RouteConfigurationWriter::Finish(bool ignore_port) {
  FinishEmpty();
  wire::Writer w(out_);
  w.UInt32Value(ConfigPb::kMaxDirectResponseBodySizeBytesFieldNumber, kMaxDirectResponseBytes);
  if (ignore_port) w.Bool(ConfigPb::kIgnorePortInHostMatchingFieldNumber, true);
}

void RouteConfigurationWriter::FinishEmpty() {
  wire::Writer(out_).BoolValue(ConfigPb::kValidateClustersFieldNumber, false);
}

void AddDomain(std::string_view host, int port, std::vector<std::string>& out) {
  out.push_back(InBrackets(host));
  if (port != 0) out.push_back(JoinHostPort(host, port));
}

void SortByName(std::vector<VirtualHost>& hosts) {
  const auto by_name = [](const VirtualHost& a, const VirtualHost& b) { return a.name < b.name; };
  if (!std::is_sorted(hosts.begin(), hosts.end(), by_name)) std::stable_sort(hosts.begin(), hosts.end(), by_name);
}

std::vector<std::string> AbsoluteDomains(std::string_view hostname, int port) {
  std::vector<std::string> out;
  const std::string absolute = absl::StrCat(std::string(hostname), ".");
  if (!IsIpAddress(hostname)) out.push_back(absolute);
  if (port != 0) out.push_back(JoinHostPort(absolute, port));
  return out;
}

std::vector<std::string> AlternativeDomains(std::string_view hostname, int port, std::string_view proxy_domain) {
  const size_t svc = proxy_domain.find(".svc.");
  if (svc == std::string_view::npos) return SharedSuffixDomains(hostname, port, proxy_domain);
  // Short forms of anything else might be some service's.
  if (!hostname.ends_with(svc > 0 ? proxy_domain.substr(svc) : proxy_domain)) return {};
  return KubernetesDomains(hostname, port, proxy_domain);
}

std::vector<std::string> ShortNames(std::string_view hostname, int port, const Proxy& proxy, const PushContext& push) {
  std::vector<std::string> out;
  if (push.profile().Has(Change::kAbsoluteDomains)) out = AbsoluteDomains(hostname, port);
  for (std::string& name : AlternativeDomains(hostname, port, proxy.dns_domain)) out.push_back(std::move(name));
  return out;
}

}  // namespace wavetank::pilot
