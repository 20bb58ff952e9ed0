#include "core/gateway_api/gateways.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/gateway_api/classes.h"
#include "core/gateway_api/conditions.h"
#include "core/kube/label_selector.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

std::string AnnotationOf(const kube::Object& object, std::string_view name) {
  const auto it = object.meta.annotations.find(name);
  return it == object.meta.annotations.end() ? std::string() : it->second;
}

struct Services {
  std::vector<std::string> names;  // in full
  std::optional<ConfigError> error;
  std::string warning;  // of addresses that are no host names, where that is no error
};

// The Services whose pods serve the gateway. istiod: extractGatewayServices.
Services ServicesOf(const Inputs& in, const kube::Object& gateway) {
  Services out;
  const json& spec = At(gateway.body, "spec");
  const auto full = [&](const std::string& name) {
    return fmt::format("{}.{}.svc.{}", name, gateway.meta.ns, in.domain_suffix);
  };
  if (IsManaged(spec)) {
    out.names.push_back(full(ServiceNameOf(gateway)));
    return out;
  }
  std::vector<std::string> skipped;
  for (const json& address : Items(At(spec, "addresses"))) {
    const std::string value = Text(address, "value");
    if (Text(address, "type", "Hostname") != "Hostname") {
      skipped.push_back(value);
      continue;
    }
    out.names.push_back(value.find('.') == std::string::npos ? full(value) : value);
  }
  const std::string ignored = absl::StrJoin(skipped, " ");
  if (!in.profile.Has(pilot::Change::kGatewayApiAddressesJudged)) {
    if (!skipped.empty()) out.warning = fmt::format("Only Hostname is supported, ignoring [{}]", ignored);
  } else if (!skipped.empty()) {
    out.error = {"UnsupportedAddress", fmt::format("only Hostname is supported, ignoring [{}]", ignored)};
  } else if (gateway.meta.annotations.contains("networking.istio.io/service-type")) {
    out.error = {"DeprecatedField",
                 "annotation networking.istio.io/service-type is deprecated, use Spec.Infrastructure.Routeability"};
  }
  return out;
}

GatewayInstances InstancesOf(const Inputs& in, const kube::Object& gateway, const Services& services,
                             const json& servers) {
  std::set<int> ports;
  for (const json& server : servers) ports.insert(static_cast<int>(Number(At(server, "port"), "number")));
  return in.instances ? in.instances(gateway.meta.ns, services.names, ports) : GatewayInstances{};
}

// istiod: setProgrammedCondition.
void SetProgrammed(const Inputs& in, const Services& services, const GatewayInstances& instances,
                   Condition& programmed) {
  if (!instances.internal.empty()) {
    programmed.message = "Resource programmed, assigned to service(s) " + ReadableJoin(instances.internal);
  }
  if (services.names.empty() && in.profile.Has(pilot::Change::kGatewayApiAddressesJudged)) {
    programmed.error = {"UnsupportedAddress", "Failed to assign to any requested addresses"};
    return;
  }
  std::vector<std::string> all = instances.warnings;
  if (!services.warning.empty()) all.push_back(services.warning);
  if (all.empty()) return;
  const std::string warnings = absl::StrJoin(all, "; ");
  programmed.error = {
      !in.profile.Has(pilot::Change::kGatewayApiAddressReasons) ? "Invalid"
      : instances.all_usable                                    ? "AddressNotAssigned"
                                                                : "AddressNotUsable",
      instances.internal.empty()
          ? "Failed to assign to any requested addresses: " + warnings
          : fmt::format("Assigned to service(s) {}, but failed to assign to all requested addresses: {}",
                        ReadableJoin(instances.internal), warnings)};
}

json Addresses(const Inputs& in, const kube::Object& gateway, const GatewayInstances& instances) {
  const bool typed = in.profile.Has(pilot::Change::kGatewayApiAddressTypes), outside = !instances.external.empty();
  std::vector<std::string> report = instances.external;
  if (report.empty()) {
    // Without an address of outside, the Service's name.
    std::string type = AnnotationOf(gateway, "networking.istio.io/address-type");
    if (type.empty() || !typed) type = "Hostname";
    if (type != "Hostname") report = instances.internal_ips;
    if (type != "IPAddress") {
      for (const std::string& host_port : instances.internal) {
        const std::string host = host_port.substr(0, host_port.rfind(':'));
        const bool pending =
            std::find(instances.pending.begin(), instances.pending.end(), host) != instances.pending.end();
        if (!pending && std::find(report.begin(), report.end(), host) == report.end()) report.push_back(host);
      }
    }
  }
  json out = json::array();
  for (const std::string& address : report) {
    const bool ip = typed ? IpAddress::Parse(address).ok() : outside;
    out.push_back({{"type", ip ? "IPAddress" : "Hostname"}, {"value", address}});
  }
  return out;
}

// One pass over all Gateways and ListenerSets.
class Converter {
 public:
  Converter(const Inputs& in, const Grants& grants) : in_(in), grants_(grants) {}

  ConvertedGateways Convert() {
    for (const kube::ObjectRef& set : in_.Of("ListenerSet")) AddListenerSet(*set);
    for (const kube::ObjectRef& gateway : in_.Of("Gateway")) AddGateway(*gateway);
    return std::move(out_);
  }

 private:
  struct Built {
    json servers = json::array(), statuses = json::array();
  };

  std::string InternalName(const kube::Object& owner, const std::string& listener) const {
    const char* const between = in_.profile.Has(pilot::Change::kGatewayApiNames) ? "~" : "-";
    return fmt::format("{}{}{}{}{}", owner.meta.name, between, kGeneratedMark, between, listener);
  }

  // All listeners of a Gateway or ListenerSet.
  Built AddListeners(const kube::Object& owner, const kube::Object& gateway, const Services& services) {
    Built built;
    const json& before = Items(At(owner.body, {"status", "listeners"}));
    size_t index = 0;
    for (const json& listener : Items(At(owner.body, {"spec", "listeners"}))) {
      // istiod looks at the place, not at the name.
      const json& last = index < before.size() ? before[index] : Null();
      ++index;
      BuiltListener made = BuildListener(in_, grants_, owner, gateway, listener, last);
      built.statuses.push_back(std::move(made.status));
      // Before, one without its certificate was nobody's parent, and its port nothing that a Service could lack.
      if (!made.tls_good && !in_.profile.Has(pilot::Change::kGatewayApiBadTlsTold)) continue;
      AddParent(owner, listener, made);
      if (made.programmed) AddConfig(owner, gateway, services, Text(listener, "name"), made.server);
      built.servers.push_back(std::move(made.server));
    }
    return built;
  }

  // An empty list is none.
  static void SetListeners(json statuses, json& status) {
    if (statuses.empty()) {
      status.erase("listeners");
    } else {
      status["listeners"] = std::move(statuses);
    }
  }

  void AddConfig(const kube::Object& owner, const kube::Object& gateway, const Services& services,
                 const std::string& listener, const json& server) {
    std::map<std::string, std::string> annotations = {
        {std::string(kParents), fmt::format("{}/{}/{}.{}", owner.kind, owner.meta.name, listener, owner.meta.ns)},
        {std::string(kGatewayService), absl::StrJoin(services.names, ",")}};
    if (in_.profile.Has(pilot::Change::kGatewayApiNames)) {
      annotations["internal.istio.io/gateway-semantics"] = "gateway";
      annotations["internal.istio.io/service-account-name"] =
          IsManaged(At(gateway.body, "spec")) ? ServiceAccountOf(gateway) : std::string();
    }
    if (&owner != &gateway) annotations[std::string(kParentNamespace)] = gateway.meta.ns;
    out_.configs.push_back(MakeConfig("Gateway", owner.meta.ns, InternalName(owner, listener), annotations, owner,
                                      {{"servers", json::array({server})}}));
  }

  void AddParent(const kube::Object& owner, const json& listener, const BuiltListener& made) {
    ParentInfo parent;
    parent.section = Text(listener, "name");
    parent.internal_name = owner.meta.ns + "/" + InternalName(owner, parent.section);
    bool valid = true;
    parent.allowed_kinds = SupportedKinds(in_, listener, &valid);
    for (const json& host : Items(At(made.server, "hosts"))) parent.hostnames.push_back(TextOf(host));
    parent.original_hostname = Text(listener, "hostname");
    parent.protocol = Text(listener, "protocol");
    parent.port = PortOf(listener);
    out_.parents[{owner.kind, owner.meta.ns, owner.meta.name}].push_back(std::move(parent));
  }

  void AddGateway(const kube::Object& gateway) {
    const json& spec = At(gateway.body, "spec");
    const std::string controller = ControllerOf(in_, Text(spec, "gatewayClassName"));
    if (controller.empty()) return;  // another controller's
    json status = At(gateway.body, "status");
    if (!status.is_object()) status = json::object();
    Conditions conditions = {{"Accepted", {"Accepted", "Resource accepted"}},
                             {"Programmed", {"Programmed", "Resource programmed"}}};
    const StatusKey key{"Gateway", gateway.meta.ns, gateway.meta.name};
    const auto finish = [&] {
      status["conditions"] = SetConditions(gateway.meta.generation, in_.now, At(status, "conditions"), conditions);
      out_.statuses[key] = std::move(status);
    };
    if (controller == kUnmanagedController) {
      conditions["Programmed"].message = "This Gateway is remote; Istio will not program it";
      status.erase("listeners");
      if (const json& addresses = At(spec, "addresses"); addresses.is_array()) status["addresses"] = addresses;
      return finish();
    }
    const Services services = ServicesOf(in_, gateway);
    if (services.error) conditions["Accepted"].error = services.error;
    json servers = json::array();
    if (!services.names.empty() || !services.error) {
      Built built = AddListeners(gateway, gateway, services);
      servers = std::move(built.servers);
      SetListeners(std::move(built.statuses), status);
    } else {
      status.erase("listeners");
    }
    const auto sets = listener_sets_.find({gateway.meta.ns, gateway.meta.name});
    if (sets != listener_sets_.end()) {
      for (const json& server : sets->second.servers) servers.push_back(server);
      status["attachedListenerSets"] = sets->second.sets;
    }
    const GatewayInstances instances = InstancesOf(in_, gateway, services, servers);
    SetProgrammed(in_, services, instances, conditions["Programmed"]);
    // Once there was an address, it is never taken away.
    if (json addresses = Addresses(in_, gateway, instances); !addresses.empty()) {
      status["addresses"] = std::move(addresses);
    } else if (!in_.profile.Has(pilot::Change::kGatewayApiAddressTypes)) {
      status.erase("addresses");
    }
    finish();
  }

  void AddListenerSet(const kube::Object& set) {
    const json& parent = At(set.body, {"spec", "parentRef"});
    if (KindOf(parent, {std::string(kGroup), "Gateway"}) != GroupKind{std::string(kGroup), "Gateway"}) return;
    const std::string ns = Text(parent, "namespace", set.meta.ns);
    const kube::Object* gateway = in_.Find("Gateway", ns, Text(parent, "name"));
    if (gateway == nullptr) return;
    const std::string class_name = Text(At(gateway->body, "spec"), "gatewayClassName");
    const std::string controller = ControllerOf(in_, class_name);
    if (controller.empty()) return;
    json status = At(set.body, "status");
    if (!status.is_object()) status = json::object();
    Conditions conditions = {{"Accepted", {"Accepted", "Resource accepted"}},
                             {"Programmed", {"Programmed", "Resource programmed"}}};
    const auto finish = [&] {
      status["conditions"] = SetConditions(set.meta.generation, in_.now, At(status, "conditions"), conditions);
      out_.statuses[{"ListenerSet", set.meta.ns, set.meta.name}] = std::move(status);
    };
    std::string refusal;
    if (controller == kUnmanagedController) {
      refusal = fmt::format("The \"{}\" GatewayClass does not support ListenerSet", class_name);
    } else if (!TakesListenersOf(in_, *gateway, set.meta.ns)) {
      refusal = "The parent Gateway does not allow this reference; check the 'spec.allowedRoutes'";
    }
    if (!refusal.empty()) {
      for (auto& [type, condition] : conditions) condition.error = ConfigError{"NotAllowed", refusal};
      status.erase("listeners");
      return finish();
    }
    const Services services = ServicesOf(in_, *gateway);
    if (services.error) {
      conditions["Accepted"].error =
          ConfigError{services.error->reason, "Parent not accepted: " + services.error->message};
    }
    json servers = json::array();
    if (!services.names.empty() || !services.error) {
      Built built = AddListeners(set, *gateway, services);
      servers = std::move(built.servers);
      SetListeners(std::move(built.statuses), status);
      OfSets& of = listener_sets_[{ns, gateway->meta.name}];
      if (!servers.empty()) ++of.sets;
      for (const json& server : servers) of.servers.push_back(server);
    }
    SetProgrammed(in_, services, InstancesOf(in_, *gateway, services, servers), conditions["Programmed"]);
    finish();
  }

  struct OfSets {
    int sets = 0;
    json servers = json::array();
  };
  const Inputs& in_;
  const Grants& grants_;
  ConvertedGateways out_;
  std::map<kube::NamespacedName, OfSets> listener_sets_;  // by Gateway
};

}  // namespace

bool IsManaged(const json& gateway_spec) {
  const json& addresses = Items(At(gateway_spec, "addresses"));
  if (addresses.empty()) return true;
  return addresses.size() == 1 && Text(addresses[0], "type", "IPAddress") == "IPAddress";
}

std::string DefaultName(const kube::Object& gateway) {
  return gateway.meta.name + "-" + Text(At(gateway.body, "spec"), "gatewayClassName");
}

std::string ServiceNameOf(const kube::Object& gateway) {
  const std::string name = AnnotationOf(gateway, "gateway.istio.io/name-override");
  return name.empty() ? DefaultName(gateway) : name;
}

std::string ServiceAccountOf(const kube::Object& gateway) {
  const std::string name = AnnotationOf(gateway, "gateway.istio.io/service-account");
  return name.empty() ? DefaultName(gateway) : name;
}

bool TakesListenersOf(const Inputs& in, const kube::Object& gateway, const std::string& ns) {
  const json& allowed = At(gateway.body, {"spec", "allowedListeners", "namespaces"});
  if (!allowed.is_object()) return false;
  const std::string from = Text(allowed, "from", "Selector");
  if (from == "All") return true;
  if (from == "Same") return ns == gateway.meta.ns;
  if (from != "Selector" || !At(allowed, "selector").is_object()) return false;
  const absl::StatusOr<kube::LabelSelector> selector = kube::LabelSelector::FromJson(At(allowed, "selector"));
  const kube::Object* found = in.Find("Namespace", "", ns);
  if (!selector.ok() || found == nullptr) return false;
  kube::Labels labels = found->meta.labels;
  labels["kubernetes.io/metadata.name"] = ns;
  return selector->Matches(labels);
}

ConvertedGateways ConvertGateways(const Inputs& in, const Grants& grants) { return Converter(in, grants).Convert(); }

void CountRoutes(const Attachments& attachments, std::map<StatusKey, json>& statuses) {
  for (auto& [key, status] : statuses) {
    const auto listeners = status.find("listeners");
    if (listeners == status.end() || !listeners->is_array()) continue;
    for (json& listener : *listeners) {
      const auto count = attachments.find({{key.kind, key.ns, key.name}, Text(listener, "name")});
      listener["attachedRoutes"] = count == attachments.end() ? 0 : count->second;
    }
  }
}

}  // namespace wavetank::gatewayapi
