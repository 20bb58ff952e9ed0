#include "core/config/kinds/peer_authentication.h"

#include <charconv>

#include "core/config/kinds/read_message.h"

namespace wavetank::config {

namespace {
struct MutualTls {
  PeerAuthentication::Mode mode = PeerAuthentication::Mode::kUnset;
};
void ReadMessage(ProtoJson& in, MutualTls& out) {
  using Mode = PeerAuthentication::Mode;
  in.Enum("mode", out.mode,
          {{"UNSET", Mode::kUnset},
           {"DISABLE", Mode::kDisable},
           {"PERMISSIVE", Mode::kPermissive},
           {"STRICT", Mode::kStrict}});
}
}  // namespace

void ReadMessage(ProtoJson& in, PeerAuthentication& out) {
  ReadSelector(in, "selector", "matchLabels", out.selector);
  std::optional<MutualTls> mtls;
  in.Field("mtls", mtls);
  if (mtls) out.mtls = mtls->mode;
  std::map<std::string, MutualTls> ports;
  in.Field("portLevelMtls", ports);
  for (const auto& [text, port_mtls] : ports) {
    uint32_t port = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || at != text.data() + text.size()) {
      return in.Fail("portLevelMtls", "expected port numbers as keys");
    }
    out.port_level_mtls[port] = port_mtls.mode;
  }
}

}  // namespace wavetank::config
