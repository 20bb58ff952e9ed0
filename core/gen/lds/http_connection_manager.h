// HTTP connection managers. What is the same for all of a proxy's is encoded once per class of listener and reused;
// a filter then costs a few copies (istiod: listener_builder.go, buildHTTPConnectionManager).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "core/gen/extensions/wasm_filters.h"
#include "core/gen/view/listener_types.h"
#include "core/gen/view/proxy_headers.h"
#include "core/model/proxy.h"

namespace wavetank::pilot {

class AuthzFilters;
class ProxyTelemetry;
struct HttpTracing;
class PushContext;
namespace wire {
class Writer;
}

struct HttpOptions {
  ListenerClass listener_class = ListenerClass::kSidecarOutbound;
  Protocol protocol = Protocol::kHttp;
  std::string stat_prefix;     // empty: the listener's, "outbound_<name>"
  std::string rds;             // name of the route configuration, or
  std::string route_config;    // an encoded RouteConfiguration
  bool absolute_urls = false;  // the HTTP proxy port's
  std::string dns_cache;       // hosts of requests are resolved in; empty: they are not
};

class HttpConnectionManagers {
 public:
  // All must outlive the object.
  HttpConnectionManagers(const Proxy& proxy, const PushContext& push, AuthzFilters& authz, ProxyTelemetry& telemetry)
      : proxy_(proxy),
        push_(push),
        authz_(authz),
        telemetry_(telemetry),
        wasm_(proxy, push),
        headers_(ProxyHeadersOf(proxy, push)) {}

  // An encoded FilterChain.filters field. `port`: what WasmPlugins choose by, the listener's or, inbound, the target's.
  std::string Filter(const HttpOptions& options, int port, std::string_view default_stat_prefix);

 private:
  // gRPC-Web, HTTP/2, absolute URLs, Wasm filters, the cache of names
  using Kind = std::tuple<ListenerClass, bool, bool, bool, int, std::string>;
  std::string Common(const Kind& kind);
  void WriteHttpFilters(const Kind& kind, const HttpTracing& tracing, wire::Writer& w);

  const Proxy& proxy_;
  const PushContext& push_;
  AuthzFilters& authz_;
  ProxyTelemetry& telemetry_;
  WasmFilters wasm_;
  const ProxyHeaders headers_;
  std::optional<std::string> jwt_;  // made when first asked for
  std::map<Kind, std::string> common_;
};

}  // namespace wavetank::pilot
