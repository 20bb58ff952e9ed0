#include "core/config/kinds/gateway.h"

#include <algorithm>

#include "core/config/kinds/read_message.h"
#include "core/config/schema/protocol.h"

namespace wavetank::config {

using pilot::ParseProtocol;
using pilot::Protocol;

void ReadMessage(ProtoJson& in, Server& out) {
  out.has_port = in.Has("port");
  in.Field("port", out.port);
  in.Field("bind", out.bind);
  in.Field("hosts", out.hosts);
  in.Field("tls", out.tls);
  in.Field("defaultEndpoint", out.default_endpoint);
  in.Field("name", out.name);
}

void ReadMessage(ProtoJson& in, Gateway& out) {
  in.Field("servers", out.servers);
  in.Field("selector", out.selector);
}

bool IsTlsServer(const Server& server) { return server.tls && !IsHttp(ParseProtocol(server.port.protocol)); }

bool HasOptionalMutual(const Gateway& gateway) {
  return std::any_of(gateway.servers.begin(), gateway.servers.end(), [](const Server& server) {
    return server.tls && server.tls->mode == ServerTlsSettings::Mode::kOptionalMutual;
  });
}

bool IsPassThroughServer(const Server& server) {
  return server.tls && (server.tls->mode == ServerTlsSettings::Mode::kPassthrough ||
                        server.tls->mode == ServerTlsSettings::Mode::kAutoPassthrough);
}

bool IsHttpsServerWithTlsTermination(const Server& server) {
  return server.tls && ParseProtocol(server.port.protocol) == Protocol::kHttps && !IsPassThroughServer(server);
}

bool IsHttpServer(const Server& server) {
  return IsHttp(ParseProtocol(server.port.protocol)) || IsHttpsServerWithTlsTermination(server);
}

bool IsTcpServerWithTlsTermination(const Server& server) {
  const Protocol protocol = ParseProtocol(server.port.protocol);
  return server.tls && !IsPassThroughServer(server) && !IsHttp(protocol) && protocol != Protocol::kHttps;
}

}  // namespace wavetank::config
