#include "core/gateway_api/listeners.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/gateway_api/conditions.h"
#include "core/gateway_api/listener_tls.h"
#include "core/kube/label_selector.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

constexpr std::string_view kNamespaceLabel = "kubernetes.io/metadata.name";

// Namespaces whose routes the listener takes. istiod: namespacesFromSelector.
std::vector<std::string> AllowedNamespaces(const Inputs& in, const std::string& own, const json& listener) {
  const json& namespaces = At(listener, {"allowedRoutes", "namespaces"});
  const std::string from = Text(namespaces, "from", "Same");
  if (from == "Same") return {own};
  const json& selector = At(namespaces, "selector");
  if (from == "All" || !selector.is_object()) return {"*"};
  const absl::StatusOr<kube::LabelSelector> read = kube::LabelSelector::FromJson(selector);
  std::vector<std::string> out;
  if (!read.ok()) return out;
  for (const kube::ObjectRef& ns : in.Of("Namespace")) {
    kube::Labels labels = ns->meta.labels;
    labels[std::string(kNamespaceLabel)] = ns->meta.name;
    if (read->Matches(labels)) out.push_back(ns->meta.name);
  }
  return out;
}

std::vector<std::string> Hosts(const Inputs& in, const std::string& own, const json& listener) {
  const std::string hostname = Text(listener, "hostname", "*");
  std::vector<std::string> out;
  for (const std::string& ns : AllowedNamespaces(in, own, listener)) {
    if (!ns.empty()) out.push_back(ns + "/" + hostname);
  }
  // A Gateway must have hosts: these are nobody's.
  if (out.empty()) out.push_back("~/" + hostname);
  return out;
}

// Empty: the protocol is served. istiod: listenerProtocolToIstio.
std::string ProtocolError(const Inputs& in, const std::string& protocol) {
  static const std::set<std::string> kKnown = {"HTTP", "HTTPS", "TLS", "TCP", "HBONE"};
  if (protocol == "HTTP" || protocol == "HTTPS" || protocol == "TLS") return {};
  if (protocol == "TCP") {
    if (in.alpha) return {};
    return R"(protocol "TCP" is supported, but only when PILOT_ENABLE_ALPHA_GATEWAY_API=true is configured)";
  }
  if (protocol == "HBONE") return R"(protocol "HBONE" is only supported for waypoint proxies)";
  const std::string upper = absl::AsciiStrToUpper(protocol);
  if (kKnown.contains(upper)) {
    return fmt::format(R"(protocol "{}" is unsupported. hint: "{}" (uppercase) may be supported)", protocol, upper);
  }
  return fmt::format("protocol \"{}\" is unsupported", protocol);
}

json KindList(const std::vector<std::string>& kinds) {
  json out = json::array();
  for (const std::string& kind : kinds) out.push_back({{"group", std::string(kGroup)}, {"kind", kind}});
  return out;
}

}  // namespace

int PortOf(const json& listener) {
  if (const int64_t port = Number(listener, "port"); port != 0) return static_cast<int>(port);
  const std::string protocol = Text(listener, "protocol");
  return protocol == "HTTP" ? 80 : protocol == "HTTPS" ? 443 : 0;
}

bool IsAutoPassthrough(const kube::Labels& gateway_labels, const json& listener) {
  const json& tls = At(listener, "tls");
  if (!tls.is_object()) return false;
  if (Text(At(tls, "options"), "gateway.istio.io/listener-protocol") == "auto-passthrough") return true;
  if (!gateway_labels.contains("topology.istio.io/network")) return false;
  const auto port = gateway_labels.find("networking.istio.io/gatewayPort");
  return std::to_string(Number(listener, "port")) == (port == gateway_labels.end() ? "15443" : port->second);
}

std::vector<std::string> SupportedKinds(const Inputs& in, const json& listener, bool* valid) {
  const std::string protocol = Text(listener, "protocol");
  std::vector<std::string> supported;
  if (protocol == "HTTP" || protocol == "HTTPS") {
    supported = {"HTTPRoute"};
    if (in.profile.Has(pilot::Change::kGatewayApiGrpcRoutes)) supported.emplace_back("GRPCRoute");
  } else if (protocol == "TCP") {
    supported = {"TCPRoute"};
  } else if (protocol == "TLS") {
    const std::string mode = Text(At(listener, "tls"), "mode");
    if (mode == "Passthrough" || in.profile.Has(pilot::Change::kGatewayApiTlsKinds)) supported = {"TLSRoute"};
    const bool takes_tcp = in.profile.Has(pilot::Change::kGatewayApiTlsKinds) ? mode == "Terminate" : supported.empty();
    if (takes_tcp) supported.emplace_back("TCPRoute");
  }
  *valid = true;
  const json& wanted = Items(At(listener, {"allowedRoutes", "kinds"}));
  if (wanted.empty()) return supported;
  std::vector<std::string> both;
  for (const std::string& kind : supported) {
    const bool asked = std::any_of(wanted.begin(), wanted.end(), [&](const json& one) {
      return KindOf(one, {std::string(kGroup), ""}) == GroupKind{std::string(kGroup), kind};
    });
    if (asked) both.push_back(kind);
  }
  *valid = both.size() == wanted.size();
  return both;
}

BuiltListener BuildListener(const Inputs& in, const Grants& grants, const kube::Object& owner,
                            const kube::Object& gateway, const json& listener, const json& before) {
  BuiltListener out;
  Conditions conditions = {{"Accepted", {"Accepted", "No errors found"}},
                           {"Programmed", {"Programmed", "No errors found"}},
                           {"Conflicted", {"NoConflicts", "No errors found", false}},
                           {"ResolvedRefs", {"ResolvedRefs", "No errors found"}}};
  ListenerTls tls = BuildListenerTls(in, grants, owner, gateway, listener);
  if (tls.error) {
    conditions["ResolvedRefs"].error = tls.error;
    if (in.profile.Has(pilot::Change::kGatewayApiBadTlsTold))
      conditions["Programmed"].error = ConfigError{"Invalid", "Bad TLS configuration"};
    out.programmed = out.tls_good = false;
  }
  const std::string protocol = Text(listener, "protocol");
  const bool checked = in.profile.Has(pilot::Change::kGatewayApiProtocolsChecked);
  std::string problem = checked ? ProtocolError(in, protocol) : std::string();
  if (checked && problem.empty() && PortOf(listener) == 0) {
    problem = fmt::format("protocol {} requires a port to be set", protocol);
  }
  if (!problem.empty()) {
    conditions["Accepted"].error = ConfigError{"UnsupportedProtocol", problem};
    out.programmed = false;
  }
  bool valid = true;
  const std::vector<std::string> kinds = SupportedKinds(in, listener, &valid);
  if (!valid) conditions["ResolvedRefs"] = {"InvalidRouteKinds", "Invalid route kinds", false};

  out.server = {{"port", {{"name", "default"}, {"number", PortOf(listener)}, {"protocol", protocol}}},
                {"hosts", Hosts(in, owner.meta.ns, listener)}};
  if (tls.settings) out.server["tls"] = *std::move(tls.settings);
  out.status = {{"name", Text(listener, "name")},
                {"attachedRoutes", 0},
                {"supportedKinds", KindList(kinds)},
                {"conditions", SetConditions(owner.meta.generation, in.now, At(before, "conditions"), conditions)}};
  return out;
}

}  // namespace wavetank::gatewayapi
