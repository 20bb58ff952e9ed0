// One istiod: everything that pilot-discovery starts, composed (istiod: pilot/pkg/bootstrap/server.go, NewServer).
//
// Order of life: the CA is made or loaded, the config cluster's informers, the remote clusters of the Secrets that are
// there and the config store sync, then the discovery server takes connections: Ready(). Destroying it is the process's
// death: streams end without a word, timers and informers stop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/kube/client.h"
#include "core/kube/credentials/access_review.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/model/features.h"
#include "core/model/ids.h"
#include "core/profile/profile.h"
#include "core/registry/kube/mcs_options.h"
#include "core/security/authenticator.h"
#include "core/security/ca_server.h"
#include "core/security/istiod_ca.h"
#include "core/xds/stream.h"
#include "nlohmann/json.hpp"

namespace wavetank::agent {
class Files;
}

namespace wavetank::config {
class CrdClient;
struct MeshConfig;
}  // namespace wavetank::config

namespace wavetank::pilot {

class DiscoveryServer;
class GatewayResolver;
class PushObserver;
class Registries;

struct IstiodOptions {
  std::string name = "istiod";  // names it in the trace
  std::string pod_name;         // POD_NAME: whom elections know it as
  ClusterId cluster_id;
  std::string system_namespace = "istio-system";
  std::string revision;  // empty: the default revision
  std::string domain_suffix = "cluster.local";
  uint64_t seed = 0;
  Profile profile;
  bool external = false;             // EXTERNAL_ISTIOD: serves remote clusters that name it
  bool leader_election = true;       // ENABLE_LEADER_ELECTION; without it every replica does what a leader does
  bool prioritized_election = true;  // PRIORITIZED_LEADER_ELECTION
  std::string mesh_config;           // YAML, when there is no ConfigMap `istio`
  // Files that istiod reads instead, if they are there: --meshConfig, --networksConfig.
  std::string mesh_config_file = "./etc/istio/config/mesh", networks_config_file = "./etc/istio/config/meshNetworks";
  std::string shared_mesh_config;       // SHARED_MESH_CONFIG: a ConfigMap whose mesh config goes below its own
  std::string spiffe_bundle_endpoints;  // SPIFFE_BUNDLE_ENDPOINTS: whose client certificates are believed, too
  std::string watch_namespace;          // ISTIO_WATCH_NAMESPACE
  std::string config_dir;               // --configDir: Istio's configurations are read there instead of in the cluster
  std::string tls_cert_file, tls_key_file, ca_cert_file;  // --tlsCertFile, --tlsKeyFile, --caCertFile: its own
  // PILOT_ENABLE_STATUS and PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING: who has which version of a configuration is
  // reported into a ConfigMap each PILOT_STATUS_UPDATE_INTERVAL, and its leader writes it into statuses.
  bool status = false, distribution_tracking = false;
  Duration status_update_interval = 500ms;
  bool endpoints_only = false;                           // PILOT_USE_ENDPOINT_SLICE=false
  std::vector<std::string> registries = {"Kubernetes"};  // --registries
  Duration debounce_after = 100ms;                       // PILOT_DEBOUNCE_AFTER
  Duration debounce_max = 10s;                           // PILOT_DEBOUNCE_MAX
  bool debounce_eds = true;                              // PILOT_ENABLE_EDS_DEBOUNCE
  int push_throttle = 100;                               // PILOT_PUSH_THROTTLE
  Features features;
  bool shuffle_pushes = false;            // istiod serves its proxies in no certain order; `seed` then chooses one
  int requests_per_second = 25;           // PILOT_MAX_REQUESTS_PER_SECOND
  Duration remote_cluster_timeout = 30s;  // PILOT_REMOTE_CLUSTER_TIMEOUT
  Duration cacerts_mount_delay = 30s;     // IstiodCaOptions::mount_delay
  bool patches_injection = true;          // INJECTION_WEBHOOK_CONFIG_NAME names one
  bool enable_ca = true;                  // ENABLE_CA_SERVER; without it neither certificates nor root ConfigMaps
  bool xds_auth = true;                   // XDS_AUTH
  bool xds_cache = true;                  // PILOT_ENABLE_XDS_CACHE
  bool auto_registration = true;          // PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION
  std::string native_sidecars;            // ENABLE_NATIVE_SIDECARS; empty: it says nothing
  bool validate_entry_identity = true;    // ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY
  bool entry_health_checks = true;        // PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS
  Duration entry_grace = 10s;             // PILOT_WORKLOAD_ENTRY_GRACE_PERIOD
  bool multi_root = false;                // ISTIO_MULTIROOT_MESH: roots of caCertificates and of the CA go to agents
  McsOptions mcs;                         // ENABLE_MCS_..., MCS_API_...
  std::map<ClusterId, ClusterId> cluster_aliases;  // --clusterAliases
  std::vector<std::string> custom_hosts;           // ISTIOD_CUSTOM_HOST
  // Who signs where istiod does not itself: EXTERNAL_CA, K8S_SIGNER, CERT_SIGNER_DOMAIN; PILOT_CERT_PROVIDER.
  std::string external_ca, k8s_signer, cert_signer_domain, cert_provider = "istiod";
  std::string jwt_rule;                                  // JWT_RULE; empty: no OpenID Connect issuer is believed
  security::TokenPolicy tokens;                          // TOKEN_AUDIENCES, JWT_POLICY, REQUIRE_3P_TOKEN
  std::vector<std::string> trusted_gateways;             // TRUSTED_GATEWAY_CIDR
  std::set<kube::NamespacedName> trusted_node_accounts;  // CA_TRUSTED_NODE_ACCOUNTS
  bool xds_auth_plaintext = false;                       // XDS_AUTH_PLAINTEXT: callers of 15010 are asked, too
  // Lifetimes and checks of its CA; what else stands there follows from the other options.
  security::IstiodCaOptions ca;
  // Of the injection values of a default installation, which hold as long as there is no ConfigMap
  // `istio-sidecar-injector`.
  std::string network, mesh_id;
};

// What istiod asks of the world around it. All must outlive it.
struct IstiodSurroundings {
  Host* host = nullptr;
  kube::Client* config_cluster = nullptr;
  kube::ClientFactory* remote_clusters = nullptr;
  GatewayResolver* resolver = nullptr;  // may be null: host names of gateways stay unresolved
  // TokenReview of a cluster that istiod may ask: its own, or one of its remote Secrets. Null for others. Istiod itself
  // asks only for clusters that it knows.
  std::function<kube::TokenReviewer*(std::string_view cluster)> token_reviewer;
  // SubjectAccessReview of a cluster, likewise: which routers may have the Secrets that credentialNames name. Without
  // one, none may.
  std::function<const kube::AccessReviewer*(std::string_view cluster)> access_reviewer;
  PushObserver* observer = nullptr;  // may be null
  // What a URL answers, for key sets of RequestAuthentications; nullopt: no server answers. Without this function none
  // ever does.
  std::function<std::optional<std::string>(const std::string& url)> fetch;
  // Whether another istiod may lead at that cluster, now or before; without it none ever does (core/election).
  std::function<bool(std::string_view cluster)> contested;
  std::string api_server_roots;   // PEM, by which its pod believes its own cluster's API server; may be empty
  LogSink log;                    // may be empty
  agent::Files* files = nullptr;  // what is mounted where it runs; may be null
  // How traces call the cluster of that ID; without, by its ID.
  std::function<std::string(std::string_view cluster)> cluster_name;
};

class Istiod {
 public:
  Istiod(IstiodSurroundings surroundings, IstiodOptions options);
  ~Istiod();
  Istiod(const Istiod&) = delete;
  Istiod& operator=(const Istiod&) = delete;

  // Calls back once, later: OK when ready, or why it cannot start (a cacerts Secret that is none).
  void Start(absl::AnyInvocable<void(absl::Status)> done);
  bool Ready() const;
  const Profile& profile() const;
  // Others write statuses of the Gateway API from now on, whoever leads: a real istiod on the same cluster, with whose
  // words ours would quarrel for ever.
  void LeaveStatusesToOthers();
  // `contested` may answer otherwise from now on.
  void ReconsiderElections();
  // SIGTERM: what only a leader does stops, and its locks are handed back; then the process would end, so `ended` is
  // called (istiod: Server.WaitUntilCompletion, which waits for nothing else, neither for streams nor for
  // --shutdownDuration). It goes on answering until it is destroyed.
  void Terminate(std::function<void()> ended);
  // What it holds of elections that nobody else takes part in, as the objects that would say so.
  std::vector<nlohmann::json> UnwrittenElections() const;
  // Of the elections of its own cluster, by name (core/election/cluster_elections.h).
  bool Leads(std::string_view election) const;
  // Nothing is queued, debounced, pushed or under way: what will come next needs a new event (or an hour).
  bool Idle() const;

  // Whether a client's certificate is believed, by the roots of its trust domain: its own, those of its CA and RA; of
  // others, what SPIFFE_BUNDLE_ENDPOINTS gave. No chain is believed.
  absl::Status VerifyClient(const std::vector<x509::CertificateRef>& chain) const;
  // Port 15012, ADS. `peer` is authenticated first; a refusal closes the stream. `stream` must outlive the connection.
  std::unique_ptr<AdsConnection> OpenAds(security::PeerCredentials peer, std::string address, AdsStream& stream);
  // Port 15012, IstioCertificateService.
  void CreateCertificate(security::PeerCredentials peer, security::CertificateRequestMessage request,
                         security::CaServer::Done done);
  // Port 15017; costs as much as the webhook does. `path`: "/inject", "/inject/cluster/cluster2/net/network2". `review`
  // is an AdmissionReview; so is the answer.
  void Admit(std::string path, nlohmann::json review, absl::AnyInvocable<void(nlohmann::json)> done);

  // For TLS on 15012 and 15017; null until the CA is there.
  const security::ServingCertificate* serving_certificate() const;
  const std::string& ca_bundle_pem() const;
  // Why the mesh's ConfigMap was refused, wholly or partly, when it was last read; OK if it was not.
  absl::Status mesh_problem() const;

  // For debug pages (core/debug/pages.h). What follows only after Start.
  const IstiodOptions& options() const;
  Time Now() const;
  const config::CrdClient& config_objects() const;
  // ConfigMap `istio-sidecar-injector` of its revision; null without.
  kube::ObjectRef injector_config() const;
  const config::MeshConfig& mesh_config() const;
  DiscoveryServer& discovery();
  const DiscoveryServer& discovery() const;
  Registries& registries();
  const Registries& registries() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wavetank::pilot
