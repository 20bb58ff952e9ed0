#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {

RequestSpec::RequestSpec() {
  // Ids only tell specs of one process apart; they reach no output.
  static uint64_t next = 0;
  id_ = ++next;
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
