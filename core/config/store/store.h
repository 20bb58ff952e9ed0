// All Istio configuration that one istiod sees, parsed and in istiod's order
// (istiod: pilot/pkg/model/config.go, ConfigStoreController).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/config/kinds/authorization_policy.h"
#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/envoy_filter.h"
#include "core/config/kinds/gateway.h"
#include "core/config/kinds/peer_authentication.h"
#include "core/config/kinds/request_authentication.h"
#include "core/config/kinds/service_entry.h"
#include "core/config/kinds/sidecar.h"
#include "core/config/kinds/telemetry.h"
#include "core/config/kinds/virtual_service.h"
#include "core/config/kinds/wasm_plugin.h"
#include "core/config/kinds/workload_entry.h"

namespace wavetank::config {

// Any parsed configuration.
using AnyConfigRef = std::variant<DestinationRuleRef, GatewayRef, PeerAuthenticationRef, ServiceEntryRef, SidecarRef,
                                  VirtualServiceRef, WorkloadEntryRef, AuthorizationPolicyRef, EnvoyFilterRef,
                                  TelemetryRef, RequestAuthenticationRef, WasmPluginRef>;
const ConfigMeta& MetaOf(const AnyConfigRef& config);
// Same spec, whatever the metadata.
bool SameSpec(const AnyConfigRef& a, const AnyConfigRef& b);

// Reads a custom resource. Unknown fields are ignored, as istiod's JSON decoder does. InvalidArgument names the JSON
// path: a field of the wrong type makes the whole object unreadable.
absl::StatusOr<AnyConfigRef> ParseConfig(const kube::Object& object);

enum class ConfigEvent : uint8_t { kAdd, kUpdate, kDelete };

// Called after the store has changed. `old` is null for kAdd; for kDelete `now` is the last state and `old` null.
using ConfigHandler = std::function<void(ConfigEvent event, const AnyConfigRef* old, const AnyConfigRef& now)>;

class ConfigStore {
 public:
  // Which of two configurations of one second comes first.
  enum class Tie : uint8_t {
    kDottedName,  // by "name.namespace", as up to istiod 1.22 (pilot/pkg/model/config.go, sortConfigByCreationTime)
    kName,        // by name, then namespace, as since 1.23
  };
  void SetTie(Tie tie);

  // Adds or replaces, and tells the handlers of the kind, also when nothing but metadata or nothing at all differs: the
  // handler that pushes decides with NeedsPush.
  void Put(AnyConfigRef config);
  void Delete(Kind kind, std::string_view name, std::string_view ns);

  // The two halves of the above, for a source that queues its events between its cache and its handlers, as crdclient
  // does. The returned pointer inside is null when there was nothing.
  AnyConfigRef Replace(AnyConfigRef config);
  AnyConfigRef Erase(Kind kind, std::string_view name, std::string_view ns);
  void Notify(ConfigEvent event, const AnyConfigRef* old, const AnyConfigRef& now) const;

  // Handlers live as long as the store, and are called in the order of their addition.
  void AddHandler(Kind kind, ConfigHandler handler);

  // By creation time, then as the tie says. Stable until the next change.
  const std::vector<AuthorizationPolicyRef>& AuthorizationPolicies() const { return authorization_policies_.Sorted(); }
  const std::vector<DestinationRuleRef>& DestinationRules() const { return destination_rules_.Sorted(); }
  const std::vector<EnvoyFilterRef>& EnvoyFilters() const { return envoy_filters_.Sorted(); }
  const std::vector<GatewayRef>& Gateways() const { return gateways_.Sorted(); }
  const std::vector<PeerAuthenticationRef>& PeerAuthentications() const { return peer_authentications_.Sorted(); }
  const std::vector<RequestAuthenticationRef>& RequestAuthentications() const {
    return request_authentications_.Sorted();
  }
  const std::vector<ServiceEntryRef>& ServiceEntries() const { return service_entries_.Sorted(); }
  const std::vector<SidecarRef>& Sidecars() const { return sidecars_.Sorted(); }
  const std::vector<TelemetryRef>& Telemetries() const { return telemetries_.Sorted(); }
  const std::vector<VirtualServiceRef>& VirtualServices() const { return virtual_services_.Sorted(); }
  const std::vector<WasmPluginRef>& WasmPlugins() const { return wasm_plugins_.Sorted(); }
  const std::vector<WorkloadEntryRef>& WorkloadEntries() const { return workload_entries_.Sorted(); }

 private:
  template <typename Spec>
  class Table {
   public:
    TypedConfigRef<Spec> Put(TypedConfigRef<Spec> config);  // what was there before
    TypedConfigRef<Spec> Delete(std::string_view ns, std::string_view name);
    const std::vector<TypedConfigRef<Spec>>& Sorted() const;
    void SetTie(Tie tie);

   private:
    std::map<std::pair<std::string, std::string>, TypedConfigRef<Spec>> by_key_;
    mutable std::vector<TypedConfigRef<Spec>> sorted_;
    mutable bool dirty_ = false;
    Tie tie_ = Tie::kDottedName;
  };
  Table<AuthorizationPolicy>& TableOf(const AuthorizationPolicyRef&) { return authorization_policies_; }
  Table<DestinationRule>& TableOf(const DestinationRuleRef&) { return destination_rules_; }
  Table<EnvoyFilter>& TableOf(const EnvoyFilterRef&) { return envoy_filters_; }
  Table<Gateway>& TableOf(const GatewayRef&) { return gateways_; }
  Table<PeerAuthentication>& TableOf(const PeerAuthenticationRef&) { return peer_authentications_; }
  Table<RequestAuthentication>& TableOf(const RequestAuthenticationRef&) { return request_authentications_; }
  Table<ServiceEntry>& TableOf(const ServiceEntryRef&) { return service_entries_; }
  Table<Sidecar>& TableOf(const SidecarRef&) { return sidecars_; }
  Table<Telemetry>& TableOf(const TelemetryRef&) { return telemetries_; }
  Table<VirtualService>& TableOf(const VirtualServiceRef&) { return virtual_services_; }
  Table<WasmPlugin>& TableOf(const WasmPluginRef&) { return wasm_plugins_; }
  Table<WorkloadEntry>& TableOf(const WorkloadEntryRef&) { return workload_entries_; }

  Table<AuthorizationPolicy> authorization_policies_;
  Table<DestinationRule> destination_rules_;
  Table<EnvoyFilter> envoy_filters_;
  Table<Gateway> gateways_;
  Table<PeerAuthentication> peer_authentications_;
  Table<RequestAuthentication> request_authentications_;
  Table<ServiceEntry> service_entries_;
  Table<Sidecar> sidecars_;
  Table<Telemetry> telemetries_;
  Table<VirtualService> virtual_services_;
  Table<WasmPlugin> wasm_plugins_;
  Table<WorkloadEntry> workload_entries_;
  std::vector<ConfigHandler> handlers_[kKinds];
};

// An update is worth a push when its spec differs, or when a label or annotation of either version speaks of istio.io.
// istiod: pilot/pkg/bootstrap, needsPush.
bool NeedsPush(const AnyConfigRef& old, const AnyConfigRef& now);

}  // namespace wavetank::config
