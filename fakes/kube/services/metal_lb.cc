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

bool Names(const kube::Object& advertisement, const kube::Object& pool) {
  const json& spec = At(advertisement.body, "spec");
  const json& names = Items(At(spec, "ipAddressPools"));
  const json& selectors = Items(At(spec, "ipAddressPoolSelectors"));
  if (names.empty() && selectors.empty()) return true;
  if (std::find(names.begin(), names.end(), pool.meta.name) != names.end()) return true;
  return std::any_of(selectors.begin(), selectors.end(), [&](const json& each) {
    const absl::StatusOr<kube::LabelSelector> selector = kube::LabelSelector::FromJson(each);
    return selector.ok() && selector->Matches(pool.meta.labels);
  });
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
      if (Names(*advertisement, *pool)) return true;
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
  if (!out.address.empty() && (pool == nullptr || (!wanted.empty() && pool->meta.name != wanted))) out.refused = true;
  out.refused = out.refused || !known;
  return out;
}

bool GivesByItself(const ApiServer& api, std::string_view address) {
  const kube::ObjectRef pool = PoolOf(api, address);
  return pool == nullptr || At(pool->body, {"spec", "autoAssign"}) != false;
}

}  // namespace wavetank::fakekube
