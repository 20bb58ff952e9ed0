#include "sim/network/dns.h"

#include <algorithm>

#include "core/kube/types.h"
#include "fakes/kube/services/load_balancers.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

constexpr int kMaxAliases = 8;

absl::Status NoSuchName(std::string_view name) { return absl::NotFoundError(fmt::format("no such host: {}", name)); }

std::string_view WithoutDot(std::string_view name) {
  return !name.empty() && name.back() == '.' ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

absl::StatusOr<std::vector<IpAddress>> WorldDns::Resolve(std::string_view name) const {
  name = WithoutDot(name);
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(name); literal.ok()) return std::vector{*literal};
  if (const auto it = zone_.find(name); it != zone_.end()) {
    if (it->second.empty()) return NoSuchName(name);
    return it->second;
  }
  if (const auto address = fakekube::AddressOfLoadBalancerName(name)) {
    if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(*address); ip.ok()) return std::vector{*ip};
  }
  return NoSuchName(name);
}

absl::StatusOr<std::vector<IpAddress>> ClusterDns::Resolve(std::string_view name, std::string_view ns) const {
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(name); literal.ok()) return std::vector{*literal};
  if (name.empty() || name.back() != '.') {
    // resolv.conf: search NS.svc.DOMAIN svc.DOMAIN DOMAIN, ndots 5.
    const auto dots = std::count(name.begin(), name.end(), '.');
    if (dots < 5) {
      for (const std::string& suffix : {fmt::format("{}.svc.{}", ns, domain_), "svc." + domain_, domain_}) {
        auto found = Qualified(fmt::format("{}.{}", name, suffix), 0);
        if (found.ok()) return found;
      }
    }
  }
  return Qualified(WithoutDot(name), 0);
}

absl::StatusOr<std::vector<IpAddress>> ClusterDns::Qualified(std::string_view name, int depth) const {
  const std::string zone = ".svc." + domain_;
  if (name.size() <= zone.size() || name.substr(name.size() - zone.size()) != zone) return world_.Resolve(name);
  const std::string_view rest = name.substr(0, name.size() - zone.size());
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return NoSuchName(name);
  return Service(rest.substr(0, dot), rest.substr(dot + 1), depth);
}

absl::StatusOr<std::vector<IpAddress>> ClusterDns::Service(std::string_view name, std::string_view ns,
                                                           int depth) const {
  // "pod-0.service.namespace": the endpoint with that host name.
  std::string hostname;
  if (const size_t dot = name.find('.'); dot != std::string_view::npos) {
    hostname = name.substr(0, dot);
    name = name.substr(dot + 1);
  }
  const kube::ObjectRef object = api_.Get("Service", {std::string(ns), std::string(name)});
  if (object == nullptr) return NoSuchName(fmt::format("{}.{}", name, ns));
  const kube::Service& service = kube::ParseService(*object);
  if (service.type == "ExternalName") {
    if (depth >= kMaxAliases) return absl::UnavailableError("a chain of aliases without end");
    return Qualified(WithoutDot(service.external_name), depth + 1);
  }
  std::vector<IpAddress> out;
  const auto add = [&out](std::string_view text) {
    if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text); ip.ok()) out.push_back(*ip);
  };
  if (service.cluster_ip != "None" && hostname.empty()) {
    add(service.cluster_ip);
  } else {
    for (const kube::ObjectRef& slice_object : api_.List("EndpointSlice", ns)) {
      const auto owner = slice_object->meta.labels.find("kubernetes.io/service-name");
      if (owner == slice_object->meta.labels.end() || owner->second != name) continue;
      const kube::EndpointSlice& slice = kube::ParseEndpointSlice(*slice_object);
      for (const kube::EndpointSlice::Endpoint& endpoint : slice.endpoints) {
        if (!hostname.empty() && endpoint.target_name != hostname) continue;
        if (!endpoint.ready.value_or(true) && !service.publish_not_ready) continue;
        for (const std::string& address : endpoint.addresses) add(address);
      }
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.empty()) return NoSuchName(fmt::format("{}.{}", name, ns));
  return out;
}

}  // namespace wavetank::sim
