#include "core/xds/generator.h"

namespace wavetank::pilot {

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
