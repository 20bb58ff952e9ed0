#include "core/gen/eds/eds_answers.h"

#include <algorithm>
#include <utility>

#include "core/push/push_context.h"
#include "core/xds/cache.h"
#include "core/xds/resource_pool.h"

namespace wavetank::pilot {
namespace {

template <typename T>
bool Same(const std::weak_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

EdsAnswers::Answer* EdsAnswers::Find(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) {
  // The latest first: a push asks for the same again and again.
  for (size_t i = 1; i <= answers_.size(); ++i) {
    Answer& answer = answers_[(oldest_ + answers_.size() - i) % answers_.size()];
    if (answer.names.SharesWith(watched.resource_names) && answer.full == request.full &&
        Same(answer.push, request.push) && Same(answer.scope, proxy.sidecar_scope) &&
        answer.router == proxy.IsRouter() && answer.cluster == proxy.metadata.cluster_id &&
        answer.network == proxy.metadata.network && answer.locality == proxy.locality &&
        answer.requested_network_view == proxy.metadata.requested_network_view &&
        answer.configs_updated == request.configs_updated) {
      return &answer;
    }
  }
  return nullptr;
}

const GeneratedResources* EdsAnswers::Find(const Proxy& proxy, const WatchedResource& watched,
                                           const PushRequest& request,
                                           absl::FunctionRef<EdsAssignment(const std::string&)> generate) {
  Answer* const answer = Find(proxy, watched, request);
  if (answer == nullptr) return nullptr;
  // From before: what enters the cache now has changed for the next one, which will find it there.
  const uint64_t mark = cache_->Mark(XdsCache::Type::kEds);
  GeneratedResources& generated = answer->generated;
  int64_t hits = generated.cached;
  std::vector<size_t> again;  // to be generated once more
  const auto stale = [&](size_t i) {
    if (std::exchange(answer->parts[i].stale, true)) return;
    hits -= answer->parts[i].cached ? 1 : 0;
    again.push_back(i);
  };
  if (const auto hosts = cache_->ChangedSince(XdsCache::Type::kEds, answer->mark); !hosts) {
    for (size_t i = 0; i < answer->parts.size(); ++i) stale(i);
  } else {
    for (const std::string& host : *hosts) {
      const auto of = answer->parts_of.find(host);
      if (of == answer->parts_of.end()) continue;
      for (const size_t i : of->second) stale(i);
    }
  }
  // What the cache takes now and has not got is put there. Mostly it has all.
  const bool has_all = generated.cached == static_cast<int64_t>(answer->parts.size());
  if (!has_all && cache_->Takes(XdsCache::Type::kEds, request.start)) {
    for (size_t i = 0; i < answer->parts.size(); ++i) {
      if (!answer->parts[i].cached && !answer->parts[i].stale) again.push_back(i);
    }
  }
  cache_->CountHits(hits);
  std::sort(again.begin(), again.end());
  bool changed = false;
  for (const size_t i : again) {
    Part& part = answer->parts[i];
    const std::string name(generated.resources[i].name);
    EdsAssignment now = generate(name);
    if (now.resource.bytes != generated.resources[i].bytes) {
      generated.resources.Replace(i, std::move(now.resource));
      changed = true;
    }
    generated.endpoints += now.endpoints - part.endpoints;
    generated.cached += static_cast<int64_t>(now.cached) - static_cast<int64_t>(part.cached);
    part = {now.endpoints, now.cached, false};
  }
  if (changed) generated.resources = pool_->Same(std::move(generated.resources));
  answer->mark = mark;
  return &generated;
}

void EdsAnswers::Add(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request, uint64_t mark,
                     const GeneratedResources& generated, const std::vector<EdsAssignment>& assignments) {
  Answer answer;
  answer.mark = mark;
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
  answer.parts.reserve(assignments.size());
  for (const EdsAssignment& assignment : assignments) {
    answer.parts_of[assignment.host].push_back(answer.parts.size());
    answer.parts.push_back({assignment.endpoints, assignment.cached, false});
  }
  answer.generated = generated;
  if (answers_.size() < kMax) {
    answers_.push_back(std::move(answer));
  } else {
    answers_[oldest_] = std::move(answer);
    oldest_ = (oldest_ + 1) % kMax;
  }
}

}  // namespace wavetank::pilot
