// What the processes of one cluster share: where they stand, which servers they ask, how their names are resolved.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/base/observers.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/profile/profile.h"
#include "core/security/ca_client.h"
#include "core/xds/messages.h"
#include "fakes/envoy/apps/app.h"
#include "fakes/envoy/envoy.h"
#include "fakes/kube/cluster.h"
#include "sim/apps/app_behaviour.h"
#include "sim/apps/rate_limits.h"
#include "sim/network/channel.h"
#include "sim/network/dns.h"
#include "sim/network/mesh_network.h"
#include "sim/timing.h"

namespace wavetank::sim {

class NodeHosts;
struct TrafficRecord;

// An application instance, as answered requests name it.
struct PodIdentity {
  std::string cluster, network, ns, name, app, version;
};

// Serves the ADS streams of a world's proxies in place of its istiods: a real istiod, say.
class AdsElsewhere {
 public:
  virtual ~AdsElsewhere() = default;
  // As AdsTransport::Open(). `cluster` is the proxy's own.
  virtual std::unique_ptr<envoysim::AdsStream> Open(const std::string& cluster, const std::string& proxy,
                                                    envoysim::AdsTransport::Protocol protocol,
                                                    envoysim::AdsStreamObserver* observer) = 0;
};

// Of the whole world.
struct Commons {
  uint64_t seed = 0;
  std::string proxy_version;  // of proxies whose image's tag tells none
  Host* host = nullptr;       // runs everything that has no processor of its own
  Links* links = nullptr;
  MeshNetwork* network = nullptr;
  envoysim::DataPlane* plane = nullptr;
  Channels* channels = nullptr;
  WorldDns dns;
  // What URLs answer to istiods that ask for key sets; at any other no server is there.
  std::map<std::string, std::string> web;
  std::shared_ptr<security::CertificateParser> certificates = std::make_shared<security::CertificateParser>();
  std::map<NameId, PodIdentity> servers;    // by AppReply::server
  std::set<std::string, std::less<>> said;  // texts that answers of applications refer to
  // Counts of rate limit services, by the pod of the Redis that holds them: they go with it.
  std::map<NameId, RateLimitCounts> counts;
  AppBehaviours behaviours;
  // Every answered or failed request of traffic.
  Observers<const TrafficRecord&> on_request;
  // Every call of an application to another service that has ended (AppBehaviour::calls); its spec has no id, and names
  // the call.
  Observers<const TrafficRecord&> on_call;
  // Whenever a proxy, by its name in traces, sets out to open its ADS stream.
  Observers<const std::string&> on_dial;
  // Every response that reaches a proxy, before its Envoy sees it.
  Observers<const std::string&, const pilot::DiscoveryResponse&> on_xds;
  Observers<const std::string&, const pilot::DeltaDiscoveryResponse&> on_delta_xds;
  // For those to whom both are the same.
  template <class Tell>
  Subscriptions OnEitherXds(const Tell& tell) {
    Subscriptions out;
    out.Add(on_xds.Add(tell));
    out.Add(on_delta_xds.Add(tell));
    return out;
  }
  Duration xds_retry_base = 500ms, xds_retry_max = 30s;
  bool delta_for_all = false;  // else a proxy speaks delta xDS as its release does
  pilot::Profile profile;
  AdsElsewhere* ads_elsewhere = nullptr;  // null: the world's own istiods (World::MoveAds)
};

struct ClusterSite {
  Commons* commons = nullptr;
  std::string name, network_name;
  SiteId site{};
  NetworkIndex network{};
  fakekube::Cluster* cluster = nullptr;
  const ClusterDns* dns = nullptr;
  const kube::TokenAuthority* tokens = nullptr;
  NodeHosts* nodes = nullptr;
  std::string domain = "cluster.local";
  std::string api_server_roots;  // PEM, as every pod has it
  bool observed = false;         // a record of pods, without all that they refer to

  // DeadlineExceeded, with the policy: a NetworkPolicy keeps a workload's queries from DNS, where nobody answers them.
  // `asked`: a name; an address is no query.
  absl::Status MayAskDns(WorkloadId from, std::string_view asked) const;
  // Secrets as its API server has them; for as long as it lives.
  FindSecret Secrets() const;
  // The client's side of TLS towards istiod: which roots it trusts, and which name it expects. Shared by all that ask
  // for the same. `roots_pem` may be hostile: InvalidArgument.
  absl::StatusOr<std::shared_ptr<const envoysim::TlsClient>> TlsTo(const std::string& roots_pem,
                                                                   const std::string& server_name);

 private:
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const envoysim::TlsClient>> tls_;
};

}  // namespace wavetank::sim
