#include "fakes/kube/validation/policy_rules.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/kube/quantity.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

void CheckIngressBackend(const json& backend, const std::string& at, FieldErrors* errors) {
  const json &service = At(backend, "service"), &resource = At(backend, "resource");
  if (service.is_object() && resource.is_object()) {
    errors->push_back(InvalidField(at, "", "cannot set both resource and service backends"));
  } else if (service.is_object()) {
    if (Text(service, "name").empty()) errors->push_back(RequiredField(at + ".service.name"));
    const json& port = At(service, "port");
    const bool named = !Text(port, "name").empty(), numbered = Number(port, "number") != 0;
    if (named && numbered) {
      errors->push_back(InvalidField(at, "", "cannot set both port name & port number"));
    } else if (!named && !numbered) {
      errors->push_back(RequiredField(at, "port name or number is required"));
    } else if (numbered && (Number(port, "number") < 1 || Number(port, "number") > 65535)) {
      errors->push_back(
          InvalidField(at + ".service.port.number", At(port, "number"), "must be between 1 and 65535, inclusive"));
    }
  } else if (!resource.is_object()) {
    errors->push_back(InvalidField(at, "", "resource or service backend is required"));
  }
}

void CheckIngressPath(const json& path, const std::string& at, FieldErrors* errors) {
  const json& type = At(path, "pathType");
  const std::string text = Text(path, "path");
  if (type.is_null()) return errors->push_back(RequiredField(at + ".pathType", "pathType must be specified"));
  if (type == "Exact" || type == "Prefix") {
    if (!text.starts_with("/")) errors->push_back(InvalidField(at + ".path", text, "must be an absolute path"));
    for (const char* bad : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (text.find(bad) != std::string::npos)
        errors->push_back(InvalidField(at + ".path", text, fmt::format("must not contain '{}'", bad)));
    }
    for (const char* bad : {"/..", "/."}) {
      if (text.ends_with(bad))
        errors->push_back(InvalidField(at + ".path", text, fmt::format("cannot end with '{}'", bad)));
    }
  } else if (type == "ImplementationSpecific") {
    if (!text.empty() && text[0] != '/')
      errors->push_back(InvalidField(at + ".path", text, "must be an absolute path"));
  } else {
    errors->push_back(UnsupportedField(at + ".pathType", type, {"Exact", "ImplementationSpecific", "Prefix"}));
  }
  CheckIngressBackend(At(path, "backend"), at + ".backend", errors);
}

}  // namespace

namespace {

// kubernetes: pkg/apis/networking/validation, ValidateNetworkPolicyPort.
void CheckPolicyPort(const json& port, const std::string& at, FieldErrors* errors) {
  CheckWord(At(port, "protocol"), at + ".protocol", {"SCTP", "TCP", "UDP"}, errors);
  const json &number = At(port, "port"), &end = At(port, "endPort");
  if (number.is_number_integer() && (NumberOf(number) < 1 || NumberOf(number) > 65535))
    errors->push_back(InvalidField(at + ".port", number, "must be between 1 and 65535, inclusive"));
  if (end.is_null()) return;
  if (number.is_null()) {
    errors->push_back(InvalidField(at + ".endPort", end, "may not be specified when `port` is not specified"));
  } else if (number.is_string()) {
    errors->push_back(InvalidField(at + ".endPort", end, "may not be specified when `port` is non-numeric"));
  } else if (NumberOf(end) < NumberOf(number)) {
    errors->push_back(InvalidField(at + ".endPort", end, "must be greater than or equal to `port`"));
  } else if (NumberOf(end) > 65535) {
    errors->push_back(InvalidField(at + ".endPort", end, "must be between 1 and 65535, inclusive"));
  }
}

// The same, ValidateNetworkPolicyPeer and ValidateIPBlock.
void CheckPolicyPeer(const json& peer, const std::string& at, FieldErrors* errors) {
  const json &block = At(peer, "ipBlock"), &pods = At(peer, "podSelector"), &in = At(peer, "namespaceSelector");
  CheckSelector(pods, at + ".podSelector", errors);
  CheckSelector(in, at + ".namespaceSelector", errors);
  if (block.is_null() && pods.is_null() && in.is_null()) errors->push_back(RequiredField(at, "must specify a peer"));
  if (block.is_null()) return;
  if (!pods.is_null() || !in.is_null())
    errors->push_back(ForbiddenField(at, "may not specify both ipBlock and another peer"));
  const std::string cidr = Text(block, "cidr");
  if (cidr.empty()) return errors->push_back(RequiredField(at + ".ipBlock.cidr"));
  const absl::StatusOr<IpPrefix> range = IpPrefix::Parse(cidr);
  if (!range.ok()) return errors->push_back(InvalidField(at + ".ipBlock.cidr", cidr, "not a valid CIDR"));
  const json& excepts = Items(At(block, "except"));
  for (size_t i = 0; i < excepts.size(); ++i) {
    const std::string field = fmt::format("{}.ipBlock.except[{}]", at, i), text = TextOf(excepts[i]);
    const absl::StatusOr<IpPrefix> except = IpPrefix::Parse(text);
    const absl::StatusOr<IpAddress> first = IpAddress::Parse(text.substr(0, text.find('/')));
    if (!except.ok() || !first.ok()) {
      errors->push_back(InvalidField(field, text, "not a valid CIDR"));
    } else if (!range->Contains(*first) ||
               std::stoi(text.substr(text.find('/') + 1)) <= std::stoi(cidr.substr(cidr.find('/') + 1))) {
      errors->push_back(InvalidField(field, text, "must be a strict subset of `cidr`"));
    }
  }
}

}  // namespace

void CheckNetworkPolicy(const json& body, FieldErrors* errors) {
  const json& spec = At(body, "spec");
  CheckSelector(At(spec, "podSelector"), "spec.podSelector", errors);
  for (const auto& [list, peers] : {std::pair("ingress", "from"), std::pair("egress", "to")}) {
    const json& rules = Items(At(spec, list));
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::string at = fmt::format("spec.{}[{}]", list, i);
      const json &ports = Items(At(rules[i], "ports")), &others = Items(At(rules[i], peers));
      for (size_t j = 0; j < ports.size(); ++j) CheckPolicyPort(ports[j], fmt::format("{}.ports[{}]", at, j), errors);
      for (size_t j = 0; j < others.size(); ++j)
        CheckPolicyPeer(others[j], fmt::format("{}.{}[{}]", at, peers, j), errors);
    }
  }
  const json& types = Items(At(spec, "policyTypes"));
  for (size_t i = 0; i < types.size(); ++i)
    CheckWord(types[i], fmt::format("spec.policyTypes[{}]", i), {"Egress", "Ingress"}, errors);
}

// kubernetes: pkg/apis/autoscaling/validation, validateHorizontalPodAutoscalerSpec.
namespace {

// kubernetes: pkg/apis/autoscaling/validation, validateMetricSpec().
void CheckMetrics(const json& metrics, FieldErrors* errors) {
  static constexpr std::pair<std::string_view, const char*> kSources[] = {{"ContainerResource", "containerResource"},
                                                                          {"External", "external"},
                                                                          {"Object", "object"},
                                                                          {"Pods", "pods"},
                                                                          {"Resource", "resource"}};
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string at = fmt::format("spec.metrics[{}]", i), type = Text(metrics[i], "type");
    if (type.empty()) {
      errors->push_back(RequiredField(at + ".type", "must specify a metric source type"));
      continue;
    }
    bool known = false;
    for (const auto& [name, field] : kSources) {
      const bool there = At(metrics[i], field).is_object();
      known = known || name == type;
      if (name == type && !there) {
        errors->push_back(
            RequiredField(fmt::format("{}.{}", at, field), "must populate information for the given metric source"));
      } else if (name != type && there) {
        errors->push_back(
            ForbiddenField(fmt::format("{}.{}", at, field), "must populate the given metric source only"));
      }
    }
    if (!known)
      errors->push_back(
          UnsupportedField(at + ".type", type, {"ContainerResource", "External", "Object", "Pods", "Resource"}));
  }
}

}  // namespace

void CheckAutoscaler(const json& body, FieldErrors* errors) {
  const json &spec = At(body, "spec"), &least = At(spec, "minReplicas"), &most = At(spec, "maxReplicas");
  if (least.is_number_integer() && NumberOf(least) < 1)
    errors->push_back(InvalidField("spec.minReplicas", least, "must be greater than or equal to 1"));
  if (!most.is_null() && !most.is_number_integer()) return;
  if (NumberOf(most) < 1) {
    errors->push_back(InvalidField("spec.maxReplicas", most.is_null() ? json(0) : most, "must be greater than 0"));
  } else if (least.is_number_integer() && NumberOf(most) < NumberOf(least)) {
    errors->push_back(InvalidField("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"));
  }
  CheckMetrics(Items(At(spec, "metrics")), errors);
}

void CheckDisruptionBudget(const json& body, FieldErrors* errors) {
  const json &spec = At(body, "spec"), &least = At(spec, "minAvailable"), &most = At(spec, "maxUnavailable");
  if (!least.is_null() && !most.is_null())
    errors->push_back(InvalidField("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
  CheckCountOrPercent(least, "spec.minAvailable", errors);
  CheckCountOrPercent(most, "spec.maxUnavailable", errors);
  CheckWord(At(spec, "unhealthyPodEvictionPolicy"), "spec.unhealthyPodEvictionPolicy",
            {"AlwaysAllow", "IfHealthyBudget"}, errors);
  CheckSelector(At(spec, "selector"), "spec.selector", errors);
}

void CheckIngress(const json& body, FieldErrors* errors) {
  const json &spec = At(body, "spec"), &rules = Items(At(spec, "rules"));
  if (rules.empty() && !At(spec, "defaultBackend").is_object()) {
    errors->push_back({"FieldValueInvalid", "spec",
                       "Invalid value: []networking.IngressRule(nil): either `defaultBackend` or `rules` must be "
                       "specified"});
  }
  if (const json& backend = At(spec, "defaultBackend"); backend.is_object())
    CheckIngressBackend(backend, "spec.defaultBackend", errors);
  for (size_t r = 0; r < rules.size(); ++r) {
    const json& http = At(rules[r], "http");
    if (!http.is_object()) continue;
    const json& paths = Items(At(http, "paths"));
    const std::string at = fmt::format("spec.rules[{}].http.paths", r);
    if (paths.empty()) errors->push_back(RequiredField(at));
    for (size_t p = 0; p < paths.size(); ++p) CheckIngressPath(paths[p], fmt::format("{}[{}]", at, p), errors);
  }
}

void CheckLimitRange(const json& body, FieldErrors* errors) {
  const json& limits = Items(At(body, {"spec", "limits"}));
  std::set<std::string> types;
  for (size_t i = 0; i < limits.size(); ++i) {
    const std::string at = fmt::format("spec.limits[{}]", i), type = Text(limits[i], "type");
    if (!types.insert(type).second) errors->push_back(DuplicateField(at + ".type", type));
    if (type == "Pod") {
      for (const char* field : {"default", "defaultRequest"}) {
        if (!At(limits[i], field).empty())
          errors->push_back(ForbiddenField(at + "." + field, "may not be specified when `type` is 'Pod'"));
      }
    }
    // What must not be greater than what, and which of both is shown.
    struct Order {
      const char *low, *high, *shown, *words;
    };
    constexpr Order kOrders[] = {
        {"min", "max", "min", "min value {} is greater than max value {}"},
        {"min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"},
        {"defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"},
        {"defaultRequest", "default", "defaultRequest",
         "default request value {} is greater than default limit value {}"},
        {"min", "default", "default", "min value {} is greater than default value {}"},
        {"default", "max", "default", "default value {} is greater than max value {}"}};
    for (const Order& order : kOrders) {
      const json& lows = At(limits[i], order.low);
      if (!lows.is_object()) continue;
      for (const auto& [name, low] : lows.items()) {
        const json& high = At(At(limits[i], order.high), name);
        const auto a = kube::QuantityNanos(low), b = kube::QuantityNanos(high);
        if (!a || !b || *a <= *b) continue;
        errors->push_back(
            InvalidField(fmt::format("{}.{}[{}]", at, order.shown, name),
                         kube::QuantityText(order.shown == std::string_view(order.low) ? low : high),
                         fmt::format(fmt::runtime(order.words), kube::QuantityText(low), kube::QuantityText(high))));
      }
    }
  }
}

void CheckResourceQuota(const json& body, FieldErrors* errors) {
  const json& hard = At(body, {"spec", "hard"});
  if (!hard.is_object()) return;
  for (const auto& [name, quantity] : hard.items()) {
    const auto amount = kube::QuantityNanos(quantity);
    const std::string at = fmt::format("spec.hard[{}]", name);
    if (amount && *amount < 0)
      errors->push_back(InvalidField(at, kube::QuantityText(quantity), "must be greater than or equal to 0"));
    const bool counts =
        name == "pods" || name == "services" || name == "secrets" || name == "configmaps" || name.starts_with("count/");
    if (counts && amount && *amount % kube::kNanosPerUnit != 0)
      errors->push_back(InvalidField(at, kube::QuantityText(quantity), "must be an integer"));
  }
}

// kubernetes: pkg/apis/core/validation/validation.go, validateEndpointSubsets.
void CheckEndpoints(const json& body, FieldErrors* errors) {
  const json& subsets = Items(At(body, "subsets"));
  for (size_t i = 0; i < subsets.size(); ++i) {
    const std::string at = fmt::format("subsets[{}]", i);
    if (Items(At(subsets[i], "addresses")).empty() && Items(At(subsets[i], "notReadyAddresses")).empty())
      errors->push_back(RequiredField(at, "must specify `addresses` or `notReadyAddresses`"));
    for (const char* list : {"addresses", "notReadyAddresses"}) {
      const json& addresses = Items(At(subsets[i], list));
      for (size_t j = 0; j < addresses.size(); ++j) {
        const std::string ip = Text(addresses[j], "ip"), field = fmt::format("{}.{}[{}].ip", at, list, j);
        const absl::StatusOr<IpAddress> address = IpAddress::Parse(ip);
        if (!address.ok()) {
          errors->push_back(InvalidField(field, ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
          errors->push_back(InvalidField(field, ip, "must be a valid IP address"));
        } else if (address->is_loopback()) {
          errors->push_back(InvalidField(field, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
        }
      }
    }
    const json& ports = Items(At(subsets[i], "ports"));
    for (size_t j = 0; j < ports.size(); ++j) {
      const std::string port = fmt::format("{}.ports[{}]", at, j);
      if (ports.size() > 1 && Text(ports[j], "name").empty()) errors->push_back(RequiredField(port + ".name"));
      if (Number(ports[j], "port") < 1 || Number(ports[j], "port") > 65535)
        errors->push_back(InvalidField(port + ".port", At(ports[j], "port"), "must be between 1 and 65535, inclusive"));
      CheckWord(At(ports[j], "protocol"), port + ".protocol", {"SCTP", "TCP", "UDP"}, errors);
    }
  }
}

void CheckProbes(const json& container, const std::string& at, FieldErrors* errors) {
  for (const char* which : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    const json& probe = At(container, which);
    if (!probe.is_object()) continue;
    const std::string field = at + "." + which;
    int handlers = 0;
    for (const char* handler : {"exec", "httpGet", "tcpSocket", "grpc"}) {
      if (!At(probe, handler).is_object()) continue;
      if (++handlers > 1)
        errors->push_back(ForbiddenField(field + "." + handler, "may not specify more than 1 handler type"));
    }
    if (handlers == 0) errors->push_back(RequiredField(field, "must specify a handler type"));
    if (const json& exec = At(probe, "exec"); exec.is_object() && Items(At(exec, "command")).empty())
      errors->push_back(RequiredField(field + ".exec.command"));
    for (const char* number :
         {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"}) {
      CheckNotNegative(probe, number, field, errors);
    }
    // Only readiness may have to be seen more than once.
    if (which != std::string_view("readinessProbe") && Number(probe, "successThreshold", 1) != 1)
      errors->push_back(InvalidField(field + ".successThreshold", At(probe, "successThreshold"), "must be 1"));
  }
}

}  // namespace wavetank::fakekube
