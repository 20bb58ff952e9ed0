// One simulated Envoy: ADS client, SDS, listeners, cluster manager, HTTP and TCP data plane. It learns its
// configuration only from xDS protobufs, as the real one does, and does with it what real Envoy 1.40 was measured to
// do.
//
// Thread rule: as everywhere, one logical thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "fakes/envoy/access_log.h"
#include "fakes/envoy/ads_transport.h"
#include "fakes/envoy/fabric.h"
#include "fakes/envoy/latency.h"
#include "fakes/envoy/network.h"
#include "fakes/envoy/secret.h"
#include "fakes/envoy/xds_type.h"

namespace envoy::config::core::v3 {
class Node;
}

namespace wavetank::envoysim {

class ConfigStore;
class EnvoyContext;
class Router;
class TlsSessions;

// Which extensions the binary has.
enum class ExtensionSet : uint8_t {
  kIstioProxy,  // Envoy as Istio ships it: istio.alpn, istio.metadata_exchange, istio_authn, stats, ...
  kStock,       // upstream Envoy: unknown extensions are NACKed
};

// What all Envoys of a world share: decoded configuration, TCP, verified certificates. One per world; must outlive
// them.
class DataPlane {
 public:
  struct Options {
    StageLatencies latencies;
    ExtensionSet extensions = ExtensionSet::kIstioProxy;
    uint64_t seed = 0;
    // Which trace records the data plane emits; a benchmark of millions of requests turns them off.
    bool trace_requests = true;
    bool trace_connections = true;
  };

  DataPlane(Host& host, Network& network, const Options& options);
  ~DataPlane();

  Fabric& fabric() { return *fabric_; }
  ConfigStore& configs() { return *configs_; }
  TlsSessions& tls() { return *tls_; }
  Router& router() { return *router_; }
  const Options& options() const { return options_; }
  // Sees every line of an access log and whose it is, perhaps ahead of the clock (AccessLogLine::at). While it is empty
  // logs cost nothing; of requests and connections that are under way when it is set there are no lines.
  using OnAccessLog = std::function<void(EnvoyContext& by, const AccessLogLine& line)>;
  void CollectAccessLogs(OnAccessLog tell) { on_access_log_ = std::move(tell); }
  const OnAccessLog& on_access_log() const { return on_access_log_; }
  bool collects_access_logs() const { return on_access_log_ != nullptr; }

 private:
  const Options options_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<ConfigStore> configs_;
  std::unique_ptr<TlsSessions> tls_;
  std::unique_ptr<Router> router_;
  OnAccessLog on_access_log_;
};

// An Envoy's surroundings: its pod and agent. Implemented by the World, one object per pod.
class EnvoyContext {
 public:
  virtual ~EnvoyContext() = default;
  virtual Host& host() = 0;
  virtual AdsTransport& ads() = 0;
  virtual SecretProvider& secrets() = 0;
  virtual DnsResolver& dns() = 0;
  // The bootstrap's node (id, cluster, locality, metadata); asked for the first message of each stream, so that no
  // Envoy keeps a copy.
  virtual void FillNode(envoy::config::core::v3::Node* node) = 0;
  // The Envoy is LIVE: it has its first CDS and LDS and its listeners accept. What readiness on 15021 answers.
  virtual void OnLive() {}
  // A response is in force (all of it warm) or was rejected.
  virtual void OnApplied(XdsType type, std::string_view version, std::string_view nonce) {
    (void)type, (void)version, (void)nonce;
  }
  virtual void OnRejected(XdsType type, std::string_view version, std::string_view error) {
    (void)type, (void)version, (void)error;
  }
};

// Static resources of a bootstrap, shared by all Envoys that start with it.
struct StaticBootstrap {
  std::vector<std::string> clusters;   // serialised envoy.config.cluster.v3.Cluster
  std::vector<std::string> listeners;  // serialised envoy.config.listener.v3.Listener
};

struct EnvoyOptions {
  std::string name;  // how trace records call it, e.g. "sleep-1.sample"
  WorkloadId workload{};
  IpAddress ip;  // the pod's
  AdsTransport::Protocol protocol = AdsTransport::Protocol::kSotw;
  bool has_ads = true;
  Duration xds_retry_base = 500ms, xds_retry_max = 30s;  // AdsClient::Options
  // Connections of listeners and chains that went away are closed after this (istio-proxy: --drain-time-s 45).
  Duration drain_time = 45s;
  // Of the bootstrap's own CDS and LDS config sources. Istio writes 0s: wait for good.
  Duration initial_fetch_timeout{};
  std::shared_ptr<const StaticBootstrap> bootstrap;
};

// One endpoint as `istioctl proxy-config endpoints` lists it.
struct EndpointStatus {
  std::string cluster;
  std::string address;
  uint32_t weight = 0;
  uint32_t priority = 0;
  std::string locality;  // "region/zone/subzone"
  bool healthy = true;
  bool outlier_ejected = false;
  bool tls = false;  // the transport socket that would be chosen is TLS
};

class Envoy {
 public:
  class Impl;  // internal to this folder

  Envoy(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options);
  ~Envoy();  // a crash: connections are reset
  Envoy(const Envoy&) = delete;
  Envoy& operator=(const Envoy&) = delete;

  // Execs the process; ADS begins after StageLatencies::start.
  void Start();

  enum class StopKind : uint8_t {
    kKill,    // SIGKILL, OOM: the kernel resets all connections
    kVanish,  // the node is gone: silence
  };
  // Ends it; Start() begins a new life (epoch) without memory of the old one.
  void Stop(StopKind kind);

  // POST /drain_listeners?graceful: connections are answered with Connection: close, none is refused, until Stop.
  void Drain();

  bool running() const;
  bool live() const;
  bool draining() const;
  bool ads_connected() const;

  // Where the pod's redirect rules lead: 15001, 15006; direct() accepts what is bound to a port itself (gateways).
  // Valid as long as the Envoy exists; while it does not listen they refuse.
  Acceptor& outbound();
  Acceptor& inbound();
  Acceptor& direct();

  // Last accepted version per type; empty if none.
  std::string_view accepted_version(XdsType type) const;

  // What the data plane would use now, sorted; for dumps and tests, not fast.
  std::vector<EndpointStatus> Endpoints() const;
  std::vector<std::string> ClusterNames() const;  // active ones
  std::vector<std::string> ListenerNames() const;
  std::vector<std::string> RouteNames() const;

  // A counter by its Envoy name ("listener.0.0.0.0_15006.ssl.fail_verify_no_cert",
  // "cluster.outbound|5000||h.sample.svc.cluster.local.upstream_cx_connect_fail"); 0 if never incremented.
  uint64_t counter(std::string_view name) const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wavetank::envoysim
