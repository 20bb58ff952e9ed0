// Resources and answers that are still in use, by what they hold: what a generator makes once more is what it made
// before. So a proxy that was sent it before knows it without a look inside, and what one proxy works out of an answer
// serves all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class ResourcePool {
 public:
  // The resource of this name with these bytes; a new one comes out of `maker`.
  Resource Make(std::string_view name, std::string_view bytes, ResourceMaker& maker);
  // The same for one that is made already.
  Resource Same(Resource made);
  // The answer of these very resources, in this order.
  ResourceList Same(ResourceList answer);

 private:
  struct KnownResource {
    std::weak_ptr<const std::string_view> bytes;
    std::string_view name;  // good as long as they are
    bool expired() const { return bytes.expired(); }
  };
  using KnownList = std::weak_ptr<ResourceList::Shared>;
  template <typename T>
  struct Known {
    absl::flat_hash_map<uint64_t, T> by_hash;
    size_t sweep_at = 1024;

    T& At(uint64_t hash);
  };

  template <typename MakeNew>
  Resource Find(std::string_view name, std::string_view bytes, MakeNew make);

  Known<KnownResource> resources_;
  Known<KnownList> lists_;
  std::vector<const void*> places_;  // scratch
};

}  // namespace wavetank::pilot
