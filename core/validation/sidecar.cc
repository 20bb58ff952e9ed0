#include <map>
#include <set>

#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

constexpr std::string_view kUnixScheme = "unix://";

void CheckListenerPort(const json& port, const std::string& bind, Problems& out) {
  if (const std::string name = MemberText(port, "name"); !name.empty()) out.Add(PortName(name));
  out.Add(ProtocolName(MemberText(port, "protocol")));
  out.Add(PortNumber(MemberNumber(port, "number")));
  if (!bind.empty()) out.Add(Ip(bind));
}

void CheckDefaultEndpoint(const std::string& endpoint, Problems& out) {
  if (endpoint.empty()) return;
  if (endpoint.starts_with(kUnixScheme)) return out.Add(UnixAddress(endpoint.substr(kUnixScheme.size())));
  static const auto* const kHosts = new std::set<std::string>{"", "127.0.0.1", "0.0.0.0", "::1", "::"};
  const HostPort split = SplitHostPort(endpoint);
  out.Add(split.error);
  if (!kHosts->contains(split.host)) {
    out.Add(
        "sidecar: defaultEndpoint must be of form 127.0.0.1:<port>,0.0.0.0:<port>,[::1]:port,[::]:port,unix://filepath "
        "or unset");
  }
  int64_t port = 0;
  if (const std::string error = NumberError(split.port, &port); !error.empty()) {
    out.Add(fmt::format("sidecar: defaultEndpoint port ({}) is not a number: {}", split.port, error));
  } else {
    out.Add(PortNumber(port));
  }
}

void CheckIngressTls(const json& tls, const json& port, Problems& out) {
  if (!tls.is_object()) return;
  if (!Items(Member(tls, "subjectAltNames")).empty()) {
    out.Add("sidecar: subjectAltNames is not supported in ingress tls");
  }
  if (Member(tls, "httpsRedirect") == true) out.Add("sidecar: httpsRedirect is not supported");
  if (!MemberText(tls, "credentialName").empty()) out.Add("sidecar: credentialName is not currently supported");
  if (out.Has(pilot::Change::kSeveralCertificates)) {
    if (!Items(Member(tls, "credentialNames")).empty()) out.Add("sidecar: credentialNames is not currently supported");
    if (!Items(Member(tls, "tlsCertificates")).empty()) out.Add("sidecar: tls_certificates is not currently supported");
  }
  const ServerTlsMode mode = ModeOf(tls);
  if (mode == ServerTlsMode::kIstioMutual || mode == ServerTlsMode::kAutoPassthrough) {
    out.Add(fmt::format("configuration is invalid: cannot set mode to {} in sidecar ingress tls", ModeName(mode)));
  }
  if (!pilot::IsTls(ProtocolOf(MemberText(port, "protocol")))) {
    out.Add("server cannot have TLS settings for non HTTPS/TLS ports");
  }
  ServerTls(tls, out);
}

void CheckIngress(const json& spec, Problems& out) {
  std::set<int64_t> ports;
  for (const json& listener : Items(Member(spec, "ingress"))) {
    const json& port = Member(listener, "port");
    if (port.is_null()) {
      out.Add("sidecar: port is required for ingress listeners");
      continue;
    }
    CheckListenerPort(port, MemberText(listener, "bind"), out);
    if (!ports.insert(MemberNumber(port, "number")).second) {
      out.Add("sidecar: ports on IP bound listeners must be unique");
    }
    CheckDefaultEndpoint(MemberText(listener, "defaultEndpoint"), out);
    CheckIngressTls(Member(listener, "tls"), port, out);
    if (!out.Has(pilot::Change::kInboundPoolOfSidecar)) continue;
    const json& pool = Member(listener, "connectionPool");
    CheckConnectionPool(pool, out);
    const std::string protocol = MemberText(port, "protocol");
    if (!Member(pool, "http").is_null() && !pilot::IsHttp(ProtocolOf(protocol))) {
      out.Warn(fmt::format(
          "sidecar: HTTP connection pool settings are configured for port {} ({}) but its protocol is not HTTP ({}); "
          "only TCP settings will apply",
          MemberNumber(port, "number"), Quoted(MemberText(port, "name")), protocol));
    }
  }
}

// An egress listener for a Unix domain socket.
void CheckSocketListener(const json& listener, Problems& out) {
  const json& port = Member(listener, "port");
  const std::string bind = MemberText(listener, "bind");
  if (const std::string name = MemberText(port, "name"); !name.empty()) out.Add(PortName(name));
  out.Add(ProtocolName(MemberText(port, "protocol")));
  if (bind.starts_with(kUnixScheme)) {
    out.Add(UnixAddress(bind.substr(kUnixScheme.size())));
  } else {
    out.Add("sidecar: ports with 0 value must have a unix domain socket bind address");
  }
  constexpr int kIptables = 1;
  if (MemberEnum(listener, "captureMode", {"DEFAULT", "IPTABLES", "NONE"}) == kIptables) {
    out.Add("sidecar: captureMode must be DEFAULT/NONE for unix domain socket listeners");
  }
}

void CheckEgressHosts(const json& hosts, const std::string& own, Problems& out) {
  if (hosts.empty()) return out.Add("sidecar: egress listener must contain at least one host");
  std::map<std::string, std::set<std::string>> seen;
  for (const json& entry : hosts) {
    const std::string text = TextOf(entry);
    if (const size_t slash = text.find('/'); slash != std::string::npos) {
      std::string ns = text.substr(0, slash);
      if (ns == ".") ns = own;
      std::set<std::string>& names = seen[ns];
      const std::string name = text.substr(slash + 1);
      if (name == "*" ? !names.empty() : names.contains(name) || names.contains("*")) {
        out.Warn("duplicated egress host: " + text);
      }
      names.insert(name);
    }
    HostInNamespace(text, false, out);
  }
  if (const auto all = seen.find("*"); all != seen.end() && all->second.contains("*") && seen.size() != 1) {
    out.Warn("`*/*` host select all resources, no other hosts can be added");
  }
}

void CheckEgress(const json& object, Problems& out) {
  const json& listeners = Items(Member(At(object, "spec"), "egress"));
  std::set<int64_t> ports;
  std::set<std::string> sockets;
  for (size_t i = 0; i < listeners.size(); ++i) {
    const json& port = Member(listeners[i], "port");
    if (port.is_null()) {
      if (i + 1 != listeners.size()) {
        out.Add("sidecar: the egress listener with empty port should be the last listener in the list");
      }
    } else {
      const std::string bind = MemberText(listeners[i], "bind");
      if (const int64_t number = MemberNumber(port, "number"); number == 0) {
        CheckSocketListener(listeners[i], out);
        if (!sockets.insert(bind).second) {
          out.Add("sidecar: unix domain socket values for listeners must be unique");
        }
      } else {
        CheckListenerPort(port, bind, out);
        if (!ports.insert(number).second) out.Add("sidecar: ports on IP bound listeners must be unique");
      }
    }
    CheckEgressHosts(Items(Member(listeners[i], "hosts")), Text(At(object, "metadata"), "namespace"), out);
  }
}

void CheckOutboundPolicy(const json& policy, Problems& out) {
  const json& proxy = Member(policy, "egressProxy");
  if (!proxy.is_object()) return;
  constexpr int kAllowAny = 1;
  if (MemberEnum(policy, "mode", {"REGISTRY_ONLY", "ALLOW_ANY"}) != kAllowAny) {
    return out.Add("sidecar: egress_proxy must be set only with ALLOW_ANY outbound_traffic_policy mode");
  }
  out.Add(Fqdn(MemberText(proxy, "host")));
  if (Member(proxy, "port").is_null()) return out.Add("sidecar: egress_proxy port must be non-nil");
  Destination(proxy, out);
}

}  // namespace

void CheckSidecar(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  const bool pools = out.Has(pilot::Change::kInboundPoolOfSidecar);
  Problems selector = out.OfSameRelease();
  Selector(Member(spec, "workloadSelector"), "labels", "sidecar: ", ", will be applied to all services in namespace",
           selector);
  const bool nothing = Items(Member(spec, "egress")).empty() && Items(Member(spec, "ingress")).empty() &&
                       Member(spec, "outboundTrafficPolicy").is_null() &&
                       !(pools && Has(spec, "inboundConnectionPool"));
  if (selector.empty() && nothing) return out.Add("sidecar: empty configuration provided");
  const bool wrong = !selector.empty();
  out = std::move(selector);
  if (wrong) return;
  CheckIngress(spec, out);
  if (pools) CheckConnectionPool(Member(spec, "inboundConnectionPool"), out);
  CheckEgress(object, out);
  CheckOutboundPolicy(Member(spec, "outboundTrafficPolicy"), out);
}

}  // namespace wavetank::validation
