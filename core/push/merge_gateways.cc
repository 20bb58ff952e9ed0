#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/model/gateway.h"

namespace wavetank::pilot {
namespace {

using config::Server;
using config::ServerTlsSettings;

// Namespaces in hosts: "." is the Gateway's own, "*" is none. One "*/*" makes all others moot.
// istiod: sanitizeServerHostNamespace.
void SanitizeHosts(Server& server, std::string_view ns) {
  for (std::string& host : server.hosts) {
    const size_t slash = host.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view where = std::string_view(host).substr(0, slash);
    const std::string_view rest = std::string_view(host).substr(slash + 1);
    const std::string name(rest.substr(0, rest.find('/')));
    if (where == ".") {
      host = fmt::format("{}/{}", ns, name);
    } else if (where == "*") {
      if (name == "*") {
        server.hosts = {"*"};
        return;
      }
      host = name;
    }
  }
}

std::vector<std::string> SniHosts(const Server& server) {
  std::vector<std::string> out;
  out.reserve(server.hosts.size());
  for (const std::string& host : server.hosts) {
    const size_t slash = host.find('/');
    if (slash == std::string::npos) {
      out.push_back(host);
    } else {
      const std::string_view rest = std::string_view(host).substr(slash + 1);
      out.emplace_back(rest.substr(0, rest.find('/')));
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
  std::vector<std::string_view> parts;
  for (std::string_view rest = name;;) {
    const size_t dot = rest.find('.');
    parts.push_back(rest.substr(0, dot));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  const auto number = [](std::string_view text) {
    int value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && at == text.data() + text.size() ? value : 0;
  };
  if (name.starts_with("http.") && parts.size() >= 2) {
    out.port_number = number(parts[1]);
  } else if (name.starts_with("https.") && parts.size() >= 5) {
    out.port_number = number(parts[1]);
    out.port_name = parts[2];
    out.gateway_name = parts[3];
    out.gateway_namespace = parts[4];
  }
  return out;
}

std::shared_ptr<const MergedGateway> MergeGateways(const std::vector<config::GatewayRef>& gateways,
                                                   const std::vector<ServiceInstance>& instances,
                                                   std::string_view verified_namespace) {
  auto out = std::make_shared<MergedGateway>();
  std::set<uint32_t> ports;                   // that some server has
  std::map<uint32_t, ServerPort> plain_text;  // of ports whose first server has no TLS
  TlsHosts tls_hosts;

  const auto serve = [&](const ServerPort& port, const GatewayServer* server) {
    const auto [it, added] = out->merged_servers.try_emplace(port);
    if (added) out->server_ports.push_back(port);
    it->second.servers.push_back(server);
    return &it->second;
  };

  for (const config::GatewayRef& gateway : gateways) {
    for (const Server& given : gateway->spec.servers) {
      if (!given.has_port) continue;
      auto owned = std::make_unique<GatewayServer>();
      owned->server = given;
      owned->gateway_name = fmt::format("{}/{}", gateway->meta.ns, gateway->meta.name);
      Server& server = owned->server;
      SanitizeHosts(server, gateway->meta.ns);

      if (server.tls && !server.tls->credential_name.empty() && !verified_namespace.empty()) {
        const Credential credential = ParseCredential(server.tls->credential_name, verified_namespace);
        if (gateway->meta.ns == verified_namespace && credential.ns == verified_namespace) {
          out->verified_certificate_references.insert(credential.resource_name);
          if (server.tls->mode == ServerTlsSettings::Mode::kMutual) {
            out->verified_certificate_references.insert(credential.resource_name + "-cacert");
          }
        }
      }

      const uint32_t resolved = ResolvePort(server.port.number, instances);
      const std::string route_name = GatewayRdsRouteName(server, resolved, gateway->meta);
      if (server.tls) {
        if (!tls_hosts.Take(resolved, server)) continue;
        owned->sni_hosts = SniHosts(server);
        owned->route_name = route_name;
        if (server.tls->mode == ServerTlsSettings::Mode::kAutoPassthrough) {
          out->contains_auto_passthrough_gateways = true;
        }
      }
      const GatewayServer* const kept = owned.get();
      out->storage.push_back(std::move(owned));

      const ServerPort port{resolved, server.port.protocol, server.bind};
      const Protocol protocol = ParseProtocol(port.protocol);
      if (ports.insert(resolved).second) {
        if (!config::IsTlsServer(server)) plain_text.emplace(resolved, port);
        if (config::IsHttpServer(server)) out->servers_by_route_name[route_name] = {kept};
        serve(port, kept)->route_name = route_name;
        continue;
      }
      if (const auto it = plain_text.find(resolved); it != plain_text.end()) {
        const ServerPort& current = it->second;
        if (current.bind == port.bind) {
          if (!CanMerge(protocol, ParseProtocol(current.protocol)) || route_name.empty()) continue;
          serve(current, kept);
        } else {
          serve(port, kept)->route_name = route_name;
        }
        out->servers_by_route_name[route_name].push_back(kept);
        continue;
      }
      if (config::IsHttpServer(server)) {
        // HTTPS servers of one port need names of their own.
        if (route_name.empty() || out->servers_by_route_name.contains(route_name)) continue;
        out->servers_by_route_name[route_name] = {kept};
      }
      serve(port, kept);
    }
  }
  for (const auto& [name, servers] : out->servers_by_route_name) {
    std::set<int>& named = out->port_map[ParseGatewayRdsRouteName(name).port_number];
    for (const GatewayServer* server : servers) named.insert(static_cast<int>(server->server.port.number));
  }
  return out;
}

}  // namespace wavetank::pilot
