// A connected proxy: what it said of itself, and what istiod derived for it (istiod: pilot/pkg/model/context.go,
// Proxy).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/containers/shared_vector.h"
#include "core/base/json/shared_json.h"
#include "core/base/time.h"
#include "core/model/endpoint.h"

namespace wavetank::pilot {

class SidecarScope;
class MergedGateway;
class PushContext;
class ServiceDiscovery;

enum class NodeType : uint8_t { kSidecarProxy, kRouter };

// Proxy locality as Envoy's node.locality.
struct ProxyLocality {
  std::string region, zone, sub_zone;
  bool empty() const { return region.empty() && zone.empty() && sub_zone.empty(); }
  // "region/zone/subzone", cut where a part is missing (istiod: util.LocalityToString).
  std::string Label() const {
    if (zone.empty()) return region;
    return sub_zone.empty() ? region + "/" + zone : region + "/" + zone + "/" + sub_zone;
  }
  friend bool operator==(const ProxyLocality&, const ProxyLocality&) = default;
};

// The fields of the node's metadata that istiod 1.18 reads; the whole is kept beside them.
struct NodeMetadata {
  ClusterId cluster_id;
  NetworkId network;
  std::string ns, istio_version, mesh_id, proxy_name, service_account, node_name, workload_name, domain_suffix;
  Labels labels;
  std::vector<std::string> instance_ips;
  std::vector<std::string> requested_network_view;  // REQUESTED_NETWORK_VIEW, comma separated in the metadata
  std::string interception_mode;                    // "REDIRECT" default, "TPROXY", "NONE"
  std::string router_mode;
  std::string generator;
  std::string unprivileged_pod;
  std::string auto_register_group;  // AUTO_REGISTER_GROUP: the WorkloadGroup of a machine outside Kubernetes
  std::string idle_timeout;
  bool dns_capture = false, dns_auto_allocate = false;
  bool http10 = false;
  bool enable_hbone = false;
  std::string tls_client_cert_chain, tls_client_key, tls_client_root_cert;
  std::string tls_server_cert_chain, tls_server_key, tls_server_root_cert;
  SharedJson raw;  // everything, ProxyConfig included
};

enum class XdsType : uint8_t { kCds, kEds, kLds, kRds, kSds, kNds, kEcds, kPcds };
inline constexpr int kXdsTypes = 8;
std::string_view TypeUrl(XdsType type);
std::string_view ShortTypeName(XdsType type);  // "CDS"
// nullopt: a type that istiod does not serve.
std::optional<XdsType> ParseTypeUrl(std::string_view url);

// What a connection subscribes to, per type (istiod: WatchedResource).
struct WatchedResource {
  XdsType type = XdsType::kCds;
  bool wildcard = false;
  SharedVector<std::string> resource_names;  // sorted, unique; proxies with the same view may share them
  std::string nonce_sent, nonce_acked, nonce_nacked;
  Time last_sent{};        // of the last response
  std::string last_error;  // what was said of a response that was refused; until the next ACK
  bool always_respond = false;
};

struct Proxy {
  NodeType type = NodeType::kSidecarProxy;
  std::string id;          // "pod.namespace"
  std::string dns_domain;  // "ns.svc.cluster.local"
  std::vector<std::string> ip_addresses;
  std::string config_namespace;
  NodeMetadata metadata;
  ProxyLocality locality;
  Labels labels;  // of the workload; metadata.labels unless the registry knows better; empty until SetWorkloadLabels
  std::string verified_identity;  // SPIFFE id of the peer certificate or token; empty without authentication

  // Derived at connect and at pushes.
  std::vector<ServiceInstance> service_instances;
  std::shared_ptr<const SidecarScope> sidecar_scope, prev_sidecar_scope;
  std::shared_ptr<const MergedGateway> merged_gateway;
  std::map<XdsType, WatchedResource> watched_resources;
  std::string xds_node;         // node.id as sent
  std::string service_cluster;  // node.cluster as sent

  const ClusterId& cluster() const { return metadata.cluster_id; }
  // Any network view matches an empty one. istiod: Proxy.InNetwork / identifier.IsSameOrEmpty.
  bool InNetwork(const NetworkId& network) const {
    return network.empty() || metadata.network.empty() || network == metadata.network;
  }
  bool InCluster(const ClusterId& cluster) const {
    return cluster.empty() || metadata.cluster_id.empty() || cluster == metadata.cluster_id;
  }
  // Which networks' endpoints this proxy wants to see (istiod: GetView, ProxyView).
  bool IsVisible(const NetworkId& network) const;

  bool IsRouter() const { return type == NodeType::kRouter; }
  bool CanBindToPort(bool bind_to_port, uint32_t port) const;
};

// Reads id "<type>~<ip>~<name>.<ns>~<domain>" and metadata. InvalidArgument says what is wrong with the node.
// The proxy shares the metadata. istiod: pilot/pkg/model/context.go, ParseServiceNodeWithMetadata.
absl::StatusOr<Proxy> ParseServiceNode(std::string_view node_id, SharedJson metadata);

}  // namespace wavetank::pilot
