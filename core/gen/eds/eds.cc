#include "core/gen/eds/eds.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/gen/eds/eds_answers.h"
#include "core/gen/eds/load_assignment_builder.h"
#include "core/gen/view/needs_push.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/xds/cache.h"
#include "core/xds/resource_pool.h"

namespace wavetank::pilot {
namespace {

// Nothing but services changed, as far as endpoints go. istiod: canSendPartialFullPushes.
bool OnlyServices(const PushRequest& request, const Proxy& proxy) {
  const std::set<ConfigKey>& updated = request.configs_updated;
  if (updated.empty() || !request.push->env().features.partial_full_pushes) return false;
  for (const ConfigKey& key : updated) {
    if (Concerns(XdsType::kEds, key.kind, proxy) && key.kind != ConfigKind::kServiceEntry) return false;
  }
  return true;
}

// istiod: edsNeedsPush. A Sidecar alone is no push of endpoints in later releases: a port that it no longer shows keeps
// those that it has (skippedEdsConfigs).
bool NeedsPush(const PushRequest& request, const Proxy& proxy) {
  const std::set<ConfigKey>& updated = request.configs_updated;
  if (updated.empty() || !request.push->profile().Has(Change::kDeltasOfScopes))
    return AnyConcerns(XdsType::kEds, updated, proxy);
  return std::any_of(updated.begin(), updated.end(), [&](const ConfigKey& key) {
    return key.kind != ConfigKind::kSidecar && Concerns(XdsType::kEds, key.kind, proxy);
  });
}

using HostNames = std::set<std::string_view>;

// Length of what stands before the host in a cluster's name; npos if it names none.
size_t PrefixLength(std::string_view cluster) {
  if (const size_t bar = cluster.rfind('|'); bar != cluster.npos) return bar + 1;
  const auto key = ParseSubsetKey(cluster);
  return key && !key->hostname.empty() ? cluster.size() - key->hostname.size() : cluster.npos;
}

// Calls `visit` for the clusters of `hosts`, in order. `clusters` are sorted, hence those of one port and subset stand
// together, by host: for few hosts the cost is that of a search per port and subset, however many services there are.
template <typename Visit>
void ForEachOf(const HostNames& hosts, const std::vector<std::string>& clusters, const Visit& visit) {
  constexpr size_t kSearchCost = 16;  // in steps of a walk, about
  const bool search = hosts.size() * kSearchCost < clusters.size();
  std::string name;
  for (auto it = clusters.begin(); it != clusters.end();) {
    const size_t length = PrefixLength(*it);
    if (length == std::string::npos || !search) {
      if (length != std::string::npos && hosts.contains(std::string_view(*it).substr(length))) visit(*it);
      ++it;
      continue;
    }
    name = it->substr(0, length);
    for (std::string_view host : hosts) {
      name.resize(length);
      name.append(host);
      it = std::lower_bound(it, clusters.end(), name);
      if (it != clusters.end() && *it == name) visit(*it);
    }
    name.resize(length);
    ++name.back();  // the first name that does not begin so
    it = std::lower_bound(it, clusters.end(), name);
  }
}

class EdsGenerator final : public Generator {
 public:
  explicit EdsGenerator(const EdsOptions& options) : cache_(options.cache), answers_(options.cache, &pool_) {}

  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    GeneratedResources out;
    out.send = false;
    if (!NeedsPush(request, proxy)) return out;
    const bool shareable = cache_ != nullptr && cache_->enabled() && proxy.sidecar_scope != nullptr &&
                           !proxy.sidecar_scope->SelectsWorkloads() && watched.resource_names.size() > 1;
    ResourceMaker maker;
    const auto generate = [&](const std::string& name) {
      return Resolve(LoadAssignmentBuilder(name, proxy, *request.push), name, request, maker);
    };
    if (shareable) {
      if (const GeneratedResources* known = answers_.Find(proxy, watched, request, generate)) return *known;
    }
    const uint64_t mark = shareable ? cache_->Mark(XdsCache::Type::kEds) : 0;
    depends_on_workload_ = false;
    std::vector<EdsAssignment> assignments;
    std::optional<HostNames> only;
    if (!request.full || OnlyServices(request, proxy)) only = Services(request);
    out.incremental = only && !only->empty();
    const auto take = [&](const std::string& name) {
      EdsAssignment made = generate(name);
      Count(made, out);
      if (shareable) assignments.push_back(made);
      out.resources.push_back(std::move(made.resource));
    };
    if (only) {
      ForEachOf(*only, watched.resource_names, take);
    } else {
      out.resources.reserve(watched.resource_names.size());
      if (shareable) assignments.reserve(watched.resource_names.size());
      for (const std::string& name : watched.resource_names) take(name);
    }
    out.send = !out.resources.empty();
    out.resources = pool_.Same(std::move(out.resources));
    if (shareable && out.send && !depends_on_workload_) answers_.Add(proxy, watched, request, mark, out, assignments);
    return out;
  }

  GeneratedResources GenerateDeltas(const Proxy& proxy, const WatchedResource& watched,
                                    const PushRequest& request) override {
    // istiod: shouldUseDeltaEds. An incremental push removes no cluster, so the other way serves it as well.
    const bool delta = request.full && NeedsPush(request, proxy) && OnlyServices(request, proxy);
    if (!delta) return Generate(proxy, watched, request);
    GeneratedResources out;
    out.used_delta = true;
    const HostNames only = Services(request);
    out.incremental = !only.empty();
    ResourceMaker maker;
    ForEachOf(only, watched.resource_names, [&](const std::string& name) {
      const LoadAssignmentBuilder builder(name, proxy, *request.push);
      if (builder.service() == nullptr) {
        out.removed.push_back(name);
      } else {
        EdsAssignment made = Resolve(builder, name, request, maker);
        Count(made, out);
        out.resources.push_back(std::move(made.resource));
      }
    });
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

  static void Count(const EdsAssignment& made, GeneratedResources& out) {
    out.endpoints += made.endpoints;
    out.cached += made.cached ? 1 : 0;
  }

  EdsAssignment Resolve(const LoadAssignmentBuilder& builder, const std::string& name, const PushRequest& request,
                        ResourceMaker& maker) {
    EdsAssignment out;
    const bool cacheable = cache_ != nullptr && cache_->enabled() && builder.service() != nullptr;
    if (cacheable) {
      out.host = builder.service()->hostname;
      depends_on_workload_ |= builder.DependsOnWorkload();
      key_.clear();
      builder.AppendKey(key_);
      if (const Resource* known = cache_->Get(XdsCache::Type::kEds, key_)) {
        out.resource = *known;
        out.cached = true;
        return out;
      }
    }
    Build(builder, name, request, maker, cacheable && !builder.DependsOnWorkload() && !builder.DependsOnLocality(),
          out);
    if (cacheable) {
      cache_->Add(XdsCache::Type::kEds, key_, request.start, builder.Dependencies(), out.resource, out.host);
    }
    return out;
  }

  void Build(const LoadAssignmentBuilder& builder, const std::string& name, const PushRequest& request,
             ResourceMaker& maker, bool same_anywhere, EdsAssignment& out) {
    Built* built = nullptr;
    if (same_anywhere) {
      if (built_of_.lock() != request.push) built_.clear();
      built_of_ = request.push;
      key_anywhere_.clear();
      builder.AppendKey(key_anywhere_, /*locality=*/false);
      built = &built_[key_anywhere_];
      if (built->resource.bytes != nullptr && built->version == builder.EndpointsVersion()) {
        out.resource = built->resource;
        out.endpoints = built->endpoints;
        return;
      }
    }
    builder.Build(scratch_, &out.endpoints);
    out.resource = pool_.Make(name, scratch_.Encode(name, buffer_), maker);
    scratch_.Clear();  // it points into the endpoints
    if (built != nullptr) *built = {builder.EndpointsVersion(), out.endpoints, out.resource};
  }

  // What is the same in all localities. The cache proper, whose content is part of the model, has it for each.
  struct Built {
    uint64_t version = 0;  // of the endpoints
    int64_t endpoints = 0;
    Resource resource;
  };

  XdsCache* cache_;
  ResourcePool pool_;  // proxies of many localities mostly get the same
  EdsAnswers answers_;
  bool depends_on_workload_ = false;  // what is being generated
  // All of one push context, by key without the locality.
  std::weak_ptr<const PushContext> built_of_;
  absl::flat_hash_map<std::string, Built> built_;
  std::string key_, key_anywhere_;
  LoadAssignment scratch_;  // memory only, as the next one
  std::string buffer_;
};

}  // namespace

std::unique_ptr<Generator> MakeEdsGenerator(const EdsOptions& options) {
  return std::make_unique<EdsGenerator>(options);
}

}  // namespace wavetank::pilot
