// One simulated Envoy: ADS client, SDS, listeners, cluster manager, HTTP and TCP data plane. It learns its
// configuration only from xDS protobufs, as the real one does, and does with it what real Envoy 1.40 was measured to
// do.
//
// Thread rule: as everywhere, one logical thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "fakes/envoy/process/context.h"
#include "fakes/envoy/proxy/data_plane.h"
#include "fakes/envoy/upstream/endpoint_status.h"

namespace wavetank::envoysim {

class Envoy {
 public:
  class Impl;  // internal to this folder

  Envoy(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options);
  ~Envoy();  // a crash: connections are reset
  Envoy(const Envoy&) = delete;
  Envoy& operator=(const Envoy&) = delete;

  // Execs the process; ADS begins after StageLatencies::start.
  void Start();

  using StopKind = envoysim::StopKind;
  // Ends it; Start() begins a new life (epoch) without memory of the old one.
  void Stop(StopKind kind);

  // POST /drain_listeners?graceful: connections are answered with Connection: close, none is refused, until Stop.
  void Drain();

  // From here on its chance is another's, as of another process that came to the same state: for comparisons with a
  // real one, whose chance nobody knows.
  void DrawAnew(uint64_t as);

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
  std::vector<EndpointsInUse> EndpointTables() const;  // the same by cluster, in O(clusters)
  std::vector<std::string> ClusterNames() const;       // active ones
  std::vector<std::string> ListenerNames() const;
  std::vector<std::string> RouteNames() const;

  // A counter by its Envoy name ("listener.0.0.0.0_15006.ssl.fail_verify_no_cert",
  // "cluster.outbound|5000||h.sample.svc.cluster.local.upstream_cx_connect_fail"); 0 if never incremented.
  uint64_t counter(std::string_view name) const;
  // All counters and gauges by their Envoy names, those too that are 0; for dumps, not fast.
  std::map<std::string, uint64_t> AllStats() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wavetank::envoysim
