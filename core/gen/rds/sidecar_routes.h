// A sidecar's outbound route configurations, by the port of their listener ("80"), by service and port where the
// listener sniffs ("host:8080"), for the HTTP proxy port ("http_proxy") or a unix socket
// (istiod: pilot/pkg/networking/core/v1alpha3/httproute.go, route.go BuildSidecarVirtualHostWrapper).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/gen/rds/patch_routes.h"
#include "core/gen/rds/route_cache.h"
#include "core/gen/rds/virtual_hosts.h"
#include "core/gen/view/proxy_headers.h"
#include "core/push/sidecar_scope.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class EnvoyPatches;
class PushContext;
class XdsCache;

// Routes made from one push context, by cache key. The cache proper leaves most proxies out while a mesh starts (see
// XdsCache::Add), and what it says is part of the model; this is not seen from outside.
struct SharedRoutes {
  struct Entry {
    Resource resource;
    std::shared_ptr<const std::vector<VirtualHost>> hosts;
  };
  // What to ask for in the cache and in `made`. To find that out takes longer than to ask.
  struct Question {
    std::string cache_key, shared_key;
    std::vector<uint64_t> dependencies;
  };
  std::weak_ptr<const PushContext> push;
  absl::flat_hash_map<std::string, Entry> made;
  // By scope, and by name of the routes and what else of a proxy is in the question. Not of scopes that select
  // workloads: there it takes all of a proxy's labels.
  std::map<std::pair<SidecarScopeRef, std::string>, Question> questions;
};

// For one proxy and one push. All arguments must outlive it; `cache`, `shared` and `patches` (the proxy's) may be null;
// `shared` is of `push` and of proxies whose routes nothing patches.
class SidecarRoutes {
 public:
  SidecarRoutes(const Proxy& proxy, const PushContext& push, XdsCache* cache, Time push_start,
                SharedRoutes* shared = nullptr, const EnvoyPatches* patches = nullptr);
  ~SidecarRoutes();

  // An empty configuration for a name that cannot be one.
  Resource Build(const std::string& route_name);
  // For proxyless gRPC: all virtual hosts of the port and nothing else. istiod: grpcgen/rds.go.
  Resource BuildForPort(const std::string& route_name, int port);

  int64_t cache_hits() const { return cache_hits_; }

 private:
  struct Inputs;
  std::vector<VirtualHost> VirtualHosts(const Inputs& inputs) const;  // by name
  bool IsCacheable(const Inputs& inputs) const;
  RouteCacheEntry CacheEntry(const Inputs& inputs) const;
  // Encoded with the patches to it. `hosts`: all of the port; `known`: another configuration of the port has them, too.
  Resource Patched(const RouteConfiguration& routes, const std::vector<VirtualHost>& hosts, int port, bool known);
  // What is there already.
  std::optional<Resource> Known(const SharedRoutes::Question& question, int port);

  const Proxy& proxy_;
  const PushContext& push_;
  const ProxyHeaders headers_;
  XdsCache* cache_;
  Time push_start_;
  SharedRoutes* shared_;
  const EnvoyPatches* patches_;           // null: none to routes
  std::vector<ConfigKey> envoy_filters_;  // where they come from
  // Sniffed ports share the virtual hosts of their port. istiod: vHostCache.
  std::map<int, std::shared_ptr<const std::vector<VirtualHost>>> by_port_;
  std::map<int, PatchableHosts> patchable_by_port_;  // with patches; the same hosts
  int64_t cache_hits_ = 0;
};

}  // namespace wavetank::pilot
