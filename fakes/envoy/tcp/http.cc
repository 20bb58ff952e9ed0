#include "fakes/envoy/tcp/http.h"

#include <atomic>

namespace wavetank::envoysim {

std::string_view HttpProtocolName(HttpProtocol protocol) {
  switch (protocol) {
    case HttpProtocol::kHttp10:
      return "HTTP/1.0";
    case HttpProtocol::kHttp11:
      return "HTTP/1.1";
    case HttpProtocol::kHttp2:
      return "HTTP/2";
  }
  return {};
}

RequestSpec::RequestSpec() { TakeNewId(); }

void RequestSpec::TakeNewId() {
  // Ids only tell specs of one process apart, whose worlds may run in threads; they reach no output.
  static std::atomic<uint64_t> next{0};
  id_ = next.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::optional<std::string_view> FindHeader(const RequestSpec& spec, std::string_view name) {
  if (name == ":authority" || name == "host") return spec.authority;
  if (name == ":path") return spec.path;
  if (name == ":method") return spec.method;
  if (name == ":scheme") {
    // What the first proxy on the way noted. Envoy: conn_manager_utility.cc, getScheme
    const std::optional<std::string_view> said = FindHeader(spec, "x-forwarded-proto");
    return said == "https" ? "https" : "http";
  }
  for (const auto& [key, value] : spec.headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace wavetank::envoysim
