// A list of routes that virtual hosts may share: one of Go's slices. What is written to a place shows in all that share
// it; what is appended goes into the shared memory as long as that has room, and a later append overwrites it
// there. 1.18.2 patches such lists in place, so what comes of it depends on this.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "envoy/config/route/v3/route_components.pb.h"

namespace wavetank::pilot::patch {

// Null: one that was removed, as long as another host still shows its place.
using RoutePtr = std::shared_ptr<const ::envoy::config::route::v3::Route>;

class RouteList {
 public:
  RouteList() : memory_(std::make_shared<std::vector<RoutePtr>>()) {}
  // `room`: for so many more.
  RouteList(std::vector<RoutePtr> routes, size_t room)
      : memory_(std::make_shared<std::vector<RoutePtr>>(std::move(routes))), size_(memory_->size()) {
    memory_->resize(size_ + room);
  }

  size_t size() const { return size_; }
  RoutePtr& operator[](size_t i) { return (*memory_)[i]; }
  const RoutePtr& operator[](size_t i) const { return (*memory_)[i]; }

  void Append(RoutePtr route) {
    if (size_ == memory_->size()) {
      memory_ = std::make_shared<std::vector<RoutePtr>>(memory_->begin(), memory_->end());
      memory_->emplace_back();
    }
    (*memory_)[size_++] = std::move(route);
  }
  void InsertAt(size_t at, const RoutePtr& route) {
    Append(route);
    for (size_t i = size_ - 1; i > at; --i) (*memory_)[i] = (*memory_)[i - 1];
    (*memory_)[at] = route;
  }
  // A list of its own, with the route before all others.
  void Prepend(RoutePtr route) {
    std::vector<RoutePtr> all = {std::move(route)};
    all.insert(all.end(), memory_->begin(), memory_->begin() + static_cast<std::ptrdiff_t>(size_));
    *this = RouteList(std::move(all), 0);
  }
  // A list of its own, without those that were removed.
  void Trim() {
    std::vector<RoutePtr> kept;
    for (size_t i = 0; i < size_; ++i) {
      if ((*this)[i] != nullptr) kept.push_back((*this)[i]);
    }
    *this = RouteList(std::move(kept), 0);
  }

 private:
  std::shared_ptr<std::vector<RoutePtr>> memory_;
  size_t size_ = 0;
};

// The room in a list that was made for `made_for` and to which `length` were appended one by one (Go's growslice).
size_t RoomLeft(size_t made_for, size_t length);

}  // namespace wavetank::pilot::patch
