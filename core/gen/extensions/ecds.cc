#include "core/gen/extensions/ecds.h"

#include <algorithm>
#include <set>

#include "core/envoyapi/any.h"
#include "core/gen/extensions/patch_match.h"
#include "core/gen/extensions/wasm_filters.h"
#include "core/push/push_context.h"
#include "envoy/config/core/v3/extension.pb.h"

namespace wavetank::pilot {
namespace {

class EcdsGenerator final : public Generator {
 public:
  explicit EcdsGenerator(const PullSecrets* secrets) : secrets_(secrets) {}

  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    const std::set<std::string_view> wanted(watched.resource_names.begin(), watched.resource_names.end());
    const Profile& profile = request.push->profile();
    WasmPlugins::List plugins = request.push->wasm_plugins().For(proxy);
    std::erase_if(plugins,
                  [&](const WasmPlugin* plugin) { return !wanted.contains(WasmResourceName(*plugin, profile)); });
    const std::vector<ConfigKey> secrets = SecretsOf(plugins);
    GeneratedResources out;
    out.send =
        Concern(request, secrets) && (secrets.empty() || secrets_ == nullptr || secrets_->Knows(proxy.cluster().str()));
    if (!out.send) return out;
    AddPatches(proxy, request, wanted, out);
    for (const WasmPlugin* plugin : plugins) {
      out.resources.push_back(Resource(WasmResourceName(*plugin, profile),
                                       WasmExtensionConfig(*plugin, proxy, profile, [&](const std::string& name) {
                                         return CredentialFor(proxy, secrets, name);
                                       })));
    }
    return out;
  }

 private:
  static constexpr std::string_view kKubernetes = "kubernetes://";

  // The Secrets that plugins may name: those of "kubernetes://". istiod: referencedSecrets, parseSecretName.
  static std::vector<ConfigKey> SecretsOf(const WasmPlugins::List& plugins) {
    std::vector<ConfigKey> out;
    for (const WasmPlugin* plugin : plugins) {
      std::string_view name = plugin->pull_secret;
      if (!name.starts_with(kKubernetes)) continue;
      name.remove_prefix(kKubernetes.size());
      const size_t slash = name.find('/');
      out.push_back({ConfigKind::kSecret, std::string(name.substr(slash + 1)), std::string(name.substr(0, slash))});
    }
    return out;
  }

  // istiod: ecdsNeedsPush, onlyReferencedConfigsUpdated.
  static bool Concern(const PushRequest& request, const std::vector<ConfigKey>& secrets) {
    return request.configs_updated.empty() || request.HasConfigsOfKind(ConfigKind::kEnvoyFilter) ||
           request.HasConfigsOfKind(ConfigKind::kWasmPlugin) ||
           std::any_of(secrets.begin(), secrets.end(),
                       [&](const ConfigKey& secret) { return request.configs_updated.contains(secret); });
  }

  static void AddPatches(const Proxy& proxy, const PushRequest& request, const std::set<std::string_view>& wanted,
                         GeneratedResources& out) {
    using Extension = ::envoy::config::core::v3::TypedExtensionConfig;
    const auto patches = request.push->envoy_filters().For(proxy);
    if (patches == nullptr) return;
    for (const EnvoyPatch* patch : patches->Of(patch::ApplyTo::kExtensionConfig)) {
      const auto* value = dynamic_cast<const Extension*>(patch->value.get());
      if (patch->operation != patch::Operation::kAdd || value == nullptr || !wanted.contains(value->name())) continue;
      out.resources.push_back(Resource(value->name(), Serialize(*value)));
    }
  }

  // Empty: the proxy is not authenticated, or the Secret is none of those. istiod: GeneratePullSecrets.
  std::string CredentialFor(const Proxy& proxy, const std::vector<ConfigKey>& secrets, const std::string& name) const {
    if (secrets_ == nullptr || proxy.verified_identity.empty()) return "";
    const auto secret = std::find_if(secrets.begin(), secrets.end(), [&](const ConfigKey& key) {
      return name == std::string(kKubernetes) + key.ns + "/" + key.name;
    });
    if (secret == secrets.end()) return "";
    return secrets_->DockerCredential(proxy.cluster().str(), secret->ns, secret->name).value_or("");
  }

  const PullSecrets* const secrets_;
};

}  // namespace

std::unique_ptr<Generator> MakeEcdsGenerator(const PullSecrets* secrets) {
  return std::make_unique<EcdsGenerator>(secrets);
}

}  // namespace wavetank::pilot
