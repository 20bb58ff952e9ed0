// What lies under a world's networks, as its options say it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wavetank::sim {

// A physical network. Clusters that none names stand, by their `network`, in one of that name.
struct WorldPlace {
  std::string name;
  std::vector<std::string> clusters;
  std::vector<std::string> private_ranges;  // of load balancers' and nodes' addresses that are known inside alone
};

// Leads from a site to pods' and private addresses of another; one direction.
struct WorldRoute {
  std::string from, to;
  std::vector<std::string> ranges;  // none: to all of them
};

// Ends are ranges, addresses, clusters, sites or "CLUSTER/kube-apiserver"; none: everything.
struct WorldFirewall {
  std::string name;
  std::vector<std::string> from, to;
  std::vector<int64_t> ports;  // none: all
  bool allow = false, reject = false;
  bool established = false;  // also of connections that stand
};

// Of destinations: what comes for `address` goes on to `to`. Of sources: what leaves the site bears `as`.
struct WorldNat {
  std::string site;
  std::string address, to;
  int64_t port = 0, to_port = 0;    // 0: every port, and the same one
  std::vector<std::string> source;  // none: all
  std::string as;
};

struct UnderlayPlan {
  struct Cluster {
    std::string name, network;
  };
  std::vector<Cluster> clusters;  // in the order of their SiteIds
  std::vector<WorldPlace> sites;
  std::vector<WorldRoute> routes;
  std::vector<WorldFirewall> firewalls;
  std::vector<WorldNat> nat;
};

}  // namespace wavetank::sim
