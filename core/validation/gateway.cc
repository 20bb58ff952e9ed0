#include <set>

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

struct PortProtocol {
  bool known = false, tls = false, http = false;
};
// istiod: pkg/config/protocol, Parse.
PortProtocol ParsePortProtocol(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  PortProtocol out;
  out.http = lower == "http" || lower == "http2" || lower == "grpc" || lower == "grpc-web" ||
             lower == "grpc-web-text" || lower == "http_proxy";
  out.tls = lower == "https" || lower == "tls";
  out.known = out.http || out.tls || lower == "tcp" || lower == "udp" || lower == "mongo" || lower == "redis" ||
              lower == "mysql" || lower == "hbone";
  return out;
}

// A host of a Gateway's server: "ns/host", "./host", "*/host", "host".
void CheckHost(const std::string& text, Problems& out) {
  std::string host = text;
  if (const size_t slash = text.find('/'); slash != std::string::npos) {
    const std::string ns = text.substr(0, slash);
    host = text.substr(slash + 1);
    if (ns.empty() || host.empty()) out.Add("config namespace and dnsName in host entry cannot be empty");
    if (ns != "*" && ns != "." && !IsDnsLabel(ns)) {
      out.Add(fmt::format("invalid namespace value {} in gateway", Quoted(ns)));
    }
  }
  if (host != "*" && host.find('.') == std::string::npos) out.Add("short names (non FQDN) are not allowed");
  if (std::string problem = WildcardDomain(host); !problem.empty() && !IsIp(host)) out.Add(std::move(problem));
  if (host.find('*') != std::string::npos && host != "*" && !host.starts_with("*.")) {
    out.Add(fmt::format("partial wildcard {} not allowed", Quoted(host)));
  }
}

void CheckTls(const json& tls, Problems& out) {
  if (!tls.is_object()) return;
  const std::string mode = MemberText(tls, "mode").empty() ? "PASSTHROUGH" : MemberText(tls, "mode");
  const auto given = [&](const char* name) { return !MemberText(tls, name).empty(); };
  if (mode == "ISTIO_MUTUAL") {
    if (given("serverCertificate")) out.Add("ISTIO_MUTUAL TLS cannot have associated server certificate");
    if (given("privateKey")) out.Add("ISTIO_MUTUAL TLS cannot have associated private key");
    if (given("caCertificates")) out.Add("ISTIO_MUTUAL TLS cannot have associated CA bundle");
    if (given("credentialName")) out.Add("ISTIO_MUTUAL TLS cannot have associated credentialName");
    return;
  }
  if ((mode != "SIMPLE" && mode != "MUTUAL") || given("credentialName")) return;
  if (!given("serverCertificate")) out.Add(mode + " TLS requires a server certificate");
  if (!given("privateKey")) out.Add(mode + " TLS requires a private key");
  if (mode == "MUTUAL" && !given("caCertificates")) out.Add("MUTUAL TLS requires a client CA bundle");
}

// Port and its fit with TLS.
void CheckPort(const json& server, Problems& out) {
  const json& port = Member(server, "port");
  const json& tls = Member(server, "tls");
  if (!port.is_object()) return out.Add("port is required");
  const std::string name = MemberText(port, "protocol");
  const PortProtocol protocol = ParsePortProtocol(name);
  const size_t before = out.size();
  if (!protocol.known) {
    out.Add(fmt::format(
        "invalid protocol {}, supported protocols are HTTP, HTTP2, GRPC, GRPC-WEB, MONGO, REDIS, MYSQL, TCP",
        Quoted(name)));
  }
  const int64_t number = MemberNumber(port, "number");
  if (number != 0) out.Add(PortNumber(number));
  if (MemberText(port, "name").empty()) {
    out.Add(fmt::format("port name must be set: number:{} protocol:{}", number, Quoted(name)));
  }
  const bool good = out.size() == before;
  CheckTls(tls, out);
  if (!good) return;
  const std::string mode = MemberText(tls, "mode");
  const bool passthrough = mode.empty() || mode == "PASSTHROUGH" || mode == "AUTO_PASSTHROUGH";
  const bool files = !MemberText(tls, "caCertificates").empty() || !MemberText(tls, "privateKey").empty() ||
                     !MemberText(tls, "serverCertificate").empty();
  if (protocol.tls && tls.is_null()) {
    out.Add("server must have TLS settings for HTTPS/TLS protocols");
  } else if (!protocol.tls && protocol.http && tls.is_object() && (!passthrough || files)) {
    out.Add("server cannot have TLS settings for plain text HTTP ports");
  } else if (!protocol.tls && !protocol.http && tls.is_object()) {
    out.Add("server cannot have TLS settings for non HTTPS/TLS ports");
  }
}

}  // namespace

void CheckGateway(const json& object, Problems& out) {
  const std::string name = Text(At(object, "metadata"), "name");
  if (!IsDnsLabel(name)) out.Add("invalid gateway name: " + Quoted(name));
  const json& servers = Items(Member(At(object, "spec"), "servers"));
  if (servers.empty()) out.Add("gateway must have at least one server");
  for (const json& server : servers) {
    const json& hosts = Items(Member(server, "hosts"));
    if (hosts.empty()) out.Add("server config must contain at least one host");
    for (const json& host : hosts) CheckHost(TextOf(host), out);
    CheckPort(server, out);
    const std::string bind = MemberText(server, "bind");
    if (!bind.empty() && !bind.starts_with("unix://") && !IsIp(bind)) out.Add(bind + " is not a valid IP");
  }
  std::set<std::string> names;
  for (const json& server : servers) {
    const std::string port = MemberText(Member(server, "port"), "name");
    if (!names.insert(port).second) {
      out.Add("port names in servers must be unique: duplicate name " + port);
    }
  }
}

}  // namespace wavetank::validation
