// What Envoys and applications need from the network underneath. The World implements Network, Path and DnsResolver;
// this folder implements TCP on top of them (fabric.h).
//
// Division of work: a Network only says where a SYN ends up and over which Path; it may answer differently from one
// call to the next (kube-proxy and load balancers choose a backend, faults come and go). Retransmission, resets, pooled
// connections and splicing at gateways are the Fabric's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/random.h"
#include "core/base/time.h"
#include "fakes/envoy/tcp/address.h"

namespace wavetank::envoysim {

// A connection of the Fabric. Ids are never reused within 2^32 connections; 0 is none.
enum class ConnectionId : uint64_t {};
inline constexpr ConnectionId kNoConnection{0};

// A pod, node or outside client, numbered by the World.
enum class WorkloadId : uint32_t {};

// One direction-free stretch of the network between two workloads. Shared by all connections over it, owned by the
// World, and must live as long as any connection uses it.
class Path {
 public:
  virtual ~Path() = default;
  // Both ends in one pod. Messages over it are delivered at once, without an event of their own; latency is taken as
  // LocalLatency() and added to the request's account.
  virtual bool local() const { return false; }
  virtual Duration LocalLatency() const { return Duration::zero(); }
  // Latency of one segment sent now, or nothing if it gets lost (loss, partition, dead node): the Fabric retransmits.
  virtual std::optional<Duration> Transit(Time now) = 0;
};

// The workload that opens a connection.
struct Origin {
  enum class Who : uint8_t {
    kApplication,  // subject to the pod's redirect rules, if it has a sidecar
    kProxy,        // Envoy's own uid: redirected only when it calls its own pod, to the inbound listener
  };
  WorkloadId workload{};
  Who who = Who::kApplication;
  IpAddress source;      // as bound by the socket; empty = the workload's own address
  uint16_t proxies = 0;  // that pass on what came to them by another connection, one behind the other
};

// The end of an accepted connection, as the listener sees it.
struct AcceptInfo {
  WorkloadId workload{};      // that opened it
  WorkloadId acceptor{};      // whose listener it is
  SocketAddress source;       // after any source NAT
  SocketAddress destination;  // SO_ORIGINAL_DST: after NAT of services and load balancers, before the pod's redirect
};

class ConnectionHandler;

// Something that listens.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // The handler of the new connection's server end (it frees itself on OnClose), or nullptr: connection refused.
  virtual ConnectionHandler* Accept(ConnectionId connection, const AcceptInfo& info) = 0;
};

struct Route {
  enum class Outcome : uint8_t {
    kAccepting,   // `acceptor` gets the connection
    kRefused,     // RST after one round trip: nothing listens there
    kBlackholed,  // no answer at all
  };
  Outcome outcome = Outcome::kBlackholed;
  Acceptor* acceptor = nullptr;
  AcceptInfo info;
  Path* path = nullptr;  // also for kRefused: its latency says when the RST is back
};

class Network {
 public:
  virtual ~Network() = default;
  // Where a SYN from `origin` to `destination` ends up now. `flow` differs per connection; a backend choice keyed by
  // it is stable for the connection. Redirect rules are the Network's: for an application in a pod with a sidecar the
  // answer is that sidecar's outbound() over a local path, whatever the destination; for a connection from elsewhere
  // to such a pod the answer is its inbound().
  virtual Route Resolve(const Origin& origin, const SocketAddress& destination, uint64_t flow) = 0;
};

// What a DNS client is told.
struct DnsAnswer {
  std::vector<IpAddress> addresses;
  Duration ttl{};
};

class DnsResolver {
 public:
  virtual ~DnsResolver() = default;
  // Calls back exactly once, possibly before returning. kNotFound: NXDOMAIN; kUnavailable: no server answers.
  // `done` may outlive the caller, which has to guard itself.
  virtual void Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<DnsAnswer>)> done) = 0;
};

}  // namespace wavetank::envoysim
