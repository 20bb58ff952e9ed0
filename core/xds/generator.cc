#include "core/xds/generator.h"

#include <algorithm>
#include <new>

namespace wavetank::pilot {

Resource::Resource(std::string_view its_name, std::string_view its_bytes)
    : Resource(ResourceMaker().Make(its_name, its_bytes)) {}

Resource ResourceMaker::Make(std::string_view name, std::string_view bytes) {
  constexpr size_t kMost = 8192 / sizeof(Unit), kGrowth = 4;
  const size_t needed = 1 + (name.size() + bytes.size() + sizeof(Unit) - 1) / sizeof(Unit);
  std::shared_ptr<Unit[]> block = block_;
  size_t at = used_;
  if (needed > kMost / kGrowth) {  // memory of its own
    block = std::make_shared_for_overwrite<Unit[]>(needed);
    at = 0;
  } else {
    if (needed > size_ - used_) {
      size_ = std::max(needed, std::min(kGrowth * size_, kMost));
      block = block_ = std::make_shared_for_overwrite<Unit[]>(size_);
      at = used_ = 0;
    }
    used_ += needed;
  }
  char* const text = reinterpret_cast<char*>(&block[at + 1]);
  std::copy(bytes.begin(), bytes.end(), std::copy(name.begin(), name.end(), text));
  const auto* view = new (&block[at]) std::string_view(text + name.size(), bytes.size());
  Resource out;
  out.name = {text, name.size()};
  out.bytes = BytesRef(std::move(block), view);
  return out;
}

const std::vector<Resource>& ResourceList::list() const {
  static const std::vector<Resource>* const empty = new std::vector<Resource>();
  return shared_ == nullptr ? *empty : shared_->items;
}

ResourceList::Shared& ResourceList::Own() {
  if (shared_ == nullptr) {
    shared_ = std::make_shared<Shared>();
  } else if (shared_.use_count() > 1) {
    auto own = std::make_shared<Shared>();
    own->items = shared_->items;
    shared_ = std::move(own);
  }
  shared_->bytes = -1;
  shared_->wire = nullptr;
  return *shared_;
}

int64_t ResourceList::Bytes() const {
  if (shared_ == nullptr) return 0;
  if (shared_->bytes < 0) {
    shared_->bytes = 0;
    for (const Resource& resource : shared_->items) shared_->bytes += static_cast<int64_t>(resource.bytes->size());
  }
  return shared_->bytes;
}

const std::shared_ptr<const void>& ResourceList::wire() const {
  static const std::shared_ptr<const void>* const none = new std::shared_ptr<const void>();
  return shared_ == nullptr ? *none : shared_->wire;
}

void ResourceList::set_wire(std::shared_ptr<const void> wire) const { shared_->wire = std::move(wire); }

}  // namespace wavetank::pilot
