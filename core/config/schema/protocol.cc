#include "core/config/schema/protocol.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace wavetank::pilot {

Protocol ParseProtocol(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c);
  });
  static constexpr std::array<std::pair<std::string_view, Protocol>, 14> kNames = {{
      {"tcp", Protocol::kTcp},
      {"udp", Protocol::kUdp},
      {"grpc", Protocol::kGrpc},
      {"grpc-web", Protocol::kGrpcWeb},
      {"http", Protocol::kHttp},
      {"http_proxy", Protocol::kHttpProxy},
      {"http2", Protocol::kHttp2},
      {"https", Protocol::kHttps},
      {"tls", Protocol::kTls},
      {"mongo", Protocol::kMongo},
      {"redis", Protocol::kRedis},
      {"mysql", Protocol::kMysql},
      {"hbone", Protocol::kHbone},
      {"unsupported", Protocol::kUnsupported},
  }};
  for (const auto& [text, protocol] : kNames) {
    if (text == lower) return protocol;
  }
  return Protocol::kUnsupported;
}

std::string_view ProtocolName(Protocol p) {
  switch (p) {
    case Protocol::kUnsupported:
      return "UnsupportedProtocol";
    case Protocol::kTcp:
      return "TCP";
    case Protocol::kUdp:
      return "UDP";
    case Protocol::kGrpc:
      return "GRPC";
    case Protocol::kGrpcWeb:
      return "GRPC-Web";
    case Protocol::kHttp:
      return "HTTP";
    case Protocol::kHttpProxy:
      return "HTTP_PROXY";
    case Protocol::kHttp2:
      return "HTTP2";
    case Protocol::kHttps:
      return "HTTPS";
    case Protocol::kTls:
      return "TLS";
    case Protocol::kMongo:
      return "Mongo";
    case Protocol::kRedis:
      return "Redis";
    case Protocol::kMysql:
      return "MySQL";
    case Protocol::kHbone:
      return "HBONE";
  }
  return "";
}

}  // namespace wavetank::pilot
