// VirtualServices by gateway and by the namespaces that see them; host names and gateways fully qualified, delegates
// merged into their roots (istiod: pilot/pkg/model/push_context.go, initVirtualServices; virtualservice.go).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/push/export_to_defaults.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

inline constexpr std::string_view kMeshGateway = "mesh";

class VirtualServiceIndex {
 public:
  using List = std::vector<config::VirtualServiceRef>;

  // Where a namespace's own routes of the Gateway API come first ("consumer override"): among all that are public, and
  // for all sidecars (before, only for those without a Sidecar).
  struct OwnFirst {
    bool in_public = false, for_sidecars = false;
  };
  // `sorted`: by creation time. `provider_hosts`: hosts of the mesh's providers, to which each gateway with a
  // VirtualService leads, too; null: what gateways lead to is not asked for.
  VirtualServiceIndex(const List& sorted, const ExportToDefaults& defaults, std::string_view domain_suffix,
                      OwnFirst own_first, const std::set<std::string>* provider_hosts = nullptr);

  // Bound to the gateway ("namespace/name" or "mesh") and visible in the namespace: private ones of the namespace,
  // those exported to it, public ones.
  List ForGateway(std::string_view ns, std::string_view gateway) const;

  // Of the mesh's, those with a host that one of the imported hosts matches. `hosts`: by namespace of the
  // VirtualService, "*" for any. istiod: SelectVirtualServices.
  List Select(std::string_view ns, const std::map<std::string, std::vector<std::string>, std::less<>>& hosts) const;

  // Whether a VirtualService of that gateway, whoever sees it, leads to the host. istiod: destinationsByGateway.
  bool LeadsTo(std::string_view gateway, std::string_view hostname) const;

  // Delegates that the VirtualService names, also missing ones.
  const std::vector<ConfigKey>& DelegatesOf(const config::ConfigMeta& root) const;

 private:
  using ByGateway = absl::flat_hash_map<std::string, List>;
  void Add(const config::VirtualServiceRef& vs, const ExportToDefaults& defaults);

  // In which of the three lists own routes come first.
  enum class First : uint8_t { kNowhere, kInPublic, kInEach };
  List Bound(std::string_view ns, std::string_view gateway, First first) const;

  OwnFirst own_first_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> destinations_by_gateway_;
  std::map<std::string, ByGateway, std::less<>> private_by_namespace_, exported_to_namespace_;
  ByGateway public_by_gateway_;
  std::map<std::pair<std::string, std::string>, std::vector<ConfigKey>> delegates_;  // by namespace, name of the root
};

// Made of a route of the Gateway API, which has rules of its own. istiod: UseGatewaySemantics.
bool OfGatewayApi(const config::TypedConfig<config::VirtualService>& rule);

// Hosts that the routes send to, with the ports they name; 0 among them: no port was named.
// `mirrors`: also those of the list (Change::kSeveralMirrors). `source`: without HTTP routes that are for other
// namespaces than this; empty: all. istiod: virtualServiceDestinations,
// virtualServiceDestinationsFilteredBySourceNamespace.
std::map<std::string, std::set<int>> VirtualServiceDestinations(const config::VirtualService& spec, bool mirrors,
                                                                std::string_view source = {});

// Short names of hosts, destinations and gateways in full. istiod: resolveVirtualServiceShortnames.
void ResolveShortnames(config::VirtualService& spec, std::string_view ns, std::string_view domain_suffix);
// "name", "name.ns.svc.x", "./name" and "ns/name" as "ns/name". istiod: resolveGatewayName.
std::string ResolveGatewayName(std::string_view name, std::string_view ns);

}  // namespace wavetank::pilot
