#include "core/gen/eds_answers.h"

#include "core/model/push_context.h"
#include "core/xds/cache.h"

namespace wavetank::pilot {
namespace {

template <typename T>
bool Same(const std::weak_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

const GeneratedResources* EdsAnswers::Find(const Proxy& proxy, const WatchedResource& watched,
                                           const PushRequest& request) const {
  const uint64_t cache_version = cache_->version(XdsCache::Type::kEds);
  const bool takes = cache_->Takes(XdsCache::Type::kEds, request.start);
  for (const Answer& answer : answers_) {
    if (!answer.all_cached && (takes || answer.clearings != cache_->clearings())) continue;
    if (answer.cache_version != cache_version || !answer.names.SharesWith(watched.resource_names) ||
        answer.full != request.full || !Same(answer.push, request.push) || !Same(answer.scope, proxy.sidecar_scope) ||
        answer.router != proxy.IsRouter() || answer.cluster != proxy.metadata.cluster_id ||
        answer.network != proxy.metadata.network || !(answer.locality == proxy.locality) ||
        answer.requested_network_view != proxy.metadata.requested_network_view ||
        answer.configs_updated != request.configs_updated) {
      continue;
    }
    return &answer.generated;
  }
  return nullptr;
}

void EdsAnswers::Add(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request,
                     uint64_t cache_version, const GeneratedResources& generated) {
  const bool all_cached = generated.cached == static_cast<int64_t>(generated.resources.size());
  if (!all_cached && cache_->version(XdsCache::Type::kEds) != cache_version) return;
  Answer answer;
  answer.cache_version = cache_version;
  answer.clearings = cache_->clearings();
  answer.all_cached = all_cached;
  answer.push = request.push;
  answer.scope = proxy.sidecar_scope;
  answer.names = watched.resource_names;
  answer.full = request.full;
  answer.configs_updated = request.configs_updated;
  answer.router = proxy.IsRouter();
  answer.cluster = proxy.metadata.cluster_id;
  answer.network = proxy.metadata.network;
  answer.locality = proxy.locality;
  answer.requested_network_view = proxy.metadata.requested_network_view;
  answer.generated = generated;
  if (answers_.size() < kMax) {
    answers_.push_back(std::move(answer));
  } else {
    answers_[oldest_] = std::move(answer);
    oldest_ = (oldest_ + 1) % kMax;
  }
}

}  // namespace wavetank::pilot
