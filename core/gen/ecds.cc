#include "core/gen/ecds.h"

#include <algorithm>

#include "core/gen/any.h"
#include "core/gen/patch_match.h"
#include "core/model/push_context.h"
#include "envoy/config/core/v3/extension.pb.h"

namespace wavetank::pilot {
namespace {

// istiod: ecdsNeedsPush, onlyReferencedConfigsUpdated. Secrets matter to WasmPlugins alone.
bool NeedsExtensions(const PushRequest& request) {
  return request.configs_updated.empty() || request.HasConfigsOfKind(ConfigKind::kEnvoyFilter) ||
         request.HasConfigsOfKind(ConfigKind::kWasmPlugin);
}

class EcdsGenerator final : public Generator {
 public:
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    using Extension = ::envoy::config::core::v3::TypedExtensionConfig;
    GeneratedResources out;
    out.send = NeedsExtensions(request);
    const auto patches = out.send ? request.push->envoy_filters().For(proxy) : nullptr;
    if (patches == nullptr) return out;
    for (const EnvoyPatch* patch : patches->Of(patch::ApplyTo::kExtensionConfig)) {
      const auto* value = dynamic_cast<const Extension*>(patch->value.get());
      if (patch->operation != patch::Operation::kAdd || value == nullptr) continue;
      const auto& wanted = watched.resource_names;
      if (std::find(wanted.begin(), wanted.end(), value->name()) == wanted.end()) continue;
      out.resources.push_back(Resource(value->name(), Serialize(*value)));
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<Generator> MakeEcdsGenerator() { return std::make_unique<EcdsGenerator>(); }

}  // namespace wavetank::pilot
