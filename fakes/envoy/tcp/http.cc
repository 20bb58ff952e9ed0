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
  if (name == ":scheme") return "http";
  for (const auto& [key, value] : spec.headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace wavetank::envoysim
