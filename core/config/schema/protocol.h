// Application protocols of ports (istiod: pkg/config/protocol/instance.go).
#pragma once

#include <cstdint>
#include <string_view>

namespace wavetank::pilot {

enum class Protocol : uint8_t {
  kUnsupported,  // sniffed: listeners and clusters treat it as TCP or HTTP by inspection
  kTcp,
  kUdp,
  kGrpc,
  kGrpcWeb,
  kHttp,
  kHttpProxy,
  kHttp2,
  kHttps,
  kTls,
  kMongo,
  kRedis,
  kMysql,
  kHbone,
};

// Case-insensitive; kUnsupported if unknown.
Protocol ParseProtocol(std::string_view name);
std::string_view ProtocolName(Protocol p);  // "HTTP2", "UnsupportedProtocol", ...

constexpr bool IsHttp2(Protocol p) { return p == Protocol::kHttp2 || p == Protocol::kGrpc || p == Protocol::kGrpcWeb; }
constexpr bool IsHttp(Protocol p) { return p == Protocol::kHttp || p == Protocol::kHttpProxy || IsHttp2(p); }
constexpr bool IsTls(Protocol p) { return p == Protocol::kHttps || p == Protocol::kTls; }
constexpr bool IsTcp(Protocol p) {
  return p == Protocol::kTcp || p == Protocol::kMongo || p == Protocol::kRedis || p == Protocol::kMysql || IsTls(p);
}
constexpr bool IsGrpc(Protocol p) { return p == Protocol::kGrpc || p == Protocol::kGrpcWeb; }
constexpr bool IsUnsupported(Protocol p) { return p == Protocol::kUnsupported; }

}  // namespace wavetank::pilot
