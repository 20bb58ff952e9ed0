// What a real agent learns from where it runs: environment variables, files relative to the working folder, the
// machine's addresses (istiod: pilot/cmd/pilot-agent/options, pkg/istio-agent/agent.go).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/agent/agent_setup.h"
#include "core/agent/bootstrap.h"
#include "core/agent/dns_table.h"
#include "core/agent/envoy_life.h"
#include "core/agent/files.h"
#include "core/agent/probes.h"
#include "core/agent/secret_manager.h"
#include "core/agent/token_exchange.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/inject/token_manager.h"

namespace wavetank::serve {

using Environment = std::map<std::string, std::string, std::less<>>;
Environment ProcessEnvironment();

// The arguments of `wavetank agent`, which are pilot-agent's of the same names.
struct AgentArguments {
  std::string type = "sidecar";  // or "router"
  std::string domain;            // --domain
  std::string log_level = "warning,misc:error";
  std::string component_log_level, outlier_log_path;
  bool log_as_json = false;
  int concurrency = 0;
  int sts_port = 0;                                                      // --stsPort; 0: none
  std::string token_manager = std::string(pilot::kGoogleTokenExchange);  // --tokenManagerPlugin
  bool upstream_envoy = false;                                           // the program is no Envoy of Istio's
};

// InvalidArgument: there is no such key.
absl::StatusOr<x509::KeyPairRef> MakeRealKey(const agent::KeyRequest& options);

struct AgentSetup {
  pilot::ProxyBootstrap proxy;
  agent::EnvoyBootstrapOptions bootstrap;
  agent::EnvoyArguments envoy;
  agent::EnvoyLifeOptions life;
  agent::SecretOptions secrets;  // without what only a driver has
  agent::AppProbers probers;
  agent::KeyRequest key;

  std::string config_path, binary;  // folder of the bootstrap and of the ADS socket; Envoy's program
  uint16_t admin_port = 15000, status_port = 15020;
  bool bootstrap_of_istiod = false;  // BOOTSTRAP_XDS_AGENT
  uint16_t tap_port = 15004;         // 0: PROXY_XDS_DEBUG_VIA_AGENT is false
  std::string sds_socket, xds_socket;
  std::string cluster_id, token_path;
  // Of each connection: the file with its roots; empty: plaintext, or the system's own.
  std::string xds_roots, ca_roots;
  bool xds_plaintext = false, ca_plaintext = false;
  std::string ca_provisioned;                      // PROV_CERT: folder with a client certificate
  std::map<std::string, std::string> xds_headers;  // XDS_HEADER_*
  bool dns = false;
  agent::DnsOptions dns_options;
  std::string dns_address;                // "localhost:15053"
  std::vector<std::string> name_servers;  // "10.96.0.10"
  int sts_port = 0;                       // 0: tokens are not exchanged
  std::string sts_address = "127.0.0.1";
  agent::TokenExchange::Options sts;  // without the log
  std::vector<std::string> notes;     // what was asked for and has no effect here
};

// InvalidArgument, in the agent's words: a variable that cannot be read, a root certificate that is not there.
absl::StatusOr<AgentSetup> ReadSetup(const Environment& environment, const AgentArguments& arguments,
                                     agent::Files& files, const std::vector<std::string>& machine_ips);

// Addresses of this machine's interfaces, without loopback and link-local ones (istiod: pkg/network/ip.go).
std::vector<std::string> MachineAddresses();

// Lines NAME="value" as the downward API writes labels and annotations.
std::map<std::string, std::string> ParseDownwardApi(std::string_view text);

}  // namespace wavetank::serve
