#include "core/registry/service_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/model/export_to.h"
#include "core/model/selection.h"
#include "core/profile/changes.h"

namespace wavetank::pilot {
namespace {

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> out;
  size_t start = 0;
  while (true) {
    const size_t comma = text.find(',', start);
    out.push_back(text.substr(start, comma == std::string::npos ? comma : comma - start));
    if (comma == std::string::npos) return out;
    start = comma + 1;
  }
}

std::string Annotation(const kube::Object& object, std::string_view name) {
  const auto it = object.meta.annotations.find(name);
  return it == object.meta.annotations.end() ? std::string() : it->second;
}

}  // namespace

std::string ServiceHostname(std::string_view name, std::string_view ns, std::string_view domain_suffix) {
  return fmt::format("{}.{}.svc.{}", name, ns, domain_suffix);
}

std::string SpiffeId(std::string_view trust_domain, std::string_view ns, std::string_view service_account) {
  return fmt::format("spiffe://{}/ns/{}/sa/{}", trust_domain, ns, service_account);
}

Protocol ConvertProtocol(int port, std::string_view name, std::string_view protocol, std::string_view app_protocol) {
  if (protocol == "UDP") return Protocol::kUdp;
  if (!app_protocol.empty()) name = app_protocol;
  std::string lower(name.substr(0, 8));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  // Before the general rule, since it holds a hyphen itself.
  if (lower == "grpc-web") return Protocol::kGrpcWeb;
  const Protocol parsed = ParseProtocol(name.substr(0, name.find('-')));
  if (parsed == Protocol::kUnsupported) {
    // Server-first protocols on well-known ports cannot be sniffed: SMTP, DNS, MySQL, MongoDB.
    for (int known : {25, 53, 3306, 27017}) {
      if (port == known) return Protocol::kTcp;
    }
  }
  return parsed;
}

// What Kubernetes itself names, in Istio's words. istiod: pkg/config/kube/conversion.go.
std::string_view PlainAppProtocol(std::string_view app_protocol) {
  if (app_protocol == "kubernetes.io/h2c") return "http2";
  if (app_protocol == "kubernetes.io/ws") return "http";
  return app_protocol == "kubernetes.io/wss" ? "https" : app_protocol;
}

// istiod: pilot/pkg/model/service.go, GetTrafficDistribution. The field counts before annotations, the Service's own
// before its namespace's, even when nobody knows its value.
TrafficDistribution DistributionOf(std::string_view field, const Labels& annotations,
                                   const Labels& namespace_annotations, const Profile& profile) {
  if (!profile.Has(Change::kTrafficDistribution)) return TrafficDistribution::kAny;
  const bool by_zone = profile.Has(Change::kTrafficDistributionByZone);
  const auto read = [&](std::string_view value) {
    if (value == "preferclose") {
      return by_zone ? TrafficDistribution::kPreferSameZone : TrafficDistribution::kPreferClose;
    }
    if (by_zone && value == "prefersamezone") return TrafficDistribution::kPreferSameZone;
    if (by_zone && value == "prefersamenode") return TrafficDistribution::kPreferSameNode;
    return TrafficDistribution::kAny;
  };
  if (field == "PreferClose" || field == "PreferSameZone" || field == "PreferSameNode") {
    if (const TrafficDistribution known = read(absl::AsciiStrToLower(std::string(field)));
        known != TrafficDistribution::kAny) {
      return known;
    }
  }
  const auto value = [](const Labels& from) {
    const auto it = from.find(kTrafficDistributionAnnotation);
    return it == from.end() ? std::string() : absl::AsciiStrToLower(it->second);
  };
  if (const std::string own = value(annotations); !own.empty()) return read(own);
  if (!profile.Has(Change::kTrafficDistributionOfNamespaces)) return TrafficDistribution::kAny;
  return read(value(namespace_annotations));
}

std::shared_ptr<Service> ConvertKubeService(const kube::Object& object, const kube::Service& typed,
                                            std::string_view domain_suffix, const ClusterId& cluster,
                                            std::string_view trust_domain, const Profile& profile,
                                            const Labels& namespace_annotations) {
  auto out = std::make_shared<Service>();
  out->hostname = ServiceHostname(object.meta.name, object.meta.ns, domain_suffix);
  out->creation_unix_seconds = object.meta.creation_unix_seconds;
  out->resource_version = object.meta.resource_version;
  out->default_address = std::string(kUnspecifiedIp);
  std::string external_name;
  if (typed.type == "ExternalName" && !typed.external_name.empty()) {
    out->resolution = profile.Has(Change::kExternalNameAliases) ? Resolution::kAlias : Resolution::kDnsLb;
    external_name = typed.external_name;
    out->mesh_external = true;
  }
  std::vector<std::string> more;
  if (typed.cluster_ip == "None") {
    out->resolution = Resolution::kPassthrough;
  } else if (!typed.cluster_ip.empty()) {
    out->default_address = typed.cluster_ip;
    for (const std::string& ip : typed.cluster_ips) {
      if (ip != typed.cluster_ip) more.push_back(ip);
    }
  }
  std::vector<std::string>& vips = out->cluster_vips[cluster];
  vips.push_back(out->default_address);
  vips.insert(vips.end(), more.begin(), more.end());
  for (const kube::ServicePort& port : typed.ports) {
    out->ports.push_back(
        {port.name, port.port,
         ConvertProtocol(port.port, port.name, port.protocol,
                         profile.Has(Change::kStandardAppProtocols) ? PlainAppProtocol(port.app_protocol)
                                                                    : std::string_view(port.app_protocol))});
  }
  if (const std::string accounts = Annotation(object, "alpha.istio.io/canonical-serviceaccounts"); !accounts.empty()) {
    out->service_accounts = SplitCommas(accounts);
  }
  if (const std::string accounts = Annotation(object, "alpha.istio.io/kubernetes-serviceaccounts"); !accounts.empty()) {
    for (const std::string& account : SplitCommas(accounts)) {
      out->service_accounts.push_back(SpiffeId(trust_domain, object.meta.ns, account));
    }
  }

  ServiceAttributes& attributes = out->attributes;
  attributes.registry = Provider::kKubernetes;
  attributes.name = object.meta.name;
  attributes.ns = object.meta.ns;
  attributes.labels = object.meta.labels;
  attributes.has_labels = At(At(object.body, "metadata"), "labels").is_object();
  attributes.label_selectors = typed.selector;
  attributes.has_label_selectors = typed.has_selector;
  attributes.kubernetes_service_type = typed.type;
  attributes.external_name = external_name;
  attributes.node_local = typed.internal_traffic_policy == "Local";
  attributes.traffic_distribution =
      DistributionOf(typed.traffic_distribution, object.meta.annotations, namespace_annotations, profile);
  if (const std::string export_to = Annotation(object, "networking.istio.io/exportTo"); !export_to.empty()) {
    attributes.export_to = ParseExportTo(SplitCommas(export_to));
  }
  std::vector<std::string> external;
  if (typed.type == "NodePort" && object.meta.annotations.count(kNodeSelectorAnnotation) != 0) {
    // Only gateways carry the annotation; their addresses are those of nodes, filled in by the controller.
    std::map<uint32_t, uint32_t>& ports = attributes.cluster_external_ports[cluster];
    for (const kube::ServicePort& port : typed.ports) {
      ports[static_cast<uint32_t>(port.port)] = static_cast<uint32_t>(port.node_port);
    }
  } else if (typed.type == "LoadBalancer") {
    for (const auto& ingress : typed.ingress) {
      if (!ingress.ip.empty()) {
        external.push_back(ingress.ip);
      } else if (!ingress.hostname.empty()) {
        external.push_back(ingress.hostname);
      }
    }
  }
  external.insert(external.end(), typed.external_ips.begin(), typed.external_ips.end());
  if (!external.empty()) attributes.cluster_external_addresses[cluster] = std::move(external);
  return out;
}

std::vector<ServiceInstance> ExternalNameInstances(const kube::Service& typed, const kube::Object& object,
                                                   const ServiceRef& service) {
  std::vector<ServiceInstance> out;
  if (typed.type != "ExternalName" || typed.external_name.empty()) return out;
  if (service->resolution == Resolution::kAlias) return out;
  for (const Port& port : service->ports) {
    auto profile = std::make_shared<EndpointProfile>();
    profile->service_port_name = port.name;
    profile->labels = object.meta.labels;
    IstioEndpoint endpoint;
    endpoint.address = typed.external_name;
    endpoint.endpoint_port = static_cast<uint32_t>(port.port);
    endpoint.profile = std::move(profile);
    out.push_back({service, port, std::move(endpoint)});
  }
  return out;
}

void AugmentLabels(Labels& labels, const ClusterId& cluster, std::string_view locality, std::string_view node,
                   const NetworkId& network) {
  const auto set = [&](std::string_view label, std::string_view value) {
    if (!value.empty()) labels[std::string(label)] = value;
  };
  for (const std::string_view label : {kRegionLabel, kZoneLabel, kSubzoneLabel}) {
    const size_t end = locality.find('/');
    set(label, locality.substr(0, end));
    if (end == std::string_view::npos) break;
    locality.remove_prefix(end + 1);
  }
  set(kClusterLabel, cluster.str());
  set(kHostnameLabel, node);
  set(kNetworkLabel, network.str());
}

bool SelectorMatches(const Labels& selector, const Labels& labels) {
  return !selector.empty() && Selects(selector, labels);
}

Labels ParseNodeSelector(const std::string& json) {
  Labels out;
  const nlohmann::json parsed = ParseJson(json);
  if (!parsed.is_object()) return out;
  for (const auto& [key, value] : parsed.items()) {
    // One value of another type makes Go refuse the whole.
    if (!value.is_string()) return {};
    out.emplace(key, value.get<std::string>());
  }
  return out;
}

std::optional<int> ParseWholeNumber(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string LocalityFromLabel(std::string_view label) {
  std::string out(label);
  if (out.find('/') == std::string::npos) std::replace(out.begin(), out.end(), '.', '/');
  return out;
}

TargetPort FindTargetPort(const Port& port, const kube::Service& service) {
  for (const kube::ServicePort& candidate : service.ports) {
    if (candidate.name != port.name && candidate.port != port.port) continue;
    if (candidate.target_port > 0) return {candidate.target_port, candidate.name, false};
    // A target that is not given at all reads as an empty name, and then as the port's own number.
    return {candidate.target_port_name.empty() ? port.port : 0, candidate.target_port_name, true};
  }
  return {port.port, "", false};
}

std::optional<IstioEndpoint> EndpointOfWorkload(const WorkloadInstance& workload, const Port& port,
                                                const TargetPort& target) {
  IstioEndpoint endpoint = workload.endpoint;
  endpoint.endpoint_port = static_cast<uint32_t>(target.number == 0 ? port.port : target.number);
  if (!target.name.empty()) {
    const auto named = workload.port_map.find(target.name);
    if (named != workload.port_map.end() && named->second != 0) {
      endpoint.endpoint_port = named->second;
    } else if (target.explicit_name) {
      return std::nullopt;
    }
  }
  auto profile = std::make_shared<EndpointProfile>(*endpoint.profile);
  profile->service_port_name = port.name;
  endpoint.profile = std::move(profile);
  return endpoint;
}

const WorkloadInstance* WorkloadForProxy(const std::map<kube::NamespacedName, WorkloadInstance>& workloads,
                                         const Proxy& proxy) {
  const WorkloadInstance* first = nullptr;
  const WorkloadInstance* same_namespace = nullptr;
  int found = 0;
  for (const auto& [name, workload] : workloads) {
    if (workload.endpoint.address != proxy.ip_addresses[0]) continue;
    ++found;
    if (first == nullptr) first = &workload;
    if (proxy.id == workload.name + "." + workload.ns && proxy.metadata.ns == workload.ns) return &workload;
    if (same_namespace == nullptr && workload.ns == proxy.config_namespace) same_namespace = &workload;
  }
  return found > 1 && same_namespace != nullptr ? same_namespace : first;
}

}  // namespace wavetank::pilot
