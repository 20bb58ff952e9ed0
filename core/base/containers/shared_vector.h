// A vector that shares its buffer with its copies until one of them is changed: for values that many hold and few
// change.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace wavetank {

// Copying costs a reference count. A change costs a copy if another copy holds the same buffer. Iteration is read-only.
template <typename T>
class SharedVector {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedVector() = default;
  SharedVector(std::vector<T> items) { *this = std::move(items); }  // NOLINT: a vector is one
  SharedVector(std::initializer_list<T> items) : SharedVector(std::vector<T>(items)) {}
  SharedVector(std::shared_ptr<const std::vector<T>> items) : items_(std::move(items)) {}  // NOLINT; null is empty
  SharedVector& operator=(std::vector<T> items) {
    items_ = items.empty() ? nullptr : std::make_shared<const std::vector<T>>(std::move(items));
    return *this;
  }

  const std::vector<T>& list() const {
    static const std::vector<T>* const empty = new std::vector<T>();
    return items_ == nullptr ? *empty : *items_;
  }
  operator const std::vector<T>&() const { return list(); }  // NOLINT
  const_iterator begin() const { return list().begin(); }
  const_iterator end() const { return list().end(); }
  size_t size() const { return items_ == nullptr ? 0 : items_->size(); }
  bool empty() const { return size() == 0; }
  const T& operator[](size_t i) const { return (*items_)[i]; }

  // Equal, and known without looking at the elements.
  bool SharesWith(const SharedVector& other) const { return items_ == other.items_; }
  // The buffer itself, as an identity: null for an empty vector. Another vector may get it when all holders are gone.
  const std::shared_ptr<const std::vector<T>>& shared() const { return items_; }

  friend bool operator==(const SharedVector& a, const SharedVector& b) {
    return a.SharesWith(b) || a.list() == b.list();
  }
  friend bool operator==(const SharedVector& a, const std::vector<T>& b) { return a.list() == b; }

 private:
  std::shared_ptr<const std::vector<T>> items_;
};

}  // namespace wavetank
