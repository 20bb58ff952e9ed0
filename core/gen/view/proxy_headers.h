// What a proxy adds to HTTP messages by itself, as proxyHeaders of its ProxyConfig say it (istiod:
// pilot/pkg/networking/util/proxy_headers.go, GetProxyHeaders).
#pragma once

#include <optional>
#include <string>

#include "core/model/proxy.h"

namespace wavetank::pilot {

class PushContext;

struct ProxyHeaders {
  bool attempt_count = true;
  std::optional<std::string> server;  // named otherwise; empty: the server's own header passes
  std::string forwarded_client_cert;  // of inbound listeners, by Envoy's name; empty: as ever
  bool request_id = true;
  bool debug_headers = true;
  bool exchange_outside = true;  // metadata are told to clusters outside the mesh, too
  bool forwarded_host = false, forwarded_port = false;
  // Of a client's certificate, to inbound listeners' servers.
  struct Details {
    bool subject = true, cert = false, chain = false, dns = true, uri = true;
  } details;
};

ProxyHeaders ProxyHeadersOf(const Proxy& proxy, const PushContext& push);

}  // namespace wavetank::pilot
