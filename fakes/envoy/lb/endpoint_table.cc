#include "fakes/envoy/lb/endpoint_table.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

EdsHealth HealthOf(envoy::config::core::v3::HealthStatus status) {
  switch (status) {
    case envoy::config::core::v3::UNHEALTHY:
    case envoy::config::core::v3::DRAINING:
    case envoy::config::core::v3::TIMEOUT:
      return EdsHealth::kUnhealthy;
    case envoy::config::core::v3::DEGRADED:
      return EdsHealth::kDegraded;
    default:
      return EdsHealth::kHealthy;
  }
}

std::shared_ptr<const StringPairs> MatchMetadata(const envoy::config::core::v3::Metadata& metadata) {
  const auto it = metadata.filter_metadata().find("envoy.transport_socket_match");
  if (it == metadata.filter_metadata().end()) return nullptr;
  auto out = std::make_shared<StringPairs>();
  for (const auto& [key, value] : it->second.fields()) out->emplace_back(key, value.string_value());
  std::sort(out->begin(), out->end());
  return out;
}

// In the order in which they are tried: families in turn, beginning with the other one than the first address's.
// Envoy: happy_eyeballs_connection_impl.cc, sortAddresses.
absl::StatusOr<std::vector<SocketAddress>> MoreAddresses(const envoy::config::endpoint::v3::Endpoint& endpoint,
                                                         const SocketAddress& first) {
  std::vector<SocketAddress> same, other, out;
  for (const auto& more : endpoint.additional_addresses()) {
    const auto& socket = more.address().socket_address();
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(socket.address());
    if (!ip.ok()) return absl::InvalidArgumentError(fmt::format("malformed IP address: {}", socket.address()));
    (ip->is_v4() == first.ip.is_v4() ? same : other).push_back({*ip, static_cast<uint16_t>(socket.port_value())});
  }
  for (size_t i = 0; i < std::max(same.size(), other.size()); ++i) {
    if (i < other.size()) out.push_back(other[i]);
    if (i < same.size()) out.push_back(same[i]);
  }
  return out;
}

// Null: nothing of its own. InvalidArgument: no address.
// Envoy: source/common/upstream/upstream_impl.cc, resolveHealthCheckAddress
absl::StatusOr<std::shared_ptr<const EndpointCheck>> CheckOf(const envoy::config::endpoint::v3::Endpoint& endpoint,
                                                             const SocketAddress& address) {
  if (!endpoint.has_health_check_config()) return std::shared_ptr<const EndpointCheck>();
  const auto& config = endpoint.health_check_config();
  auto out = std::make_shared<EndpointCheck>();
  out->disabled = config.disable_active_health_check();
  out->hostname = config.hostname();
  out->address = address;
  if (config.has_address()) {
    const auto& socket = config.address().socket_address();
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(socket.address());
    if (!ip.ok()) return absl::InvalidArgumentError(fmt::format("malformed IP address: {}", socket.address()));
    out->address = {*ip, static_cast<uint16_t>(socket.port_value())};
  }
  if (config.port_value() != 0) out->address.port = static_cast<uint16_t>(config.port_value());
  return out;
}

}  // namespace

std::string LbLocality::Name() const {
  if (!sub_zone.empty()) return fmt::format("{}/{}/{}", region, zone, sub_zone);
  if (!zone.empty()) return fmt::format("{}/{}", region, zone);
  return region;
}

absl::StatusOr<std::shared_ptr<const EndpointTable>> CompileEndpoints(
    const envoy::config::endpoint::v3::ClusterLoadAssignment& assignment, const Hash128& hash, AddressKind kind) {
  auto table = std::make_shared<EndpointTable>();
  table->hash = hash;
  table->cluster_name = assignment.cluster_name();
  if (table->cluster_name.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (ClusterLoadAssignmentValidationError.ClusterName: value length must be at "
        "least 1 characters)");
  }
  const auto& policy = assignment.policy();
  if (policy.has_overprovisioning_factor()) {
    table->overprovisioning_factor = policy.overprovisioning_factor().value();
    if (table->overprovisioning_factor == 0) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ClusterLoadAssignmentValidationError.Policy: embedded message failed "
          "validation | caused by PolicyValidationError.OverprovisioningFactor: value must be "
          "greater than 0)");
    }
  }
  for (const auto& drop : policy.drop_overloads()) {
    const auto& percentage = drop.drop_percentage();
    const uint32_t whole = percentage.denominator() == envoy::type::v3::FractionalPercent::HUNDRED        ? 100
                           : percentage.denominator() == envoy::type::v3::FractionalPercent::TEN_THOUSAND ? 10'000
                                                                                                          : 1'000'000;
    if (percentage.numerator() > whole) {
      return absl::InvalidArgumentError(fmt::format(
          "Cluster drop_overloads config is invalid. drop_ratio={}(Numerator {} / Denominator {}). The valid range is "
          "0~1.",
          static_cast<double>(percentage.numerator()) / whole, percentage.numerator(), whole));
    }
  }
  table->weighted_priority_health = policy.weighted_priority_health();
  absl::flat_hash_set<std::pair<SocketAddress, std::string>> seen;
  uint64_t weight_sum = 0;
  for (const auto& group : assignment.endpoints()) {
    if (group.priority() > 128) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (LocalityLbEndpointsValidationError.Priority: value must be less than or "
          "equal to 128)");
    }
    const uint32_t locality = static_cast<uint32_t>(table->localities.size());
    LbLocality& l = table->localities.emplace_back();
    l.region = group.locality().region();
    l.zone = group.locality().zone();
    l.sub_zone = group.locality().sub_zone();
    l.weight = group.load_balancing_weight().value();
    l.priority = group.priority();
    table->priorities = std::max(table->priorities, l.priority + 1);
    for (const auto& e : group.lb_endpoints()) {
      if (!e.has_endpoint_name() && e.endpoint().address().address_case() == 0) {
        return absl::InvalidArgumentError("Address must be set");
      }
      if (!e.endpoint().address().has_socket_address()) continue;  // internal listeners, pipes: not modelled
      const auto& socket = e.endpoint().address().socket_address();
      LbEndpoint endpoint;
      endpoint.hostname = e.endpoint().hostname();
      if (socket.address().empty()) {
        return absl::InvalidArgumentError(
            "Proto constraint validation failed (SocketAddressValidationError.Address: value length must be at least 1 "
            "characters)");
      }
      if (socket.port_value() > 65535) {
        return absl::InvalidArgumentError(
            "Proto constraint validation failed (SocketAddressValidationError.PortValue: value must be less than or "
            "equal to 65535)");
      }
      endpoint.address.port = static_cast<uint16_t>(socket.port_value());
      absl::StatusOr<IpAddress> ip = IpAddress::Parse(socket.address());
      if (ip.ok()) {
        endpoint.address.ip = *ip;
      } else if (kind == AddressKind::kNames) {
        endpoint.hostname = socket.address();
      } else {
        return absl::InvalidArgumentError(
            fmt::format("malformed IP address: {}. Consider setting resolver_name or setting cluster type to "
                        "'STRICT_DNS' or 'LOGICAL_DNS'",
                        socket.address()));
      }
      if (!e.endpoint().additional_addresses().empty()) {
        absl::StatusOr<std::vector<SocketAddress>> more = MoreAddresses(e.endpoint(), endpoint.address);
        if (!more.ok()) return more.status();
        endpoint.more_addresses = std::make_shared<const std::vector<SocketAddress>>(*std::move(more));
      }
      absl::StatusOr<std::shared_ptr<const EndpointCheck>> check = CheckOf(e.endpoint(), endpoint.address);
      if (!check.ok()) return check.status();
      endpoint.check = *std::move(check);
      if (e.has_load_balancing_weight()) {
        endpoint.weight = e.load_balancing_weight().value();
        if (endpoint.weight == 0) {
          return absl::InvalidArgumentError(
              "Proto constraint validation failed (LbEndpointValidationError.LoadBalancingWeight: value must be "
              "greater than or equal to 1)");
        }
      }
      weight_sum += endpoint.weight;
      endpoint.locality = locality;
      endpoint.priority = l.priority;
      endpoint.health = HealthOf(e.health_status());
      endpoint.draining = e.health_status() == envoy::config::core::v3::DRAINING;
      endpoint.transport_socket_match = MatchMetadata(e.metadata());
      if (const auto istio = e.metadata().filter_metadata().find("istio");
          istio != e.metadata().filter_metadata().end()) {
        const auto workload = istio->second.fields().find("workload");
        if (workload != istio->second.fields().end()) endpoint.workload = workload->second.string_value();
      }
      // Measured on the real binary: of two copies of an address in one assignment the first is used.
      const std::string key = endpoint.address.ip.empty() ? endpoint.hostname : std::string();
      if (kind == AddressKind::kEds && !seen.emplace(endpoint.address, key).second) continue;
      table->endpoints.push_back(std::move(endpoint));
    }
  }
  if (weight_sum > UINT32_MAX) {
    return absl::InvalidArgumentError(fmt::format("The sum of weights of all endpoints exceeds {}", UINT32_MAX));
  }
  return table;
}

}  // namespace wavetank::envoysim
