#include "core/push/policies/wasm_plugins.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/push/policies/policy_attachment.h"

namespace wavetank::pilot {
namespace {

// The Secret is the plugin's namespace's, whatever else its name says. istiod: toSecretResourceName.
std::string PullSecretName(std::string_view name, const std::string& ns) {
  constexpr std::string_view kKubernetes = "kubernetes://", kGateway = "kubernetes-gateway://", kBuiltin = "builtin://";
  if (name.empty() || name.starts_with(kBuiltin)) return "";
  const bool gateway = name.starts_with(kGateway);
  if (gateway) {
    name.remove_prefix(kGateway.size());
  } else if (name.starts_with(kKubernetes)) {
    name.remove_prefix(kKubernetes.size());
  }
  const size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view its_ns = name.substr(0, slash);
    name = name.substr(slash + 1);
    name = name.substr(0, name.find('/'));
    if (gateway && (its_ns.empty() || name.empty())) return "";
  } else if (gateway) {
    return "";
  }
  return std::string(gateway ? kGateway : kKubernetes) + ns + "/" + std::string(name);
}

int64_t PriorityOf(const WasmPlugin& plugin) {
  return plugin.config->spec.priority.value_or(std::numeric_limits<int64_t>::min());
}

}  // namespace

WasmPlugins::WasmPlugins(const std::vector<config::WasmPluginRef>& sorted, std::string root_namespace, bool by_target,
                         bool own_first)
    : root_namespace_(std::move(root_namespace)), by_target_(by_target), own_first_(own_first) {
  for (const config::WasmPluginRef& plugin : sorted) {
    std::optional<GoUrl> url = ParseGoUrl(plugin->spec.url);
    if (!url) continue;
    if (url->scheme.empty()) url->scheme = "oci";
    const config::ConfigMeta& meta = plugin->meta;
    by_namespace_[meta.ns].push_back(
        {meta.ns + "." + meta.name, plugin, *std::move(url), PullSecretName(plugin->spec.image_pull_secret, meta.ns)});
  }
}

WasmPlugins::List WasmPlugins::For(const Proxy& proxy) const {
  List out;
  if (by_namespace_.empty()) return out;
  const auto look = [&](std::string_view ns) {
    const auto it = by_namespace_.find(ns);
    if (it == by_namespace_.end()) return;
    for (const WasmPlugin& plugin : it->second) {
      if (Attaches(plugin.config->spec, ns, proxy.config_namespace, proxy.labels, by_target_)) out.push_back(&plugin);
    }
  };
  const bool both = proxy.config_namespace != root_namespace_;
  if (own_first_ && both) look(proxy.config_namespace);
  if (!root_namespace_.empty()) look(root_namespace_);
  if (!own_first_ && both) look(proxy.config_namespace);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return PriorityOf(*a) > PriorityOf(*b); });
  return out;
}

}  // namespace wavetank::pilot
