#include "fakes/kube/load_balancers.h"

#include <fmt/format.h>

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
    : api_(api), options_(options), pending_(api.host()) {
  api_.Observe("Service", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) return;
    const json spec = change.object->body.value("spec", json::object());
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    if (spec.value("type", "") != "LoadBalancer" || withheld_.count(name) != 0) return;
    const json status = change.object->body.value("status", json::object());
    if (!status.value("loadBalancer", json::object()).value("ingress", json::array()).empty()) return;
    pending_.After(options_.load_balancer, [this, name] {
      const ObjectRef service = api_.Get("Service", name);
      if (service == nullptr || withheld_.count(name) != 0) return;
      const json now = service->body.value("status", json::object());
      if (now.value("loadBalancer", json::object()).value("ingress", json::array()).empty()) Assign(name, Next());
    });
  });
}

std::string LoadBalancerController::Next() {
  const std::string network = options_.load_balancer_cidr.substr(0, options_.load_balancer_cidr.rfind('.'));
  return fmt::format("{}.{}", network, 1 + given_++ % 254);
}

void LoadBalancerController::Assign(const NamespacedName& service, const std::string& address) {
  json ingress = json::array();
  if (!address.empty()) {
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
  if (service == nullptr || service->body["spec"].value("type", "") != "LoadBalancer") {
    return absl::InvalidArgumentError(
        fmt::format("Service {}/{} of {} is no LoadBalancer; name one", name.ns, name.name, options_.name));
  }
  if (address == "none") {
    withheld_.insert(name);
    Assign(name, "");
  } else {
    withheld_.erase(name);
    Assign(name, address == "new" ? Next() : std::string(address));
  }
  return absl::OkStatus();
}

}  // namespace wavetank::fakekube
