// WasmPlugins by namespace and those of one proxy (istiod: pilot/pkg/model/extensions.go, push_context.go
// initWasmPlugins, WasmPlugins).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text/go_url.h"
#include "core/config/kinds/wasm_plugin.h"
#include "core/model/proxy.h"

namespace wavetank::pilot {

struct WasmPlugin {
  std::string resource_name;  // "namespace.name": of the filter and of its configuration
  config::WasmPluginRef config;
  GoUrl url;                // with a scheme
  std::string pull_secret;  // "kubernetes://namespace/name"; empty: none
};

class WasmPlugins {
 public:
  using List = std::vector<const WasmPlugin*>;

  WasmPlugins() = default;
  // `sorted`: by creation time. `by_target`: as of Attaches(). One whose url is none is as if it were not there.
  // `own_first`: of one priority, those of the workload's namespace come before the root's.
  WasmPlugins(const std::vector<config::WasmPluginRef>& sorted, std::string root_namespace, bool by_target,
              bool own_first);

  // Those of the root namespace and of the proxy's own that select it, whatever the phase: the highest priority first,
  // those without one last, else by namespace (own_first) and old before new. They live as long as the
  // index. O(plugins of both namespaces).
  List For(const Proxy& proxy) const;

 private:
  std::string root_namespace_;
  bool by_target_ = false, own_first_ = false;
  std::map<std::string, std::vector<WasmPlugin>, std::less<>> by_namespace_;
};

}  // namespace wavetank::pilot
