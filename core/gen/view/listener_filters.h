// The filters that are the same in every listener, encoded once (istiod: pilot/pkg/xds/filters/filters.go).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::pilot {

// ListenerFilter messages.
enum class Inspector : uint8_t { kTls, kTlsSmall, kHttp };  // kTlsSmall: with a small buffer at first
const std::string& InspectorFilter(Inspector inspector);
const std::string& OriginalDestination();
const std::string& OriginalSource();  // TPROXY only: keeps the peer's address, mark 1337

// An inspector that is off for connections to `ports` (sorted), or with `only` off for all others. No ports: always on.
std::string InspectorForPorts(Inspector inspector, const std::vector<int>& ports, bool only);

// Network filters, as encoded FilterChain.filters fields.
const std::string& IstioAuthnFilter();  // istio_authn: takes the peer's identity from its certificate

// HttpFilter messages.
const std::string& HttpGrpcWeb();
const std::string& HttpGrpcStats();
const std::string& HttpAlpn();  // istio.alpn: offers "istio-http/1.1" and friends upstream by protocol
const std::string& HttpFault();
const std::string& HttpCors();
struct RouterOptions {
  bool child_spans = false;   // each attempt is a span of its own
  bool debug_headers = true;  // x-envoy-... of the router
};
const std::string& HttpRouter(const RouterOptions& options = {});

// One HTTP filter as an encoded HttpConnectionManager.http_filters field.
std::string HttpFilterField(std::string_view name, std::string_view type_url, std::string_view config);

// One network filter as an encoded FilterChain.filters field.
std::string NetworkFilter(std::string_view name, std::string_view type_url, std::string_view config);
const std::string& SniClusterFilter();  // of its name alone: istio-proxy finds it by that

}  // namespace wavetank::pilot
