// networking.istio.io EnvoyFilter: patches to what is generated for Envoys. Enumerators have the API's numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config/kinds/policy_target.h"
#include "core/config/kinds/typed_config.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

struct EnvoyFilter {
  enum class ApplyTo : uint8_t {
    kInvalid,
    kListener,
    kFilterChain,
    kNetworkFilter,
    kHttpFilter,
    kRouteConfiguration,
    kVirtualHost,
    kHttpRoute,
    kCluster,
    kExtensionConfig,
    kBootstrap,
    kListenerFilter,
  };
  enum class Context : uint8_t { kAny, kSidecarInbound, kSidecarOutbound, kGateway };
  enum class Operation : uint8_t {
    kInvalid,
    kMerge,
    kAdd,
    kRemove,
    kInsertBefore,
    kInsertAfter,
    kInsertFirst,
    kReplace,
  };

  // In all of them an empty text or 0 asks for nothing.
  struct ProxyMatch {
    std::string proxy_version;  // a regular expression
    std::map<std::string, std::string> metadata;
    friend bool operator==(const ProxyMatch&, const ProxyMatch&) = default;
  };
  struct FilterMatch {
    std::string name;
    std::optional<std::string> sub_filter;  // an HTTP filter's name
    friend bool operator==(const FilterMatch&, const FilterMatch&) = default;
  };
  struct FilterChainMatch {
    std::string name, sni, transport_protocol, application_protocols;
    std::optional<FilterMatch> filter;
    uint32_t destination_port = 0;
    friend bool operator==(const FilterChainMatch&, const FilterChainMatch&) = default;
  };
  struct ListenerMatch {
    uint32_t port_number = 0;
    std::string port_name, listener_filter, name;
    std::optional<FilterChainMatch> filter_chain;
    friend bool operator==(const ListenerMatch&, const ListenerMatch&) = default;
  };
  struct RouteMatch {
    enum class Action : uint8_t { kAny, kRoute, kRedirect, kDirectResponse };
    std::string name;
    Action action = Action::kAny;
    friend bool operator==(const RouteMatch&, const RouteMatch&) = default;
  };
  struct VirtualHostMatch {
    std::string name, domain_name;
    std::optional<RouteMatch> route;
    friend bool operator==(const VirtualHostMatch&, const VirtualHostMatch&) = default;
  };
  struct RouteConfigurationMatch {
    uint32_t port_number = 0;
    std::string port_name, gateway, name;
    std::optional<VirtualHostMatch> vhost;
    friend bool operator==(const RouteConfigurationMatch&, const RouteConfigurationMatch&) = default;
  };
  struct ClusterMatch {
    uint32_t port_number = 0;
    std::string service, subset, name;
    friend bool operator==(const ClusterMatch&, const ClusterMatch&) = default;
  };
  struct Match {
    Context context = Context::kAny;
    std::optional<ProxyMatch> proxy;
    std::variant<std::monostate, ListenerMatch, RouteConfigurationMatch, ClusterMatch> object;
    friend bool operator==(const Match&, const Match&) = default;
  };
  struct Patch {
    Operation operation = Operation::kInvalid;
    nlohmann::json value;  // null: none
    friend bool operator==(const Patch&, const Patch&) = default;
  };
  struct ConfigPatch {
    ApplyTo apply_to = ApplyTo::kInvalid;
    Match match;
    std::optional<Patch> patch;
    friend bool operator==(const ConfigPatch&, const ConfigPatch&) = default;
  };

  std::optional<Labels> workload_selector;
  std::vector<PolicyTarget> targets;  // targetRefs
  std::vector<ConfigPatch> config_patches;
  int32_t priority = 0;
  friend bool operator==(const EnvoyFilter&, const EnvoyFilter&) = default;
};
using EnvoyFilterRef = TypedConfigRef<EnvoyFilter>;

}  // namespace wavetank::config
