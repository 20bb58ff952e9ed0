// Why a push happens and what it must cover (istiod: pilot/pkg/model/push_context.go, PushRequest).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "core/model/kept_hash.h"

namespace wavetank::pilot {

class PushContext;

enum class ConfigKind : uint8_t {
  kGateway,
  kVirtualService,
  kDestinationRule,
  kServiceEntry,  // also every service key: istiod names services by kind.ServiceEntry
  kWorkloadEntry,
  kSidecar,
  kPeerAuthentication,
  kRequestAuthentication,
  kAuthorizationPolicy,
  kEnvoyFilter,
  kTelemetry,
  kProxyConfig,
  kWasmPlugin,
  kSecret,
  kAddress,
  kService,
  kPod,
  kMeshConfig,
  kMeshNetworks,
};
std::string_view ConfigKindName(ConfigKind kind);  // "ServiceEntry", ...

struct ConfigKey {
  ConfigKind kind = ConfigKind::kServiceEntry;
  std::string name;  // for services the host name
  std::string ns;
  KeptHash hash = {};  // see ConfigHash()
  friend auto operator<=>(const ConfigKey&, const ConfigKey&) = default;
};

// Flags, since merged requests carry the union.
enum class TriggerReason : uint32_t {
  kEndpoint = 1u << 0,
  kHeadlessEndpoint = 1u << 1,
  kConfig = 1u << 2,
  kService = 1u << 3,
  kProxy = 1u << 4,
  kGlobal = 1u << 5,
  kUnknown = 1u << 6,
  kSecret = 1u << 7,
  kNetworks = 1u << 8,
  kProxyRequest = 1u << 9,
  kNamespace = 1u << 10,
  kCluster = 1u << 11,
  kDebug = 1u << 12,
};
using TriggerReasons = uint32_t;
constexpr TriggerReasons Reason(TriggerReason r) { return static_cast<TriggerReasons>(r); }
// Sorted Istio names: "endpoint", "service", ...
std::vector<std::string_view> ReasonNames(TriggerReasons reasons);

// What a client's request changes of its subscription (istiod: ResourceDelta).
struct ResourceDelta {
  std::set<std::string> subscribed, unsubscribed;
  bool empty() const { return subscribed.empty() && unsubscribed.empty(); }
};

struct PushRequest {
  bool full = false;
  // Empty means everything, not nothing.
  std::set<ConfigKey> configs_updated;
  std::shared_ptr<const PushContext> push;
  Time start{};  // of the earliest merged event
  TriggerReasons reasons = 0;
  int events = 1;  // merged events, the "<n> for ..." of istiod's log
  CauseId cause = kNoCause;
  ResourceDelta delta;  // of the client's request that this answers

  bool IsRequest() const { return reasons == Reason(TriggerReason::kProxyRequest); }
  bool IsProxyUpdate() const { return (reasons & Reason(TriggerReason::kProxy)) != 0; }
  bool HasConfigsOfKind(ConfigKind kind) const;

  // What the caller holds afterwards covers both. `newer` wins for push. A request without keys wipes the keys of the
  // other. istiod: PushRequest.CopyMerge.
  void Merge(PushRequest newer, Host& host);
};

}  // namespace wavetank::pilot
