#include "fakes/kube/services/load_balancers.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/json_access.h"
#include "fakes/kube/services/metal_lb.h"

namespace wavetank::fakekube {

using nlohmann::json;

std::optional<std::string> AddressOfLoadBalancerName(std::string_view hostname) {
  if (hostname.substr(0, 3) != "lb-" || hostname.size() < 8 || hostname.substr(hostname.size() - 8) != ".example") {
    return std::nullopt;
  }
  std::string address(hostname.substr(3, hostname.find('.') - 3));
  for (char& c : address) c = c == '-' ? '.' : c;
  return address;
}

LoadBalancerController::LoadBalancerController(ApiServer& api, const ClusterOptions& options)
    : api_(api), options_(options), pending_(api.host()), addresses_(options.load_balancer_cidr) {
  subscriptions_.Add(api_.Observe("Service", [this](const Change& change) {
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    const json& spec = At(change.object->body, "spec");
    if (change.type == kube::WatchEventType::kDeleted || Text(spec, "type") != "LoadBalancer") {
      without_address_.erase(name);
      if (held_.count(name) == 0) return;
      Release(name);
      if (change.type != kube::WatchEventType::kDeleted) Assign(name, "");
      return;
    }
    if (withheld_.count(name) != 0) return;
    const json& status = At(change.object->body, "status");
    const json& ingress = Items(At(status, {"loadBalancer", "ingress"}));
    if (ingress.empty()) return Queue(name);
    if (!api_.introducing()) return;
    // It was given before this controller was there.
    const std::string host = Text(ingress.front(), "hostname");
    const std::string address = Text(ingress.front(), "ip", AddressOfLoadBalancerName(host).value_or(""));
    if (addresses_.Reserve(address)) held_[name] = address;
  }));
  // metallb: controller/service.go, convergeBalancer: what its pools no longer allow it takes back.
  subscriptions_.Add(api_.Observe(kMetalLbPool, [this](const Change&) {
    for (const auto& [name, address] : std::map<NamespacedName, std::string>(held_)) {
      const ObjectRef service = api_.Get("Service", name);
      if (service == nullptr) continue;
      const BalancerWish wish = WishOf(api_, *service);
      if (!wish.refused && PoolOf(api_, address) == nullptr) continue;
      const bool kept =
          !wish.refused && (wish.address.empty() ? GivesByItself(api_, address, *service) : wish.address == address);
      if (kept) continue;
      Release(name);
      Assign(name, "");
    }
  }));
}

void LoadBalancerController::Queue(const NamespacedName& name) {
  pending_.After(options_.load_balancer + BuggifyDelay(BuggifyPoint::kLoadBalancerLate), [this, name] {
    const ObjectRef service = api_.Get("Service", name);
    if (service == nullptr || withheld_.count(name) != 0) return;
    if (Text(At(service->body, "spec"), "type") != "LoadBalancer") return;
    const json& now = At(service->body, "status");
    if (!Items(At(now, {"loadBalancer", "ingress"})).empty()) return;
    // Somebody wiped the status: the cloud still knows what it gave.
    if (const auto held = held_.find(name); held != held_.end()) return Assign(name, std::string(held->second));
    const BalancerWish wish = WishOf(api_, *service);
    if (wish.refused) {
      without_address_.insert(name);
    } else if (!wish.address.empty()) {
      if (addresses_.Reserve(wish.address)) {
        Assign(name, wish.address);
      } else {
        without_address_.insert(name);
      }
    } else if (const absl::StatusOr<std::string> address = addresses_.Next(); !address.ok()) {
      without_address_.insert(name);
    } else if (!GivesByItself(api_, *address, *service)) {
      addresses_.Release(*address);
      without_address_.insert(name);
    } else {
      Assign(name, *address);
    }
  });
}

void LoadBalancerController::Release(const NamespacedName& service) {
  const auto held = held_.find(service);
  if (held == held_.end()) return;
  addresses_.Release(held->second);
  held_.erase(held);
  for (const NamespacedName& waiting : std::exchange(without_address_, {})) Queue(waiting);
}

void LoadBalancerController::Assign(const NamespacedName& service, const std::string& address) {
  json ingress = json::array();
  if (!address.empty()) {
    // Else the address of before would be nobody's and never free again.
    WAVETANK_ASSERT(!held_.contains(service) || held_[service] == address, held_[service], address);
    held_[service] = address;
    if (options_.load_balancer_hostname) {
      std::string label = address;
      for (char& c : label) c = c == '.' ? '-' : c;
      ingress.push_back({{"hostname", fmt::format("lb-{}.{}.example", label, options_.name)}});
    } else {
      ingress.push_back({{"ip", address}});
    }
  }
  api_.Patch("Service", service, {{"status", {{"loadBalancer", {{"ingress", ingress}}}}}}).IgnoreError();
}

absl::Status LoadBalancerController::Set(const NamespacedName& name, std::string_view address) {
  const ObjectRef service = api_.Get("Service", name);
  if (service == nullptr || Text(At(service->body, "spec"), "type") != "LoadBalancer") {
    return absl::InvalidArgumentError(
        fmt::format("Service {}/{} of {} is no LoadBalancer; name one", name.ns, name.name, options_.name));
  }
  if (address == "none") {
    withheld_.insert(name);
    Release(name);
    Assign(name, "");
    return absl::OkStatus();
  }
  std::string wanted(address);
  if (address == "new") {
    absl::StatusOr<std::string> next = addresses_.Next();
    if (!next.ok()) return next.status();
    wanted = *std::move(next);
  } else if (const auto held = held_.find(name); held == held_.end() || held->second != wanted) {
    if (!addresses_.Reserve(wanted)) {
      return absl::InvalidArgumentError(
          fmt::format("address {} is another load balancer's in {}; name a free one", wanted, options_.name));
    }
  } else {
    return absl::OkStatus();
  }
  withheld_.erase(name);
  Release(name);
  Assign(name, wanted);
  return absl::OkStatus();
}

}  // namespace wavetank::fakekube
