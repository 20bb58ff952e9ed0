#include "core/gen/extensions/wasm_filters.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/envoyapi/any.h"
#include "core/envoyapi/go_json.h"
#include "core/gen/view/done_for.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/wasm/v3/wasm.pb.h"
#include "google/protobuf/wrappers.pb.h"

namespace wavetank::pilot {
namespace {

namespace wasm_v3 = ::envoy::extensions::wasm::v3;
using ManagerPb = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using PluginSpec = config::WasmPlugin;

bool HoldsFor(const PluginSpec::TrafficSelector& match, ListenerClass listener_class, int port) {
  const bool inbound = listener_class == ListenerClass::kSidecarInbound;
  const bool mode = match.mode == PluginSpec::Mode::kUndefined || match.mode == PluginSpec::Mode::kClientAndServer ||
                    match.mode == (inbound ? PluginSpec::Mode::kServer : PluginSpec::Mode::kClient);
  return mode && (match.ports.empty() || std::any_of(match.ports.begin(), match.ports.end(), [&](uint32_t wanted) {
                    return wanted != 0 && wanted == static_cast<uint32_t>(port);
                  }));
}

bool HoldsFor(const PluginSpec& plugin, ListenerClass listener_class, int port) {
  return plugin.match.empty() || std::any_of(plugin.match.begin(), plugin.match.end(),
                                             [&](const auto& match) { return HoldsFor(match, listener_class, port); });
}

// The filter is configured by ECDS, and nothing passes before it is; the other type is what an agent puts in place of a
// module that it cannot get. istiod: toEnvoyHTTPFilter, toEnvoyNetworkFilter.
void SetDiscovery(const char* layer, ::envoy::config::core::v3::ExtensionConfigSource& discovery) {
  discovery.mutable_config_source()->mutable_ads();
  discovery.mutable_config_source()->mutable_initial_fetch_timeout();
  discovery.mutable_config_source()->set_resource_api_version(envoy::config::core::v3::ApiVersion::V3);
  const std::string prefix = absl::StrCat("type.googleapis.com/envoy.extensions.filters.", layer, ".");
  discovery.add_type_urls(prefix + "wasm.v3.Wasm");
  discovery.add_type_urls(prefix + "rbac.v3.RBAC");
}

std::string EncodeWasmFilter(const std::string& name) {
  ManagerPb manager;
  auto& filter = *manager.add_http_filters();
  filter.set_name(name);
  SetDiscovery("http", *filter.mutable_config_discovery());
  return Serialize(manager);
}

std::string EncodeNetworkFilter(const std::string& name) {
  ::envoy::config::listener::v3::FilterChain chain;
  auto& filter = *chain.add_filters();
  filter.set_name(name);
  SetDiscovery("network", *filter.mutable_config_discovery());
  return Serialize(chain);
}

void SetVm(const WasmPlugin& plugin, absl::FunctionRef<std::string(const std::string&)> secret, wasm_v3::VmConfig& vm) {
  constexpr char kSecret[] = "ISTIO_META_WASM_IMAGE_PULL_SECRET";
  const PluginSpec& spec = plugin.config->spec;
  vm.set_runtime("envoy.wasm.runtime.v8");
  if (plugin.url.scheme == "file") {
    std::string_view path = spec.url;
    if (path.starts_with("file://")) path.remove_prefix(7);
    vm.mutable_code()->mutable_local()->set_filename(std::string(path));
  } else {
    auto& remote = *vm.mutable_code()->mutable_remote();
    remote.mutable_http_uri()->set_uri(plugin.url.scheme + ":" + plugin.url.rest);
    remote.mutable_http_uri()->mutable_timeout()->set_seconds(30);
    remote.mutable_http_uri()->set_cluster("_");  // the agent fetches the module, not Envoy
    remote.set_sha256(spec.sha256);
  }
  auto& environment = *vm.mutable_environment_variables();
  auto& values = *environment.mutable_key_values();
  if (!plugin.pull_secret.empty()) values[kSecret] = plugin.pull_secret;
  if (spec.image_pull_policy != PluginSpec::PullPolicy::kUnspecified) {
    values["ISTIO_META_WASM_IMAGE_PULL_POLICY"] =
        spec.image_pull_policy == PluginSpec::PullPolicy::kAlways ? "Always" : "IfNotPresent";
  }
  values["ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"] = std::to_string(plugin.config->meta.resource_version);
  // The user's own may take the place of any of these.
  for (const PluginSpec::EnvVar& variable : spec.env) {
    if (variable.from_host) {
      environment.add_host_env_keys(variable.name);
    } else {
      values[variable.name] = variable.value;
    }
  }
  if (const auto named = values.find(kSecret); named != values.end() && !named->second.empty()) {
    named->second = secret(named->second);
  }
}

// As the module is told it. istiod: pilot/pkg/config/kube/extensions/translate.go, syntheticMarker.
std::string NameOf(const WasmPlugin& plugin, const Profile& profile) {
  return plugin.resource_name + (profile.Has(Change::kTrafficExtensions) ? "~istio-translated-wasmplugin" : "");
}

// How a module's failure ends. istiod: pilot/pkg/model/extensions.go, buildWasmConfig.
void SetFailure(PluginSpec::FailStrategy strategy, const Proxy& proxy, const Profile& profile,
                wasm_v3::PluginConfig& config) {
  using Strategy = PluginSpec::FailStrategy;
  if (DoneFor(proxy, profile, Change::kWasmFailurePolicy)) {
    config.set_failure_policy(strategy == Strategy::kOpen     ? wasm_v3::FAIL_OPEN
                              : strategy == Strategy::kReload ? wasm_v3::FAIL_RELOAD
                                                              : wasm_v3::FAIL_CLOSED);
  } else if (profile.Has(Change::kWasmFailOpen) && strategy == Strategy::kOpen) {
// Deprecated in today's Envoy API.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    config.set_fail_open(true);
#pragma GCC diagnostic pop
  }
}

}  // namespace

WasmFilters::WasmFilters(const Proxy& proxy, const PushContext& push)
    : plugins_(push.profile().Has(Change::kUpstreamEnvoy) ? WasmPlugins::List() : push.wasm_plugins().For(proxy)),
      profile_(push.profile()),
      sets_(1) {
  if (!profile_.Has(Change::kNetworkWasm)) return;
  const auto http = std::stable_partition(plugins_.begin(), plugins_.end(),
                                          [](const WasmPlugin* plugin) { return !plugin->config->spec.network; });
  network_.assign(http, plugins_.end());
  plugins_.erase(http, plugins_.end());
}

std::vector<std::string> WasmFilters::Network(ListenerClass listener_class, int port, Phase phase) const {
  std::vector<std::string> out;
  for (const WasmPlugin* plugin : network_) {
    const PluginSpec& spec = plugin->config->spec;
    if (spec.phase == phase && HoldsFor(spec, listener_class, port))
      out.push_back(EncodeNetworkFilter(WasmResourceName(*plugin, profile_)));
  }
  return out;
}

std::vector<std::string> WasmFilters::Network(ListenerClass listener_class, int port) const {
  std::vector<std::string> out;
  if (network_.empty()) return out;
  for (const Phase phase : {Phase::kAuthn, Phase::kAuthz, Phase::kStats, Phase::kUnspecified}) {
    for (std::string& filter : Network(listener_class, port, phase)) out.push_back(std::move(filter));
  }
  return out;
}

int WasmFilters::SetFor(ListenerClass listener_class, int port) {
  if (plugins_.empty()) return 0;
  std::vector<bool> holding;
  holding.reserve(plugins_.size());
  for (const WasmPlugin* plugin : plugins_) holding.push_back(HoldsFor(plugin->config->spec, listener_class, port));
  const auto [known, is_new] = known_.try_emplace(holding, static_cast<int>(sets_.size()));
  if (!is_new) return known->second;
  auto& set = sets_.emplace_back();
  for (size_t i = 0; i < plugins_.size(); ++i) {
    const auto phase = static_cast<size_t>(plugins_[i]->config->spec.phase);
    if (holding[i]) set.at(phase) += EncodeWasmFilter(WasmResourceName(*plugins_[i], profile_));
  }
  return known->second;
}

std::string WasmResourceName(const WasmPlugin& plugin, const Profile& profile) {
  const char* prefix = profile.Has(Change::kTrafficExtensions)    ? "extensions.istio.io/trafficextension/"
                       : !profile.Has(Change::kWasmNamesPrefixed) ? ""
                       : profile.Has(Change::kWasmNamesSpelt)     ? "extensions.istio.io/wasmplugin/"
                                                                  : "extenstions.istio.io/wasmplugin/";
  return prefix + NameOf(plugin, profile);
}

std::string WasmExtensionConfig(const WasmPlugin& plugin, const Proxy& proxy, const Profile& profile,
                                absl::FunctionRef<std::string(const std::string&)> secret) {
  const PluginSpec& spec = plugin.config->spec;
  const bool network = spec.network && profile.Has(Change::kNetworkWasm);
  ::envoy::extensions::filters::http::wasm::v3::Wasm wasm;
  ::envoy::extensions::filters::network::wasm::v3::Wasm of_connections;
  auto& config = network ? *of_connections.mutable_config() : *wasm.mutable_config();
  config.set_name(NameOf(plugin, profile));
  config.set_root_id(spec.plugin_name);
  config.mutable_configuration();
  if (!spec.plugin_config.empty()) {
    google::protobuf::StringValue text;
    text.set_value(GoStructJson(spec.plugin_config));
    *config.mutable_configuration() = PackAny(text);
  }
  SetFailure(spec.fail_strategy, proxy, profile, config);
  SetVm(plugin, secret, *config.mutable_vm_config());
  ::envoy::config::core::v3::TypedExtensionConfig out;
  out.set_name(WasmResourceName(plugin, profile));
  *out.mutable_typed_config() = network ? PackAny(of_connections) : PackAny(wasm);
  return Serialize(out);
}

}  // namespace wavetank::pilot
