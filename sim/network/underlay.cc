#include "sim/network/underlay.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/network/underlay_plan.h"

namespace wavetank::sim {
namespace {

constexpr std::string_view kApiServer = "/kube-apiserver";

bool AnyHas(const std::vector<IpPrefix>& ranges, const IpAddress& ip) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& range) { return range.Contains(ip); });
}

IpPrefix Alone(const IpAddress& ip) { return {ip, static_cast<uint8_t>(ip.is_v4() ? 32 : 128)}; }

absl::StatusOr<std::vector<IpPrefix>> ReadRanges(const std::vector<std::string>& texts, std::string_view what) {
  std::vector<IpPrefix> out;
  for (const std::string& text : texts) {
    if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text); ip.ok()) {
      out.push_back(Alone(*ip));
    } else if (const absl::StatusOr<IpPrefix> range = IpPrefix::Parse(text); range.ok()) {
      out.push_back(*range);
    } else {
      return absl::InvalidArgumentError(
          fmt::format("{}: '{}' is no range of addresses; write 10.2.0.0/16 or an address", what, text));
    }
  }
  return out;
}

// A range says nothing about ports, as "10.0.0.1" does.
absl::StatusOr<SocketAddress> ReadEnd(const std::string& address, int64_t port, std::string_view what) {
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  if (!ip.ok())
    return absl::InvalidArgumentError(fmt::format("{}: '{}' is no IP address; write 203.0.113.7", what, address));
  if (port < 0 || port > 65535)
    return absl::InvalidArgumentError(fmt::format("{}: {} is no port; write 1 to 65535", what, port));
  return SocketAddress{*ip, static_cast<uint16_t>(port)};
}

}  // namespace

IpAddress ApiServerAddress(SiteId cluster) {
  const auto number = static_cast<uint16_t>(cluster);
  return IpAddress::V4(192, static_cast<uint8_t>(168 + number / 256), static_cast<uint8_t>(number % 256), 1);
}

bool AddressSet::Has(const IpAddress& ip, std::optional<SiteId> cluster) const {
  if (ranges.empty() && clusters.empty()) return true;
  return AnyHas(ranges, ip) || (cluster && std::find(clusters.begin(), clusters.end(), *cluster) != clusters.end());
}

absl::StatusOr<Underlay> Underlay::Create(const UnderlayPlan& plan) {
  Underlay out;
  for (const UnderlayPlan::Cluster& cluster : plan.clusters) out.clusters_.push_back(cluster.name);
  std::vector<std::string> at(plan.clusters.size());  // the site's name, by cluster
  const auto add = [&](const std::string& name) -> Site& {
    const auto it = std::find_if(out.sites_.begin(), out.sites_.end(), [&](const Site& s) { return s.name == name; });
    return it != out.sites_.end() ? *it : out.sites_.emplace_back(Site{name, {}});
  };
  for (const WorldPlace& place : plan.sites) {
    if (std::any_of(out.sites_.begin(), out.sites_.end(), [&](const Site& s) { return s.name == place.name; }))
      return absl::InvalidArgumentError(fmt::format("two sites are named '{}'; rename one", place.name));
    absl::StatusOr<std::vector<IpPrefix>> ranges = ReadRanges(place.private_ranges, "site " + place.name + ": private");
    if (!ranges.ok()) return ranges.status();
    add(place.name).private_ranges = *std::move(ranges);
    for (const std::string& name : place.clusters) {
      const auto it = std::find(out.clusters_.begin(), out.clusters_.end(), name);
      if (it == out.clusters_.end())
        return absl::InvalidArgumentError(fmt::format("site {}: no cluster is named '{}'", place.name, name));
      std::string& where = at[static_cast<size_t>(it - out.clusters_.begin())];
      if (!where.empty())
        return absl::InvalidArgumentError(
            fmt::format("cluster {} is in site {} and in site {}; name it in one", name, where, place.name));
      where = place.name;
    }
  }
  // A cluster that no site names stands in one of its own network's name, with the others of that network.
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i].empty()) at[i] = plan.clusters[i].network;
    add(at[i]);
  }
  for (const std::string& name : at) out.site_of_.push_back(*out.Find(name));
  for (const WorldRoute& route : plan.routes) {
    absl::StatusOr<Road> road = out.ReadRoad(route.from, route.to, route.ranges);
    if (!road.ok()) return road.status();
    out.routes_.push_back(*std::move(road));
  }
  for (const WorldFirewall& firewall : plan.firewalls) {
    absl::StatusOr<Firewall> read = out.ReadFirewall(firewall);
    if (!read.ok()) return read.status();
    out.firewalls_.push_back(*std::move(read));
  }
  if (absl::Status status = out.AddNat(plan); !status.ok()) return status;
  return out;
}

absl::Status Underlay::AddNat(const UnderlayPlan& plan) {
  for (const WorldNat& nat : plan.nat) {
    const std::string what = "NAT of site " + nat.site;
    const absl::StatusOr<NetworkIndex> site = Find(nat.site);
    if (!site.ok()) return site.status();
    Nat rule;
    rule.site = *site;
    if (nat.address.empty() == nat.as.empty())
      return absl::InvalidArgumentError(
          what + " is of destinations (address and to) or of sources (as, and source if not all); give one of both");
    if (nat.as.empty()) {
      absl::StatusOr<SocketAddress> address = ReadEnd(nat.address, nat.port, what + ": address");
      if (!address.ok()) return address.status();
      absl::StatusOr<SocketAddress> to = ReadEnd(nat.to, nat.to_port == 0 ? nat.port : nat.to_port, what + ": to");
      if (!to.ok()) return to.status();
      rule.address = *address;
      rule.to = *to;
    } else {
      absl::StatusOr<SocketAddress> as = ReadEnd(nat.as, 0, what + ": as");
      if (!as.ok()) return as.status();
      absl::StatusOr<std::vector<IpPrefix>> source = ReadRanges(nat.source, what + ": source");
      if (!source.ok()) return source.status();
      rule.as = as->ip;
      rule.source = *std::move(source);
    }
    nat_.push_back(std::move(rule));
  }
  return absl::OkStatus();
}

std::vector<std::string> Underlay::site_names() const {
  std::vector<std::string> out;
  for (const Site& site : sites_) out.push_back(site.name);
  return out;
}

absl::StatusOr<NetworkIndex> Underlay::Find(std::string_view site) const {
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].name == site) return NetworkIndex(static_cast<uint16_t>(i));
  }
  return absl::InvalidArgumentError(
      fmt::format("no site is named '{}'; there are {}", site, fmt::join(site_names(), ", ")));
}

absl::StatusOr<AddressSet> Underlay::ReadSet(const std::vector<std::string>& names) const {
  AddressSet out;
  for (const std::string& name : names) {
    const auto cluster = std::find(clusters_.begin(), clusters_.end(), name.substr(0, name.find('/')));
    const auto id = SiteId(static_cast<uint16_t>(cluster - clusters_.begin()));
    if (cluster != clusters_.end() && *cluster == name) {
      out.clusters.push_back(id);
    } else if (cluster != clusters_.end() && name == *cluster + std::string(kApiServer)) {
      out.ranges.push_back(Alone(ApiServerAddress(id)));
    } else if (const absl::StatusOr<NetworkIndex> site = Find(name); site.ok()) {
      for (size_t i = 0; i < site_of_.size(); ++i) {
        if (site_of_[i] == *site) out.clusters.push_back(SiteId(static_cast<uint16_t>(i)));
      }
    } else if (absl::StatusOr<std::vector<IpPrefix>> range = ReadRanges({name}, "firewall"); range.ok()) {
      out.ranges.push_back(range->front());
    } else {
      return absl::InvalidArgumentError(fmt::format(
          "firewall: '{}' is no range of addresses (10.2.0.0/16), cluster ({}), API server (CLUSTER{}) or site ({})",
          name, fmt::join(clusters_, ", "), kApiServer, fmt::join(site_names(), ", ")));
    }
  }
  return out;
}

absl::StatusOr<Underlay::Firewall> Underlay::ReadFirewall(const WorldFirewall& in) const {
  Firewall out;
  out.name = in.name;
  absl::StatusOr<AddressSet> from = ReadSet(in.from), to = ReadSet(in.to);
  if (!from.ok()) return from.status();
  if (!to.ok()) return to.status();
  out.from = *std::move(from);
  out.to = *std::move(to);
  for (const int64_t port : in.ports) {
    if (port < 1 || port > 65535)
      return absl::InvalidArgumentError(fmt::format("firewall: {} is no port; write 1 to 65535", port));
    out.ports.push_back(static_cast<uint16_t>(port));
  }
  out.fate = in.allow ? Fate::kPasses : in.reject ? Fate::kRejected : Fate::kDropped;
  out.established = in.established;
  return out;
}

absl::Status Underlay::SetFirewall(const WorldFirewall& firewall) {
  absl::StatusOr<Firewall> read = ReadFirewall(firewall);
  if (!read.ok()) return read.status();
  if (!read->name.empty()) {
    for (Firewall& old : firewalls_) {
      if (old.name != read->name) continue;
      old = *std::move(read);
      return absl::OkStatus();
    }
  }
  firewalls_.insert(firewalls_.begin(), *std::move(read));
  return absl::OkStatus();
}

absl::Status Underlay::RemoveFirewall(std::string_view name) {
  if (std::erase_if(firewalls_, [&](const Firewall& each) { return each.name == name; }) > 0) return absl::OkStatus();
  std::vector<std::string> names;
  for (const Firewall& each : firewalls_) names.push_back(each.name.empty() ? "one without a name" : each.name);
  return absl::InvalidArgumentError(
      fmt::format("no firewall rule is named '{}'; there {}", name,
                  names.empty() ? "is none" : fmt::format("are {}", fmt::join(names, ", "))));
}

absl::StatusOr<Underlay::Road> Underlay::ReadRoad(std::string_view from, std::string_view to,
                                                  const std::vector<std::string>& ranges) const {
  const absl::StatusOr<NetworkIndex> a = Find(from), b = Find(to);
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  if (*a == *b) return absl::InvalidArgumentError(fmt::format("a route leads from {} to itself; name two sites", from));
  absl::StatusOr<std::vector<IpPrefix>> read = ReadRanges(ranges, "route");
  if (!read.ok()) return read.status();
  return Road{*a, *b, *std::move(read)};
}

void Underlay::Lose(const Road& road) {
  if (std::find(lost_.begin(), lost_.end(), road) == lost_.end()) lost_.push_back(road);
}

bool Underlay::Restore(const Road& road) { return std::erase(lost_, road) > 0; }

bool Underlay::IsPrivate(NetworkIndex site, const IpAddress& ip) const {
  return AnyHas(sites_[static_cast<uint16_t>(site)].private_ranges, ip);
}

bool Underlay::Leads(NetworkIndex from, NetworkIndex to, const IpAddress& ip) const {
  return std::any_of(routes_.begin(), routes_.end(), [&](const Road& road) {
    return road.from == from && road.to == to && (road.ranges.empty() || AnyHas(road.ranges, ip));
  });
}

std::vector<NetworkIndex> Underlay::RoutesTo(NetworkIndex from, const IpAddress& ip) const {
  std::vector<NetworkIndex> out;
  for (const Road& road : routes_) {
    if (road.from == from && (road.ranges.empty() || AnyHas(road.ranges, ip))) out.push_back(road.to);
  }
  return out;
}

const Underlay::Road* Underlay::LostOn(NetworkIndex from, NetworkIndex to, const IpAddress& ip) const {
  for (const Road& road : lost_) {
    if (road.from == from && road.to == to && (road.ranges.empty() || AnyHas(road.ranges, ip))) return &road;
  }
  return nullptr;
}

std::optional<Underlay::Destination> Underlay::Translate(const SocketAddress& destination) const {
  for (const Nat& nat : nat_) {
    if (!nat.as.empty() || nat.address.ip != destination.ip) continue;
    if (nat.address.port != 0 && nat.address.port != destination.port) continue;
    return Destination{nat.site, {nat.to.ip, nat.to.port == 0 ? destination.port : nat.to.port}};
  }
  return std::nullopt;
}

IpAddress Underlay::SourceOutside(NetworkIndex site, const IpAddress& ip) const {
  for (const Nat& nat : nat_) {
    if (!nat.as.empty() && nat.site == site && (nat.source.empty() || AnyHas(nat.source, ip))) return nat.as;
  }
  return ip;
}

std::vector<bool> Underlay::RangesWith(const IpAddress& ip) const {
  std::vector<bool> out;
  const auto look = [&](const std::vector<IpPrefix>& ranges) {
    for (const IpPrefix& range : ranges) out.push_back(range.Contains(ip));
  };
  for (const Site& site : sites_) look(site.private_ranges);
  for (const Road& road : routes_) look(road.ranges);
  for (const Road& road : lost_) look(road.ranges);
  for (const Firewall& firewall : firewalls_) look(firewall.from.ranges);
  for (const Nat& nat : nat_) look(nat.source);
  return out;
}

Underlay::Fate Underlay::Judge(const Crossing& c, std::string* why) const {
  const auto tell = [&](Fate fate, auto&& text) {
    if (why != nullptr) *why = text();
    return fate;
  };
  if (c.from != c.to) {
    if (LostOn(c.from, c.to, c.before.destination.ip) != nullptr) {
      return tell(Fate::kDropped,
                  [&] { return fmt::format("the route from {} to {} is lost", Name(c.from), Name(c.to)); });
    }
    if (LostOn(c.to, c.from, c.after.source) != nullptr) {
      return tell(Fate::kDropped, [&] {
        return fmt::format("the route back from {} to {} is lost, so no answer comes", Name(c.to), Name(c.from));
      });
    }
    const bool translated = c.after.source != c.before.source && !IsPrivate(c.from, c.after.source);
    if (c.routed && !translated && !Leads(c.to, c.from, c.after.source)) {
      return tell(Fate::kDropped, [&] {
        return fmt::format("no route leads back from {} to {} in {}, so no answer comes", Name(c.to),
                           c.after.source.ToString(), Name(c.from));
      });
    }
  }
  for (const Firewall& rule : firewalls_) {
    if (c.established && !rule.established) continue;
    const auto fits = [&](const Crossing::View& view) {
      return rule.from.Has(view.source, c.from_cluster) && rule.to.Has(view.destination.ip, c.to_cluster) &&
             (rule.ports.empty() ||
              std::find(rule.ports.begin(), rule.ports.end(), view.destination.port) != rule.ports.end());
    };
    if (!fits(c.before) && !fits(c.after)) continue;
    if (rule.fate == Fate::kPasses) return Fate::kPasses;
    return tell(rule.fate, [&] {
      return fmt::format("{} by a firewall{}: {} to {}", rule.fate == Fate::kDropped ? "dropped" : "rejected",
                         rule.name.empty() ? "" : " (" + rule.name + ")", c.before.source.ToString(),
                         c.before.destination.ToString());
    });
  }
  return Fate::kPasses;
}

}  // namespace wavetank::sim
