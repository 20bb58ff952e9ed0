// A service of the mesh, merged from Kubernetes Services and ServiceEntries. Immutable once shared.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema/protocol.h"
#include "core/kube/object.h"
#include "core/model/ids.h"
#include "core/model/kept_hash.h"

namespace wavetank::pilot {

using kube::Labels;

struct Port {
  std::string name;
  int port = 0;  // the service's own port number
  Protocol protocol = Protocol::kUnsupported;
  friend bool operator==(const Port&, const Port&) = default;
};

// istiod: pilot/pkg/model/service.go, Resolution: in its order, since its pages show the numbers.
// kDynamicDns: by whatever name a request asks for.
enum class Resolution : uint8_t { kClientSideLb, kDnsLb, kPassthrough, kDnsRoundRobinLb, kAlias, kDynamicDns };

// Which registry a service or shard came from.
enum class Provider : uint8_t { kKubernetes, kExternal, kMock };
std::string_view ProviderName(Provider p);  // "Kubernetes", "External", "Mock"

// exportTo of a service or config.
enum class Visibility : uint8_t { kNone, kPublic, kPrivate, kNamespaces };

struct ExportTo {
  bool is_public = false;   // "*"
  bool is_private = false;  // "."
  bool is_none = false;     // "~"
  std::set<std::string, std::less<>> namespaces;
  bool empty() const { return !is_public && !is_private && !is_none && namespaces.empty(); }
  friend bool operator==(const ExportTo&, const ExportTo&) = default;
};

// Addresses of a service per cluster (istiod: pilot/pkg/model/addressmap.go).
using AddressMap = std::map<ClusterId, std::vector<std::string>>;

// Which endpoints a service prefers: those of its proxy's region, zone and subzone, or of its zone, or node.
enum class TrafficDistribution : uint8_t { kAny, kPreferClose, kPreferSameZone, kPreferSameNode };

struct ServiceAttributes {
  Provider registry = Provider::kKubernetes;
  std::string name, ns;
  Labels labels;
  ExportTo export_to;
  Labels label_selectors;  // spec.selector, or workloadSelector of a ServiceEntry
  // There, though maybe empty: istiod's debug pages tell {} from null.
  bool has_labels = false, has_label_selectors = false;
  AddressMap cluster_external_addresses;  // LoadBalancer ingress, externalIPs, node addresses of NodePort gateways
  std::map<ClusterId, std::map<uint32_t, uint32_t>> cluster_external_ports;  // service port -> node port
  std::string kubernetes_service_type;                                       // "ClusterIP", "ExternalName", ...
  std::string external_name;
  std::map<uint32_t, uint32_t> passthrough_target_ports;  // of a ServiceEntry without resolution, where they are given
  bool node_local = false;                                // internalTrafficPolicy: Local
  TrafficDistribution traffic_distribution = TrafficDistribution::kAny;
  bool races_addresses = false;  // names have addresses of both IP families, and the first connection counts
  std::vector<kube::NamespacedName> aliases;  // namespaces and host names, sorted; a push context fills them in
};

struct Service {
  std::string hostname;  // FQDN, "helloworld.sample.svc.cluster.local"
  std::vector<Port> ports;
  AddressMap cluster_vips;
  std::string default_address;      // "0.0.0.0" when none (kUnspecifiedIp)
  std::string auto_allocated_ipv4;  // ServiceEntry without addresses
  Resolution resolution = Resolution::kClientSideLb;
  bool mesh_external = false;
  int64_t creation_unix_seconds = 0;
  std::vector<std::string> service_accounts;  // SANs declared by a ServiceEntry (subjectAltNames)
  int64_t resource_version = 0;
  ServiceAttributes attributes;
  KeptHash hash;  // see ConfigHash()

  // One number may belong to a port of TCP and one of UDP; istiod's own look-ups by number pass over UDP
  // (istiod: pilot/pkg/model/service.go, PortList.GetByPort).
  const Port* FindPort(int number) const;
  const Port* FindPortOfAnyProtocol(int number) const;
  const Port* FindPort(std::string_view name) const;
  // headless or of resolution NONE: istiod routes to the original destination
  bool Passthrough() const { return resolution == Resolution::kPassthrough; }
};

// Nothing that a push would carry differs; resolution and creation time are not looked at, as in 1.18.2
// (istiod: pilot/pkg/model/service.go, Service.Equals).
bool SameService(const Service& a, const Service& b);

using ServiceRef = std::shared_ptr<const Service>;

inline constexpr std::string_view kUnspecifiedIp = "0.0.0.0";

// "outbound|80|v1|host" and friends (istiod: pilot/pkg/model/service.go, BuildSubsetKey, ParseSubsetKey).
enum class TrafficDirection : uint8_t { kInbound, kOutbound };
std::string BuildSubsetKey(TrafficDirection direction, std::string_view subset, std::string_view hostname, int port);
std::string BuildInboundSubsetKey(int port);
std::string BuildDnsSrvSubsetKey(TrafficDirection direction, std::string_view subset, std::string_view hostname,
                                 int port);  // "outbound_.80_.v1_.host"
struct SubsetKey {
  TrafficDirection direction = TrafficDirection::kOutbound;
  std::string_view subset, hostname;
  int port = 0;
};
// Accepts both forms; nullopt if it is neither. Views point into `key`.
std::optional<SubsetKey> ParseSubsetKey(std::string_view key);

}  // namespace wavetank::pilot
