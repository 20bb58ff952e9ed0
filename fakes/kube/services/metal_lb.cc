#include "fakes/kube/services/metal_lb.h"

#include <algorithm>
#include <string>

#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/kube/label_selector.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

bool Within(std::string range, const IpAddress& address) {
  std::erase(range, ' ');
  if (const size_t dash = range.find('-'); dash != std::string::npos) {
    const absl::StatusOr<IpAddress> from = IpAddress::Parse(range.substr(0, dash)),
                                    to = IpAddress::Parse(range.substr(dash + 1));
    return from.ok() && to.ok() && from->is_v4() == address.is_v4() && !(address < *from) && !(*to < address);
  }
  const absl::StatusOr<IpPrefix> prefix = IpPrefix::Parse(range);
  return prefix.ok() && prefix->Contains(address);
}

bool SelectsAny(const json& selectors, const kube::Labels& labels) {
  return std::any_of(selectors.begin(), selectors.end(), [&](const json& each) {
    const absl::StatusOr<kube::LabelSelector> selector = kube::LabelSelector::FromJson(each);
    return selector.ok() && selector->Matches(labels);
  });
}

// metallb: internal/allocator/allocator.go, isPoolCompatibleWithService: a pool may be for some Services alone.
bool MayServe(const ApiServer& api, const kube::Object& pool, const kube::Object& service) {
  const json& allocation = At(pool.body, {"spec", "serviceAllocation"});
  const json &names = Items(At(allocation, "namespaces")), &of_ns = Items(At(allocation, "namespaceSelectors")),
             &of_services = Items(At(allocation, "serviceSelectors"));
  if (!names.empty() || !of_ns.empty()) {
    const kube::ObjectRef ns = api.Get("Namespace", {"", service.meta.ns});
    const bool named = std::find(names.begin(), names.end(), service.meta.ns) != names.end();
    if (!named && (ns == nullptr || !SelectsAny(of_ns, ns->meta.labels))) return false;
  }
  return of_services.empty() || SelectsAny(of_services, service.meta.labels);
}

// Some speaker tells the network of what the advertisement is for: one on a node that it selects; over BGP one that has
// a peer (metallb: internal/config/config.go, speaker/bgp_controller.go).
bool HasSpeaker(const ApiServer& api, const kube::Object& advertisement, std::string_view kind) {
  if (kind.starts_with("BGP") && api.List("BGPPeer.metallb.io", advertisement.meta.ns).empty()) return false;
  const json& selectors = Items(At(advertisement.body, {"spec", "nodeSelectors"}));
  if (selectors.empty()) return true;
  const std::vector<kube::ObjectRef> nodes = api.List("Node");
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const kube::ObjectRef& node) { return SelectsAny(selectors, node->meta.labels); });
}

bool Names(const kube::Object& advertisement, const kube::Object& pool) {
  const json& spec = At(advertisement.body, "spec");
  const json& names = Items(At(spec, "ipAddressPools"));
  const json& selectors = Items(At(spec, "ipAddressPoolSelectors"));
  if (names.empty() && selectors.empty()) return true;
  if (std::find(names.begin(), names.end(), pool.meta.name) != names.end()) return true;
  return SelectsAny(selectors, pool.meta.labels);
}

}  // namespace

kube::ObjectRef PoolOf(const ApiServer& api, std::string_view address) {
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  if (!ip.ok()) return nullptr;
  for (const kube::ObjectRef& pool : api.List(kMetalLbPool)) {
    for (const json& range : Items(At(pool->body, {"spec", "addresses"}))) {
      if (Within(TextOf(range), *ip)) return pool;
    }
  }
  return nullptr;
}

bool AnnouncesByMetalLb(const ApiServer& api, std::string_view address) {
  const kube::ObjectRef pool = PoolOf(api, address);
  if (pool == nullptr) return true;
  for (const char* kind : kMetalLbAdvertisements) {
    for (const kube::ObjectRef& advertisement : api.List(kind, pool->meta.ns)) {
      if (Names(*advertisement, *pool) && HasSpeaker(api, *advertisement, kind)) return true;
    }
  }
  return false;
}

BalancerWish WishOf(const ApiServer& api, const kube::Object& service) {
  const auto annotation = [&](const char* name) {
    for (const char* domain : {"metallb.universe.tf/", "metallb.io/"}) {
      const auto it = service.meta.annotations.find(std::string(domain) + name);
      if (it != service.meta.annotations.end()) return it->second;
    }
    return std::string();
  };
  const std::vector<kube::ObjectRef> pools = api.List(kMetalLbPool);
  BalancerWish out;
  out.address = Text(At(service.body, "spec"), "loadBalancerIP");
  if (!pools.empty() && !annotation("loadBalancerIPs").empty()) out.address = annotation("loadBalancerIPs");
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(out.address);
  // Other clouds pass over what is no address.
  if (!ip.ok() || !ip->is_v4()) {
    out.refused = !pools.empty() && !out.address.empty();
    out.address.clear();
  }
  if (pools.empty()) return out;
  const std::string wanted = annotation("address-pool");
  const bool known = wanted.empty() || std::any_of(pools.begin(), pools.end(),
                                                   [&](const auto& pool) { return pool->meta.name == wanted; });
  const kube::ObjectRef pool = out.address.empty() ? nullptr : PoolOf(api, out.address);
  // metallb: controller/main.go, --lb-class: Services of another's class are not its; this one is started without.
  if (!Text(At(service.body, "spec"), "loadBalancerClass").empty()) out.refused = true;
  if (pool != nullptr && !MayServe(api, *pool, service)) out.refused = true;
  if (!out.address.empty() && (pool == nullptr || (!wanted.empty() && pool->meta.name != wanted))) out.refused = true;
  out.refused = out.refused || !known;
  return out;
}

bool GivesByItself(const ApiServer& api, std::string_view address, const kube::Object& service) {
  const kube::ObjectRef pool = PoolOf(api, address);
  return pool == nullptr || (At(pool->body, {"spec", "autoAssign"}) != false && MayServe(api, *pool, service));
}

}  // namespace wavetank::fakekube
