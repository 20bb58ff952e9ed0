// Virtual hosts before they become bytes: domains can be compared and merged, routes are encoded already.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/gen/rds/http_routes.h"

namespace wavetank::pilot {

// Of a service without VirtualService there is one.
using EncodedRoutes = absl::InlinedVector<EncodedRouteRef, 1>;

struct VirtualHost {
  std::string name;
  std::vector<std::string> domains;
  EncodedRoutes routes;
  size_t room_for_routes = 0;  // that istiod's list of them has, which matters when EnvoyFilters patch it
  bool require_tls = false;    // redirects plain HTTP
  bool include_attempt_count = true;
};

// The same, of parts that another object holds.
struct VirtualHostView {
  std::string_view name;
  absl::Span<const std::string_view> domains;
  absl::Span<const EncodedRoute* const> routes;
  bool require_tls = false;
  bool include_attempt_count = true;
};

struct RouteConfiguration {
  std::string name;
  std::vector<VirtualHost> virtual_hosts;
  std::shared_ptr<const std::vector<VirtualHost>> shared_hosts;  // more, shared with other configurations; may be null
  std::string last_virtual_host;                                 // encoded; after all others
  bool ignore_port = true;                                       // in Host headers
  bool empty = false;                                            // nothing but a name: for unknown routes
  bool bare = false;                                             // name and hosts alone, as for gRPC clients
};

std::string EncodeRouteConfiguration(const RouteConfiguration& routes);

// An encoded RouteConfiguration, host by host.
class RouteConfigurationWriter {
 public:
  // `out` is emptied first.
  RouteConfigurationWriter(std::string_view name, std::string* out);
  void Add(const VirtualHostView& host);
  void Finish(bool ignore_port = true);
  void FinishEmpty();  // nothing but a name: for unknown routes

 private:
  std::string* out_;
};

void SortByName(std::vector<VirtualHost>& hosts);

// A host as a domain, with and without port; port 0: without one only.
void AddDomain(std::string_view host, int port, std::vector<std::string>& out);

// The name that ends in a dot. istiod: GenerateAltVirtualHosts.
std::vector<std::string> AbsoluteDomains(std::string_view hostname, int port);

// The names that a Kubernetes service of `hostname` goes by inside a proxy of DNS domain `proxy_domain`, beside the
// full one: "reviews", "reviews.ns", "reviews.ns.svc". Port 0: without ":port" forms. istiod: GenerateAltVirtualHosts.
std::vector<std::string> AlternativeDomains(std::string_view hostname, int port, std::string_view proxy_domain);

// All names beside the full one that a proxy's release knows, the absolute one first.
std::vector<std::string> ShortNames(std::string_view hostname, int port, const Proxy& proxy, const PushContext& push);

}  // namespace wavetank::pilot
