#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/model/gateway.h"
#include "core/profile/changes.h"
#include "core/push/gateway_services.h"

namespace wavetank::pilot {
namespace {

using config::Server;
using config::ServerTlsSettings;

bool NeedsSanitising(const std::string& host) { return host.starts_with("./") || host.starts_with("*/"); }

// Namespaces in hosts: "." is the Gateway's own, "*" is none. One "*/*" makes all others moot.
// istiod: sanitizeServerHostNamespace.
void SanitizeHosts(Server& server, std::string_view ns) {
  for (std::string& host : server.hosts) {
    if (!NeedsSanitising(host)) continue;
    const std::string_view rest = std::string_view(host).substr(2);
    const std::string name(rest.substr(0, rest.find('/')));
    if (host.front() == '.') {
      host = fmt::format("{}/{}", ns, name);
    } else if (name == "*") {
      server.hosts = {"*"};
      return;
    } else {
      host = name;
    }
  }
}

std::vector<std::string_view> SniHosts(const Server& server) {
  std::vector<std::string_view> out;
  out.reserve(server.hosts.size());
  for (const std::string_view host : server.hosts) {
    const size_t slash = host.find('/');
    if (slash == std::string_view::npos) {
      out.push_back(host);
    } else {
      const std::string_view rest = host.substr(slash + 1);
      out.push_back(rest.substr(0, rest.find('/')));
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The port that the router's pods listen at for the Gateway's port: the first instance's target port, unless the
// Service asks not to translate. istiod: resolvePorts.
uint32_t ResolvePort(uint32_t number, const std::vector<ServiceInstance>& instances) {
  for (const ServiceInstance& instance : instances) {
    if (instance.service->attributes.labels.contains("experimental.istio.io/disable-gateway-port-translation"))
      continue;
    if (instance.service_port.port == static_cast<int>(number)) return instance.endpoint.endpoint_port;
  }
  return number;
}

// All ports of its pods, where the Gateway names the Services: a port that none of them has is none of the Gateway's.
std::set<uint32_t> PortsOfServices(uint32_t number, const std::vector<const ServiceInstance*>& instances) {
  std::set<uint32_t> out;
  for (const ServiceInstance* instance : instances) {
    if (instance->service_port.port == static_cast<int>(number)) out.insert(instance->endpoint.endpoint_port);
  }
  return out;
}

// istiod: pilot/pkg/model/credentials/resource.go.
struct Credential {
  std::string resource_name;
  std::string ns;  // nothing: not to be read from a namespace at all
};
Credential ParseCredential(const std::string& name, std::string_view proxy_namespace) {
  constexpr std::string_view kKubernetes = "kubernetes://", kGateway = "kubernetes-gateway://";
  if (name.starts_with("builtin://")) return {"default", ""};
  if (name.starts_with(kGateway)) {
    const std::string_view rest = std::string_view(name).substr(kGateway.size());
    const size_t slash = rest.find('/');
    return {name, slash == std::string_view::npos ? "" : std::string(rest.substr(0, slash))};
  }
  const std::string resource = name.starts_with(kKubernetes) ? name : fmt::format("{}{}", kKubernetes, name);
  const std::string_view rest = std::string_view(resource).substr(kKubernetes.size());
  const size_t slash = rest.find('/');
  return {resource, std::string(slash == std::string_view::npos ? proxy_namespace : rest.substr(0, slash))};
}

// Hosts by port with the bind address of the last server that took them. All or none of a server's are taken; one that
// takes some must outlive the object.
class TlsHosts {
 public:
  bool Take(uint32_t port, const Server& server) {
    auto& known = by_port_[port];
    for (const std::string& host : server.hosts) {
      const auto it = known.find(host);
      if (it != known.end() && *it->second == server.bind) return false;
    }
    for (const std::string& host : server.hosts) known[host] = &server.bind;
    return true;
  }

 private:
  std::map<uint32_t, absl::flat_hash_map<absl::string_view, const std::string*>> by_port_;
};

bool CanMerge(Protocol a, Protocol b) { return (IsHttp(a) || a == b) && IsHttp(b); }

}  // namespace

std::optional<std::vector<const ServiceInstance*>> InstancesOfGateway(
    const config::TypedConfig<config::Gateway>& gateway, const std::vector<ServiceInstance>& instances) {
  const auto named = gateway.meta.annotations.find("internal.istio.io/gateway-service");
  if (named == gateway.meta.annotations.end()) return std::nullopt;
  const std::set<std::string> hosts = absl::StrSplit(named->second, ',');
  // Of a ListenerSet, that of its Gateway.
  const auto parent = gateway.meta.annotations.find("internal.istio.io/parent-namespace");
  const std::string& ns = parent == gateway.meta.annotations.end() ? gateway.meta.ns : parent->second;
  std::vector<const ServiceInstance*> out;
  for (const ServiceInstance& instance : instances) {
    if (hosts.contains(std::string(instance.service->hostname)) && instance.service->attributes.ns == ns) {
      out.push_back(&instance);
    }
  }
  return out;
}

std::string GatewayRdsRouteName(const Server& server, uint32_t port, const config::ConfigMeta& gateway) {
  const Protocol protocol = ParseProtocol(server.port.protocol);
  const std::string bind = server.bind.empty() ? "" : "." + server.bind;
  if (IsHttp(protocol)) return fmt::format("http.{}{}", port, bind);
  // HTTPS that ends here: the name tells servers of one port apart, with the port as the Gateway names it.
  if (protocol == Protocol::kHttps && server.tls && !config::IsPassThroughServer(server)) {
    return fmt::format("https.{}.{}.{}.{}{}", server.port.number, server.port.name, gateway.name, gateway.ns, bind);
  }
  return "";
}

GatewayRouteName ParseGatewayRdsRouteName(std::string_view name) {
  GatewayRouteName out;
  std::array<std::string_view, 5> parts;
  size_t found = 0;
  for (std::string_view rest = name; found < parts.size();) {
    const size_t dot = rest.find('.');
    parts[found++] = rest.substr(0, dot);
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  const auto number = [](std::string_view text) {
    int value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && at == text.data() + text.size() ? value : 0;
  };
  if (name.starts_with("http.") && found >= 2) {
    out.port_number = number(parts[1]);
  } else if (name.starts_with("https.") && found == 5) {
    out.port_number = number(parts[1]);
    out.port_name = parts[2];
    out.gateway_name = parts[3];
    out.gateway_namespace = parts[4];
  }
  return out;
}

std::shared_ptr<const MergedGateway> MergeGateways(std::vector<config::GatewayRef> gateways,
                                                   const std::vector<ServiceInstance>& instances,
                                                   std::string_view verified_namespace, const Profile& profile) {
  auto out = std::make_shared<MergedGateway>();
  out->gateways = std::move(gateways);
  size_t most = 0;
  for (const config::GatewayRef& gateway : out->gateways) {
    const auto of_services = InstancesOfGateway(*gateway, instances);
    most += gateway->spec.servers.size() * std::max<size_t>(1, of_services ? of_services->size() : 1);
  }
  out->storage.reserve(most);                      // pointers to its servers stay good
  std::map<uint32_t, const GatewayServer*> ports;  // with the first server of each
  std::map<uint32_t, ServerPort> plain_text;       // of ports whose first server has no TLS: the one that others join
  TlsHosts tls_hosts;
  const bool last_bind_merges = profile.Has(Change::kLastPlainBindMerges);

  const auto serve = [&](const ServerPort& port, const GatewayServer* server) {
    const auto [it, added] = out->merged_servers.try_emplace(port);
    if (added) out->server_ports.push_back(port);
    it->second.servers.push_back(server);
    return &it->second;
  };
  const auto route = [&](std::string_view name) -> GatewayServers& {
    return out->servers_by_route_name[absl::string_view(name.data(), name.size())];
  };

  for (const config::GatewayRef& gateway : out->gateways) {
    const auto of_services = InstancesOfGateway(*gateway, instances);
    const std::string_view gateway_name = out->names.Keep(fmt::format("{}/{}", gateway->meta.ns, gateway->meta.name));
    for (const Server& given : gateway->spec.servers) {
      if (!given.has_port) continue;
      const bool clean = std::none_of(given.hosts.begin(), given.hosts.end(), NeedsSanitising);
      const Server& server = clean ? given : out->sanitised.emplace_back(given);
      if (!clean) SanitizeHosts(out->sanitised.back(), gateway->meta.ns);

      const auto verify = [&](const std::string& name) {
        if (name.empty() || verified_namespace.empty()) return;
        const Credential credential = ParseCredential(name, verified_namespace);
        if (gateway->meta.ns != verified_namespace || credential.ns != verified_namespace) return;
        out->verified_certificate_references.insert(credential.resource_name);
        // Not so with OPTIONAL_MUTUAL (istiod: pilot/pkg/model/gateway.go, mergeGateways).
        if (server.tls->mode == ServerTlsSettings::Mode::kMutual)
          out->verified_certificate_references.insert(credential.resource_name + "-cacert");
      };
      if (server.tls && profile.Has(Change::kSeveralCertificates) && !server.tls->credential_names.empty()) {
        for (const std::string& name : server.tls->credential_names) verify(name);
      } else if (server.tls) {
        verify(server.tls->credential_name);
      }

      const std::set<uint32_t> resolved_ports = of_services ? PortsOfServices(server.port.number, *of_services)
                                                            : std::set{ResolvePort(server.port.number, instances)};
      for (const uint32_t resolved : resolved_ports) {
        const std::string_view route_name = out->names.Keep(GatewayRdsRouteName(server, resolved, gateway->meta));
        if (server.tls && !tls_hosts.Take(resolved, server)) continue;
        const GatewayServer* const kept =
            &out->storage.emplace_back(server.tls ? GatewayServer{server, gateway_name, route_name, SniHosts(server)}
                                                  : GatewayServer{server, gateway_name, {}, {}});
        if (server.tls && server.tls->mode == ServerTlsSettings::Mode::kAutoPassthrough) {
          out->contains_auto_passthrough_gateways = true;
        }

        const ServerPort port{resolved, server.port.protocol, server.bind};
        const Protocol protocol = ParseProtocol(port.protocol);
        const auto [at_port, opened] = ports.emplace(resolved, kept);
        if (opened) {
          if (!config::IsTlsServer(server)) plain_text.emplace(resolved, port);
          if (config::IsHttpServer(server)) route(route_name) = {kept};
          serve(port, kept)->route_name = route_name;
          continue;
        }
        if (const auto it = plain_text.find(resolved); it != plain_text.end()) {
          ServerPort& current = it->second;
          // istiod since 1.29: mergeGateways, addPlainTextServer.
          if (current.bind != port.bind && last_bind_merges && !out->merged_servers.contains(port)) {
            if (!config::IsTlsServer(server)) current = port;
            if (config::IsHttpServer(server)) route(route_name) = {kept};
            serve(port, kept)->route_name = route_name;
            continue;
          }
          if (current.bind == port.bind) {
            if (!CanMerge(protocol, ParseProtocol(current.protocol)) || route_name.empty()) {
              out->unserved.push_back({kept, at_port->second});
              continue;
            }
            serve(current, kept);
          } else {
            serve(port, kept)->route_name = route_name;
          }
          route(route_name).push_back(kept);
          continue;
        }
        if (last_bind_merges && !config::IsTlsServer(server)) {
          plain_text.emplace(resolved, port);
          if (config::IsHttpServer(server)) route(route_name) = {kept};
          GatewayServers served = {kept};
          serve(port, kept)->servers = std::move(served);
          out->merged_servers.at(port).route_name = route_name;
          continue;
        }
        if (config::IsHttpServer(server)) {
          // Behind one of TLS: its filter chain, if it gets one, names no routes.
          if (!config::IsTlsServer(server)) out->unserved.push_back({kept, at_port->second});
          // HTTPS servers of one port need names of their own.
          if (route_name.empty() || !route(route_name).empty()) continue;
          route(route_name) = {kept};
        }
        serve(port, kept);
      }
    }
  }
  for (const auto& [name, servers] : out->servers_by_route_name) {  // order: into sorted sets
    std::set<int>& named = out->port_map[ParseGatewayRdsRouteName({name.data(), name.size()}).port_number];
    for (const GatewayServer* server : servers) named.insert(static_cast<int>(server->server.port.number));
  }
  return out;
}

}  // namespace wavetank::pilot
