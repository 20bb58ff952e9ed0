// What pilot-agent learns from its pod at the start: the proxy's identity, where istiod and the CA are, what is
// intercepted (istiod: pilot/cmd/pilot-agent, pkg/bootstrap/config.go, tools/istio-iptables). The pod is all it needs,
// injected or written by hand.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ip.h"
#include "core/base/time.h"
#include "core/profile/profile.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// Which connections istio-iptables (or the CNI plugin) sends to the proxy. The proxy's own (user 1337) never are.
struct Interception {
  std::string mode = "REDIRECT";  // or TPROXY
  uint16_t outbound_port = 15001, inbound_port = 15006;
  bool all_outbound_ips = true, all_inbound_ports = true;
  std::vector<IpPrefix> outbound_ips, excluded_outbound_ips;
  std::set<uint16_t> outbound_ports, excluded_outbound_ports, inbound_ports, excluded_inbound_ports;
  bool v6 = false;  // ip6tables has the rules, too

  // A connection that the application opens. Loopback is never taken.
  bool TakesOutbound(const SocketAddress& destination) const;
  // A connection from outside to an address of the pod.
  bool TakesInbound(const SocketAddress& destination) const;
};

struct ProxyBootstrap {
  enum class Role : uint8_t { kSidecar, kRouter };

  Role role = Role::kSidecar;
  std::string pod, ns, ip, domain;    // "ns.svc.cluster.local"
  std::vector<std::string> more_ips;  // of another IP family
  bool dual_stack = false;            // ISTIO_DUAL_STACK
  bool both_wildcards = false;        // listeners of its bootstrap stand at those of both IP families
  std::string node_id;                // "sidecar~10.1.0.4~name.ns~ns.svc.cluster.local"
  std::string node_cluster;           // "helloworld.sample"
  nlohmann::json metadata;            // node.metadata, as in the first DiscoveryRequest
  std::string region, zone, sub_zone;

  std::string discovery_address;  // "istiod.istio-system.svc:15012"
  std::string discovery_san;      // the name istiod's certificate must carry
  std::string ca_address, ca_san;
  std::string service_account, trust_domain;
  // The projected token that the agent shows to istiod; empty audience: the service account's own token.
  std::string token_audience;
  int64_t token_expiration_seconds = 0;
  std::string root_cert_config_map;  // "istio-ca-root-cert"; empty: Kubernetes' own root or a mounted one
  Duration secret_ttl = 24h;
  int64_t secret_rotation_grace_ppm = 500'000;
  std::optional<int64_t> secret_rotation_jitter_ppm;  // SECRET_GRACE_PERIOD_RATIO_JITTER; none: the agent's default
  bool file_mounted_certs = false;                    // FILE_MOUNTED_CERTS
  std::string output_certs;                           // OUTPUT_CERTS
  bool dns_capture = false;                           // ISTIO_META_DNS_CAPTURE
  bool dynamic_config = false;                        // PROXY_CONFIG_XDS_AGENT
  std::optional<bool> delta_xds;                      // ISTIO_DELTA_XDS; none: as the agent's release does

  int concurrency = 0;  // worker threads; 0: one per core of the node
  Duration drain = 45s, termination_drain = 5s;
  bool hold_application_until_ready = false;

  uint16_t status_port = 15020;
  uint16_t readiness_port = 0;  // 0: there is no readiness probe
  Duration readiness_initial_delay{}, readiness_period = 10s;
  int readiness_failure_threshold = 3;

  std::optional<Interception> interception;  // nullopt: nothing is intercepted (a gateway, or mode NONE)
  nlohmann::json proxy_config;               // effective
  bool xds_plaintext = false;                // controlPlaneAuthPolicy NONE
  std::vector<std::string> log;              // what of its environment the agent could not read
};

struct BootstrapOptions {
  int node_cpus = 0;   // cores of the node, for a proxy container without a CPU limit; 0: unknown
  std::string pod_ip;  // instead of status.podIP
  std::string version = std::string(Profile().istio);  // of a proxy whose image's tag is no version
  Profile profile;                                     // of the world
  // A file of its container, "" where there is none; null: it has no files.
  std::function<std::string(const std::string& path)> read_file;
};

// What a node can give to its pods, as the downward API tells a container without a CPU limit: status.allocatable.cpu,
// else status.capacity.cpu, whole cores, rounded up. 0 if the node says neither.
int NodeCpus(const nlohmann::json& node);

// Whether the pod has an Envoy that an agent runs.
bool HasProxy(const nlohmann::json& pod);

// NotFound: the pod has no container istio-proxy. FailedPrecondition: it has no address yet. InvalidArgument names what
// cannot be read, which makes a real agent end with an error.
absl::StatusOr<ProxyBootstrap> ReadProxyBootstrap(const nlohmann::json& pod, const BootstrapOptions& options = {});

// The environment of the proxy's container, as Kubernetes gives it: variables by name. Errors as above.
using ProxyEnvironment = std::map<std::string, std::string, std::less<>>;
absl::StatusOr<ProxyEnvironment> ReadProxyEnvironment(const nlohmann::json& pod, const BootstrapOptions& options = {});

}  // namespace wavetank::pilot
