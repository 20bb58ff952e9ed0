// What surrounds one Envoy: its pod, its agent, its command line. Implemented by the World, one object per pod.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "fakes/envoy/process/ads_transport.h"
#include "fakes/envoy/process/xds_type.h"
#include "fakes/envoy/tcp/network.h"
#include "fakes/envoy/tls/secret.h"

namespace envoy::config::core::v3 {
class Node;
}

namespace wavetank::envoysim {

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
  uint16_t outbound_port = 15001, inbound_port = 15006;  // where the pod's redirect rules lead
};

// How a process ends.
enum class StopKind : uint8_t {
  kKill,    // SIGKILL, OOM: the kernel resets all connections
  kVanish,  // the node is gone: silence
};

}  // namespace wavetank::envoysim
