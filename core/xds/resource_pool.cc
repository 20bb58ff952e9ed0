#include "core/xds/resource_pool.h"

#include <algorithm>
#include <utility>

#include "xxhash.h"

namespace wavetank::pilot {
namespace {

bool SameResources(const std::vector<Resource>& a, const std::vector<Resource>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Resource& x, const Resource& y) { return x.bytes == y.bytes; });
}

}  // namespace

// Room for what has this hash. Two that share it take the place from each other, which costs what the pool saves.
template <typename T>
T& ResourcePool::Known<T>::At(uint64_t hash) {
  if (by_hash.size() >= sweep_at) {
    // order: only what nobody can see any more goes
    absl::erase_if(by_hash, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max<size_t>(1024, 2 * by_hash.size());
  }
  return by_hash[hash];
}

template <typename MakeNew>
Resource ResourcePool::Find(std::string_view name, std::string_view bytes, MakeNew make) {
  KnownResource& known = resources_.At(XXH3_64bits(bytes.data(), bytes.size()));
  Resource out;
  out.bytes = known.bytes.lock();
  if (out.bytes != nullptr && *out.bytes == bytes && known.name == name) {
    out.name = known.name;
    return out;
  }
  out = make();
  known = {out.bytes, out.name};
  return out;
}

Resource ResourcePool::Make(std::string_view name, std::string_view bytes, ResourceMaker& maker) {
  return Find(name, bytes, [&] { return maker.Make(name, bytes); });
}

Resource ResourcePool::Same(Resource made) {
  return Find(made.name, *made.bytes, [&] { return std::move(made); });
}

ResourceList ResourcePool::Same(ResourceList answer) {
  if (answer.empty()) return answer;
  places_.clear();
  for (const Resource& resource : answer) places_.push_back(resource.bytes.get());
  KnownList& known = lists_.At(XXH3_64bits(places_.data(), places_.size() * sizeof(places_[0])));
  ResourceList out;
  out.shared_ = known.lock();
  if (out.shared_ != nullptr && SameResources(out.shared_->items, answer)) return out;
  known = answer.shared_;
  return answer;
}

}  // namespace wavetank::pilot
