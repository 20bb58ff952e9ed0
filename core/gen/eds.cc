#include "core/gen/eds.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/gen/load_assignment_builder.h"
#include "core/model/push_context.h"
#include "core/xds/cache.h"

namespace wavetank::pilot {
namespace {

// Kinds of configuration that no endpoint depends on. istiod: skippedEdsConfigs.
bool NeverMatters(ConfigKind kind) {
  switch (kind) {
    case ConfigKind::kGateway:
    case ConfigKind::kVirtualService:
    case ConfigKind::kAuthorizationPolicy:
    case ConfigKind::kRequestAuthentication:
    case ConfigKind::kSecret:
    case ConfigKind::kTelemetry:
    case ConfigKind::kProxyConfig:
    case ConfigKind::kWasmPlugin:
      return true;
    default:
      return false;
  }
}

bool NeedsPush(const std::set<ConfigKey>& updated) {
  if (updated.empty()) return true;
  for (const ConfigKey& key : updated) {
    if (!NeverMatters(key.kind)) return true;
  }
  return false;
}

// Nothing but services changed, as far as endpoints go. istiod: canSendPartialFullPushes.
bool OnlyServices(const std::set<ConfigKey>& updated) {
  if (updated.empty()) return false;
  for (const ConfigKey& key : updated) {
    if (!NeverMatters(key.kind) && key.kind != ConfigKind::kServiceEntry) return false;
  }
  return true;
}

using HostNames = std::set<std::string_view>;

class EdsGenerator final : public Generator {
 public:
  explicit EdsGenerator(const EdsOptions& options) : cache_(options.cache) {}

  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    GeneratedResources out;
    out.send = false;
    if (!NeedsPush(request.configs_updated)) return out;
    std::optional<HostNames> only;
    if (!request.full || OnlyServices(request.configs_updated)) only = Services(request);
    out.incremental = only && !only->empty();
    if (!only) out.resources.reserve(watched.resource_names.size());
    for (const std::string& name : watched.resource_names) {
      if (only && !Concerns(*only, name)) continue;
      out.resources.push_back(Resolve(LoadAssignmentBuilder(name, proxy, *request.push), name, request, out));
    }
    out.send = !out.resources.empty();
    return out;
  }

  GeneratedResources GenerateDeltas(const Proxy& proxy, const WatchedResource& watched,
                                    const PushRequest& request) override {
    // istiod: shouldUseDeltaEds. An incremental push removes no cluster, so the other way serves it as well.
    const bool delta = NeedsPush(request.configs_updated) && request.full && OnlyServices(request.configs_updated);
    if (!delta) return Generate(proxy, watched, request);
    GeneratedResources out;
    out.used_delta = true;
    const HostNames only = Services(request);
    out.incremental = !only.empty();
    for (const std::string& name : watched.resource_names) {
      if (!Concerns(only, name)) continue;
      const LoadAssignmentBuilder builder(name, proxy, *request.push);
      if (builder.service() == nullptr) {
        out.removed.push_back(name);
      } else {
        out.resources.push_back(Resolve(builder, name, request, out));
      }
    }
    out.send = !out.resources.empty() || !out.removed.empty();
    return out;
  }

 private:
  static HostNames Services(const PushRequest& request) {
    HostNames out;
    for (const ConfigKey& key : request.configs_updated) {
      if (key.kind == ConfigKind::kServiceEntry) out.insert(key.name);
    }
    return out;
  }

  static bool Concerns(const HostNames& hosts, std::string_view cluster) {
    const auto key = ParseSubsetKey(cluster);
    return hosts.count(key ? key->hostname : std::string_view()) != 0;
  }

  Resource Resolve(const LoadAssignmentBuilder& builder, const std::string& name, const PushRequest& request,
                   GeneratedResources& out) {
    const bool cacheable = cache_ != nullptr && cache_->enabled() && builder.service() != nullptr;
    if (cacheable) {
      key_.clear();
      builder.AppendKey(key_);
      if (const Resource* known = cache_->Get(XdsCache::Type::kEds, key_)) {
        ++out.cached;
        return *known;
      }
    }
    Resource made{name, std::make_shared<const std::string>(builder.Build(&out.endpoints).Encode(name))};
    if (cacheable) cache_->Add(XdsCache::Type::kEds, key_, request.start, builder.DependentConfigs(), made);
    return made;
  }

  XdsCache* cache_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Generator> MakeEdsGenerator(const EdsOptions& options) {
  return std::make_unique<EdsGenerator>(options);
}

}  // namespace wavetank::pilot
