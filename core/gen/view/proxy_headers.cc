#include "core/gen/view/proxy_headers.h"

#include "core/base/json_access.h"
#include "core/gen/view/proxy_view.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

bool Says(const json& headers, const char* what, const char* word) { return At(At(headers, what), word) == true; }

}  // namespace

ProxyHeaders ProxyHeadersOf(const Proxy& proxy, const PushContext& push) {
  ProxyHeaders out;
  const Profile& profile = push.profile();
  if (!profile.Has(Change::kProxyHeaders)) return out;
  const json* const config = ProxyConfigOf(proxy, push.mesh());
  if (config == nullptr) return out;
  const json& headers = At(*config, "proxyHeaders");
  if (!headers.is_object()) return out;
  out.attempt_count = !Says(headers, "attemptCount", "disabled");
  if (const std::string details = Text(headers, "forwardedClientCert"); details != "UNDEFINED")
    out.forwarded_client_cert = details;
  if (Says(headers, "server", "disabled")) {
    out.server = "";
  } else if (std::string name = Text(At(headers, "server"), "value"); !name.empty()) {
    out.server = std::move(name);
  }
  out.request_id = !Says(headers, "requestId", "disabled");
  out.debug_headers = !Says(headers, "envoyDebugHeaders", "disabled");
  out.exchange_outside = Text(At(headers, "metadataExchangeHeaders"), "mode") != "IN_MESH";
  if (profile.Has(Change::kClientCertDetails)) {
    const json& details = At(headers, "setCurrentClientCertDetails");
    const auto read = [&](const char* name, bool* to) {
      if (const json& value = At(details, name); value.is_boolean()) *to = value.get<bool>();
    };
    read("subject", &out.details.subject);
    read("cert", &out.details.cert);
    read("chain", &out.details.chain);
    read("dns", &out.details.dns);
    read("uri", &out.details.uri);
  }
  if (profile.Has(Change::kForwardedHostAndPort)) {
    out.forwarded_host = Says(headers, "xForwardedHost", "enabled");
    out.forwarded_port = Says(headers, "xForwardedPort", "enabled");
  }
  return out;
}

}  // namespace wavetank::pilot
