// Names: what a cluster's DNS says to its pods, and what the world's DNS says to all.
//
// Fault model: a name of the world's zone may be set to nothing, to other addresses or to another name, and queries of
// one type (A, AAAA) may fail; answers with a time to live are kept by each cluster's DNS for so long, those that a
// name is unknown too. Answers take no time of their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ip.h"
#include "core/base/random.h"
#include "core/base/time.h"
#include "fakes/kube/store/api_server.h"
#include "sim/network/corefile.h"

namespace wavetank::sim {

// Names outside clusters: load balancers' host names, and what scenarios set.
struct DnsRecord {
  std::vector<IpAddress> addresses;  // none, and no alias: NXDOMAIN
  std::string alias;                 // CNAME
  // Queries of these types get no answer: what they would have said is missing.
  bool a_fails = false, aaaa_fails = false;
  std::optional<Duration> ttl;  // of what is said of the name, or of that there is nothing; nothing: it is not kept
};

class ClusterDns;

class WorldDns {
 public:
  struct Answer {
    std::vector<IpAddress> addresses;
    std::optional<Duration> ttl;
  };
  void Set(const std::string& name, DnsRecord record) { zone_[name] = std::move(record); }
  // Sorted by nothing: in the order given, of what an A and an AAAA query bring. NotFound: NXDOMAIN; Unavailable: no
  // server answers. `ttl`: of a failure too.
  absl::StatusOr<Answer> Ask(std::string_view name, std::optional<Duration>* ttl = nullptr) const;
  // The addresses alone.
  absl::StatusOr<std::vector<IpAddress>> Resolve(std::string_view name) const;

  // Clusters' own servers, which others may be told to ask. In the order of being added, until they are removed.
  void Add(const ClusterDns* cluster) { clusters_.push_back(cluster); }
  void Remove(const ClusterDns* cluster) { std::erase(clusters_, cluster); }
  // The cluster whose DNS pods stand behind an address, as `from`'s CoreDNS reaches it: a Service's own, or a load
  // balancer's anywhere. Null: none.
  const ClusterDns* At(const IpAddress& address, const ClusterDns& from) const;

 private:
  std::map<std::string, DnsRecord, std::less<>> zone_;
  std::vector<const ClusterDns*> clusters_;
};

// How long a changed Corefile takes: until the kubelet has written it into CoreDNS's pods (its sync, up to 60 s) and
// the plugin `reload` looks (each 30 s, up to 15 s more). Uniform below `most`; zero: none.
struct DnsReload {
  Duration most{};
  uint64_t seed = 0;
};

// CoreDNS of one cluster, with a pod's search list. Where ConfigMap kube-system/coredns is there, its Corefile says who
// answers (corefile.h); a change of it acts after a while if the one before has the plugin `reload`, else never.
class ClusterDns {
 public:
  ClusterDns(fakekube::ApiServer& api, WorldDns& world, DnsReload reload = {}, std::string domain = "cluster.local");
  ~ClusterDns() { world_.Remove(this); }
  ClusterDns(const ClusterDns&) = delete;
  ClusterDns& operator=(const ClusterDns&) = delete;

  // No change of its Corefile is on its way into force.
  bool Settled() const;

  // As a pod of namespace `ns` asks: "helloworld", "helloworld.sample", fully qualified names, names of the world. An
  // IP literal is itself. ClusterIP Services give their VIP, headless ones their ready endpoints.
  absl::StatusOr<std::vector<IpAddress>> Resolve(std::string_view name, std::string_view ns) const;
  // The same, with the time for which the answer holds from now on, if it says one.
  absl::StatusOr<WorldDns::Answer> Ask(std::string_view name, std::string_view ns) const;

 private:
  friend class WorldDns;
  using Answered = absl::StatusOr<WorldDns::Answer>;
  Answered Service(std::string_view name, std::string_view ns, int depth) const;
  Answered Qualified(std::string_view name, int depth) const;
  // Below ".svc.ZONE"; else the world's.
  Answered InZone(std::string_view name, std::string_view zone, int depth) const;
  // Of the world outside, from memory as long as what it said holds.
  Answered Outside(std::string_view name) const;
  // One of the ConfigMaps that CoreDNS's pods mount.
  void OnConfigMap(const kube::ObjectRef& before, const kube::Object& now);
  void Load(const kube::ObjectRef& map, const kube::ObjectRef& custom) const;
  // What the Corefile in force says; InvalidArgument: CoreDNS does not run by it. Null: there is none.
  absl::StatusOr<std::shared_ptr<const Corefile>> InForce() const;
  Answered By(const Corefile& corefile, std::string_view name, int depth) const;
  Answered Forward(const Corefile::Step& step, int depth) const;
  // Its pods' Service has the address, within the cluster or, with `outside`, for all.
  bool HasAddress(const IpAddress& address, bool outside) const;

  fakekube::ApiServer& api_;
  WorldDns& world_;
  std::string domain_;
  // resourceVersions of its ConfigMap and of what may be imported, as looked at last.
  mutable std::pair<int64_t, int64_t> corefile_version_{-1, -1};
  mutable absl::StatusOr<std::shared_ptr<const Corefile>> corefile_ = std::shared_ptr<const Corefile>();
  const Duration reload_;
  RandomStream draws_;
  std::optional<Time> begun_;  // its ConfigMap came, and its pods with it
  Time due_{};                 // what was changed acts from then on
  Subscription watch_;
  struct Kept {
    Time until{};
    Answered answer;
  };
  mutable std::map<std::string, Kept, std::less<>> kept_;
};

}  // namespace wavetank::sim
