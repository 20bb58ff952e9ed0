// What logical networks stand on: sites, within which pods reach each other by address; routes between sites;
// firewalls; translation of addresses (NAT). Istio knows nothing of it, so what it believes to be one network may be
// cut here.
//
// Rules. Within a site every address is reached. Between sites: a load balancer's address, unless it is one of the
// site's private ranges; a pod's, node's or private address only where a route leads, and then the answer needs a route
// as well. A site's NAT gives packets that leave it another source, and packets for an address of its own another
// destination. Firewalls are tried in order, each with the addresses before and after NAT; the first that fits decides.
// They keep state: connections that stand are not looked at, unless the rule says so. A route that is lost takes all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ip.h"
#include "sim/network/links.h"

namespace wavetank::sim {

struct UnderlayPlan;
struct WorldFirewall;

enum class NetworkIndex : uint16_t {};  // a site: a flat, physical network

// Ranges and whole clusters; neither: everything.
struct AddressSet {
  std::vector<IpPrefix> ranges;
  std::vector<SiteId> clusters;
  bool Has(const IpAddress& ip, std::optional<SiteId> cluster) const;
};

// A connection as it is judged: who opens it to whom, before NAT and after.
struct Crossing {
  struct View {
    IpAddress source;
    SocketAddress destination;
  };
  View before, after;
  NetworkIndex from{}, to{};
  std::optional<SiteId> from_cluster, to_cluster;
  bool routed = false;       // it takes a route of its own, and so does what comes back
  bool established = false;  // it stood before
};

class Underlay {
 public:
  enum class Fate : uint8_t { kPasses, kDropped, kRejected };
  struct Destination {
    NetworkIndex site{};
    SocketAddress to;
  };

  // Of the clusters, in the order of their SiteIds. InvalidArgument names what does not fit.
  static absl::StatusOr<Underlay> Create(const UnderlayPlan& plan);

  // The site that a cluster is attached to.
  NetworkIndex SiteOf(SiteId cluster) const { return site_of_[static_cast<uint16_t>(cluster)]; }
  const std::string& Name(NetworkIndex site) const { return sites_[static_cast<uint16_t>(site)].name; }
  // NotFound lists the sites.
  absl::StatusOr<NetworkIndex> Find(std::string_view site) const;

  bool IsPrivate(NetworkIndex site, const IpAddress& ip) const;
  // Sites to which a route from `from` leads that has this address, in order.
  std::vector<NetworkIndex> RoutesTo(NetworkIndex from, const IpAddress& ip) const;
  // What an address stands for; nullopt: itself.
  std::optional<Destination> Translate(const SocketAddress& destination) const;
  // The source that packets from `site` bear outside of it.
  IpAddress SourceOutside(NetworkIndex site, const IpAddress& ip) const;
  // In which of the ranges that are written an address is, in the order in which they are looked at for a source: what
  // is in the same fares the same.
  std::vector<bool> RangesWith(const IpAddress& ip) const;
  // `why`: filled in unless it passes; may be null.
  Fate Judge(const Crossing& crossing, std::string* why) const;

  // InvalidArgument: ranges that are none, names that nobody has.
  absl::Status SetFirewall(const WorldFirewall& firewall);  // before all others; takes the place of one of its name
  absl::Status RemoveFirewall(std::string_view name);       // NotFound lists those that there are
  struct Road {
    NetworkIndex from{}, to{};
    std::vector<IpPrefix> ranges;  // of destinations; none: all
    friend bool operator==(const Road&, const Road&) = default;
  };
  // NotFound lists the sites; InvalidArgument: it leads from a site to itself, or ranges that are none.
  absl::StatusOr<Road> ReadRoad(std::string_view from, std::string_view to,
                                const std::vector<std::string>& ranges) const;
  void Lose(const Road& road);
  bool Restore(const Road& road);  // false: it was not lost

  std::vector<std::string> site_names() const;

 private:
  struct Site {
    std::string name;
    std::vector<IpPrefix> private_ranges;
  };
  struct Firewall {
    std::string name;
    AddressSet from, to;
    std::vector<uint16_t> ports;  // none: all
    Fate fate = Fate::kDropped;
    bool established = false;
  };
  struct Nat {
    NetworkIndex site{};
    SocketAddress address, to;  // port 0: every port, kept
    std::vector<IpPrefix> source;
    IpAddress as;  // empty: of destinations
  };

  absl::StatusOr<AddressSet> ReadSet(const std::vector<std::string>& names) const;
  absl::StatusOr<Firewall> ReadFirewall(const WorldFirewall& in) const;
  absl::Status AddNat(const UnderlayPlan& plan);
  const Road* LostOn(NetworkIndex from, NetworkIndex to, const IpAddress& ip) const;
  bool Leads(NetworkIndex from, NetworkIndex to, const IpAddress& ip) const;

  std::vector<std::string> clusters_;  // by SiteId
  std::vector<NetworkIndex> site_of_;
  std::vector<Site> sites_;
  std::vector<Road> routes_, lost_;
  std::vector<Firewall> firewalls_;
  std::vector<Nat> nat_;
};

// The address of a cluster's API server inside of the modelled network.
IpAddress ApiServerAddress(SiteId cluster);

}  // namespace wavetank::sim
