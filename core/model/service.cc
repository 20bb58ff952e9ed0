#include "core/model/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace wavetank::pilot {

std::string_view ProviderName(Provider p) {
  switch (p) {
    case Provider::kKubernetes:
      return "Kubernetes";
    case Provider::kExternal:
      return "External";
    case Provider::kMock:
      return "Mock";
  }
  return "";
}

const Port* Service::FindPort(int number) const {
  const auto it = std::find_if(ports.begin(), ports.end(),
                               [&](const Port& p) { return p.port == number && p.protocol != Protocol::kUdp; });
  return it == ports.end() ? nullptr : &*it;
}

const Port* Service::FindPortOfAnyProtocol(int number) const {
  const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.port == number; });
  return it == ports.end() ? nullptr : &*it;
}

const Port* Service::FindPort(std::string_view name) const {
  const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
  return it == ports.end() ? nullptr : &*it;
}

namespace {

std::string SubsetKeyOf(TrafficDirection direction, std::string_view separator, std::string_view subset,
                        std::string_view hostname, int port) {
  char digits[12];
  const auto length = static_cast<size_t>(std::to_chars(std::begin(digits), std::end(digits), port).ptr - digits);
  std::string out;
  out.reserve(32 + subset.size() + hostname.size());
  out.append(direction == TrafficDirection::kInbound ? "inbound" : "outbound").append(separator);
  out.append(digits, length).append(separator).append(subset).append(separator).append(hostname);
  return out;
}

}  // namespace

std::string BuildSubsetKey(TrafficDirection direction, std::string_view subset, std::string_view hostname, int port) {
  return SubsetKeyOf(direction, "|", subset, hostname, port);
}

std::string BuildInboundSubsetKey(int port) { return fmt::format("inbound|{}||", port); }

std::string BuildDnsSrvSubsetKey(TrafficDirection direction, std::string_view subset, std::string_view hostname,
                                 int port) {
  return SubsetKeyOf(direction, "_.", subset, hostname, port);
}

std::optional<SubsetKey> ParseSubsetKey(std::string_view key) {
  // istiod: pilot/pkg/model/service.go, ParseSubsetKey; "_." separates in SNI form, "|" in cluster names.
  for (std::string_view separator : {std::string_view("|"), std::string_view("_.")}) {
    SubsetKey out;
    const size_t a = key.find(separator);
    if (a == std::string_view::npos) continue;
    const size_t b = key.find(separator, a + separator.size());
    if (b == std::string_view::npos) continue;
    const size_t c = key.find(separator, b + separator.size());
    if (c == std::string_view::npos) continue;
    const std::string_view direction = key.substr(0, a);
    if (direction == "inbound") {
      out.direction = TrafficDirection::kInbound;
    } else if (direction != "outbound") {
      continue;
    }
    const std::string_view port = key.substr(a + separator.size(), b - a - separator.size());
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc() || end != port.data() + port.size()) continue;
    out.subset = key.substr(b + separator.size(), c - b - separator.size());
    out.hostname = key.substr(c + separator.size());
    return out;
  }
  return std::nullopt;
}

bool SameService(const Service& a, const Service& b) {
  const ServiceAttributes &x = a.attributes, &y = b.attributes;
  return a.hostname == b.hostname && a.ports == b.ports && a.service_accounts == b.service_accounts &&
         a.cluster_vips == b.cluster_vips && a.default_address == b.default_address &&
         a.auto_allocated_ipv4 == b.auto_allocated_ipv4 && a.mesh_external == b.mesh_external && x.name == y.name &&
         x.ns == y.ns && x.registry == y.registry && x.labels == y.labels && x.label_selectors == y.label_selectors &&
         x.export_to == y.export_to && x.cluster_external_addresses == y.cluster_external_addresses &&
         x.cluster_external_ports.size() == y.cluster_external_ports.size() &&
         x.kubernetes_service_type == y.kubernetes_service_type && x.external_name == y.external_name &&
         x.node_local == y.node_local && x.traffic_distribution == y.traffic_distribution &&
         x.races_addresses == y.races_addresses && x.aliases == y.aliases;
}

}  // namespace wavetank::pilot
