#include "core/gen/cds/cds_answers.h"

#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "core/xds/cache.h"

namespace wavetank::pilot {

const GeneratedResources& OutboundClusters::UpToDate(const std::vector<ServiceRef>& services, XdsCache& cache,
                                                     const Now& now, Generate generate) {
  // From before: what enters the cache now has changed for the next one, which will find it there.
  const uint64_t mark = cache.Mark(XdsCache::Type::kCds);
  if (!separable_ || !MarkStale(cache)) {
    GenerateAll(services, generate);
  } else {
    Parts fresh;
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      const bool all_cached = part.cached == static_cast<int64_t>(part.count);
      const bool same = all_cached || (!now.takes && now.same_for_view && !part.ruled);
      if (same && !part.stale) {
        cache.CountHits(part.cached);
      } else {
        fresh.emplace_back(i, generate(*services[i]));
      }
    }
    if (!fresh.empty()) Take(std::move(fresh));
  }
  mark_ = mark;
  return made_;
}

bool OutboundClusters::MarkStale(const XdsCache& cache) {
  const auto changed = cache.ChangedSince(XdsCache::Type::kCds, mark_);
  if (!changed) return false;
  for (const std::string& host : *changed) {
    if (const auto at = part_of_.find(host); at != part_of_.end()) parts_[at->second].stale = true;
  }
  return true;
}

void OutboundClusters::GenerateAll(const std::vector<ServiceRef>& services, Generate generate) {
  separable_ = true;
  part_of_.clear();
  Parts all;
  all.reserve(services.size());
  for (size_t i = 0; i < services.size(); ++i) {
    separable_ &= part_of_.emplace(services[i]->hostname, i).second;
    all.emplace_back(i, generate(*services[i]));
  }
  Assemble(std::move(all));
}

void OutboundClusters::Take(Parts fresh) {
  const bool fits = std::all_of(fresh.begin(), fresh.end(), [&](const auto& one) {
    const Part& part = parts_[one.first];
    const auto now = one.second.clusters.begin();
    return one.second.clusters.size() == part.count &&
           std::equal(now, one.second.clusters.end(), made_.resources.begin() + static_cast<std::ptrdiff_t>(part.first),
                      [](const Resource& a, const Resource& b) { return a.name == b.name; });
  });
  if (!fits) {
    Parts all;
    all.reserve(parts_.size());
    auto next = fresh.begin();
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (next != fresh.end() && next->first == i) {
        all.push_back(std::move(*next++));
        continue;
      }
      const auto first = made_.resources.begin() + static_cast<std::ptrdiff_t>(parts_[i].first);
      all.emplace_back(
          i, ServiceClusters{
                 {first, first + static_cast<std::ptrdiff_t>(parts_[i].count)}, parts_[i].cached, parts_[i].ruled});
    }
    return Assemble(std::move(all));
  }
  for (auto& [i, of] : fresh) {
    Part& part = parts_[i];
    for (size_t c = 0; c < part.count; ++c) {
      if (of.clusters[c].bytes == made_.resources[part.first + c].bytes) continue;
      made_.resources.Replace(part.first + c, std::move(of.clusters[c]));
      whole_.clear();
    }
    made_.cached += of.cached - part.cached;
    if (of.cached != part.cached) whole_.clear();
    part = {part.first, part.count, of.cached, of.ruled, false};
  }
}

void OutboundClusters::Assemble(Parts all) {
  whole_.clear();
  parts_.clear();
  made_ = {};
  std::vector<Resource> resources;
  resources.reserve(all.size());
  for (auto& [i, of] : all) {
    parts_.push_back({resources.size(), of.clusters.size(), of.cached, of.ruled, false});
    made_.cached += of.cached;
    for (Resource& cluster : of.clusters) resources.push_back(std::move(cluster));
  }
  absl::flat_hash_set<std::string_view> names;
  names.reserve(resources.size());
  const auto first_of_name = [&](const Resource& cluster) { return names.insert(cluster.name).second; };
  if (!std::all_of(resources.begin(), resources.end(), first_of_name)) {
    separable_ = false;
    names.clear();
    std::vector<Resource> unique;
    for (const Resource& cluster : resources) {
      if (first_of_name(cluster)) unique.push_back(cluster);
    }
    resources = std::move(unique);
  }
  made_.resources = std::move(resources);
}

}  // namespace wavetank::pilot
