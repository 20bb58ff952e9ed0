// WasmPlugins as filters of requests, or of connections, and as the configurations that those name (istiod:
// pilot/pkg/networking/core/v1alpha3/extension/wasmplugin.go, pilot/pkg/model/extensions.go).
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/gen/view/listener_types.h"
#include "core/model/proxy.h"
#include "core/profile/profile.h"
#include "core/push/policies/wasm_plugins.h"

namespace wavetank::pilot {

class PushContext;

// Of the listeners of one proxy.
class WasmFilters {
 public:
  using Phase = config::WasmPlugin::Phase;

  WasmFilters(const Proxy& proxy, const PushContext& push);

  // Listeners of the same set have the same plugins. 0: of none.
  int SetFor(ListenerClass listener_class, int port);
  // Encoded HttpConnectionManager.http_filters fields.
  const std::string& Of(int set, Phase phase) const {
    return sets_[static_cast<size_t>(set)].at(static_cast<size_t>(phase));
  }
  // Plugins of type NETWORK that hold there: encoded FilterChain.filters fields, one each, of that phase.
  std::vector<std::string> Network(ListenerClass listener_class, int port, Phase phase) const;
  // Of all phases, in their order. For chains of HTTP, where they come before the connection manager.
  std::vector<std::string> Network(ListenerClass listener_class, int port) const;

 private:
  WasmPlugins::List plugins_, network_;
  const Profile& profile_;
  std::vector<std::array<std::string, 4>> sets_;  // by phase
  std::map<std::vector<bool>, int> known_;        // by which of plugins_ hold
};

// What the filter and the resource that configures it are called: "shop.plugin", as the release writes it.
std::string WasmResourceName(const WasmPlugin& plugin, const Profile& profile);

// An encoded TypedExtensionConfig. `secret` knows the Docker credentials of a Secret's resource name; the proxy's agent
// takes them out of the environment again before Envoy sees it.
std::string WasmExtensionConfig(const WasmPlugin& plugin, const Proxy& proxy, const Profile& profile,
                                absl::FunctionRef<std::string(const std::string&)> secret);

}  // namespace wavetank::pilot
