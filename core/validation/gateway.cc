#include <set>

#include "core/base/json_access.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

// A Port as Go's protobuf prints it: fields that are set, in the order of their numbers.
std::string PortAsText(const json& port) {
  std::string out;
  const auto add = [&](const std::string& field) { out += (out.empty() ? "" : " ") + field; };
  if (const int64_t number = MemberNumber(port, "number"); number != 0) add(fmt::format("number:{}", number));
  if (const std::string text = MemberText(port, "protocol"); !text.empty()) add("protocol:" + Quoted(text));
  if (const std::string text = MemberText(port, "name"); !text.empty()) add("name:" + Quoted(text));
  if (const int64_t number = MemberNumber(port, "targetPort"); number != 0) add(fmt::format("target_port:{}", number));
  return out;
}

void CheckServerPort(const json& port, Problems& out) {
  if (!port.is_object()) return out.Add("port is required");
  const std::string protocol = MemberText(port, "protocol");
  if (ProtocolOf(protocol) == pilot::Protocol::kUnsupported) {
    out.Add(fmt::format(
        "invalid protocol {}, supported protocols are HTTP, HTTP2, GRPC, GRPC-WEB, MONGO, REDIS, MYSQL, TCP",
        Quoted(protocol)));
  }
  const int64_t number = MemberNumber(port, "number");
  if (number > 0) out.Add(PortNumber(number));
  if (MemberText(port, "name").empty()) out.Add("port name must be set: " + PortAsText(port));
}

void CheckBind(const json& server, Problems& out) {
  const std::string bind = MemberText(server, "bind");
  constexpr std::string_view kUnix = "unix://";
  if (bind.starts_with(kUnix)) {
    out.Add(UnixAddress(bind.substr(kUnix.size())));
    const json& port = Member(server, "port");
    if (MemberNumber(port, "number") != 0) {
      out.Add("port number must be 0 for unix domain socket: " + PortAsText(port));
    }
  } else if (!bind.empty()) {
    out.Add(Ip(bind));
  }
}

// A port that is right, and its fit with TLS.
void CheckTlsOfPort(const json& server, Problems& out) {
  const json& tls = Member(server, "tls");
  const pilot::Protocol protocol = ProtocolOf(MemberText(Member(server, "port"), "protocol"));
  const ServerTlsMode mode = ModeOf(tls);
  const bool passthrough = mode == ServerTlsMode::kPassthrough || mode == ServerTlsMode::kAutoPassthrough;
  const bool files = !MemberText(tls, "caCertificates").empty() || !MemberText(tls, "privateKey").empty() ||
                     !MemberText(tls, "serverCertificate").empty();
  if (pilot::IsTls(protocol)) {
    if (tls.is_null()) out.Add("server must have TLS settings for HTTPS/TLS protocols");
  } else if (tls.is_object()) {
    if (!pilot::IsHttp(protocol)) {
      out.Add("server cannot have TLS settings for non HTTPS/TLS ports");
    } else if (!passthrough || files) {
      out.Add("server cannot have TLS settings for plain text HTTP ports");
    }
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
    for (const json& host : hosts) HostInNamespace(TextOf(host), true, out);
    const size_t before = out.size();
    CheckServerPort(Member(server, "port"), out);
    const bool good_port = out.size() == before;
    CheckBind(server, out);
    ServerTls(Member(server, "tls"), out);
    if (good_port) CheckTlsOfPort(server, out);
  }
  std::set<std::string> names;
  for (const json& server : servers) {
    const json& port = Member(server, "port");
    if (!port.is_object()) continue;
    const std::string port_name = MemberText(port, "name");
    if (!names.insert(port_name).second) {
      out.Add("port names in servers must be unique: duplicate name " + port_name);
    }
    if (!pilot::IsHttp(ProtocolOf(MemberText(port, "protocol"))) &&
        Member(Member(server, "tls"), "httpsRedirect") == true) {
      out.Warn("tls.httpsRedirect should only be used with http servers");
    }
  }
}

}  // namespace wavetank::validation
