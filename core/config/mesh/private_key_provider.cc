#include "core/config/mesh/private_key_provider.h"

#include "core/config/schema/proto_json.h"

namespace wavetank::config {
namespace {

struct ProviderSettings {
  std::optional<Duration> poll_delay;
};
void ReadMessage(ProtoJson& in, ProviderSettings& out) { in.Field("pollDelay", out.poll_delay); }

struct ProviderHolder {
  std::optional<PrivateKeyProvider> provider;
};
void ReadMessage(ProtoJson& in, ProviderHolder& out) { in.Field("privateKeyProvider", out.provider); }

}  // namespace

void ReadMessage(ProtoJson& in, PrivateKeyProvider& out) {
  using Of = PrivateKeyProvider::Kind;
  for (const auto& [field, kind] : {std::pair("cryptomb", Of::kCryptoMb), {"qat", Of::kQat}}) {
    if (!in.Has(field)) continue;
    ProviderSettings settings;
    in.Field(field, settings);
    out = {kind, settings.poll_delay};
  }
}

std::optional<PrivateKeyProvider> PrivateKeyProviderOf(const nlohmann::json& proxy_config) {
  absl::Status status;
  ProviderHolder holder;
  ProtoJson fields(proxy_config, "proxyConfig", status);
  if (status.ok()) ReadMessage(fields, holder);
  return status.ok() ? holder.provider : std::nullopt;
}

}  // namespace wavetank::config
